package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// finishBatch bounds how many runs end in one transaction, finishPatience how long that may take.
const (
	finishBatch    = 16
	finishPatience = 30 * time.Second
)

// Finish ends a run well. ErrFenced when the attempt is not the live one any more.
//
// Runs that end while another is being committed end together. All ends of a workspace meet at its lane's row, and
// whoever holds that row holds it until the disk has the commit. One at a time, a workspace could end no more runs in a
// second than the disk can flush.
func (s *Attempts) Finish(ctx context.Context, a Attempt, ok Success) error {
	f := &finishing{attempt: a, success: ok, turn: make(chan struct{}, 1), done: make(chan error, 1)}
	if ok.Result["actions"] != nil { // they may touch more tasks than its own
		return s.finishAlone(ctx, f)
	}
	if s.finishers.join(f) {
		return s.lead(ctx, f)
	}
	select {
	case err := <-f.done:
		return err
	case <-f.turn:
		return s.lead(ctx, f)
	case <-ctx.Done():
	}
	if s.finishers.leave(f) {
		return pgtx.Wrap("finish run", ctx.Err())
	}
	select { // it is being ended, or it is its turn
	case err := <-f.done:
		return err
	case <-f.turn:
		s.finishers.pass()
		return pgtx.Wrap("finish run", ctx.Err())
	}
}

// finishing is one call of Finish.
type finishing struct {
	attempt Attempt
	success Success
	turn    chan struct{} // it leads the next batch
	done    chan error    // another one has ended it
}

// finishers are the calls of Finish that wait. One leads at a time: it ends all that wait, and passes the lead on.
type finishers struct {
	mu      sync.Mutex
	leading bool
	waiting []*finishing
}

// join says whether f leads at once; else it waits.
func (q *finishers) join(f *finishing) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leading {
		q.waiting = append(q.waiting, f)
		return false
	}
	q.leading = true
	return true
}

// leave takes f out; false when it waits no more.
func (q *finishers) leave(f *finishing) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, f)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// take is the batch of a leader: itself and the first that wait.
func (q *finishers) take(leader *finishing) []*finishing {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), finishBatch-1)
	batch := append([]*finishing{leader}, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return batch
}

// pass gives the lead to the first that waits.
func (q *finishers) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.leading = false
		return
	}
	q.waiting[0].turn <- struct{}{}
	q.waiting = slices.Delete(q.waiting, 0, 1)
}

// lead ends f and all that wait, passes the lead on, and returns what came of f.
func (s *Attempts) lead(ctx context.Context, f *finishing) error {
	defer s.finishers.pass()
	batch := s.finishers.take(f)
	if len(batch) == 1 {
		return s.finishAlone(ctx, f)
	}
	together, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishPatience) // it is not for the leader alone
	defer cancel()
	results := s.finishTogether(together, batch)
	for i, other := range batch[1:] {
		other.done <- results[i+1]
	}
	return results[0]
}

func (s *Attempts) finishAlone(ctx context.Context, f *finishing) error {
	return pgtx.Wrap("finish run", s.withLive(ctx, f.attempt, func(t *tx, l lane, run runRow) error {
		tasks, err := t.lockFollowUps(ctx, []runRow{run}, domain.ParseActions(f.success.Result, run.taskID != ""))
		if err != nil {
			return err
		}
		return t.finish(ctx, l, run, f.success, tasks, leave{})
	}))
}

// finishTogether ends a batch in one transaction, or, when one of them spoils it, each alone.
func (s *Attempts) finishTogether(ctx context.Context, batch []*finishing) []error {
	results := make([]error, len(batch))
	err := s.inTx(ctx, func(t *tx) error {
		clear(results)
		return t.finishAll(ctx, batch, results)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil || postgres.Away(err) || pgtx.Retryable(err):
		for i := range results {
			results[i] = pgtx.Wrap("finish run", err)
		}
	default:
		for i, f := range batch {
			results[i] = s.finishAlone(ctx, f)
		}
	}
	return results
}

// finishAll ends the runs that are live; results says of the others that they are fenced. All lanes are locked first, in
// the order of their ids, the workspaces' and the budgets last.
func (t *tx) finishAll(ctx context.Context, batch []*finishing, results []error) error {
	lanes, err := t.lockLanesOf(ctx, batch)
	if err != nil {
		return err
	}
	runs, err := t.lockAllClaimed(ctx, batch)
	if err != nil {
		return err
	}
	tasks, err := t.lockFollowUps(ctx, slices.Collect(maps.Values(runs)), nil)
	if err != nil {
		return err
	}
	left := map[xid.ID][]runRow{}
	for i, f := range batch {
		run, live := runs[f.attempt]
		if !live {
			results[i] = fmt.Errorf("finish run: %w", ErrFenced)
			continue
		}
		delete(runs, f.attempt) // said twice, it is fenced the second time
		if err := t.finish(ctx, lanes[run.agentID], run, f.success, tasks, leave{countLater: true}); err != nil {
			return err
		}
		left[run.workspaceID] = append(left[run.workspaceID], run)
	}
	var workspaces []xid.ID
	for id := range left {
		workspaces = append(workspaces, id)
	}
	slices.Sort(workspaces)
	var charged []runRow
	for _, id := range workspaces {
		budgeted, err := t.countWorkspace(ctx, id, -len(left[id]))
		if err != nil {
			return err
		}
		if budgeted {
			charged = append(charged, left[id]...)
		}
	}
	return t.chargeBudgets(ctx, charged)
}

func (t *tx) lockLanesOf(ctx context.Context, batch []*finishing) (map[xid.ID]lane, error) {
	var runIDs []xid.ID
	for _, f := range batch {
		runIDs = append(runIDs, f.attempt.RunID)
	}
	of := `SELECT agent_id FROM runs WHERE id = ANY($1)`
	args := []any{pgtx.IDs(runIDs)}
	if len(t.also) > 0 {
		of += ` UNION SELECT unnest($2::text[])`
		args = append(args, pgtx.TextArray(t.also))
	}
	if _, err := t.lockLanes(ctx, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id IN (`+of+`) ORDER BY agent_id FOR NO KEY UPDATE`, args...); err != nil {
		return nil, fmt.Errorf("lock lanes: %w", err)
	}
	return t.locked, nil
}

// lockAllClaimed locks the runs of those attempts that are live, in the order of their ids.
func (t *tx) lockAllClaimed(ctx context.Context, batch []*finishing) (map[Attempt]runRow, error) {
	runIDs, numbers, owners := make([]string, len(batch)), make([]int64, len(batch)), make([]string, len(batch))
	for i, f := range batch {
		runIDs[i], numbers[i], owners[i] = string(f.attempt.RunID), int64(f.attempt.Number), string(f.attempt.Owner)
	}
	const query = `
SELECT ` + runColumns + `, l.owner FROM runs r JOIN attempt_leases l ON l.run_id = r.id AND l.attempt = r.attempt
JOIN unnest($1::text[], $2::bigint[], $3::text[]) AS a (run_id, attempt, owner) ON a.run_id = r.id AND a.attempt = r.attempt AND a.owner = l.owner
WHERE r.status = 'CLAIMED' ORDER BY r.id FOR NO KEY UPDATE OF r`
	live := map[Attempt]runRow{}
	rows, err := t.QueryContext(ctx, query, pq.Array(runIDs), pq.Array(numbers), pq.Array(owners))
	if err != nil {
		return nil, fmt.Errorf("lock runs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var owner xid.ID
		run, err := scanRunAnd(rows, &owner)
		if err != nil {
			return nil, fmt.Errorf("lock runs: %w", err)
		}
		a := Attempt{RunID: run.id, Number: run.attempt, Owner: owner}
		live[a] = run
	}
	return live, errors.Join(rows.Err(), rows.Close())
}
