package reads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of the facts that Waiting reads.
const (
	waitingSettles = 50  // due runs of a lane that guards may end on the way to those asked about
	waitingLanes   = 400 // lanes of other agents in front, in workspaces with a ceiling
)

// Waiting says why runs and requests wait (SPEC S3.9), as the next pass of the claim would find them: all facts are of one
// snapshot. What does not wait is not in the answer. It takes seventeen statements at most for any number of ids; the rows they read
// are bounded by the ids, the sessions of their agents and, in a workspace with a ceiling, the free places.
func (s *Reads) Waiting(ctx context.Context, runIDs, requestIDs []xid.ID) (map[xid.ID]domain.Waiting, error) {
	out, _, err := s.waiting(ctx, runIDs, requestIDs)
	return out, err
}

// AtOneMoment lets f read from one snapshot, which ends whatever f does: its connection does not stay in a transaction.
func (s *Reads) AtOneMoment(ctx context.Context, f func(pgtx.Querier) error) (err error) {
	t, err := s.pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin a snapshot: %w", err)
	}
	defer func() { // nothing was written
		if end := t.Rollback(); end != nil && !errors.Is(end, sql.ErrTxDone) && err == nil {
			err = fmt.Errorf("end the snapshot: %w", end)
		}
	}()
	return f(t)
}

// waitFacts gathers the facts of one question.
type waitFacts struct {
	q      pgtx.Querier
	now    time.Time
	signs  domain.SchedulerSigns
	asked  []waitRun
	lanes  map[xid.ID]*waitLane
	places map[xid.ID]*int      // free places of the workspaces asked about; nil: no ceiling
	held   map[xid.ID]time.Time // since when a person holds them; zero: nobody does
	ledger domain.BudgetLedger  // their budgets that pause agents
}

// waitLane is a lane with what its guards look at.
type waitLane struct {
	domain.PassLane
	workspaceID xid.ID
	guards      domain.AdmitFacts
	known       map[string]bool
}

// waitRun is a queued or live run.
type waitRun struct {
	domain.PassRun
	agentID, workspaceID xid.ID
	class                domain.WakeClass
	cancelled, retry     bool
}

func (f *waitFacts) answer(ctx context.Context, runIDs, requestIDs []xid.ID) (map[xid.ID]domain.Waiting, error) {
	out := map[xid.ID]domain.Waiting{}
	requests, err := f.requests(ctx, requestIDs)
	if err != nil {
		return nil, err
	}
	if err := f.checkedOut(ctx, requestIDs, out); err != nil {
		return nil, err
	}
	for request, run := range requests {
		if run == "" {
			out[request] = domain.WaitsForRouting
		} else {
			runIDs = append(runIDs[:len(runIDs):len(runIDs)], run)
		}
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return f.readAsked(ctx, runIDs) }, f.readPlaces, f.readBudgets, f.readLanes, f.readLines, f.readScopes, f.readCharges,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	passes := f.foresee()
	for _, run := range f.asked {
		out[xid.ID(run.ID)] = passes[run.workspaceID].Waiting(string(run.agentID), run.ID)
	}
	if err := f.nameBlockers(ctx, out); err != nil {
		return nil, err
	}
	if err := f.nameLive(ctx, out); err != nil {
		return nil, err
	}
	for request, run := range requests {
		if w, waits := out[run]; waits {
			out[request] = w
		}
	}
	return out, nil
}

// requests finds the run of each request that is QUEUED; "" when it is unrouted.
func (f *waitFacts) requests(ctx context.Context, requestIDs []xid.ID) (map[xid.ID]xid.ID, error) {
	found := map[xid.ID]xid.ID{}
	if len(requestIDs) == 0 {
		return found, nil
	}
	_, err := pgtx.Collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var request, run xid.ID
		err := rows.Scan(&request, &run)
		found[request] = run
		return struct{}{}, err
	}, `SELECT id, coalesce(run_id, '') FROM wakeup_requests WHERE id = ANY($1) AND status = 'QUEUED'`, pgtx.IDs(requestIDs))
	return found, pgtx.Wrap("read the requests", err)
}

func (f *waitFacts) foresee() map[xid.ID]*domain.Pass {
	facts := map[xid.ID]*domain.PassFacts{}
	for id, places := range f.places {
		facts[id] = &domain.PassFacts{WorkspaceID: string(id), Now: f.now, HeldSince: f.held[id], Places: places, Ledger: f.ledger}
	}
	for _, l := range f.lanes {
		w := facts[l.workspaceID]
		w.Lanes = append(w.Lanes, l.PassLane)
	}
	passes := make(map[xid.ID]*domain.Pass, len(facts))
	for id, w := range facts {
		passes[id] = domain.Foresee(*w)
	}
	return passes
}
