package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// ids of a list of the workspace, as a client pages through it by two.
func (w *world) listedIDs(list, args string) (ids []string) {
	w.t.Helper()
	for after := ""; ; {
		var out struct {
			Workspace map[string]struct {
				Edges []struct {
					Node struct{ ID string }
				}
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		w.Do(w.t.Context(), `query($id: ID!) { workspace(id: $id) { `+list+`(first: 4`+after+args+`) { edges { node { id } } pageInfo { hasNextPage endCursor } } } }`, map[string]any{"id": w.workspace}, &out)
		page := out.Workspace[list]
		for _, e := range page.Edges {
			ids = append(ids, e.Node.ID)
		}
		if !page.PageInfo.HasNextPage {
			return ids
		}
		after = `, after: "` + page.PageInfo.EndCursor + `"`
	}
}

// Each filter lists what its condition in SQL says, and each order goes through all of it, page by page, in both directions.
func TestFiltersAndOrdersListWhatTheySay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.sql(`TRUNCATE activities`) // whose data nobody wrote
	w.fillRare()
	w.fillUsual(1, 6)
	w.sql(`UPDATE runs SET finished_at = claimed_at + interval '10 milliseconds' WHERE id = 'run_usual1'`)
	const period = `since: "2129-12-20T00:00:00Z", until: "2130-01-05T00:00:00Z"`
	for args, want := range map[string]string{
		`runs|filter: {source: [COMMENT]}`:                                           `source = 'COMMENT'`,
		`runs|filter: {source: [ROUTINE, USER], wakeClass: EVENT}`:                   `source IN ('ROUTINE', 'USER') AND wake_class = 'EVENT'`,
		`runs|filter: {wakeClass: PERIODIC}`:                                         `wake_class = 'PERIODIC'`,
		`runs|filter: {hold: [BACKOFF]}`:                                             `parked_reason = 'BACKOFF'`,
		`runs|filter: {outcome: ["idle_skipped"]}`:                                   `outcome = 'idle_skipped'`,
		`runs|filter: {outcome: ["processed"], errorCode: []}`:                       `false`,
		`runs|filter: {errorCode: [CRASH, AUTH]}`:                                    `error_code IN ('CRASH', 'AUTH')`,
		`runs|filter: {agentIds: ["agt_00000000000000000000000001"]}`:                `agent_id = 'agt_00000000000000000000000001'`,
		`runs|filter: {projectId: "prj_00000000000000000000000001", ` + period + `}`: `task_id = 'tsk_00000000000000000000000001'`,
		`runs|filter: {minCost: "5", ` + period + `}`:                                `cost_usd >= 5`,
		`wakeupRequests|filter: {endReason: [TASK_DONE]}`:                            `end_reason = 'TASK_DONE'`,
		`wakeupRequests|filter: {recovered: true}`:                                   `recovered`,
		`wakeupRequests|filter: {recovered: false}`:                                  `NOT recovered`,
		`wakeupRequests|filter: {routineId: "rtn_00000000000000000000000001"}`:       `routine_id = 'rtn_00000000000000000000000001'`,
		`wakeupRequests|filter: {taskId: "tsk_00000000000000000000000001"}`:          `task_id = 'tsk_00000000000000000000000001'`,
		`wakeupRequests|filter: {until: "2130-06-01T00:00:00Z"}`:                     `requested_at < '2130-06-01Z'`,
		`tasks|filter: {reviewerId: "agt_00000000000000000000000001"}`:               `id LIKE 'tsk_zz%'`,
		`tasks|filter: {approverId: "agt_00000000000000000000000001"}`:               `id LIKE 'tsk_zz%'`,
		`tasks|filter: {requiresApproval: true}`:                                     `requires_approval`,
		`tasks|filter: {blocked: true}`:                                              `id = 'tsk_zz1'`,
		`tasks|filter: {blocked: false}`:                                             `id <> 'tsk_zz1'`,
		`activity|filter: {routineId: "rtn_00000000000000000000000001"}`:             `code = 'ROUTINE_FIRED'`,
		`activity|filter: {runId: "run_00000000000000000000000001"}`:                 `subject_id = 'run_00000000000000000000000001'`,
		`activity|filter: {actor: "tok_rare"}`:                                       `actor = 'tok_rare'`,
		`activity|filter: {until: "2130-06-01T00:00:00Z"}`:                           `occurred_at < '2130-06-01Z'`,
		`inbox|filter: {open: false, agentId: "agt_00000000000000000000000001"}`:     `agent_id = 'agt_00000000000000000000000001'`,
		`routines|filter: {scheduleState: [UNSCHEDULED_NO_TRIGGER]}`:                 `true`,
		`routines|filter: {scheduleState: [ARMED]}`:                                  `false`,
		`routines|filter: {health: [OK]}`:                                            `id = 'rtn_00000000000000000000000002'`,
		`routines|filter: {health: [FAILING, UNTRIED]}`:                              `id = 'rtn_00000000000000000000000001'`,
		`approvals|filter: {status: [PENDING]}`:                                      `status = 'PENDING'`,
	} {
		list, filter, _ := strings.Cut(args, "|")
		table := map[string]string{"runs": "runs", "wakeupRequests": "wakeup_requests", "tasks": "tasks", "activity": "activities", "inbox": "inbox_items", "routines": "routines", "approvals": "approvals"}[list]
		got := w.listedIDs(list, ", "+filter)
		slices.Sort(got)
		if wanted := w.texts(`SELECT id FROM ` + table + ` WHERE workspace_id = '` + w.workspace + `' AND (` + want + `)`); !slices.Equal(got, wanted) {
			t.Errorf("%s: %d listed, want %d: %q, want %q", args, len(got), len(wanted), got, wanted)
		}
	}
	for order, by := range map[string]string{
		"runs FINISHED_AT":      `SELECT id FROM runs WHERE finished_at IS NOT NULL ORDER BY finished_at %s, id %s`,
		"runs DURATION":         `SELECT id FROM runs WHERE finished_at - claimed_at >= interval '1 second' ORDER BY finished_at - claimed_at %s, id %s`,
		"runs COST":             `SELECT id FROM runs WHERE cost_usd > 0 ORDER BY cost_usd %s, id %s`,
		"routines NEXT_FIRE_AT": `SELECT id FROM routines ORDER BY id %[2]s`,
		"routines LAST_RUN_AT":  `SELECT id FROM routines ORDER BY last_run_at %s NULLS FIRST, id %s`,
		"agents LAST_ACTIVE_AT": `SELECT id FROM agents ORDER BY id %[2]s`,
		"agents NAME":           `SELECT id FROM agents ORDER BY name %s, id %s`,
		"routines CREATED_AT":   `SELECT id FROM routines ORDER BY created_at %s, id %s`,
	} {
		list, field, _ := strings.Cut(order, " ")
		for _, d := range []string{"ASC", "DESC"} {
			got := w.listedIDs(list, `, orderBy: {field: `+field+`, direction: `+d+`}`)
			if want := w.inOrder(fmt.Sprintf(by, d, d)); !slices.Equal(got, want) {
				t.Errorf("%s %s: %q, want %q", order, d, got, want)
			}
		}
	}
	var counts struct {
		Workspace struct {
			RunCounts  struct{ Queued, Claimed, Finished, Failed, Cancelled int }
			TaskCounts struct{ Todo, Done int }
		}
	}
	w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { runCounts(filter: {agentId: "agt_00000000000000000000000001"}) { queued claimed finished failed cancelled capped } taskCounts { todo done capped } } }`, map[string]any{"id": w.workspace}, &counts)
	if got := fmt.Sprint(counts.Workspace.RunCounts); got != "{10 5 15 10 5}" {
		t.Errorf("runs are counted as %s", got)
	}
	if n := len(w.texts(`SELECT id FROM tasks`)); counts.Workspace.TaskCounts.Todo != n || counts.Workspace.TaskCounts.Done != 0 {
		t.Errorf("tasks are counted as %v, want %d to be done", counts.Workspace.TaskCounts, n)
	}
}

// What no index leads to is refused, with the field and what would be answered.
func TestFiltersThatWouldReadAllHistoryAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := strings.Repeat(`"agt_00000000000000000000000001", `, 101)
	for filter, field := range map[string]string{
		`projectId: "prj_00000000000000000000000001"`:                                                               "projectId",
		`projectId: "prj_00000000000000000000000001", since: "2026-01-01T00:00:00Z", until: "2026-02-02T00:00:00Z"`: "projectId",
		`minCost: "1"`: "minCost",
		`minCost: "0", since: "2026-11-30T00:00:00Z"`: "minCost",
		`hold: [AGENT_AT_CAPACITY]`:                   "hold",
		`agentIds: [` + many + `]`:                    "agentIds",
	} {
		_, errs := w.Try(t.Context(), `query($id: ID!) { workspace(id: $id) { runs(filter: {`+filter+`}) { edges { cursor } } } }`, map[string]any{"id": w.workspace})
		if codeOf(errs) != graph.CodeBadInput || !strings.Contains(errs[0].Message, "filter."+field) {
			t.Errorf("{%.80s}: %v, want %s about %s", filter, errs, graph.CodeBadInput, field)
		}
	}
}

// The tail of a log, of a run's events and of a task's comments is one call, and goes back page by page to the beginning.
func TestTheTailOfALogIsOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.agent("alice"))
	a := w.start()
	for i := range 7 {
		var lines []store.LogLine
		for n, letter := range []string{"a", "b", "c"} {
			lines = append(lines, store.LogLine{Seq: int64(3*i + n + 1), Stream: domain.LogStreamStdout, Text: fmt.Sprint(letter, i), At: time.Now()})
		}
		w.ok(w.store.AppendLog(t.Context(), a, lines))
	}
	type page struct {
		TotalCount int
		Edges      []struct {
			Node struct{ Text, Kind string }
		}
		PageInfo struct {
			HasPreviousPage, HasNextPage bool
			StartCursor                  string
		}
	}
	tail := func(list, field string) (texts []string, total int) {
		for before := ""; ; {
			var out struct{ Run map[string]page }
			name, more, _ := strings.Cut(list, "|")
			w.Do(t.Context(), `query($id: ID!) { run(id: $id) { `+name+`(last: 4`+before+more+`) { totalCount edges { node { `+field+` } } pageInfo { hasPreviousPage hasNextPage startCursor } } } }`, map[string]any{"id": run}, &out)
			p := out.Run[name]
			if (before != "") != p.PageInfo.HasNextPage {
				t.Errorf("%s: hasNextPage is %v on a page %q", list, p.PageInfo.HasNextPage, before)
			}
			var shown []string
			for _, e := range p.Edges {
				shown = append(shown, e.Node.Text+e.Node.Kind)
			}
			texts = append(shown, texts...)
			if total = p.TotalCount; !p.PageInfo.HasPreviousPage {
				return texts, total
			}
			before = `, before: "` + p.PageInfo.StartCursor + `"`
		}
	}
	if got, total := tail("logs", "text"); strings.Join(got, " ") != "a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3 a4 b4 c4 a5 b5 c5 a6 b6 c6" || total != 21 {
		t.Errorf("the log from its end: %q of %d", got, total)
	}
	if got, total := tail(`logs|, filter: {search: "B"}`, "text"); strings.Join(got, " ") != "b0 b1 b2 b3 b4 b5 b6" || total != 7 {
		t.Errorf("the lines with a b from their end: %q of %d", got, total)
	}
	got, total := tail("events", "kind")
	if want := w.inOrder(`SELECT kind::text FROM run_events WHERE run_id = '` + run + `' ORDER BY seq`); !slices.Equal(got, want) || total != len(want) {
		t.Errorf("the events from their end: %q of %d, want %q", got, total, want)
	}
}

// texts are the values of a query with one column, sorted; inOrder are those as they come.
func (w *world) texts(query string) []string {
	list := w.inOrder(query)
	slices.Sort(list)
	return list
}

func (w *world) inOrder(query string) (out []string) {
	w.t.Helper()
	rows, err := w.db.QueryContext(w.t.Context(), query)
	w.ok(err)
	defer func() { w.ok(rows.Close()) }()
	for rows.Next() {
		var text string
		w.ok(rows.Scan(&text))
		out = append(out, text)
	}
	w.ok(rows.Err())
	return out
}
