package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// ManyRuns names runs of a workspace that a call is about, oldest first. A dry run changes nothing.
type ManyRuns struct {
	WorkspaceID xid.ID
	Runs        []RunOfAgent
	More        bool // others match as well
	Note        string
	DryRun      bool
	Idempotency
}

// RunRetried is what a call about many runs made of one of them. Message says why it was refused.
type RunRetried struct {
	RunID   xid.ID              `json:"runId"`
	Became  domain.RetryOutcome `json:"became"`
	Message string              `json:"message,omitempty"`
}

// RunCancelled is what a call about many runs made of one of them.
type RunCancelled struct {
	RunID  xid.ID               `json:"runId"`
	Became domain.CancelOutcome `json:"became"`
}

// Many is what a call about many runs did, in the order of the runs.
type Many[T any] struct {
	Results  []T
	More     bool
	Replayed bool
}

// errDryRun undoes a transaction that was made to see what it would do.
var errDryRun = errors.New("nothing was to be changed")

// RetryRuns does with each run what RetryRun does, one transaction for the runs of an agent, and at most cancelBatch of them. A run that
// cannot be tried is refused, and stops no other.
func (s *Queue) RetryRuns(ctx context.Context, in ManyRuns) (Many[RunRetried], error) {
	return manyRuns(ctx, s, "retryRuns", in, func(in ManyRuns) ([]RunRetried, error) {
		var all []RunRetried
		for _, some := range byAgent(in.Runs) {
			done, err := s.retrySome(ctx, some, in.Note, in.DryRun)
			if err != nil {
				return all, fmt.Errorf("retry runs of agent %s: %w", some[0].AgentID, err)
			}
			all = append(all, done...)
		}
		return all, nil
	}, func(r RunRetried) xid.ID { return r.RunID })
}

// CancelRuns does with each run what CancelRun does, at most cancelBatch in one transaction. What has ended meanwhile stays as it is.
func (s *Queue) CancelRuns(ctx context.Context, in ManyRuns) (Many[RunCancelled], error) {
	return manyRuns(ctx, s, "cancelRuns", in, func(in ManyRuns) ([]RunCancelled, error) {
		var all []RunCancelled
		for some := range slices.Chunk(in.Runs, cancelBatch) {
			done, err := s.cancelSomeOr(ctx, some, in.Note, in.DryRun)
			if err != nil {
				return all, err
			}
			all = append(all, done.ended...)
		}
		return all, nil
	}, func(r RunCancelled) xid.ID { return r.RunID })
}

// keptCall is a call about many runs as its key keeps it: the runs from its begin on, and the results once it is through.
type keptCall[T any] struct {
	Runs    []RunOfAgent `json:"runs"`
	More    bool         `json:"more,omitempty"`
	Results []T          `json:"results,omitempty"`
}

// manyRuns does a call about many runs. One with a key that is made again goes on with the runs of the first call, if that was not
// through, since each of them can be done again; else it returns what the first call did.
func manyRuns[T any](ctx context.Context, s *Queue, mutation string, in ManyRuns, do func(ManyRuns) ([]T, error), of func(T) xid.ID) (out Many[T], err error) {
	if err := checkNote(in.Note); err != nil {
		return out, err
	}
	if in.DryRun {
		in.Key = ""
	}
	before, replayed, err := beginMany[T](ctx, s, mutation, in)
	if err != nil {
		return out, err
	}
	out.Replayed, out.More = replayed, in.More
	if replayed {
		in.Runs, out.More = before.Runs, before.More
	}
	if out.Results = before.Results; out.Results == nil {
		if out.Results, err = do(in); err != nil {
			return out, err
		}
		place := map[xid.ID]int{}
		for i, r := range in.Runs {
			place[r.RunID] = i
		}
		slices.SortFunc(out.Results, func(a, b T) int { return cmp.Compare(place[of(a)], place[of(b)]) })
		err = s.keepMany(ctx, mutation, in, keptCall[T]{Runs: in.Runs, More: in.More, Results: out.Results})
	}
	return out, err
}

// beginMany takes the key of a call, and keeps the runs that it is about; or it finds what an earlier call with the key kept.
func beginMany[T any](ctx context.Context, s *Queue, mutation string, in ManyRuns) (before keptCall[T], replayed bool, err error) {
	if in.Key == "" {
		return before, false, nil
	}
	err = s.inTx(ctx, func(t *tx) error {
		before, replayed = keptCall[T]{}, false
		earlier, err := t.claimKey(ctx, in.WorkspaceID, mutation, in.Idempotency)
		if err != nil {
			return err
		}
		if replayed = earlier != ""; !replayed {
			if err := t.keepResult(ctx, in.WorkspaceID, mutation, in.Idempotency, in.WorkspaceID); err != nil {
				return err
			}
			return t.keepJSON(ctx, mutation, in, keptCall[T]{Runs: in.Runs, More: in.More})
		}
		const query = `SELECT result FROM mutation_keys WHERE owner = $1 AND mutation = $2 AND key = $3`
		text, err := pgtx.QueryOne[[]byte](ctx, t, query, keyOwner(ctx, in.WorkspaceID), mutation, in.stored(ctx))
		if err != nil {
			return fmt.Errorf("read what the first call did: %w", err)
		}
		return pgtx.Wrap("read what the first call did", json.Unmarshal(text, &before))
	})
	return before, replayed, err
}

func (s *Queue) keepMany(ctx context.Context, mutation string, in ManyRuns, what any) error {
	if in.Key == "" {
		return nil
	}
	return s.inTx(ctx, func(t *tx) error { return t.keepJSON(ctx, mutation, in, what) })
}

func (t *tx) keepJSON(ctx context.Context, mutation string, in ManyRuns, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode what the call does: %w", err)
	}
	const keep = `UPDATE mutation_keys SET result = $4 WHERE owner = $1 AND mutation = $2 AND key = $3`
	return pgtx.Wrap("keep what the call does", pgtx.ExecOne(ctx, t, keep, keyOwner(ctx, in.WorkspaceID), mutation, in.stored(ctx), text))
}

// byAgent divides runs by their agents, in parts of at most cancelBatch.
func byAgent(runs []RunOfAgent) (parts [][]RunOfAgent) {
	of := map[xid.ID][]RunOfAgent{}
	var agents []xid.ID
	for _, r := range runs {
		if of[r.AgentID] == nil {
			agents = append(agents, r.AgentID)
		}
		of[r.AgentID] = append(of[r.AgentID], r)
	}
	for _, agent := range agents {
		parts = slices.AppendSeq(parts, slices.Chunk(of[agent], cancelBatch))
	}
	return parts
}

// retrySome tries runs of one agent again, in one transaction.
func (s *Queue) retrySome(ctx context.Context, some []RunOfAgent, note string, dry bool) (done []RunRetried, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		l, err := t.lockLane(ctx, some[0].AgentID)
		if err != nil {
			return err
		}
		ids := make([]xid.ID, len(some))
		for i, r := range some {
			ids[i] = r.RunID
		}
		if done, err = t.retryLocked(ctx, l, ids, note); err == nil && dry {
			err = errDryRun
		}
		return err
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return done, err
}

// retryLocked does what the rule says with each run of a locked lane. The tasks of the requests are locked before the runs, since they
// come first.
func (t *tx) retryLocked(ctx context.Context, l lane, ids []xid.ID, note string) (done []RunRetried, err error) {
	ended, requests, err := t.endedRequestsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	holding, err := t.holding(ctx, l, requests)
	if err != nil {
		return nil, err
	}
	runs, facts, err := t.lockToRetry(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, run := range runs {
		became := domain.RetryMadeDue
		action, problems := domain.RetryRun(facts[i])
		err := domain.AsUserError(problems)
		switch {
		case err != nil:
		case action == domain.RetryMakeDue:
			err = t.makeDue(ctx, l, run, note)
		default:
			became = domain.RetrySentAgain
			err = t.retryEnded(ctx, l, run, len(ended[run.id]), pgtx.Remaining(ended[run.id], pgtx.Remaining(ended[run.id], holding)), note)
		}
		refused, ok := errors.AsType[*domain.UserError](err)
		switch {
		case ok:
			done = append(done, RunRetried{run.id, domain.RetryRefused, refused.Problems[0].Message})
		case err != nil:
			return nil, err
		default:
			done = append(done, RunRetried{RunID: run.id, Became: became})
		}
	}
	return done, nil
}

// endedRequestsOf is endedRequests for several runs: the ids by run, and all of them.
func (t *tx) endedRequestsOf(ctx context.Context, runs []xid.ID) (byRun map[xid.ID][]xid.ID, all []droppedRequest, err error) {
	const query = `
SELECT r.id, q.id, q.task_id, q.source, q.basis
FROM unnest($1::text[]) AS r (id)
CROSS JOIN LATERAL (
  SELECT id, task_id, source, basis, requested_at
  FROM wakeup_requests q
  WHERE q.run_id = r.id
    AND q.finished_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM routines o WHERE o.id = q.routine_id AND o.deleted_at IS NOT NULL)
  ORDER BY q.requested_at, q.id
  LIMIT $2) q
ORDER BY q.requested_at, q.id`
	byRun = map[xid.ID][]xid.ID{}
	all, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (d droppedRequest, err error) {
		var run xid.ID
		err = rows.Scan(&run, &d.id, &d.taskID, &d.source, &d.basis)
		byRun[run] = append(byRun[run], d.id)
		return d, err
	}, query, pgtx.IDs(runs), backlogRequests)
	return byRun, all, pgtx.Wrap("read the runs' requests", err)
}

// lockToRetry locks runs, and reads what their retries depend on.
func (t *tx) lockToRetry(ctx context.Context, ids []xid.ID) (runs []runRow, facts []domain.RetryFacts, err error) {
	query := `
SELECT ` + runColumns + `, a.deleted_at IS NOT NULL,
  EXISTS (SELECT 1 FROM attempt_leases l WHERE l.run_id = r.id AND l.owner IS NULL),
  EXISTS (SELECT 1 FROM tasks t WHERE t.id = r.task_id AND ` + guard.HasOpenBlocker + `)
FROM runs r
JOIN agents a ON a.id = r.agent_id
WHERE r.id = ANY($1)
ORDER BY r.requested_at, r.id
FOR NO KEY UPDATE OF r`
	runs, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (run runRow, err error) {
		var f domain.RetryFacts
		run, err = scanRunAnd(rows, &f.AgentDeleted, &f.Offered, &f.Blocked)
		f.Status, f.ParkedReason = run.status, pgtx.OrZero(run.parkedReason)
		facts = append(facts, f)
		return run, err
	}, query, pgtx.IDs(ids))
	return runs, facts, pgtx.Wrap("lock the runs", err)
}
