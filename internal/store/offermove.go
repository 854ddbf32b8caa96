package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// moveRounds bounds the batches of lanes that one change of an executor looks at. What is left, the repair sweep does.
const moveRounds = 16

// Moved is what a change of an executor makes due: runs that waited for workers of a former queue, the first of them, and how
// many there are.
type Moved struct {
	Runs  []xid.ID
	Count int
}

// followExecutor makes runs of the workspace due that wait for workers of a queue, parked or offered, though their executor
// has become another one. It follows every commit that may change a run's executor: of a task, an agent, a project, or the
// workspace (SPEC S6.4, S7.1). told is the entry of the feed that tells of an agent's runs. The change stands whatever comes of
// it: what is missed, the sweeps find.
func (s *Queue) followExecutor(ctx context.Context, told entry) (moved Moved) {
	if err := s.moveOffers(ctx, told, &moved); err != nil {
		s.log.Warn("runs that wait for workers of a former queue could not be made due; the next sweep does it", "workspace_id", told.workspaceID, "error", err)
	}
	return moved
}

// moveOffers makes them due, one lane at a time. A lane that fails does not stop the others.
func (s *Queue) moveOffers(ctx context.Context, told entry, moved *Moved) error {
	var failed []xid.ID
	var problems []error
	for range moveRounds {
		lanes, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], movedLanesQuery, told.workspaceID, unparkLanes, pgtx.IDs(failed))
		if err != nil {
			return errors.Join(append(problems, &listError{"lanes", err})...)
		}
		unfit, err := pgtx.Each(ctx, lanes, func(agentID xid.ID) error {
			var runs []xid.ID
			err := s.inTx(ctx, func(t *tx) (err error) { runs, err = t.moveOffersOf(ctx, agentID, told); return err })
			if err == nil {
				moved.Count += len(runs)
				moved.Runs = append(moved.Runs, runs[:min(len(runs), listed-len(moved.Runs))]...)
			}
			return err
		}, pgtx.Blaming("lane"))
		problems = pgtx.AppendError(problems, err)
		if len(lanes) < unparkLanes || pgtx.EndsAll(ctx, err) {
			break
		}
		failed = append(failed, unfit...)
	}
	return errors.Join(problems...)
}

const movedLanesQuery = `
SELECT agent_id FROM runs r WHERE r.workspace_id = $1 AND r.agent_id <> ALL($3) AND ` + waitsInVain + `
UNION
SELECT l.agent_id
FROM attempt_leases l
JOIN runs r ON r.id = l.run_id
WHERE l.workspace_id = $1 AND l.agent_id <> ALL($3) AND ` + offeredInVain + `
LIMIT $2`

// offeredInVain says in SQL of a lease l of a run r that it offers the run to another queue than that of its executor.
const offeredInVain = `l.owner IS NULL AND ` + queueOfRun + ` IS DISTINCT FROM l.queue`

// moveOffersOf makes the runs of one lane due, tells of them in the feed, and returns them.
func (t *tx) moveOffersOf(ctx context.Context, agentID xid.ID, told entry) ([]xid.ID, error) {
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return nil, err
	}
	const offered = `SELECT l.run_id, l.attempt FROM attempt_leases l JOIN runs r ON r.id = l.run_id WHERE l.agent_id = $1 AND ` + offeredInVain + ` ORDER BY l.run_id`
	offers, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (a Attempt, err error) { return a, rows.Scan(&a.RunID, &a.Number) }, offered, agentID)
	if err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	var moved []xid.ID
	for _, offer := range offers {
		run, _, err := t.lockOffered(ctx, offer)
		if err != nil {
			return nil, err
		}
		if err := t.withdraw(ctx, run); err != nil {
			return nil, err
		}
		if run.cancelRequestedAt == nil { // else it has ended
			moved = append(moved, run.id)
		}
	}
	parked, err := t.unpark(ctx, l, waitsInVain)
	if err != nil {
		return nil, err
	}
	if moved = append(moved, parked...); len(moved) == 0 {
		return nil, nil
	}
	told.summary = "Runs that waited for workers of a former queue are due, since their executor is another one."
	told.agentID = agentID
	data := withDue(map[string]any{}, moved)
	maps.Copy(data, told.data)
	told.data = data
	return moved, t.note(ctx, told)
}
