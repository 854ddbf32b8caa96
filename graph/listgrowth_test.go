package graph_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/pgtest"
)

// listed is a list as a client asks for it, and how many values its filter names: a page is read from each of them.
type listed struct {
	name, of, args string
	values         int
}

// listsThatGrow is every filter and every order of the lists that grow with each run. What is rare is older than all that is
// usual, so that a list which looks for it in its order would read everything. All is of the future, because runs from before
// the first start have no shape.
func listsThatGrow() []listed {
	newest, oldest := `orderBy: {field: REQUESTED_AT, direction: DESC}`, `orderBy: {field: REQUESTED_AT, direction: ASC}`
	out := []listed{
		{"runs, newest first", "workspace", `runs(` + newest + `)`, 1},
		{"runs, oldest first", "workspace", `runs(` + oldest + `)`, 1},
		{"runs since an instant", "workspace", `runs(filter: {since: "2131-01-01T05:00:00Z"})`, 1},
		{"runs until an instant", "workspace", `runs(filter: {until: "2130-06-01T00:00:00Z"})`, 1},
		{"runs of an agent", "workspace", `runs(filter: {agentId: "agt_00000000000000000000000001"})`, 1},
		{"runs of a task", "workspace", `runs(filter: {taskId: "tsk_00000000000000000000000001"})`, 1},
		{"runs of a routine", "workspace", `runs(filter: {routineId: "rtn_00000000000000000000000001"})`, 1},
		{"runs of a chain", "workspace", `runs(filter: {causationId: "cau_00000000000000000000000001"})`, 1},
		{"runs with a retry planned", "workspace", `runs(filter: {retrying: true})`, 2},
		{"runs without one", "workspace", `runs(filter: {retrying: false})`, 1},
		{"live runs", "workspace", `runs(filter: {status: [QUEUED, CLAIMED]})`, 2},
		{"live runs, oldest first", "workspace", `runs(` + oldest + `, filter: {status: [QUEUED, CLAIMED]})`, 2},
		{"failed and cancelled runs, newest first", "workspace", `runs(` + newest + `, filter: {status: [FAILED, CANCELLED]})`, 2},
		{"runs of an agent, by the agent", "agent", `runs`, 1},
		{"failed runs of an agent", "agent", `runs(filter: {status: [FAILED]})`, 1},
		{"wakeups, newest first", "workspace", `wakeupRequests(` + newest + `)`, 1},
		{"wakeups, oldest first", "workspace", `wakeupRequests(` + oldest + `)`, 1},
		{"wakeups since an instant", "workspace", `wakeupRequests(filter: {since: "2131-01-01T05:00:00Z"})`, 1},
		{"wakeups of an agent", "workspace", `wakeupRequests(filter: {agentId: "agt_00000000000000000000000001"})`, 1},
		{"wakeups of a chain", "workspace", `wakeupRequests(filter: {causationId: "cau_00000000000000000000000001"})`, 1},
		{"wakeups by two sources", "workspace", `wakeupRequests(filter: {source: [COMMENT, USER]})`, 2},
		{"wakeups that wait", "workspace", `wakeupRequests(filter: {status: [QUEUED, CLAIMED]})`, 3},
		{"wakeups of an agent, by the agent", "agent", `wakeupRequests`, 1},
		{"the feed", "workspace", `activity`, 1},
		{"the feed since an instant", "workspace", `activity(filter: {since: "2131-01-01T05:00:00Z"})`, 1},
		{"the feed of an agent", "workspace", `activity(filter: {agentId: "agt_00000000000000000000000001"})`, 1},
		{"the feed of a task", "workspace", `activity(filter: {taskId: "tsk_00000000000000000000000001"})`, 1},
		{"the feed of a task without any", "workspace", `activity(filter: {taskId: "tsk_00000000000000000000000003"})`, 1},
		{"the feed of a chain", "workspace", `activity(filter: {causationId: "cau_00000000000000000000000001"})`, 1},
		{"the feed by codes", "workspace", `activity(filter: {code: [RECOVERY_DISPATCH, RUN_FAILED, BUDGET_CHANGED]})`, 3},
		{"the open inbox", "workspace", `inbox`, 1},
		{"the whole inbox", "workspace", `inbox(filter: {open: false})`, 1},
		{"the open inbox by kinds", "workspace", `inbox(filter: {kind: [BUDGET_ALERT, LOOP_BREAKER]})`, 2},
		{"the whole inbox by a kind", "workspace", `inbox(filter: {open: false, kind: [BUDGET_ALERT]})`, 1},
		{"fires", "workspace", `routineRuns`, 1},
		{"fires of a routine", "workspace", `routineRuns(filter: {routineId: "rtn_00000000000000000000000001"})`, 1},
		{"fires by source", "workspace", `routineRuns(filter: {source: [MANUAL]})`, 1},
		{"fires by statuses", "workspace", `routineRuns(filter: {status: [FAILED, SKIPPED]})`, 2},
		{"fires since an instant", "workspace", `routineRuns(filter: {since: "2131-01-01T05:00:00Z"})`, 1},
	}
	out = append(out, listsByMore()...)
	for _, status := range []string{"QUEUED", "CLAIMED", "FINISHED", "FAILED", "CANCELLED"} {
		out = append(out, listed{"runs " + status, "workspace", `runs(filter: {status: [` + status + `]})`, 1})
	}
	for _, shape := range []string{"LAUNCHED_COMPLETED", "LAUNCHED_FAILED", "SILENT_SUCCESS", "UNLAUNCHED_SKIPPED", "UNLAUNCHED_FAILED", "UNCLASSIFIED"} {
		out = append(out, listed{"runs " + shape, "workspace", `runs(filter: {terminalShape: [` + shape + `]})`, 2})
	}
	for _, status := range []string{"QUEUED", "CLAIMED", "COALESCED", "SKIPPED", "FINISHED", "FAILED", "CANCELLED"} {
		out = append(out, listed{"wakeups " + status, "workspace", `wakeupRequests(filter: {status: [` + status + `]})`, 2})
	}
	return out
}

// listsByMore are the filters and orders by what a run was for, how it went and what it cost, and their like of other lists.
func listsByMore() []listed {
	const rarePeriod = `since: "2129-12-20T00:00:00Z", until: "2130-01-05T00:00:00Z"`
	out := []listed{
		{"runs by source", "workspace", `runs(filter: {source: [COMMENT]})`, 3},
		{"runs by class", "workspace", `runs(filter: {wakeClass: PERIODIC})`, 3},
		{"runs by hold", "workspace", `runs(filter: {hold: [BACKOFF, NO_WORKER]})`, 2},
		{"runs by outcome", "workspace", `runs(filter: {outcome: ["idle_skipped", "budget_blocked"]})`, 2},
		{"runs by the usual outcome", "workspace", `runs(filter: {outcome: ["processed"]})`, 1},
		{"runs by error", "workspace", `runs(filter: {errorCode: [CRASH, AUTH]})`, 2},
		{"runs of agents", "workspace", `runs(filter: {agentIds: ["agt_00000000000000000000000001", "agt_00000000000000000000000003"]})`, 2},
		{"failed runs of an agent, from the workspace", "workspace", `runs(filter: {agentId: "agt_00000000000000000000000001", status: [FAILED]})`, 1},
		{"runs of a project in a period", "workspace", `runs(filter: {projectId: "prj_00000000000000000000000001", ` + rarePeriod + `})`, 1},
		{"dear runs in a period", "workspace", `runs(filter: {minCost: "1", ` + rarePeriod + `})`, 1},
		{"dear runs, dearest first", "workspace", `runs(orderBy: {field: COST, direction: DESC}, filter: {minCost: "1"})`, 1},
		{"wakeups by reason of their end", "workspace", `wakeupRequests(filter: {endReason: [TASK_DONE, HOP_LIMIT]})`, 2},
		{"wakeups of the recovery sweep", "workspace", `wakeupRequests(filter: {recovered: true})`, 1},
		{"wakeups of a routine", "workspace", `wakeupRequests(filter: {routineId: "rtn_00000000000000000000000001"})`, 1},
		{"wakeups of a task", "workspace", `wakeupRequests(filter: {taskId: "tsk_00000000000000000000000001"})`, 1},
		{"wakeups until an instant", "workspace", `wakeupRequests(filter: {until: "2130-06-01T00:00:00Z"})`, 1},
		{"tasks by reviewer", "workspace", `tasks(filter: {reviewerId: "agt_00000000000000000000000001"})`, 1},
		{"tasks by approver", "workspace", `tasks(filter: {approverId: "agt_00000000000000000000000001"})`, 1},
		{"tasks that need an approval", "workspace", `tasks(filter: {requiresApproval: true})`, 1},
		{"tasks that are blocked", "workspace", `tasks(filter: {blocked: true})`, 1},
		{"the feed of a routine", "workspace", `activity(filter: {routineId: "rtn_00000000000000000000000001"})`, 1},
		{"the feed of a run", "workspace", `activity(filter: {runId: "run_00000000000000000000000001"})`, 1},
		{"the feed of an actor", "workspace", `activity(filter: {actor: "tok_rare"})`, 1},
		{"the feed until an instant", "workspace", `activity(filter: {until: "2130-06-01T00:00:00Z"})`, 1},
		{"the open inbox of an agent", "workspace", `inbox(filter: {agentId: "agt_00000000000000000000000001"})`, 1},
		{"the whole inbox of an agent", "workspace", `inbox(filter: {agentId: "agt_00000000000000000000000001", open: false})`, 1},
		{"routines by the state of their schedule", "workspace", `routines(filter: {scheduleState: [UNSCHEDULED_NO_TRIGGER]})`, 1},
		{"routines by health", "workspace", `routines(filter: {health: [OK, FAILING]})`, 1},
		{"approvals", "workspace", `approvals`, 1},
		{"open approvals", "workspace", `approvals(filter: {status: [PENDING]})`, 1},
	}
	for _, direction := range []string{"ASC", "DESC"} {
		for _, o := range []struct{ list, field string }{
			{"runs", "FINISHED_AT"}, {"runs", "DURATION"}, {"runs", "COST"}, {"routines", "NEXT_FIRE_AT"}, {"routines", "LAST_RUN_AT"}, {"agents", "LAST_ACTIVE_AT"},
		} {
			out = append(out, listed{o.list + " by " + o.field + " " + direction, "workspace", o.list + `(orderBy: {field: ` + o.field + `, direction: ` + direction + `})`, 1})
		}
	}
	return out
}

// TestAListReadsWhatItShowsHoweverLongTheHistory counts the rows that the statements of each list read, those that a filter
// throws away included, with a history and with one ten times as long. `make test-lists` does it at a million ended runs.
func TestAListReadsWhatItShowsHoweverLongTheHistory(t *testing.T) {
	t.Parallel()
	short, long := 2_000, 20_000
	if os.Getenv("ROUSE_LISTS_FULL") != "" {
		short, long = 100_000, 1_000_000
	}
	db, kept := keepingDB(t)
	w := newWorldOn(t, db)
	defer w.sql(`TRUNCATE activities`) // whose data nobody wrote
	w.fillRare()
	w.fillUsual(1, short)
	few := w.readByLists(kept)
	w.fillUsual(short+1, long)
	many := w.readByLists(kept)
	for _, l := range listsThatGrow() {
		a, b := few[l.name], many[l.name]
		t.Logf("%-40s shown %3d, rows read %4d and %4d, pages %4d and %4d", l.name, b.shown, a.rows, b.rows, a.pages, b.pages)
		if b.shown == 0 && !strings.Contains(l.name, "without any") {
			t.Errorf("%s: the list is empty, which shows nothing", l.name)
		}
		if most := 2*b.shown*l.values + 300; b.rows > most {
			t.Errorf("%s: %d rows are read for the %d shown among %d ended runs, want %d at most; %d among %d", l.name, b.rows, b.shown, long, most, a.rows, short)
		}
		if b.pages > 2*a.pages+100 {
			t.Errorf("%s: %d pages are read among %d ended runs, %d among %d", l.name, b.pages, long, a.pages, short)
		}
	}
}

// readOf is what a list showed, and what its statements read for it.
type readOf struct{ shown, rows, pages int }

func (w *world) readByLists(kept *keptStatements) map[string]readOf {
	w.t.Helper()
	w.sql(`VACUUM (ANALYZE)`)
	out := map[string]readOf{}
	for _, l := range listsThatGrow() {
		id := map[string]string{"workspace": w.workspace, "agent": "agt_00000000000000000000000001"}[l.of]
		name, args, _ := strings.Cut(l.args, "(")
		args, _ = strings.CutSuffix(args, ")")
		var page map[string]map[string]struct{ Edges []any }
		statements := kept.during(func() {
			w.Do(w.t.Context(), `query($id: ID!) { `+l.of+`(id: $id) { `+name+`(first: 50, `+args+`) { edges { cursor } } } }`, map[string]any{"id": id}, &page)
		})
		read := readOf{shown: len(page[l.of][name].Edges)}
		for _, s := range statements {
			rows, pages := w.explain(s)
			read.rows, read.pages = read.rows+rows, read.pages+pages
		}
		out[l.name] = read
	}
	return out
}

// planNode is a part of a plan as EXPLAIN (FORMAT JSON) shows it.
type planNode struct {
	Relation  string     `json:"Relation Name"`
	Rows      float64    `json:"Actual Rows"`
	Loops     float64    `json:"Actual Loops"`
	Filtered  float64    `json:"Rows Removed by Filter"`
	Rechecked float64    `json:"Rows Removed by Index Recheck"`
	Hit       int        `json:"Shared Hit Blocks"`
	Read      int        `json:"Shared Read Blocks"`
	Plans     []planNode `json:"Plans"`
}

// read is how many rows of tables a plan and all its parts looked at.
func (n planNode) read() (rows float64) {
	if n.Relation != "" {
		rows = (n.Rows + n.Filtered + n.Rechecked) * n.Loops
	}
	for _, part := range n.Plans {
		rows += part.read()
	}
	return rows
}

// explain executes a statement once more and counts the rows and pages that it reads.
func (w *world) explain(s keptStatement) (rows, pages int) {
	w.t.Helper()
	var text []byte
	if err := w.db.QueryRowContext(w.t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+s.query, s.args...).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", s.query, err)
	}
	var out []struct{ Plan planNode }
	w.ok(json.Unmarshal(text, &out))
	return int(out[0].Plan.read()), out[0].Plan.Hit + out[0].Plan.Read
}

// fillUsual makes ended runs of the usual way, with their requests, entries of the feed, fires and inbox items.
func (w *world) fillUsual(from, to int) {
	w.fill(map[string]string{"agent": "agt_00000000000000000000000002", "at": `'2131-01-01Z'::timestamptz + i * interval '1 minute'`, "from": fmt.Sprint(from), "to": fmt.Sprint(to), "kind": "usual",
		"run": "FINISHED", "outcome": "'processed'", "session": "'ses'", "wakeup": "FINISHED", "linked": "yes", "source": "ROUTINE", "code": "RUN_FINISHED", "inbox": "AGENT_ERROR",
		"fire": "DONE", "by": "CRON", "task": "NULL", "routine": "rtn_00000000000000000000000002", "parked": "NULL", "causation": "'cau_' || i", "class": "EVENT", "took": "2 seconds", "cost": "0.01", "error": "NULL",
		"reason": "NULL", "recovered": "false", "actor": "tok_usual", "data": "{}", "approval": "APPROVED"})
}

// fillRare makes a few rows of everything else, older than what is usual.
func (w *world) fillRare() {
	first := 0
	for _, x := range []map[string]string{
		{"run": "QUEUED", "wakeup": "QUEUED", "code": "RECOVERY_DISPATCH", "inbox": "BUDGET_ALERT", "fire": "FAILED"},
		{"run": "QUEUED", "parked": "'BACKOFF'", "wakeup": "QUEUED", "linked": "no", "fire": "SKIPPED"},
		{"run": "CLAIMED", "wakeup": "CLAIMED", "code": "RUN_FAILED", "fire": "RECEIVED"},
		{"run": "FAILED", "session": "'ses'", "wakeup": "FAILED", "code": "BUDGET_CHANGED", "error": "'CRASH'"},
		{"run": "FAILED", "wakeup": "SKIPPED", "linked": "no", "error": "'AUTH'"},
		{"run": "CANCELLED", "wakeup": "CANCELLED", "reason": "'TASK_DONE'", "recovered": "true"},
		{"run": "FINISHED", "outcome": "'processed'", "session": "'ses'", "wakeup": "FINISHED", "source": "ROUTINE", "class": "PERIODIC", "code": "ROUTINE_FIRED", "data": `{"routineId": "rtn_00000000000000000000000001"}`},
		{"run": "FINISHED", "outcome": "'idle_skipped'", "wakeup": "COALESCED"},
		{"run": "FINISHED", "outcome": "'processed'", "wakeup": "COALESCED"},
	} {
		all := map[string]string{"agent": "agt_00000000000000000000000001", "at": `'2130-01-01Z'::timestamptz + i * interval '1 minute'`, "from": fmt.Sprint(first - 4), "to": fmt.Sprint(first), "kind": "rare",
			"outcome": "NULL", "session": "NULL", "linked": "yes", "source": "COMMENT", "code": "RECOVERY_DISPATCH", "inbox": "BUDGET_ALERT",
			"fire": "FAILED", "by": "MANUAL", "task": "'tsk_00000000000000000000000001'", "routine": "rtn_00000000000000000000000001", "parked": "NULL", "causation": "'cau_00000000000000000000000001'", "class": "EVENT", "took": "100 seconds", "cost": "5", "error": "NULL",
			"reason": "NULL", "recovered": "false", "actor": "tok_rare", "data": "{}", "approval": "PENDING"}
		for k, v := range x {
			all[k] = v
		}
		w.fill(all)
		first -= 5
	}
	w.sql(`SET session_replication_role = replica;
UPDATE runs SET id = 'run_00000000000000000000000001' WHERE id = 'run_rare0';
UPDATE activities SET subject_id = 'run_00000000000000000000000001' WHERE subject_id = 'run_rare0';
INSERT INTO tasks (id, workspace_id, title, workflow_id, step_id, project_id, requires_approval)
SELECT id, '` + w.workspace + `', 'rare', 'wfl_1', 'stp_1', 'prj_00000000000000000000000001', true FROM unnest(ARRAY['tsk_00000000000000000000000001', 'tsk_zz1', 'tsk_zz2', 'tsk_zz3']) id;
INSERT INTO task_reviewers (task_id, agent_id) SELECT id, 'agt_00000000000000000000000001' FROM tasks WHERE id LIKE 'tsk_zz%';
INSERT INTO task_approvers (task_id, agent_id) SELECT id, 'agt_00000000000000000000000001' FROM tasks WHERE id LIKE 'tsk_zz%';
INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) VALUES ('blk_1', '` + w.workspace + `', 'tsk_zz1', 'tsk_zz2');
SET session_replication_role = DEFAULT`)
}

// fill writes rows of each kind, as its words say.
func (w *world) fill(words map[string]string) {
	w.t.Helper()
	pairs := []string{"{workspace}", w.workspace}
	for k, v := range words {
		pairs = append(pairs, "{"+k+"}", v)
	}
	text := strings.NewReplacer(pairs...).Replace(`
INSERT INTO agents (id, workspace_id, name, role, skip_idle_wakeups) VALUES ('{agent}', '{workspace}', '{agent}', 'WORKER', false) ON CONFLICT DO NOTHING;
INSERT INTO runs (id, workspace_id, agent_id, task_id, routine_id, causation_id, scope, source, error_code, cost_usd, wake_class, status, parked_reason, parked_until, outcome, session_id, requested_at, claimed_at, finished_at)
SELECT 'run_{kind}' || i, '{workspace}', '{agent}', {task}, '{routine}', {causation}, 'scope:' || i, '{source}', {error}, {cost}, '{class}', '{run}', {parked}, CASE WHEN {parked}::text IS NOT NULL THEN now() END, {outcome}, {session}, {at},
  CASE WHEN '{run}' <> 'QUEUED' THEN {at} END, CASE WHEN '{run}' NOT IN ('QUEUED', 'CLAIMED') THEN {at} + interval '{took}' END FROM generate_series({from}, {to}) i;
INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, routine_id, end_reason, run_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, recovered, resends, hops, retry_count, requested_at, finished_at)
SELECT 'wkp_{kind}' || i, '{workspace}', '{agent}', {task}, '{routine}', {reason}, CASE WHEN '{linked}' = 'yes' THEN 'run_{kind}' || i END, {causation}, 'scope:' || i, '{source}', 'EVENT', false, 'test', '{}', '{wakeup}', {recovered}, 0, 0, 0, {at},
  CASE WHEN '{wakeup}' NOT IN ('QUEUED', 'CLAIMED') THEN {at} END FROM generate_series({from}, {to}) i;
INSERT INTO activities (id, workspace_id, code, summary, actor_kind, actor, subject_id, agent_id, task_id, data, causation_id, occurred_at, tx)
SELECT 'act_{kind}' || i, '{workspace}', '{code}', 'test', 'USER', '{actor}', 'run_{kind}' || i, '{agent}', {task}, '{data}', {causation}, {at}, 1 FROM generate_series({from}, {to}) i;
INSERT INTO tasks (id, workspace_id, title, workflow_id, step_id, requires_approval) SELECT 'tsk_{kind}' || i, '{workspace}', 'test', 'wfl_1', 'stp_1', false FROM generate_series({from}, {to}) i;
INSERT INTO approvals (id, workspace_id, task_id, causation_id, question, status, created_at) SELECT 'apr_{kind}' || i, '{workspace}', 'tsk_{kind}' || i, {causation}, 'test', '{approval}', {at} FROM generate_series({from}, {to}) i;
INSERT INTO inbox_items (id, workspace_id, agent_id, kind, title, created_at, resolved_at)
SELECT 'inb_{kind}' || i, '{workspace}', '{agent}', '{inbox}', 'test', {at}, CASE WHEN '{kind}' = 'usual' OR i % 2 = 0 THEN now() END FROM generate_series({from}, {to}) i;
INSERT INTO routines (id, workspace_id, name, assignee_id, variables) VALUES ('{routine}', '{workspace}', '{routine}', '{agent}', '[]') ON CONFLICT DO NOTHING;
INSERT INTO routine_runs (id, workspace_id, routine_id, causation_id, source, status, variables, dispatch_fingerprint, started_at, completed_at)
SELECT 'rrn_{kind}' || i, '{workspace}', '{routine}', {causation}, '{by}', '{fire}', '{}', 'x', {at}, CASE WHEN '{fire}' <> 'RECEIVED' THEN {at} END FROM generate_series({from}, {to}) i;`)
	tx, err := w.db.BeginTx(w.t.Context(), nil)
	w.ok(err)
	_, err = tx.ExecContext(w.t.Context(), `SET LOCAL session_replication_role = replica; SET LOCAL synchronous_commit = off;`+text) // foreign keys are looked at one by one
	w.ok(err)
	w.ok(tx.Commit())
}

// keptStatement is a statement with its arguments.
type keptStatement struct {
	query string
	args  []any
}

// keptStatements are kept while somebody asks for it.
type keptStatements struct {
	mu      sync.Mutex
	keeping bool
	list    []keptStatement
}

// during is the statements of f that read.
func (k *keptStatements) during(f func()) []keptStatement {
	k.set(true)
	f()
	k.set(false)
	return k.list
}

func (k *keptStatements) set(keeping bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keeping = keeping; keeping {
		k.list = nil
	}
}

// keepingDB is a database of its own whose statements can be kept.
func keepingDB(t *testing.T) (*sql.DB, *keptStatements) {
	t.Helper()
	_, url := pgtest.NewURL(t)
	connector, err := pq.NewConnector(url)
	if err != nil {
		t.Fatal(err)
	}
	kept := &keptStatements{}
	db := sql.OpenDB(keepingConnector{connector, kept})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, kept
}

type keepingConnector struct {
	driver.Connector
	kept *keptStatements
}

func (c keepingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return keepingConn{conn.(pqConn), c.kept}, nil
}

type keepingConn struct {
	pqConn
	kept *keptStatements
}

func (c keepingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.kept.mu.Lock()
	if c.kept.keeping {
		s := keptStatement{query: query}
		for _, a := range args {
			s.args = append(s.args, a.Value)
		}
		c.kept.list = append(c.kept.list, s)
	}
	c.kept.mu.Unlock()
	return c.pqConn.QueryContext(ctx, query, args)
}
