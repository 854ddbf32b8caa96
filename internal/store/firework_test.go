package store

import (
	"strconv"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Each fact about a heavy fire's work, in every value that it can have.
var (
	fireStates    = domain.TaskState("").Values()
	fireTasks     = []string{"there", "archived", "deleted"}
	fireBlockers  = []string{"none", "ended", "open"}
	fireApprovals = []string{"none", "decided", "open"}
	fireRuns      = []string{"none", "due", "parked", "live", "ended"}
	fireRequests  = []string{"none", "unrouted", "task held", "task free", "agent held", "budget spent", "before the hold", "periodic"}
)

// allFires makes a fire of a heavy routine for every combination of them, copies of one that is there.
const allFires = `
WITH c AS MATERIALIZED (
  SELECT row_number() OVER () AS n, * FROM unnest($1::text[]) state, unnest($2::text[]) task, unnest($3::text[]) blocker, unnest($4::text[]) approval,
    unnest($5::text[]) run, unnest($6::text[]) request),
r AS (
  INSERT INTO runs (columns) SELECT columns FROM c, runs one, jsonb_populate_record(one, jsonb_build_object('id', 'run_' || n, 'task_id', 'tsk_' || n, 'scope', 'task:' || n,
    'status', CASE run WHEN 'live' THEN 'CLAIMED' WHEN 'ended' THEN 'FAILED' ELSE 'QUEUED' END,
    'claimed_at', CASE run WHEN 'live' THEN '2021-01-01Z' END, 'finished_at', CASE run WHEN 'ended' THEN '2021-01-01Z' END, 'parked_reason', CASE run WHEN 'parked' THEN 'RATE_LIMIT' END,
    'parked_until', CASE run WHEN 'parked' THEN '2126-01-01Z' END)) copy WHERE run <> 'none'),
t AS (
  INSERT INTO tasks SELECT (jsonb_populate_record(t, jsonb_build_object('id', 'tsk_' || n, 'state', c.state, 'archived_at', CASE task WHEN 'archived' THEN '2021-01-01Z' END,
    'deleted_at', CASE task WHEN 'deleted' THEN '2021-01-01Z' END, 'checkout_run_id', CASE request WHEN 'task held' THEN 'run_0' END, 'checkout_agent_id', CASE request WHEN 'task held' THEN t.assignee_id END,
    'checkout_at', CASE request WHEN 'task held' THEN '2021-01-01Z' END))).* FROM c, tasks t WHERE t.id = $7),
b AS (
  INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) SELECT 'blk_' || n, k.workspace_id, 'tsk_' || n, k.id FROM c JOIN tasks k ON k.title = blocker || ' blocker'),
a AS (
  INSERT INTO approvals (id, workspace_id, task_id, causation_id, question, completion, status)
  SELECT 'apr_' || n, w.id, 'tsk_' || n, 'cau', 'May I?', false, CASE approval WHEN 'open' THEN 'PENDING' ELSE 'APPROVED' END FROM c, workspaces w WHERE approval <> 'none'),
q AS (
  INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, routine_run_id, causation_id, scope, source, basis, wake_class, person_waiting, reason, payload, recovered, resends, hops, retry_count, status, end_reason, finished_at)
  SELECT 'wkp_' || n, workspace_id, agent_id, 'tsk_' || n, routine_run_id, causation_id, scope, source, basis, CASE request WHEN 'periodic' THEN 'PERIODIC' ELSE 'EVENT' END, person_waiting, reason, payload, recovered, resends, hops, retry_count,
    CASE request WHEN 'unrouted' THEN 'QUEUED' WHEN 'agent held' THEN 'FINISHED' ELSE 'SKIPPED' END,
    CASE WHEN request LIKE 'task %' THEN 'CHECKOUT_HELD' WHEN request = 'budget spent' THEN 'BUDGET_BLOCKED' WHEN request <> 'unrouted' THEN 'AGENT_INACTIVE' END,
    CASE request WHEN 'unrouted' THEN NULL WHEN 'before the hold' THEN '2019-01-01Z'::timestamptz ELSE '2021-01-01Z' END FROM c, wakeup_requests q WHERE request <> 'none'),
f AS (
  INSERT INTO routine_runs SELECT (jsonb_populate_record(f, jsonb_build_object('id', 'rrn_' || n, 'task_id', 'tsk_' || n, 'fire_key', NULL, 'dispatch_fingerprint', 'mark ' || n))).* FROM c, routine_runs f)
SELECT n, state, task, blocker, approval, run, request FROM c`

// combination is a fire with what the rule knows of it.
type combination struct {
	n                                            int
	state                                        domain.TaskState
	task, blocker, approval, run, requestOfATask string
}

func (c combination) work() domain.FireWork {
	w := domain.FireWork{Heavy: true, TaskState: c.state, TaskArchived: c.task != "there", OpenBlocker: c.blocker == "open", OpenApproval: c.approval == "open"}
	switch c.requestOfATask {
	case "unrouted", "task held", "agent held", "budget spent":
		w.RequestUnrouted = true
	}
	switch c.run {
	case "due", "parked":
		w.RunStatus = domain.RunStatusQueued
	case "live":
		w.RunStatus = domain.RunStatusClaimed
	}
	if c.run == "parked" {
		w.Parked, w.ParkedLong = domain.ParkedReasonRateLimit, true
	}
	return w
}

// The statements that find active fires, and those whose work has ended, say the same as the rule (SPEC S4.6) of every
// combination of facts.
func TestTheQueriesAboutHeavyFiresFollowTheRule(t *testing.T) {
	t.Parallel()
	w := newHeavyWorld(t)
	w.fires(domain.RoutineRunStatusTaskCreated)
	w.task("open blocker")
	w.moveTo(w.task("ended blocker"), domain.TaskStateDone)
	w.sql(`UPDATE tasks SET state = 'IN_PROGRESS' WHERE title = 'open blocker'`)
	w.sql(`UPDATE agent_lanes SET paused_at = '2020-01-01Z', head_at = NULL, head_id = NULL`)
	w.sql(`DELETE FROM wakeup_requests WHERE id NOT IN (SELECT min(id) FROM wakeup_requests)`)
	w.sql(`DELETE FROM runs WHERE id NOT IN (SELECT min(id) FROM runs)`)
	template := one[xid.ID](w.world, `SELECT id FROM routine_runs`)
	combinations := w.combine()
	found := map[xid.ID]domain.FireWork{}
	var agents, routines []xid.ID
	var marks []string
	var asked []bool
	for range combinations {
		agents, routines, asked = append(agents, w.agent), append(routines, w.routine), append(asked, true)
	}
	for _, c := range combinations {
		marks = append(marks, c.mark())
	}
	rows, err := pgtx.Collect(t.Context(), w.db, scanFire, fireQueueQuery, pgtx.IDs(agents), pgtx.IDs(routines), pgtx.TextArray(marks), pgtx.BoolArray(asked), domain.MaxBacklog, one[any](w.world, `SELECT clock_timestamp()`))
	w.ok(err)
	for _, f := range rows {
		f.work.ParkedLong = f.work.ParkedLong && f.work.Parked != "" // of no use to the rule else
		found[f.id] = f.work
	}
	stale := map[xid.ID]bool{}
	list, err := pgtx.Collect(t.Context(), w.db, pgtx.ScanOne[xid.ID], `SELECT f.id FROM routine_runs f JOIN tasks k ON k.id = f.task_id WHERE f.id <> $1 AND `+staleFire, template)
	w.ok(err)
	for _, id := range list {
		stale[id] = true
	}
	wrong := 0
	for _, c := range combinations {
		want, open := c.work(), c.task == "there" && !c.state.Ended()
		if got := found[c.fire()]; got != want {
			t.Errorf("%+v: the queue knows %+v, want %+v", c, got, want)
			wrong++
		}
		if got := stale[c.fire()]; got != (open && !want.Active()) {
			t.Errorf("%+v: it is stale: %t, while the rule finds it active: %t", c, got, want.Active())
			wrong++
		}
		if wrong > 10 {
			t.Fatal("and others")
		}
	}
	if len(combinations) != 6*3*3*3*5*8 {
		t.Errorf("there are %d combinations", len(combinations))
	}
}

func (c combination) fire() xid.ID   { return xid.ID("rrn_" + c.number()) }
func (c combination) mark() string   { return "mark " + c.number() }
func (c combination) number() string { return strconv.Itoa(c.n) }

// combine makes all fires, without looking at foreign keys one by one.
func (w *heavyWorld) combine() (all []combination) {
	w.Helper()
	tx, err := w.db.BeginTx(w.Context(), nil)
	w.ok(err)
	defer tx.Rollback()
	_, err = tx.ExecContext(w.Context(), `SET LOCAL session_replication_role = replica`)
	w.ok(err)
	// a generated column cannot be inserted
	columns := w.texts(`SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = 'runs'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`)
	query := strings.NewReplacer("(columns)", "("+strings.Join(columns, ", ")+")", "SELECT columns", "SELECT copy."+strings.Join(columns, ", copy.")).Replace(allFires)
	rows, err := tx.QueryContext(w.Context(), query, pgtx.TextArray(fireStates), pgtx.TextArray(fireTasks), pgtx.TextArray(fireBlockers), pgtx.TextArray(fireApprovals),
		pgtx.TextArray(fireRuns), pgtx.TextArray(fireRequests), one[xid.ID](w.world, `SELECT task_id FROM routine_runs`))
	w.ok(err)
	defer rows.Close()
	for rows.Next() {
		var c combination
		w.ok(rows.Scan(&c.n, &c.state, &c.task, &c.blocker, &c.approval, &c.run, &c.requestOfATask))
		all = append(all, c)
	}
	w.ok(rows.Err())
	w.ok(rows.Close())
	w.ok(tx.Commit())
	return all
}
