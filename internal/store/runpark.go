package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// promoteDue makes runs due whose parking is over, one lane at a time. Lanes that somebody holds wait for the next pass, and
// so do those that fail; where a pass finds no others, it looks behind them. The error joins those of the lanes that failed:
// whoever calls goes on, unless it endsAll.
func (s *Queue) promoteDue(ctx context.Context) error {
	left := s.resting.promote.left()
	var problems []error
	for len(left) < lanesPassedOver {
		agents, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], parkedLanesQuery, promotionsPerPass, pgtx.IDs(left))
		if err != nil {
			problems = append(problems, fmt.Errorf("list lanes with parked runs: %w", err))
			break
		}
		served, room := 0, promotedRuns
		failed, err := pgtx.Each(ctx, agents, func(agentID xid.ID) error {
			if room <= 0 {
				return nil
			}
			n, held := 0, false
			err := s.inTx(ctx, func(t *tx) (err error) { n, held, err = t.promote(ctx, agentID, room); return err })
			if err == nil && !held {
				served, room = served+1, room-n
			}
			return err
		}, pgtx.Blaming("promote parked runs of lane"))
		problems = pgtx.AppendError(problems, err)
		if pgtx.EndsAll(ctx, err) {
			break
		}
		s.resting.promote.served(agents, failed, nil)
		if len(agents) == 0 || served > 0 {
			break
		}
		left = append(left, agents...)
	}
	return errors.Join(problems...)
}

const (
	lanesPassedOver = 1000 // the lanes behind which a pass looks for others
	promotedRuns    = 1000 // the runs that a pass makes due
)

const parkedLanesQuery = `
SELECT DISTINCT agent_id FROM (
  SELECT agent_id
  FROM runs
  WHERE status = 'QUEUED' AND parked_until <= statement_timestamp() AND agent_id <> ALL($2)
  ORDER BY parked_until LIMIT $1) due`

// promote makes the lane's parked runs due, oldest first, when their time has come. A run whose scope is taken waits
// SCOPE_BUSY instead, because a scope has at most one due run, and none while one is live (docs/queue.md rule 5). A
// lane that somebody holds is left alone. It returns how many runs it promoted; most is the limit.
func (t *tx) promote(ctx context.Context, agentID xid.ID, most int) (n int, held bool, err error) {
	lanes, err := t.lockLanes(ctx, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id = $1 FOR NO KEY UPDATE SKIP LOCKED`, agentID)
	if err != nil || len(lanes) == 0 {
		return 0, true, pgtx.Wrap("lock lane", err)
	}
	var runs, scopes []string
	var first []bool
	seen := map[string]bool{}
	_, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var id, scope string
		err := rows.Scan(&id, &scope)
		runs, scopes, first = append(runs, id), append(scopes, scope), append(first, !seen[scope])
		seen[scope] = true
		return struct{}{}, err
	}, parkedRunsQuery, agentID, t.Now, most)
	if err != nil {
		return 0, false, fmt.Errorf("read parked runs: %w", err)
	}
	if _, err := pgtx.Exec(ctx, t, promoteQuery, pgtx.TextArray(runs), pgtx.TextArray(scopes), pgtx.BoolArray(first), agentID); err != nil {
		return 0, false, fmt.Errorf("make runs due: %w", err)
	}
	return len(runs), false, t.fixHead(ctx, lanes[0])
}

// The order of the inner query is that of runs_parked_lane: without it a plan made on an empty table may go through the
// agent's whole queue.
const parkedRunsQuery = `
WITH parked AS MATERIALIZED (
  SELECT id
  FROM runs
  WHERE agent_id = $1 AND status = 'QUEUED' AND parked_until IS NOT NULL AND parked_until <= $2
  ORDER BY parked_until
  LIMIT $3)
SELECT r.id, r.scope
FROM parked p
JOIN runs r ON r.id = p.id
WHERE r.status = 'QUEUED'
ORDER BY r.requested_at, r.id
FOR NO KEY UPDATE OF r`

// promoteQuery makes runs due of which none is yet: the first of each scope, when no other of it is live or due.
const promoteQuery = `
UPDATE runs
SET parked_until = NULL, due_at = parked_until, revision = revision + 1, parked_reason = CASE WHEN NOT n.first
    OR EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = $4 AND o.scope = n.scope AND o.status = 'CLAIMED')
    OR EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = $4 AND o.scope = n.scope AND ` + guard.Due + `)
  THEN 'SCOPE_BUSY' END
FROM unnest($1::text[], $2::text[], $3::boolean[]) AS n (run, scope, first)
WHERE runs.id = n.run AND runs.id = ANY($1)`

// One EXISTS for each partial index: no index serves the two conditions ORed.
const unparkQuery = `
UPDATE runs SET parked_until = NULL, due_at = parked_until, revision = revision + 1, parked_reason = CASE WHEN
    EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = $2 AND o.scope = $3 AND o.status = 'CLAIMED' AND o.id <> $1)
    OR EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = $2 AND o.scope = $3 AND ` + guard.Due + ` AND o.id <> $1)
  THEN 'SCOPE_BUSY' END
WHERE id = $1`

// releaseScope makes the scope's oldest SCOPE_BUSY run due when none of the scope is live or due any more (queue rule
// 5). It runs after a run left CLAIMED, or left QUEUED unclaimed.
func (t *tx) releaseScope(ctx context.Context, agentID xid.ID, scope string) error {
	return t.releaseScopes(ctx, []xid.ID{agentID}, []string{scope})
}

// releaseScopes is releaseScope for several scopes, each with its agent.
func (t *tx) releaseScopes(ctx context.Context, agents []xid.ID, scopes []string) error {
	if _, err := pgtx.Exec(ctx, t, releaseScopesQuery, pgtx.IDs(agents), pgtx.TextArray(scopes)); err != nil {
		return fmt.Errorf("release scopes: %w", err)
	}
	return nil
}

var releaseScopesQuery = releaseScopesSQL("$1", "$2")

// releaseScopesSQL is the statement of releaseScopes, whose parameters are arrays: one probe of a partial index for each scope
// and question. A scope may be named twice.
func releaseScopesSQL(agents, scopes string) string {
	return `
UPDATE runs
SET parked_reason = NULL, parked_until = NULL, due_at = clock_timestamp(), revision = revision + 1
FROM (SELECT DISTINCT agent, scope FROM unnest(` + agents + `::text[], ` + scopes + `::text[]) AS x (agent, scope)) s
CROSS JOIN LATERAL (
  SELECT id
  FROM runs
  WHERE agent_id = s.agent AND scope = s.scope AND status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY'
  ORDER BY requested_at, id
  LIMIT 1) next
WHERE runs.id = next.id
  AND NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = s.agent AND scope = s.scope AND status = 'CLAIMED')
  AND NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = s.agent AND scope = s.scope AND ` + guard.Due + `)`
}
