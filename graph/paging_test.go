package graph_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/graph"
)

// connectionRow says how the rows of a connection of the schema are asked for, and how the database lists all of them.
type connectionRow struct {
	path  string // of the fields above it; %s is the connection
	node  string // what is asked of each row, by which it is known
	all   string // statement for the JSON of all nodes, in order
	args  string // arguments besides those of the page
	order string // columns of the order, for the test of nulls; none: by id
}

// pagedWorld has five rows of everything that a connection lists, three of them alike in each instant but for their ids, which
// do not sort as the rows were made.
type pagedWorld struct {
	*world
	agent, routine, task, blocker, project, run, channel string
}

func newPagedWorld(t *testing.T) *pagedWorld {
	w := &pagedWorld{world: newWorld(t)}
	fill := func(table, prefix, columns, values string, args ...any) {
		t.Helper()
		w.sql(`INSERT INTO `+table+` (id, workspace_id, `+columns+`) SELECT '`+prefix+`_' || lpad(((i * 2) % 5 + 1)::text, 26, '0'), $1, `+values+`
FROM (SELECT i, '2026-01-01Z'::timestamptz + (i / 3) * interval '1 second' AS at FROM generate_series(0, 4) AS i) AS x`, append([]any{w.workspace}, args...)...)
	}
	id := func(prefix string) string { return prefix + "_" + strings.Repeat("0", 25) + "1" }
	fill("agents", "agt", "name, role, skip_idle_wakeups, created_at", `'Agent ' || (i * 3) % 5, 'WORKER', false, at`)
	w.agent = id("agt")
	fill("projects", "prj", "name, created_at", `'Project ' || i, at`)
	w.project = id("prj")
	fill("workflows", "wfl", "name, kind, created_at", `'Workflow ' || i, 'KANBAN', at`)
	fill("workflow_steps", "wfs", "name, position, state, on_enter, workflow_id", `'Step ' || i, i, 'TODO', '[]', $2`, id("wfl"))
	tasks := func(prefix, parent string) {
		fill("tasks", prefix, "title, workflow_id, step_id, project_id, parent_id, created_at, updated_at", `'Task ' || i, $2, $3, $4, NULLIF($5, ''), at, at + (i % 2) * interval '1 second'`, id("wfl"), id("wfs"), w.project, parent)
	}
	w.task, w.blocker = "tsk_"+strings.Repeat("0", 26), "tsk_"+strings.Repeat("0", 25)+"9"
	for _, x := range []string{w.task, w.blocker} {
		w.sql(`INSERT INTO tasks (id, workspace_id, title, workflow_id, step_id, created_at) VALUES ($1, $2, 'Task', $3, $4, '2025-01-01Z')`, x, w.workspace, id("wfl"), id("wfs"))
	}
	tasks("tsk", w.task)
	w.sql(`INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) SELECT 'tbl_' || right(id, 10), $1, $2, id FROM tasks WHERE parent_id IS NOT NULL`, w.workspace, w.task)
	w.sql(`INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) SELECT 'tbm_' || right(id, 10), $1, id, $2 FROM tasks WHERE parent_id IS NOT NULL`, w.workspace, w.blocker)
	fill("comments", "cmt", "causation_id, author_kind, body, task_id, created_at", `'c', 'USER', 'x', $2, at`, w.task)
	fill("approvals", "apr", "causation_id, question, task_id, created_at", `'c', 'x', $2, at`, w.task)
	fill("routines", "rtn", "name, variables, assignee_id, created_at", `'Routine ' || (i * 3) % 5, '[]', $2, at`, w.agent)
	w.routine = id("rtn")
	fill("routine_runs", "rrn", "causation_id, source, variables, dispatch_fingerprint, started_at, routine_id", `'c', 'MANUAL', '{}', 'x', at, $2`, w.routine)
	fill("runs", "run", "causation_id, scope, source, wake_class, agent_id, status, task_id, requested_at, finished_at", `'cau_00000000000000000000000000', 'task:' || i, 'SELF', 'EVENT', $2, 'FINISHED', $3, at, at`, w.agent, w.task)
	w.run = id("run")
	fill("wakeup_requests", "wkp", "causation_id, scope, source, wake_class, reason, payload, agent_id, run_id, status, requested_at, finished_at", `'c', 'x', 'SELF', 'EVENT', 'x', '{}', $2, $3, 'FINISHED', at, at`, w.agent, w.run)
	fill("continuation_summaries", "sum", "scope, updated_at, agent_id, created_at", `'routine:' || i, at, $2, at`, w.agent)
	fill("inbox_items", "inb", "kind, title, created_at", `'LOOP_BREAKER', 'x', at`)
	fill("notification_channels", "nch", "name, kind, target, created_at", `'Channel ' || i, 'WEBHOOK', '{"webhook": {}}', at`)
	w.channel = id("nch")
	fill("notification_deliveries", "ndl", "channel_id, event, title, attempt, outcome, created_at", `$2, 'TEST', 'Test ' || i, 1, 'DELIVERED', at`, w.channel)
	fill("activities", "act", "code, summary, actor_kind, data, causation_id, occurred_at", `'WAKEUP_QUEUED', 'x', 'SYSTEM', '{}', 'cau_00000000000000000000000000', at`)
	fill("api_tokens", "tok", "name, prefix, digest, scopes, created_at", `'x', 'rse_', 'digest ' || i, '["READ"]', at`)
	fill("budget_policies", "bdg", "subject_kind, subject_id, limit_usd, alert_thresholds, period_start, created_at", `'AGENT', 'agt_' || i, 1, '[80]', at, at`)
	w.sql(`INSERT INTO run_events (run_id, workspace_id, seq, kind, attempt, data) SELECT $1, $2, i, 'PROGRESS', 1, jsonb_build_object('n', i) FROM generate_series(1, 5) AS i`, w.run, w.workspace)
	w.sql(`INSERT INTO run_log_pieces (run_id, workspace_id, attempt, first_seq, last_seq, bytes, streams, texts, micros) SELECT $1, $2, 1 + i / 4, min(i), max(i), 6, array_agg('STDOUT'::log_stream), array_agg('line ' || i ORDER BY i), array_agg(i) FROM generate_series(1, 5) AS i GROUP BY i / 4`, w.run, w.workspace)
	for i := range 4 {
		w.makeWorkspace(fmt.Sprint("Workspace ", i))
	}
	return w
}

// connections are all connections of the schema.
func (w *pagedWorld) connections() map[string][]connectionRow {
	listed := func(table, where, by string) string {
		return `SELECT '{"id": "' || id || '"}' FROM ` + table + ` WHERE ` + where + ` ORDER BY ` + by
	}
	workspace := `workspace(id: "` + w.workspace + `") { %s }`
	here := `workspace_id = '` + w.workspace + `'`
	of := func(kind, id string) string { return kind + `(id: "` + id + `") { %s }` }
	row := func(path, table, where, by, args string) connectionRow {
		out := connectionRow{path: path, node: "id", all: listed(table, where, by), args: args}
		if by != "id" {
			out.order = table + "." + strings.Fields(strings.Split(by, ",")[0])[0]
		}
		return out
	}
	agents := func(by, args string) connectionRow { return row(workspace, "agents", here, by, args) }
	routines := func(by, args string) connectionRow { return row(workspace, "routines", here, by, args) }
	tasks := func(by, args string) connectionRow { return row(workspace, "tasks", here, by, args) }
	runs := func(by, args string) connectionRow { return row(workspace, "runs", here, by, args) }
	wakeups := func(by, args string) connectionRow { return row(workspace, "wakeup_requests", here, by, args) }
	const children = "parent_id IS NOT NULL"
	return map[string][]connectionRow{
		"Query.workspaces":               {row("%s", "workspaces", "true", "id", "")},
		"Workspace.agents":               {agents("id", ""), agents("name, id", "orderBy: {field: NAME}"), agents("name DESC, id DESC", "orderBy: {field: NAME, direction: DESC}"), agents("created_at, id", "orderBy: {field: CREATED_AT}"), agents("created_at DESC, id DESC", "orderBy: {field: CREATED_AT, direction: DESC}")},
		"Workspace.routines":             {routines("id", ""), routines("name DESC, id DESC", "orderBy: {field: NAME, direction: DESC}"), routines("created_at, id", "orderBy: {field: CREATED_AT}")},
		"Workspace.tasks":                {tasks("id", ""), tasks("created_at DESC, id DESC", "orderBy: {field: CREATED_AT, direction: DESC}"), tasks("updated_at, id", "orderBy: {field: UPDATED_AT}")},
		"Workspace.runs":                 {runs("requested_at DESC, id DESC", ""), runs("requested_at, id", "orderBy: {field: REQUESTED_AT, direction: ASC}")},
		"Workspace.wakeupRequests":       {wakeups("requested_at DESC, id DESC", ""), wakeups("requested_at, id", "orderBy: {field: REQUESTED_AT, direction: ASC}")},
		"Workspace.routineRuns":          {row(workspace, "routine_runs", here, "started_at DESC, id DESC", "")},
		"Workspace.projects":             {row(workspace, "projects", here, "id", "")},
		"Workspace.workflows":            {row(workspace, "workflows", here, "id", "")},
		"Workspace.inbox":                {row(workspace, "inbox_items", here, "created_at DESC, id DESC", "")},
		"Workspace.notificationChannels": {row(workspace, "notification_channels", here, "id", "")},
		"NotificationChannel.deliveries": {{path: `node(id: "` + w.channel + `") { ... on NotificationChannel { %s } }`, node: "title", order: "notification_deliveries.created_at",
			all: `SELECT '{"title": "' || title || '"}' FROM notification_deliveries ORDER BY created_at DESC, id DESC`}},
		"Workspace.activity":          {row(workspace, "activities", here, "occurred_at DESC, id DESC", "")},
		"Workspace.apiTokens":         {row(workspace, "api_tokens", here, "id", "")},
		"Workspace.budgets":           {row(workspace, "budget_policies", here, "id", "")},
		"Workspace.approvals":         {row(workspace, "approvals", here, "created_at DESC, id DESC", "")},
		"Trace.activity":              {row(`workspace(id: "`+w.workspace+`") { trace(causationId: "cau_00000000000000000000000000") { %s } }`, "activities", "causation_id = 'cau_00000000000000000000000000'", "occurred_at, id", "")},
		"Agent.runs":                  {row(of("agent", w.agent), "runs", here, "requested_at DESC, id DESC", "")},
		"Agent.wakeupRequests":        {row(of("agent", w.agent), "wakeup_requests", here, "requested_at DESC, id DESC", "")},
		"Agent.routines":              {row(of("agent", w.agent), "routines", here, "id", "")},
		"Agent.continuationSummaries": {row(of("agent", w.agent), "continuation_summaries", here, "id", "")},
		"Routine.runs":                {row(of("routine", w.routine), "routine_runs", here, "started_at DESC, id DESC", "")},
		"Project.tasks":               {row(`node(id: "`+w.project+`") { ... on Project { %s } }`, "tasks", children, "id", "")},
		"Task.children":               {row(of("task", w.task), "tasks", children, "id", "")},
		"Task.blockedBy":              {row(of("task", w.task), "tasks", children, "id", "")},
		"Task.blocks":                 {row(of("task", w.blocker), "tasks", children, "id", "")},
		"Task.approvals":              {row(of("task", w.task), "approvals", here, "id", "")},
		"Task.comments":               {row(of("task", w.task), "comments", here, "id", "")},
		"Task.runs":                   {row(of("task", w.task), "runs", here, "requested_at DESC, id DESC", "")},
		"Run.wakeupRequests":          {row(of("run", w.run), "wakeup_requests", here, "requested_at, id", "")},
		"Run.events":                  {{path: of("run", w.run), node: "data", all: `SELECT jsonb_build_object('data', data) FROM run_events ORDER BY seq`}},
		"Run.logs":                    {{path: of("run", w.run), node: "text", all: `SELECT jsonb_build_object('text', text) FROM run_log_lines ORDER BY attempt, seq`}},
	}
}

// connectionFields are the fields of the schema that give connections, with their arguments.
func connectionFields() map[string]ast.ArgumentDefinitionList {
	out := map[string]ast.ArgumentDefinitionList{}
	for _, d := range graph.NewExecutableSchema(graph.Config{}).Schema().Types {
		for _, f := range d.Fields {
			if strings.HasSuffix(f.Type.Name(), "Connection") {
				out[d.Name+"."+f.Name] = f.Arguments
			}
		}
	}
	return out
}

// onePage is what a connection answered: nodes as compact JSON.
type onePage struct {
	nodes, cursors []string
	next, previous bool
	start, end     string
}

func (w *pagedWorld) page(field string, row connectionRow, args string) onePage {
	w.t.Helper()
	if args = strings.Trim(row.args+", "+args, ", "); args != "" {
		args = "(" + args + ")"
	}
	query := "{ " + fmt.Sprintf(row.path, field+args+" { edges { cursor node { "+row.node+" } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }") + " }"
	data, errs := w.Try(w.t.Context(), query, nil)
	if len(errs) > 0 {
		w.t.Fatalf("%s: %v", query, errs)
	}
	var found map[string]json.RawMessage
	for at := json.RawMessage(data); found == nil || found[field] == nil; at = slices.Collect(maps.Values(found))[0] {
		found = nil
		w.ok(json.Unmarshal(at, &found))
		if found == nil {
			w.t.Fatalf("%s: %s", query, data)
		}
	}
	var answer struct {
		Edges []struct {
			Cursor string
			Node   json.RawMessage
		}
		PageInfo struct {
			HasNextPage, HasPreviousPage bool
			StartCursor, EndCursor       string
		}
	}
	w.ok(json.Unmarshal(found[field], &answer))
	out := onePage{next: answer.PageInfo.HasNextPage, previous: answer.PageInfo.HasPreviousPage, start: answer.PageInfo.StartCursor, end: answer.PageInfo.EndCursor}
	for _, e := range answer.Edges {
		out.nodes, out.cursors = append(out.nodes, compactJSON(w.t, e.Node)), append(out.cursors, e.Cursor)
	}
	return out
}

func compactJSON(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// relayPage is the algorithm of Relay's cursor connections on the full list, whose cursors are the places in it; -1 is none.
func relayPage(all onePage, after, before, first, last int) onePage {
	from, to := after+1, len(all.nodes)
	if before >= 0 {
		to = max(before, from)
	}
	out := onePage{previous: after >= 0, next: false}
	if last >= 0 {
		out.previous, out.next = to-from > last, before >= 0
		from = max(from, to-last)
	} else {
		out.next = to-from > first
		to = min(to, from+first)
	}
	if out.nodes, out.cursors = all.nodes[from:to], all.cursors[from:to]; from < to {
		out.start, out.end = out.cursors[0], out.cursors[len(out.cursors)-1]
	}
	return out
}

func (p onePage) String() string {
	return fmt.Sprintf("%v, next %t, previous %t, from %s to %s", p.nodes, p.next, p.previous, p.start, p.end)
}

// Every connection of the schema gives, for every combination of first or last with after and before, what the algorithm of
// Relay's cursor connections gives on the full list, ties in its order included.
func TestEveryCombinationOfPageArgumentsGivesWhatRelaySays(t *testing.T) {
	t.Parallel()
	w := newPagedWorld(t)
	rows, fields := w.connections(), connectionFields()
	for name := range rows {
		if fields[name] == nil {
			t.Errorf("%s is no connection of the schema any more", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		t.Run(name, func(t *testing.T) {
			w.t = t
			if len(rows[name]) == 0 {
				t.Fatal("no row says how it is tested: add one to connections")
			}
			for _, row := range rows[name] {
				w.everyCombination(t, name, row, fields[name])
			}
		})
	}
}

func (w *pagedWorld) everyCombination(t *testing.T, name string, row connectionRow, arguments ast.ArgumentDefinitionList) {
	_, field, _ := strings.Cut(name, ".")
	all := w.page(field, row, "first: 100")
	w.wantAll(t, row, all)
	tried := 0
	for after := -1; after < len(all.nodes); after++ {
		for before := -1; before < len(all.nodes); before++ {
			for _, size := range []struct {
				text        string
				first, last int
			}{{"", 25, -1}, {"first: 1", 1, -1}, {"first: 2", 2, -1}, {"first: 5", 5, -1}, {"last: 1", -1, 1}, {"last: 2", -1, 2}, {"last: 5", -1, 5}} {
				args := size.text
				if after >= 0 {
					args += fmt.Sprintf(", after: %q", all.cursors[after])
				}
				if before >= 0 {
					args += fmt.Sprintf(", before: %q", all.cursors[before])
				}
				if !hasArguments(arguments, args) {
					continue
				}
				tried++
				if got, want := w.page(field, row, args), relayPage(all, after, before, size.first, size.last); got.String() != want.String() {
					t.Fatalf("%s (%s %s):\ngot  %v\nwant %v", name, row.args, args, got, want)
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d combinations were tried", tried)
	}
}

// hasArguments says whether the connection has all arguments that a text names.
func hasArguments(arguments ast.ArgumentDefinitionList, text string) bool {
	for _, name := range []string{"last", "before"} {
		if strings.Contains(text, name+": ") && arguments.ForName(name) == nil {
			return false
		}
	}
	return true
}

// wantAll compares the full list with the database's.
func (w *pagedWorld) wantAll(t *testing.T, row connectionRow, all onePage) {
	t.Helper()
	found, err := w.db.QueryContext(t.Context(), row.all)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var want []string
	for found.Next() {
		var text string
		w.ok(found.Scan(&text))
		want = append(want, compactJSON(t, []byte(text)))
	}
	if w.ok(found.Err()); !slices.Equal(all.nodes, want) || len(want) < 5 {
		t.Fatalf("the full list is %v, the database has %v", all.nodes, want)
	}
}

// A list is never ordered by a column that may be null, of which no comparison would be true.
func TestNoOrderOfAListHasNulls(t *testing.T) {
	t.Parallel()
	w := newPagedWorld(t)
	checked := 0
	for name, rows := range w.connections() {
		for _, row := range rows {
			table, column, ok := strings.Cut(row.order, ".")
			if !ok {
				continue
			}
			checked++
			var nullable string
			if err := w.db.QueryRow(`SELECT is_nullable FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 AND column_name = $2`, table, column).Scan(&nullable); err != nil || nullable != "NO" {
				t.Errorf("%s is ordered by %s, which may be null (%s, %v)", name, row.order, nullable, err)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d orders were looked at", checked)
	}
}

// A cursor whose row is gone stands for its place, and pageInfo tells what is there now.
func TestACursorWhoseRowIsGoneStandsForItsPlace(t *testing.T) {
	t.Parallel()
	w := newPagedWorld(t)
	row := w.connections()["Workspace.agents"][3] // by the instant they were made, with ties
	all := w.page("agents", row, "")
	gone := func(i int) {
		w.sql(`UPDATE agents SET deleted_at = clock_timestamp() WHERE '{"id":"' || id || '"}' = $1`, all.nodes[i])
	}
	want := func(args, nodes string, previous, next bool) {
		t.Helper()
		got := w.page("agents", row, args)
		if fmt.Sprint(got.nodes) != nodes || got.previous != previous || got.next != next {
			t.Errorf("%s: %v", args, got)
		}
	}
	after := fmt.Sprintf("after: %q", all.cursors[1])
	before := fmt.Sprintf("before: %q", all.cursors[3])
	gone(1)
	want("first: 1, "+after, fmt.Sprint(all.nodes[2:3]), true, true)
	gone(0)
	want("first: 1, "+after, fmt.Sprint(all.nodes[2:3]), false, true)
	gone(3)
	want("last: 1, "+before, fmt.Sprint(all.nodes[2:3]), false, true)
	gone(4)
	want("last: 1, "+before, fmt.Sprint(all.nodes[2:3]), false, false)
	want("last: 1, "+after+", "+before, fmt.Sprint(all.nodes[2:3]), false, false)
}
