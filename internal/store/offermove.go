package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// moveRounds bounds the batches of lanes that one change of an executor looks at. What is left, the repair sweep does.
const moveRounds = 16

// followExecutor makes runs of the workspace due that wait for workers of a queue, parked or offered, though their executor
// has become another one. It follows every commit that may change a run's executor: of a task, an agent, a project, or the
// workspace (SPEC S6.4, S7.1). The change stands whatever comes of it: what is missed, the sweeps find.
func (s *Queue) followExecutor(ctx context.Context, workspaceID xid.ID) {
	if err := s.moveOffers(ctx, workspaceID); err != nil {
		s.log.Warn("runs that wait for workers of a former queue could not be made due; the next sweep does it", "workspace_id", workspaceID, "error", err)
	}
}

// moveOffers makes them due, one lane at a time. A lane that fails does not stop the others.
func (s *Queue) moveOffers(ctx context.Context, workspaceID xid.ID) error {
	var failed []xid.ID
	var problems []error
	for range moveRounds {
		lanes, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], movedLanesQuery, workspaceID, unparkLanes, pgtx.IDs(failed))
		if err != nil {
			return errors.Join(append(problems, &listError{"lanes", err})...)
		}
		unfit, err := pgtx.Each(ctx, lanes, func(agentID xid.ID) error {
			return s.inTx(ctx, func(t *tx) error { return t.moveOffersOf(ctx, agentID) })
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

func (t *tx) moveOffersOf(ctx context.Context, agentID xid.ID) error {
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return err
	}
	const offered = `SELECT l.run_id, l.attempt FROM attempt_leases l JOIN runs r ON r.id = l.run_id WHERE l.agent_id = $1 AND ` + offeredInVain
	offers, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (a Attempt, err error) { return a, rows.Scan(&a.RunID, &a.Number) }, offered, agentID)
	if err != nil {
		return fmt.Errorf("list offers: %w", err)
	}
	for _, offer := range offers {
		run, _, err := t.lockOffered(ctx, offer)
		if err != nil {
			return err
		}
		if err := t.withdraw(ctx, l, run); err != nil {
			return err
		}
	}
	_, err = t.unpark(ctx, l, waitsInVain)
	return err
}
