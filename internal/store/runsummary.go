package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/summary"
	"rouse.dev/rouse/internal/xid"
)

// remembers says whether a run belongs to a chain of summaries: those of lightweight routines do (SPEC S9).
func (r runRow) remembers() bool { return r.routineID != "" && r.taskID == "" }

// remember writes the summary for the routine's next fire after this run ended well. It works in a savepoint, so that
// its failure neither fails the run nor touches the former summary.
func (t *tx) remember(ctx context.Context, run runRow, result map[string]any) error {
	if !run.remembers() {
		return nil
	}
	err := t.savepoint(ctx, func() error { return t.writeSummary(ctx, run, result) })
	if err == nil || ctx.Err() != nil || postgres.Away(err) || pgtx.Retryable(err) {
		return err
	}
	t.onCommit(func(s *base) {
		s.log.Error("the summary of a routine could not be written; the former one stays", keysOf(run, "routine_id", run.routineID, "error", err)...)
	})
	return nil
}

func (t *tx) writeSummary(ctx context.Context, run runRow, result map[string]any) error {
	in, err := t.summaryFacts(ctx, run)
	if err != nil {
		return err
	}
	in.Focus = domain.ResultText(result)
	in.NextAction, _ = result["next_action"].(string)
	text := summary.Build(in)
	const query = `
INSERT INTO continuation_summaries (id, workspace_id, agent_id, scope, content, content_tokens, updated_at,
    updated_by_run_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (agent_id, scope) DO UPDATE
SET content = excluded.content, content_tokens = excluded.content_tokens, updated_at = excluded.updated_at,
  updated_by_run_id = excluded.updated_by_run_id`
	err = pgtx.ExecOne(ctx, t, query, xid.New("sum"), run.workspaceID, run.agentID, summaryScope(run), text, tokensOf(text), t.Now, run.id)
	return pgtx.Wrap("write the summary", err)
}

// tokensOf estimates the tokens of a text: four bytes each.
func tokensOf(text string) int { return (len(text) + 3) / 4 }

// summaryScope is the chain that a run's summary belongs to, whatever the scope of its wake is.
func summaryScope(run runRow) string { return domain.RoutineScope(string(run.routineID)) }

// chain is a series of runs that share a summary.
type chain struct {
	agentID xid.ID
	scope   string
}

// chainOf is the chain that a run belongs to; the zero value for one that does not remember.
func chainOf(run runRow) chain {
	if !run.remembers() {
		return chain{}
	}
	return chain{run.agentID, summaryScope(run)}
}

// readSummaries reads the current summaries of runs' chains.
func (t *tx) readSummaries(ctx context.Context, runs []runRow) (map[chain]string, error) {
	var agents []xid.ID
	var scopes []string
	for _, run := range runs {
		if run.remembers() {
			agents, scopes = append(agents, run.agentID), append(scopes, summaryScope(run))
		}
	}
	found := map[chain]string{}
	if len(agents) == 0 {
		return found, nil
	}
	const query = `
SELECT s.agent_id, s.scope, s.content
FROM unnest($1::text[], $2::text[]) AS n (agent, scope)
JOIN continuation_summaries s ON s.agent_id = n.agent AND s.scope = n.scope`
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var c chain
		var text string
		err = rows.Scan(&c.agentID, &c.scope, &text)
		found[c] = text
		return struct{}{}, err
	}, query, pgtx.IDs(agents), pgtx.TextArray(scopes))
	return found, pgtx.Wrap("read the summaries", err)
}

// summaryFacts gathers what a summary is made of, besides the run's own result.
func (t *tx) summaryFacts(ctx context.Context, run runRow) (in summary.Input, err error) {
	former, err := t.readSummaries(ctx, []runRow{run})
	if err != nil {
		return in, err
	}
	in.Previous = former[chainOf(run)]
	if err := pgtx.QueryRow(ctx, t, []any{&in.Stats.OpenTasks, &in.Stats.FinishedRuns, &in.Stats.FailedRuns, &in.Stats.BudgetAlerts},
		summaryStatsQuery, run.workspaceID, t.Now.Add(-24*time.Hour)); err != nil {
		return in, fmt.Errorf("count what the summary tells: %w", err)
	}
	if in.Blockers, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (b summary.Blocker, err error) {
		var names []string
		var more int
		err = rows.Scan(&b.ID, &b.Title, &b.Since, pq.Array(&names), &more)
		b.Needs = summary.Needs(names, more)
		return b, err
	}, summaryBlockersQuery, run.agentID); err != nil {
		return in, fmt.Errorf("list blocked tasks: %w", err)
	}
	if in.Decisions, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (d summary.Decision, err error) {
		return d, rows.Scan(&d.At, &d.Text)
	}, summaryDecisionsQuery, run.routineID, run.agentID); err != nil {
		return in, fmt.Errorf("list what earlier runs said: %w", err)
	}
	before, err := pgtx.QueryOne[domain.RunStatus](ctx, t, summaryBeforeQuery, run.routineID, run.agentID, run.id)
	if err != nil && !pgtx.NoRows(err) {
		return in, fmt.Errorf("look at the run before: %w", err)
	}
	if before == domain.RunStatusFailed {
		in.RunBefore = summary.FateFailed
	}
	return in, nil
}

// Nothing is counted beyond a thousand, so that a busy workspace costs no more than a quiet one.
const summaryStatsQuery = `
-- $1 workspace, $2 since when
SELECT
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM agents a
      JOIN tasks x ON x.assignee_id = a.id
      WHERE a.workspace_id = $1 AND ` + guard.TaskActionable + `
      LIMIT 1000) o),
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM runs
      WHERE workspace_id = $1
        AND finished_at >= $2
        AND status = 'FINISHED'
        AND outcome = '` + domain.OutcomeProcessed + `'
      LIMIT 1000) f),
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM runs
      WHERE workspace_id = $1 AND finished_at >= $2 AND status = 'FAILED'
      LIMIT 1000) g),
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM inbox_items
      WHERE workspace_id = $1 AND kind = 'BUDGET_ALERT' AND resolved_at IS NULL
      LIMIT 1000) b)`

// The tasks of the agent itself and of those that report to it, with the first open tasks that block each, and how many more
// there are. Those that the agent named by itself have no title (guard.NamedBlind).
var summaryBlockersQuery = `
SELECT x.id, x.title, x.updated_at, coalesce(n.titles[:3], '{}'),
  greatest(coalesce(cardinality(n.titles), 0) - 3, 0)
FROM agents a JOIN tasks x ON x.assignee_id = a.id
CROSS JOIN LATERAL (
  SELECT array_agg(
      CASE WHEN b.linked_by_id = $1 AND (k.parent_id = x.parent_id) IS NOT TRUE THEN k.id ELSE k.title END
      ORDER BY k.id) AS titles
  FROM task_blockers b
  JOIN tasks k ON k.id = b.blocker_id
  WHERE b.task_id = x.id AND ` + guard.TaskOpen("k") + `) n
WHERE (a.id = $1 OR a.manager_id = $1)
  AND x.state = 'BLOCKED'
  AND x.archived_at IS NULL
  AND x.deleted_at IS NULL
ORDER BY x.updated_at, x.id
LIMIT 50`

const summaryDecisionsQuery = `
SELECT finished_at, summary FROM runs
WHERE routine_id = $1
  AND agent_id = $2
  AND status = 'FINISHED'
  AND outcome = '` + domain.OutcomeProcessed + `'
  AND summary IS NOT NULL
ORDER BY requested_at DESC, id DESC LIMIT 5`

const summaryBeforeQuery = `
SELECT status FROM runs
WHERE routine_id = $1
  AND agent_id = $2
  AND id <> $3
  AND (status = 'FAILED' OR status = 'FINISHED' AND outcome = '` + domain.OutcomeProcessed + `')
ORDER BY requested_at DESC, id DESC LIMIT 1`
