package reads

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// gaugeBudgets bounds how many budgets of a workspace are shown.
const gaugeBudgets = 100

// WorkspaceGauges are the numbers of a workspace that are watched from outside. Counts stop at 10,000.
type WorkspaceGauges struct {
	Queue     QueueStats
	Parked    map[domain.ParkedReason]int // every reason, at 0 too
	OpenInbox map[domain.InboxKind]int    // every kind, at 0 too
	Budgets   []guard.Budget              // as they are now, by id
	Verdict   domain.LoopVerdict          // "" when an input of it cannot be read, which is counted
}

// Unparked is how many runs wait for a place, a resting or a paused agent, and not for a reason of their own.
func (g *WorkspaceGauges) Unparked() int {
	n := g.Queue.Held
	for _, parked := range g.Parked {
		n -= parked
	}
	return max(n, 0) // the two were not read at one moment
}

// GaugedWorkspaces lists the workspaces that are shown to who watches from outside, with their slugs: at most
// metrics.MaxWorkspaces, the oldest first.
func (s *Reads) GaugedWorkspaces(ctx context.Context) (ids []xid.ID, slugs map[xid.ID]string, err error) {
	slugs = map[xid.ID]string{}
	_, err = pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var slug string
		err := rows.Scan(&id, &slug)
		ids, slugs[id] = append(ids, id), slug
		return struct{}{}, err
	}, `SELECT id, slug FROM workspaces ORDER BY created_at, id LIMIT $1`, metrics.MaxWorkspaces)
	return ids, slugs, pgtx.Wrap("list the workspaces", err)
}

// WorkspaceGauges reads one workspace's numbers, in statements that are bounded however long its queue and history are.
func (s *Reads) WorkspaceGauges(ctx context.Context, workspaceID xid.ID) (*WorkspaceGauges, error) {
	g := &WorkspaceGauges{}
	var err error
	if g.Queue, err = s.QueueStats(ctx, workspaceID); err != nil {
		return nil, err
	}
	if g.Parked, err = countEach[domain.ParkedReason](ctx, s.pool, domain.ParkedReason("").Values(), parkedCounts, workspaceID); err != nil {
		return nil, fmt.Errorf("count parked runs: %w", err)
	}
	if g.OpenInbox, err = countEach[domain.InboxKind](ctx, s.pool, domain.InboxKind("").Values(), openInboxCounts, workspaceID); err != nil {
		return nil, fmt.Errorf("count open inbox items: %w", err)
	}
	if g.Budgets, err = s.budgetsNow(ctx, workspaceID, g.Queue); err != nil {
		return nil, err
	}
	if l, err := s.Liveness(ctx, workspaceID); err == nil {
		g.Verdict = l.Verdict
	}
	return g, nil
}

const (
	parkedCounts = `
SELECT v.value, (SELECT count(*) FROM (
  SELECT 1 FROM runs WHERE workspace_id = $1 AND parked_reason = v.value::parked_reason LIMIT $3) r)
FROM unnest($2::text[]) AS v (value)`
	openInboxCounts = `
SELECT v.value, (SELECT count(*) FROM (
  SELECT 1 FROM inbox_items WHERE workspace_id = $1 AND kind = v.value AND resolved_at IS NULL LIMIT $3) i)
FROM unnest($2::text[]) AS v (value)`
)

// countEach counts, for each value, up to statsCount rows.
func countEach[V ~string](ctx context.Context, q pgtx.Querier, values []string, query string, workspaceID xid.ID) (map[V]int, error) {
	counts := make(map[V]int, len(values))
	_, err := pgtx.Collect(ctx, q, func(rows *sql.Rows) (struct{}, error) {
		var value string
		var n int
		err := rows.Scan(&value, &n)
		counts[V(value)] = n
		return struct{}{}, err
	}, query, workspaceID, pgtx.TextArray(values), statsCount)
	return counts, err
}

func (s *Reads) budgetsNow(ctx context.Context, workspaceID xid.ID, at QueueStats) ([]guard.Budget, error) {
	const query = `
SELECT ` + guard.BudgetColumns + `
FROM budget_policies b
WHERE workspace_id = $1
ORDER BY id
LIMIT $2`
	budgets, err := pgtx.Collect(ctx, s.pool, guard.ScanBudget, query, workspaceID, gaugeBudgets)
	for i, b := range budgets {
		budgets[i].Budget = b.At(at.At)
	}
	return budgets, pgtx.Wrap("read the budgets", err)
}
