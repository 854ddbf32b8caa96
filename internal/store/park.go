package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/xid"
)

// promoteDue makes runs due whose parking is over, one lane at a time. Lanes that somebody holds wait for the next pass, and
// so do those that fail; where a pass finds no others, it looks behind them. The error joins those of the lanes that failed:
// whoever calls goes on, unless it endsAll.
func (s *Store) promoteDue(ctx context.Context) error {
	var left []xid.ID
	var problems []error
	for len(left) < lanesPassedOver {
		agents, err := collect(ctx, s.db, scanOne[xid.ID], parkedLanesQuery, promotionsPerPass, ids(left))
		if err != nil {
			problems = append(problems, fmt.Errorf("list lanes with parked runs: %w", err))
			break
		}
		promoted := 0
		_, err = each(ctx, agents, func(agentID xid.ID) error {
			held := false
			err := s.inTx(ctx, func(t *tx) (err error) { held, err = t.promote(ctx, agentID); return err })
			if err == nil && !held {
				promoted++
			}
			return err
		}, blaming("promote parked runs of lane"))
		problems = appendError(problems, err)
		if len(agents) == 0 || promoted > 0 || endsAll(ctx, err) {
			break
		}
		left = append(left, agents...)
	}
	return errors.Join(problems...)
}

// lanesPassedOver bounds the lanes behind which a pass looks for others.
const lanesPassedOver = 1000

const parkedLanesQuery = `
SELECT DISTINCT agent_id FROM (
  SELECT agent_id FROM runs WHERE status = 'QUEUED' AND parked_until <= statement_timestamp() AND agent_id <> ALL($2)
  ORDER BY parked_until LIMIT $1) due`

// promote makes the lane's parked runs due, oldest first; one whose scope is taken waits SCOPE_BUSY instead: there is at
// most one due run in a scope, and none while one is live (queue rule 5). A lane that somebody holds is left alone.
func (t *tx) promote(ctx context.Context, agentID xid.ID) (held bool, err error) {
	lanes, err := t.lockLanes(ctx, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id = $1 FOR NO KEY UPDATE SKIP LOCKED`, agentID)
	if err != nil || len(lanes) == 0 {
		return true, wrap("lock lane", err)
	}
	type entry struct{ id, scope string }
	runs, err := collect(ctx, t, func(rows *sql.Rows) (e entry, err error) { return e, rows.Scan(&e.id, &e.scope) }, parkedRunsQuery, agentID, t.now)
	if err != nil {
		return false, fmt.Errorf("read parked runs: %w", err)
	}
	for _, run := range runs {
		if err := execOne(ctx, t, unparkQuery, run.id, agentID, run.scope); err != nil {
			return false, fmt.Errorf("make run due: %w", err)
		}
	}
	return false, t.fixHead(ctx, lanes[0])
}

// The order of the inner query is that of runs_parked_lane: without it a plan made on an empty table may go through the
// agent's whole queue.
const parkedRunsQuery = `
WITH parked AS MATERIALIZED (
  SELECT id FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_until IS NOT NULL AND parked_until <= $2 ORDER BY parked_until LIMIT 1000)
SELECT r.id, r.scope FROM parked p JOIN runs r ON r.id = p.id WHERE r.status = 'QUEUED' ORDER BY r.requested_at, r.id FOR NO KEY UPDATE OF r`

// One EXISTS for each partial index: no index serves the two conditions ORed.
const unparkQuery = `
UPDATE runs SET parked_until = NULL, due_at = parked_until, revision = revision + 1, parked_reason = CASE WHEN
    EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = $2 AND o.scope = $3 AND o.status = 'CLAIMED' AND o.id <> $1)
    OR EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = $2 AND o.scope = $3 AND o.status = 'QUEUED' AND o.parked_reason IS NULL AND o.id <> $1)
  THEN 'SCOPE_BUSY' END
WHERE id = $1`

// releaseScope makes the scope's oldest SCOPE_BUSY run due when none of the scope is live or due any more (queue rule
// 5). It runs after a run left CLAIMED, or left QUEUED unclaimed.
func (t *tx) releaseScope(ctx context.Context, agentID xid.ID, scope string) error {
	if _, err := exec(ctx, t, releaseScopeQuery, agentID, scope); err != nil {
		return fmt.Errorf("release the scope: %w", err)
	}
	return nil
}

const releaseScopeQuery = `
UPDATE runs SET parked_reason = NULL, parked_until = NULL, due_at = clock_timestamp(), revision = revision + 1
WHERE id = (SELECT id FROM runs WHERE agent_id = $1 AND scope = $2 AND status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY'
            ORDER BY requested_at, id LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = $1 AND scope = $2 AND status = 'CLAIMED')
  AND NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = $1 AND scope = $2 AND status = 'QUEUED' AND parked_reason IS NULL)`
