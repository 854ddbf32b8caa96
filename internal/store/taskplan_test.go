package store

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/comment"
	"rouse.dev/rouse/ent/inboxitem"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// manyRows is how long the tables are in which the statements about tasks must find their few rows.
const manyRows = 40_000

// fillTasks makes the tables long: old tasks with comments, blockers, wakes, runs, costs and inbox items.
func (w *world) fillTasks(agent xid.ID) {
	w.Helper()
	for _, query := range []string{
		`INSERT INTO tasks (id, workspace_id, title, workflow_id, step_id, assignee_id, state, created_at)
SELECT 'tsk_0' || lpad(i::text, 8, '0'), $2, 'old', s.workflow_id, s.id, $1, 'DONE', '2020-01-01Z'::timestamptz + i * interval '1 minute'
FROM generate_series(1, $3::int) i, (SELECT * FROM workflow_steps WHERE workspace_id = $2 ORDER BY position LIMIT 1) s`,
		`INSERT INTO comments (id, workspace_id, causation_id, task_id, author_kind, body)
SELECT 'cmt_0' || i, $2, 'cau' || $1, 'tsk_0' || lpad((i / 5)::text, 8, '0'), 'SYSTEM', 'old' FROM generate_series(1, $3::int) i`,
		`INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id)
SELECT 'blk_0' || i, $2, 'tsk_0' || lpad(i::text, 8, '0'), 'tsk_0' || lpad((i + 1)::text, 8, '0') FROM generate_series(1, $3::int - 1) i WHERE $1 <> ''`,
		`INSERT INTO runs (id, workspace_id, agent_id, task_id, causation_id, scope, source, wake_class, status, outcome, requested_at, started_at, finished_at)
SELECT 'run_0' || i, $2, $1, 'tsk_0' || lpad(i::text, 8, '0'), 'cau', 'task:' || i, 'TASK_ASSIGNED', 'EVENT', 'FINISHED', 'processed',
  '2020-01-01Z'::timestamptz + i * interval '1 minute', '2020-01-01Z', '2020-01-01Z'::timestamptz + i * interval '1 minute' FROM generate_series(1, $3::int) i`,
		`INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, run_id, causation_id, scope, source, basis, wake_class, person_waiting, reason, payload, status, recovered, resends, hops, retry_count,
  idempotency_key, requested_at, finished_at)
SELECT 'wkp_0' || i, $2, $1, 'tsk_0' || lpad(i::text, 8, '0'), 'run_0' || i, 'cau', 'task:' || i, 'TASK_ASSIGNED', 'ASSIGNEE', 'EVENT', false, 'old', '{}', 'FINISHED', false, 0, 0, 0,
  'old:' || i, '2020-01-01Z'::timestamptz + i * interval '1 minute', '2020-01-01Z'::timestamptz + i * interval '1 minute' FROM generate_series(1, $3::int) i`,
		`INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, cost_usd, created_at)
SELECT 'cst_0' || i, $2, 'cau', 'run_0' || i, 1, $1, 0.01, '2020-01-01Z'::timestamptz + i * interval '1 minute' FROM generate_series(1, $3::int) i`,
		`INSERT INTO inbox_items (id, workspace_id, kind, title, dedupe_key, created_at, resolved_at)
SELECT 'inb_0' || i, $2, 'AGENT_ERROR', 'old', 'old:' || $1 || i, '2020-01-01Z'::timestamptz + i * interval '1 minute', CASE WHEN i % 2 = 0 THEN now() END FROM generate_series(1, $3::int) i`,
		`INSERT INTO approvals (id, workspace_id, causation_id, task_id, question, status, completion)
SELECT 'apr_0' || i, $2, 'cau' || $1, 'tsk_0' || lpad(i::text, 8, '0'), 'old', 'APPROVED', true FROM generate_series(1, $3::int) i`,
	} {
		tx, err := w.db.BeginTx(w.Context(), nil)
		w.ok(err)
		_, err = tx.ExecContext(w.Context(), `SET LOCAL session_replication_role = replica`) // foreign keys are looked at one by one
		w.ok(err)
		if _, err := tx.ExecContext(w.Context(), query, agent, w.workspace, manyRows); err != nil {
			w.Fatalf("%s: %v", query, err)
		}
		w.ok(tx.Commit())
	}
	w.sql(`ANALYZE`)
}

var explainable = regexp.MustCompile(`(?i)^(\s|--.*\n)*(SELECT|WITH|UPDATE|DELETE)`)

var longTables = regexp.MustCompile(`"Relation Name": "(tasks|comments|task_blockers|runs|wakeup_requests|cost_entries|inbox_items|approvals)"`)

// wantShort explains statements as they were executed, with plans for any arguments, and complains of each that reads a
// long table from end to end, or more pages than its few rows can need.
func (w *world) wantShort(name string, list []statement, pages int) {
	w.Helper()
	if len(list) == 0 {
		w.Errorf("%s: no statement was kept", name)
	}
	for _, s := range list {
		if !explainable.MatchString(s.query) || strings.HasPrefix(s.query, "SELECT COUNT") { // a totalCount, which only counts when asked
			continue
		}
		plan, read, err := w.explainKept(s, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `)
		if err != nil { // what it did cannot be done twice
			plan, read, err = w.explainKept(s, `EXPLAIN (FORMAT JSON) `)
		}
		if err != nil {
			w.Errorf("%s: %s: %v", name, s.query, err)
			continue
		}
		for node := range strings.SplitSeq(plan, `"Node Type": `) {
			if strings.HasPrefix(node, `"Seq Scan"`) && longTables.MatchString(node) {
				w.Errorf("%s reads a whole table: %s\n%s", name, s.query, node[:min(len(node), 300)])
			}
		}
		if read > pages {
			w.Errorf("%s reads %d pages, want %d at most: %s", name, read, pages, s.query)
		}
	}
}

// explainKept executes a statement once more, and takes back what it does.
func (w *world) explainKept(s statement, how string) (plan string, pages int, err error) {
	tx, err := w.db.BeginTx(w.Context(), nil)
	if err != nil {
		return "", 0, err
	}
	defer func() { w.ok(tx.Rollback()) }()
	if _, err := tx.ExecContext(w.Context(), `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan`); err != nil {
		return "", 0, err
	}
	var text []byte
	if err := tx.QueryRowContext(w.Context(), how+s.query, s.args...).Scan(&text); err != nil {
		return "", 0, err
	}
	var out []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	err = json.Unmarshal(text, &out)
	if err != nil {
		return "", 0, err
	}
	return string(text), out[0].Plan.Hit + out[0].Plan.Read, nil
}

// TestTaskStatementsStayShortInLongTables does what people and runs do to tasks, and looks at all statements of it among
// 40,000 rows of each kind.
func TestTaskStatementsStayShortInLongTables(t *testing.T) {
	t.Parallel()
	db, kept := keepingDB(t)
	w := newWorldOn(t, db)
	a, b := w.agent("a"), w.agent("b")
	w.fillTasks(a)
	project := w.project("p")
	parent := w.task("Parent", assignedTo(a))
	first, second := w.task("First", func(in *CreateTask) { in.ParentID = parent }), w.task("Second", func(in *CreateTask) { in.ParentID = parent })
	spec := w.task("Spec", assignedTo(b), func(in *CreateTask) { in.RequiresApproval, in.ProjectID = true, project })
	w.budget(a, "100")
	w.budget(b, "100", func(in *UpsertBudget) { in.SubjectKind, in.SubjectID = domain.BudgetSubjectKindProject, project })
	limit := 50
	var claimed []Claimed
	for _, c := range []struct {
		name  string
		pages int
		do    func()
	}{
		{"a task is made", 400, func() { w.task("Another", assignedTo(a), func(in *CreateTask) { in.BlockedBy = []xid.ID{first} }) }},
		{"blockers are set", 400, func() {
			_, err := w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: parent, BlockedBy: []xid.ID{first}})
			w.ok(err)
		}},
		{"it is commented on", 400, func() {
			_, _, err := w.CommentOnTask(t.Context(), CommentOnTask{WorkspaceID: w.workspace, TaskID: parent, UserID: "ann", Body: "look", Mentions: []xid.ID{b}})
			w.ok(err)
		}},
		{"a claim with checkouts and budgets", 2500, func() { claimed = w.claim(10) }},
		{"why runs wait", 2500, func() {
			runs, err := pgtx.Collect(t.Context(), w.db, pgtx.ScanOne[xid.ID], `SELECT id FROM runs WHERE status = 'QUEUED' LIMIT 100`)
			w.ok(err)
			_, err = w.Waiting(t.Context(), runs, nil)
			w.ok(err)
		}},
		{"runs end, and free their tasks", 2500, func() {
			for _, x := range claimed {
				w.start(x)
				w.finishAt(x, "0.5")
			}
		}},
		{"a blocker and child ends", 400, func() { w.moveTo(first, domain.TaskStateDone) }},
		{"the last child ends", 400, func() { w.moveTo(second, domain.TaskStateCancelled) }},
		{"a completion is asked for", 400, func() { w.moveTo(spec, domain.TaskStateDone) }},
		{"a completion is decided", 400, func() {
			_, _, err := w.Decide(t.Context(), Decide{WorkspaceID: w.workspace, ApprovalID: one[xid.ID](w, `SELECT id FROM approvals WHERE task_id = $1`, spec), UserID: "ann", Status: domain.ApprovalStatusRejected})
			w.ok(err)
		}},
		{"a task is given to another", 400, func() { w.assign(spec, a) }},
		{"a task is archived", 400, func() {
			_, _, err := w.ArchiveTask(t.Context(), w.workspace, spec)
			w.ok(err)
		}},
		{"the recovery sweep", 400, func() { w.sweepTasks() }},
		{"a page of a workspace's tasks", 400, func() {
			_, err := w.client.Task.Query().Where(task.WorkspaceID(w.workspace), task.DeletedAtIsNil()).Paginate(t.Context(), nil, &limit, nil, nil)
			w.ok(err)
		}},
		{"a page of a project's tasks", 400, func() {
			_, err := w.client.Task.Query().Where(task.ProjectID(project), task.DeletedAtIsNil()).Paginate(t.Context(), nil, &limit, nil, nil)
			w.ok(err)
		}},
		{"a page of comments", 400, func() {
			_, err := w.client.Comment.Query().Where(comment.TaskID(parent)).Paginate(t.Context(), nil, &limit, nil, nil)
			w.ok(err)
		}},
		{"a page of the inbox", 400, func() {
			_, err := w.client.InboxItem.Query().Where(inboxitem.WorkspaceID(w.workspace), inboxitem.ResolvedAtIsNil()).
				Order(ent.Desc(inboxitem.FieldCreatedAt, inboxitem.FieldID)).Limit(limit).All(t.Context())
			w.ok(err)
		}},
		{"costs of a day, by agent and by project", 400, func() {
			day := time.Date(2020, 1, 20, 0, 0, 0, 0, time.UTC)
			for _, by := range []domain.CostGrouping{domain.CostGroupingAgent, domain.CostGroupingProject, domain.CostGroupingDay} {
				_, err := w.Costs(t.Context(), w.workspace, day, day.Add(2*time.Hour), by)
				w.ok(err)
			}
		}},
	} {
		w.wantShort(c.name, kept.during(c.do), c.pages)
	}
	w.sound()
}

func (w *world) sweepTasks() {
	w.Helper()
	_, err := w.Recover(w.Context())
	w.ok(err)
}

// TestNoStatementForEachOfMany counts: what a change of one task costs does not depend on how many comments, children, wakes or
// unstarted tasks there are beside it.
func TestNoStatementForEachOfMany(t *testing.T) {
	t.Parallel()
	db, kept := keepingDB(t)
	w := newWorldOn(t, db)
	a, b := w.agent("a"), w.agent("b")
	count := func(n int) map[string]int {
		t.Helper()
		parent := w.task("Parent", assignedTo(a))
		var children []xid.ID
		for range n {
			children = append(children, w.task("Child", func(in *CreateTask) { in.ParentID = parent }))
			_, _, err := w.CommentOnTask(t.Context(), CommentOnTask{WorkspaceID: w.workspace, TaskID: parent, UserID: "ann", Body: "look"})
			w.ok(err)
			w.unstarted(b)
		}
		w.route(a)
		w.sweepTasks() // once for each assignment: what is counted finds nothing to do
		counts := map[string]int{
			"blockers are set": len(kept.during(func() {
				_, err := w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: parent, BlockedBy: children})
				w.ok(err)
			})),
			"they are taken off": len(kept.during(func() {
				_, err := w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: parent})
				w.ok(err)
			})),
			"a child ends":       len(kept.during(func() { w.moveTo(children[0], domain.TaskStateDone) })),
			"a sweep that idles": len(kept.during(func() { w.sweepTasks() })),
			"another assignee":   len(kept.during(func() { w.assign(parent, b) })),
		}
		counts["it is archived"] = len(kept.during(func() {
			_, _, err := w.ArchiveTask(t.Context(), w.workspace, parent)
			w.ok(err)
		}))
		w.finishAll()
		return counts
	}
	few, many := count(2), count(20)
	for name, n := range few {
		if many[name] > n+2 {
			t.Errorf("%s: %d statements beside 2, %d beside 20", name, n, many[name])
		}
	}
	t.Log(fmt.Sprint("statements beside few: ", few, ", beside many: ", many))
}
