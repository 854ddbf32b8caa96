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

// remembered is a run that ended well and belongs to a chain, with its result.
type remembered struct {
	run    runRow
	result map[string]any
}

// remember writes the summaries for the routines' next fires after runs ended well, each thing in one statement for all. It works in
// a savepoint, so that its failure neither fails a run nor touches a former summary. Then each run is tried alone.
func (t *tx) remember(ctx context.Context, ended []remembered) error {
	if len(ended) == 0 {
		return nil
	}
	err := t.savepoint(ctx, func() error { return t.writeSummaries(ctx, ended) })
	switch {
	case err == nil || ctx.Err() != nil || postgres.Away(err) || pgtx.Retryable(err):
		return err
	case len(ended) == 1:
		run := ended[0].run
		t.onCommit(func(s *base) {
			s.log.Error("the summary of a routine could not be written; the former one stays", keysOf(run, "routine_id", run.routineID, "error", err)...)
		})
		return nil
	}
	for i := range ended {
		if err := t.remember(ctx, ended[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// writeSummaries builds the summaries one on the other, in the order of the runs, and writes the last of each chain.
func (t *tx) writeSummaries(ctx context.Context, ended []remembered) error {
	facts, err := t.summaryFacts(ctx, ended)
	if err != nil {
		return err
	}
	last := map[chain]runRow{}
	for _, x := range ended {
		in := facts.of(x.run)
		in.Focus = domain.ResultText(x.result)
		in.NextAction, _ = x.result["next_action"].(string)
		facts.former[chainOf(x.run)] = summary.Build(in)
		last[chainOf(x.run)] = x.run
	}
	var w struct {
		ids, workspaces, agents, scopes, texts, runs []string
		tokens                                       []int64
	}
	for c, run := range last {
		text := facts.former[c]
		w.ids, w.workspaces, w.agents, w.scopes = append(w.ids, string(xid.New("sum"))), append(w.workspaces, string(run.workspaceID)), append(w.agents, string(c.agentID)), append(w.scopes, c.scope)
		w.texts, w.tokens, w.runs = append(w.texts, text), append(w.tokens, int64(tokensOf(text))), append(w.runs, string(run.id))
	}
	const query = `
-- $1 ids, $2 workspaces, $3 agents, $4 scopes, $5 texts, $6 their tokens, $7 the runs, $8 now
INSERT INTO continuation_summaries AS s (id, workspace_id, agent_id, scope, content, content_tokens,
    updated_by_run_id, updated_at)
SELECT n.*, $8
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[]) AS n
ON CONFLICT (agent_id, scope) DO UPDATE
SET content = excluded.content, content_tokens = excluded.content_tokens, updated_at = excluded.updated_at,
  updated_by_run_id = excluded.updated_by_run_id`
	_, err = pgtx.Exec(ctx, t, query, pgtx.TextArray(w.ids), pgtx.TextArray(w.workspaces), pgtx.TextArray(w.agents), pgtx.TextArray(w.scopes), pgtx.TextArray(w.texts),
		pgtx.IntArray(w.tokens), pgtx.TextArray(w.runs), t.Now)
	return pgtx.Wrap("write the summaries", err)
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

// summaryFacts are what the summaries of runs are made of, besides the runs' own results.
type summaryFacts struct {
	former    map[chain]string
	stats     map[xid.ID]summary.Stats     // by workspace
	blockers  map[xid.ID][]summary.Blocker // by agent
	decisions map[chain][]summary.Decision
	before    map[xid.ID]domain.RunStatus // by run: how the routine's run before it ended
}

func (f *summaryFacts) of(run runRow) summary.Input {
	c := chainOf(run)
	in := summary.Input{Previous: f.former[c], Stats: f.stats[run.workspaceID], Blockers: f.blockers[run.agentID], Decisions: f.decisions[c]}
	if f.before[run.id] == domain.RunStatusFailed {
		in.RunBefore = summary.FateFailed
	}
	return in
}

// summaryFacts gathers the facts, each kind in one statement.
func (t *tx) summaryFacts(ctx context.Context, ended []remembered) (*summaryFacts, error) {
	runs := make([]runRow, len(ended))
	var workspaces, agents, routines, ids []xid.ID
	for i, x := range ended {
		runs[i] = x.run
		workspaces, agents = append(workspaces, x.run.workspaceID), append(agents, x.run.agentID)
		routines, ids = append(routines, x.run.routineID), append(ids, x.run.id)
	}
	f := &summaryFacts{stats: map[xid.ID]summary.Stats{}, blockers: map[xid.ID][]summary.Blocker{}, decisions: map[chain][]summary.Decision{}, before: map[xid.ID]domain.RunStatus{}}
	var err error
	if f.former, err = t.readSummaries(ctx, runs); err != nil {
		return nil, err
	}
	if _, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (n summary.Stats, err error) {
		var of xid.ID
		err = rows.Scan(&of, &n.OpenTasks, &n.FinishedRuns, &n.FailedRuns, &n.BudgetAlerts)
		f.stats[of] = n
		return n, err
	}, summaryStatsQuery, pgtx.IDs(pgtx.Distinct(workspaces)), t.Now.Add(-24*time.Hour)); err != nil {
		return nil, fmt.Errorf("count what the summaries tell: %w", err)
	}
	if _, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (b summary.Blocker, err error) {
		var of xid.ID
		var names []string
		var more int
		err = rows.Scan(&of, &b.ID, &b.Title, &b.Since, pq.Array(&names), &more)
		b.Needs = summary.Needs(names, more)
		f.blockers[of] = append(f.blockers[of], b)
		return b, err
	}, summaryBlockersQuery, pgtx.IDs(pgtx.Distinct(agents))); err != nil {
		return nil, fmt.Errorf("list blocked tasks: %w", err)
	}
	if _, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (d summary.Decision, err error) {
		var agent, routine xid.ID
		err = rows.Scan(&agent, &routine, &d.At, &d.Text)
		c := chain{agent, domain.RoutineScope(string(routine))}
		f.decisions[c] = append(f.decisions[c], d)
		return d, err
	}, summaryDecisionsQuery, pgtx.IDs(agents), pgtx.IDs(routines)); err != nil {
		return nil, fmt.Errorf("list what earlier runs said: %w", err)
	}
	if _, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (s domain.RunStatus, err error) {
		var of xid.ID
		err = rows.Scan(&of, &s)
		f.before[of] = s
		return s, err
	}, summaryBeforeQuery, pgtx.IDs(ids), pgtx.IDs(agents), pgtx.IDs(routines)); err != nil {
		return nil, fmt.Errorf("look at the runs before: %w", err)
	}
	return f, nil
}

// Nothing is counted beyond a thousand, so that a busy workspace costs no more than a quiet one.
const summaryStatsQuery = `
-- $1 workspaces, $2 since when
SELECT w.id,
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM agents a
      JOIN tasks x ON x.assignee_id = a.id
      WHERE a.workspace_id = w.id AND ` + guard.TaskActionable + `
      LIMIT 1000) o),
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM runs
      WHERE workspace_id = w.id
        AND finished_at >= $2
        AND status = 'FINISHED'
        AND outcome = '` + domain.OutcomeProcessed + `'
      LIMIT 1000) f),
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM runs
      WHERE workspace_id = w.id AND finished_at >= $2 AND status = 'FAILED'
      LIMIT 1000) g),
  (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM inbox_items
      WHERE workspace_id = w.id AND kind = 'BUDGET_ALERT' AND resolved_at IS NULL
      LIMIT 1000) b)
FROM unnest($1::text[]) AS w (id)`

// The tasks of the agents themselves and of those that report to each, with the first open tasks that block each, and how many more
// there are. Those that the agent named by itself have no title (guard.NamedBlind).
var summaryBlockersQuery = `
SELECT me.id, t.*
FROM unnest($1::text[]) AS me (id)
CROSS JOIN LATERAL (
  SELECT x.id, x.title, x.updated_at, coalesce(n.titles[:3], '{}'),
    greatest(coalesce(cardinality(n.titles), 0) - 3, 0)
  FROM agents a JOIN tasks x ON x.assignee_id = a.id
  CROSS JOIN LATERAL (
    SELECT array_agg(
        CASE WHEN b.linked_by_id = me.id AND (k.parent_id = x.parent_id) IS NOT TRUE THEN k.id ELSE k.title END
        ORDER BY k.id) AS titles
    FROM task_blockers b
    JOIN tasks k ON k.id = b.blocker_id
    WHERE b.task_id = x.id AND ` + guard.TaskOpen("k") + `) n
  WHERE (a.id = me.id OR a.manager_id = me.id)
    AND x.state = 'BLOCKED'
    AND x.archived_at IS NULL
    AND x.deleted_at IS NULL
  ORDER BY x.updated_at, x.id
  LIMIT 50) t`

const summaryDecisionsQuery = `
-- $1 agents, $2 their routines, some of them more than once
SELECT c.agent, c.routine, d.*
FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS c (agent, routine)) c
CROSS JOIN LATERAL (
  SELECT finished_at, summary FROM runs
  WHERE routine_id = c.routine
    AND agent_id = c.agent
    AND status = 'FINISHED'
    AND outcome = '` + domain.OutcomeProcessed + `'
    AND summary IS NOT NULL
  ORDER BY requested_at DESC, id DESC LIMIT 5) d`

const summaryBeforeQuery = `
-- $1 runs, $2 their agents, $3 their routines
SELECT n.run, b.status
FROM unnest($1::text[], $2::text[], $3::text[]) AS n (run, agent, routine)
CROSS JOIN LATERAL (
  SELECT status FROM runs
  WHERE routine_id = n.routine
    AND agent_id = n.agent
    AND id <> n.run
    AND (status = 'FAILED' OR status = 'FINISHED' AND outcome = '` + domain.OutcomeProcessed + `')
  ORDER BY requested_at DESC, id DESC LIMIT 1) b`
