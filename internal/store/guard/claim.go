package guard

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// TaskFacts is what the guards look at of a run about a task.
type TaskFacts struct {
	requests     []domain.RequestFacts
	blocked      bool
	checkoutHeld bool
}

// Into gives the facts to the rule of the claim. A run that is tried again has had its task before.
func (g TaskFacts) Into(f *domain.AdmitFacts, retry bool) {
	f.Requests, f.TaskBlocked, f.CheckoutHeld, f.Retry = g.requests, g.blocked, g.checkoutHeld, retry
}

// guardsQuery reads one row for each run about a task: what a request has lost, all of its source and basis have.
var guardsQuery = `
SELECT r.id, t.state, t.archived_at IS NOT NULL, t.deleted_at IS NOT NULL, t.assignee_id IS NOT DISTINCT FROM r.agent_id,
  t.checkout_run_id IS NOT NULL AND t.checkout_run_id <> r.id,
  ` + HasOpenBlocker + `,
  EXISTS (SELECT 1 FROM task_reviewers p WHERE p.task_id = t.id AND p.agent_id = r.agent_id),
  EXISTS (SELECT 1 FROM task_approvers p WHERE p.task_id = t.id AND p.agent_id = r.agent_id),
  ARRAY(SELECT DISTINCT q.source::text || ':' || coalesce(q.basis::text, '') FROM wakeup_requests q
        WHERE q.run_id = r.id AND ` + RequestLives + ` AND q.finished_at IS NULL ORDER BY 1)
FROM runs r JOIN tasks t ON t.id = r.task_id WHERE r.id = ANY($1)`

// ReadTaskFacts reads what the guards look at of runs about tasks.
func ReadTaskFacts(ctx context.Context, q pgtx.Querier, runIDs []xid.ID) (map[xid.ID]TaskFacts, error) {
	guards := make(map[xid.ID]TaskFacts, len(runIDs))
	_, err := pgtx.Collect(ctx, q, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var g TaskFacts
		var kinds pq.StringArray
		basis := domain.BasisFacts{TaskBound: true}
		err := rows.Scan(&id, &basis.TaskState, &basis.TaskArchived, &basis.TaskMissing, &basis.Assigned, &g.checkoutHeld, &g.blocked,
			&basis.Reviews, &basis.Approves, &kinds)
		for _, kind := range kinds {
			source, of, _ := strings.Cut(kind, ":")
			basis.Basis = domain.WakeBasis(of)
			g.requests = append(g.requests, domain.RequestFacts{Source: domain.WakeupSource(source), Basis: basis})
		}
		guards[id] = g
		return struct{}{}, err
	}, guardsQuery, pgtx.IDs(runIDs))
	if err != nil {
		return nil, fmt.Errorf("read the runs' tasks: %w", err)
	}
	return guards, nil
}
