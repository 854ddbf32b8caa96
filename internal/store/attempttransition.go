package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// transition is what the owner of a live attempt asks for. Those that are asked for at once are made in one transaction: all
// transitions of a workspace meet at its lane's row, and one at a time they would be no more in a second than the disk can
// flush (docs/decisions/0025-transitions-in-batches.md).
type transition struct {
	Attempt
	kind       transitionKind
	success    Success    // toFinish
	failure    Failure    // toFail
	unfinished Unfinished // toFail, toCancel and toHandBack

	run    runRow            // locked
	told   *domain.ToldUsage // of its session, by toFinish
	launch *Launch           // what came of toStart
	err    error             // why this transition alone is not made
}

type transitionKind int

const (
	toStart transitionKind = iota
	toFinish
	toFail
	toCancel
	toHandBack
)

// why says why the actions are refused that an attempt asked for which ends so.
func (k transitionKind) why() string {
	return map[transitionKind]string{toFail: "the attempt failed", toCancel: "the run was cancelled", toHandBack: "the attempt was handed back"}[k]
}

// transit makes a transition together with others, or alone when it would have to wait for somebody: the others do not wait
// with it.
func (s *Attempts) transit(ctx context.Context, x *transition) error {
	err := s.transitions.Ask(ctx, x)
	if errors.Is(err, errHeld) {
		return s.transitAlone(ctx, x)
	}
	return err
}

func (s *Attempts) transitAlone(ctx context.Context, x *transition) error {
	err := s.inTx(ctx, func(t *tx) error { return t.transitAll(ctx, []*transition{x}, true) })
	if err != nil {
		return err
	}
	return x.err
}

// transitTogether makes transitions in one transaction. Those that fail are found by bisecting. Nobody in particular asks for
// all of them, so that none is noted as the act of another one's caller.
func (s *Attempts) transitTogether(ctx context.Context, batch []*transition) []error {
	ctx = auth.WithPrincipal(ctx, auth.Principal{})
	return pgtx.Together(ctx, batch, func(some []*transition) ([]error, error) {
		err := s.inTx(ctx, func(t *tx) error { return t.transitAll(ctx, some, false) })
		if pgtx.LockTimeout(err) { // each waits by itself
			return slices.Repeat([]error{errHeld}, len(some)), nil
		}
		results := make([]error, len(some))
		for i, x := range some {
			results[i] = x.err
		}
		return results, err
	})
}

// transitAll makes transitions of live attempts in the order: starts, ends, ends without success, each by the ids of the runs. All lanes are
// locked first, then the runs, then their tasks, each in the order of their ids; the workspaces' lanes and the budgets come last,
// when the runs leave.
func (t *tx) transitAll(ctx context.Context, batch []*transition, wait bool) error {
	if err := t.lockLive(ctx, batch, wait); err != nil {
		return err
	}
	batch = slices.Clone(batch) // in the callers' order its results are told
	slices.SortStableFunc(batch, func(a, b *transition) int { return cmp.Compare(a.RunID, b.RunID) })
	var starts, ends, unfinished []*transition
	for _, x := range batch {
		switch {
		case x.err != nil:
		case x.kind == toStart:
			starts = append(starts, x)
		case x.kind == toFinish:
			ends = append(ends, x)
		default:
			unfinished = append(unfinished, x)
		}
	}
	tasks, err := t.lockTransitTasks(ctx, append(starts[:len(starts):len(starts)], unfinished...), ends)
	if err != nil {
		return err
	}
	if err := t.startLive(ctx, starts); err != nil {
		return err
	}
	if err := t.finishAll(ctx, ends, tasks); err != nil {
		return err
	}
	return t.endUnfinished(ctx, unfinished)
}

// lockLive locks lanes and runs of transitions. A transition whose attempt is not the live one is fenced. Without wait, those
// are left out whose lanes somebody holds, and so is a second one of the same attempt.
func (t *tx) lockLive(ctx context.Context, batch []*transition, wait bool) error {
	var runIDs []xid.ID
	for _, x := range batch {
		runIDs = append(runIDs, x.RunID)
		x.run, x.launch, x.err = runRow{}, nil, errHeld
		if wait {
			x.err = ErrFenced
		}
	}
	if err := t.lockTransitLanes(ctx, runIDs, wait); err != nil {
		return err
	}
	live, err := t.lockClaimedRuns(ctx, batch, wait)
	if err != nil {
		return err
	}
	for _, x := range batch {
		if run, is := live[x.Attempt]; is {
			x.run, x.err = run, nil
			delete(live, x.Attempt)
		}
	}
	return nil
}

func (t *tx) lockTransitLanes(ctx context.Context, runIDs []xid.ID, wait bool) error {
	of := `SELECT agent_id FROM runs WHERE id = ANY($1)`
	args := []any{pgtx.IDs(runIDs)}
	if len(t.also) > 0 {
		of += ` UNION SELECT unnest($2::text[])`
		args = append(args, pgtx.TextArray(t.also))
	}
	query := `SELECT ` + laneColumns + ` FROM agent_lanes WHERE agent_id IN (` + of + `) ORDER BY agent_id FOR NO KEY UPDATE`
	if !wait && len(t.also) == 0 {
		query += ` SKIP LOCKED`
	}
	_, err := t.lockLanes(ctx, query, args...)
	return pgtx.Wrap("lock lanes", err)
}

// lockClaimedRuns locks the runs of those attempts that are live and whose lanes are locked. Without wait, it bounds how long
// that and all that follows waits for a row.
func (t *tx) lockClaimedRuns(ctx context.Context, batch []*transition, wait bool) (map[Attempt]runRow, error) {
	n := len(batch)
	runIDs, numbers, owners, patience := make([]string, n), make([]int64, n), make([]string, n), claimPatience
	for i, x := range batch {
		runIDs[i], numbers[i], owners[i] = string(x.RunID), int64(x.Number), string(x.Owner)
	}
	if wait {
		patience = ""
	}
	live := map[Attempt]runRow{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var owner xid.ID
		run, err := scanRunAnd(rows, &owner)
		live[Attempt{RunID: run.id, Number: run.attempt, Owner: owner}] = run
		return struct{}{}, err
	}, lockClaimedQuery, pq.Array(runIDs), pq.Array(numbers), pq.Array(owners), pgtx.IDs(pgtx.Keys(t.locked)), patience)
	if err != nil {
		return nil, fmt.Errorf("lock runs: %w", err)
	}
	return live, nil
}

// lockClaimedQuery finds the runs by their ids and looks only then whether they are live. A condition on the status beside the ids
// would let the planner go by the index of live runs, which is tiny whenever the tables are analysed while nothing runs, and
// full of all that lived since when much does.
const lockClaimedQuery = `
-- $1 runs, $2 attempts, $3 owners, $4 agents whose lanes are locked, $5 how long to wait for a row, or ""
WITH bound AS MATERIALIZED (
  SELECT CASE WHEN $5 <> '' THEN set_config('lock_timeout', $5, true) END AS lock_timeout),
r AS MATERIALIZED (
  SELECT r.*
  FROM bound
  CROSS JOIN runs r
  WHERE r.id = ANY($1) AND r.agent_id = ANY($4)
  ORDER BY r.id
  FOR NO KEY UPDATE OF r)
SELECT ` + runColumns + `, l.owner
FROM r
JOIN attempt_leases l ON l.run_id = r.id AND l.attempt = r.attempt
JOIN unnest($1::text[], $2::bigint[], $3::text[]) AS a (run_id, attempt, owner)
  ON a.run_id = r.id AND a.attempt = r.attempt AND a.owner = l.owner
WHERE r.status = 'CLAIMED'`

// lockTransitTasks locks the tasks of runs, and what their ends may touch besides, in one statement.
func (t *tx) lockTransitTasks(ctx context.Context, others, ends []*transition) (map[xid.ID]*taskRow, error) {
	var ending []runRow
	var actions []domain.Action
	for _, x := range ends {
		ending, actions = append(ending, x.run), append(actions, domain.ParseActions(x.success.Result, x.run.taskID != "")...)
	}
	var ofOthers []xid.ID
	for _, x := range others {
		if x.run.taskID != "" {
			ofOthers = append(ofOthers, x.run.taskID)
		}
	}
	return t.lockFollowUps(ctx, ending, actions, ofOthers...)
}
