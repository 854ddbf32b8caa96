package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// routineRow is a routine, locked.
type routineRow struct {
	id, workspaceID, assigneeID xid.ID
	name, description           string
	status                      domain.RoutineStatus
	policy                      domain.ConcurrencyPolicy
	catchUp                     domain.CatchUpPolicy
	catchUpMax                  int
	template                    *domain.TaskTemplate
	variables                   []domain.RoutineVariable
	agentGone                   bool
	skipsSlots                  bool // a person holds the workspace, and slots are skipped meanwhile
}

// routineColumns are the columns of a routineRow, of routines r and its agent a.
const routineColumns = `r.id, r.workspace_id, r.assignee_id, r.name, r.description, r.status, r.concurrency_policy, r.catch_up_policy, r.catch_up_max,
  r.task_template, r.variables, a.deleted_at IS NOT NULL,
  EXISTS (SELECT 1 FROM workspaces w WHERE w.id = r.workspace_id AND w.hold ->> 'fires' = '` + string(domain.HoldFiresSkip) + `')`

// scanRoutine reads a routine's columns, and what the query has after them.
func scanRoutine(rows *sql.Rows, more ...any) (r routineRow, err error) {
	var template, variables []byte
	columns := []any{&r.id, &r.workspaceID, &r.assigneeID, &r.name, &r.description, &r.status, &r.policy, &r.catchUp, &r.catchUpMax, &template, &variables, &r.agentGone, &r.skipsSlots}
	if err := rows.Scan(append(columns, more...)...); err != nil {
		return r, err
	}
	if template != nil {
		if err := json.Unmarshal(template, &r.template); err != nil {
			return r, fmt.Errorf("read the template of routine %s: %w", r.id, err)
		}
	}
	if err := json.Unmarshal(variables, &r.variables); err != nil {
		return r, fmt.Errorf("read the variables of routine %s: %w", r.id, err)
	}
	return r, nil
}

func (t *tx) lockRoutine(ctx context.Context, id xid.ID) (routineRow, error) {
	r, err := t.readRoutine(ctx, id, ` FOR NO KEY UPDATE OF r`)
	return r, pgtx.Wrap("lock routine", err)
}

// readRoutine reads a routine that is not deleted, with a locking clause or none.
func (t *tx) readRoutine(ctx context.Context, id xid.ID, locking string) (routineRow, error) {
	query := `
SELECT ` + routineColumns + `
FROM routines r
JOIN agents a ON a.id = r.assignee_id
WHERE r.id = $1 AND r.deleted_at IS NULL` + locking
	found, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (routineRow, error) { return scanRoutine(rows) }, query, id)
	if err == nil && len(found) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return routineRow{}, err
	}
	return found[0], nil
}

// fires says whether a slot of the routine that is due happens: the status gate (SPEC S4.4).
func (r *routineRow) fires() bool {
	return domain.PlanFire(domain.FireFacts{Source: domain.RoutineRunSourceCron, RoutineStatus: r.status, AgentGone: r.agentGone}).Answer == domain.FireRecord
}

// fingerprint says which fires of the routine are the same (SPEC S4.6).
func (r *routineRow) fingerprint(provided map[string]string) string {
	return domain.Fingerprint(string(r.id), string(r.assigneeID), r.template, provided)
}

// texts are what the routine fills values into.
func (r *routineRow) texts() []string {
	if r.template == nil {
		return []string{r.description}
	}
	return []string{r.template.Title, r.template.Description}
}
