package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	entagent "rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/domain"
)

// What is said in SQL and in Go is one rule: SPEC S6.4, whose executor a run has, over all ways in which its four holders may
// have one: no value, a JSON null, or one.
func TestTheExecutorOfARunIsTheSameInSQLAndInGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, project := w.agent("worker"), w.project("Project")
	task := w.projectTask(project, agent)
	w.sql(`DELETE FROM wakeup_requests`)
	run := w.runOf(w.request(agent, func(r *newRequest) { r.taskID, r.scope = task, domain.TaskScope(string(task)) }))
	holders := []string{"tasks SET executor", "agents SET executor", "projects SET executor", "workspaces SET default_executor"}
	ways := map[string]*domain.ExecutorSpec{"": nil, "null": nil, "set": {}}
	var try func(specs []*domain.ExecutorSpec, name string)
	try = func(specs []*domain.ExecutorSpec, name string) {
		if len(specs) < len(holders) {
			for way := range ways {
				var spec *domain.ExecutorSpec
				var stored any
				switch way {
				case "null":
					stored = "null"
				case "set":
					spec = &domain.ExecutorSpec{Pull: &domain.PullSpec{Queue: fmt.Sprint("queue-", len(specs)), Lease: time.Minute}}
					encoded, err := json.Marshal(spec)
					w.ok(err)
					stored = string(encoded)
				}
				w.sql(`UPDATE `+holders[len(specs)]+` = $1`, stored)
				try(append(specs[:len(specs):len(specs)], spec), name+"/"+way)
			}
			return
		}
		want := domain.ResolveExecutor(specs[0], specs[1], specs[2], specs[3])
		if got := one[string](w, `SELECT coalesce(`+queueOfRun+`, '') FROM runs r WHERE id = $1`, run); got != want.Queue() {
			t.Errorf("%s: %q in SQL, %q in Go", name, got, want.Queue())
		}
		if has := one[bool](w, `SELECT `+executorOfRun+` IS NOT NULL FROM runs r WHERE id = $1`, run); has != (want != nil) {
			t.Errorf("%s: there is one in SQL: %t, in Go: %t", name, has, want != nil)
		}
		var read *domain.ExecutorSpec
		w.ok(w.inTx(t.Context(), func(x *tx) error {
			ag, err := x.Agent.Query().Where(entagent.ID(agent)).WithWorkspace().Only(t.Context())
			if err == nil {
				read, _, err = x.resolveExecutor(t.Context(), w.run(run), ag)
			}
			return err
		}))
		if read.Queue() != want.Queue() || (read == nil) != (want == nil) {
			t.Errorf("%s: the start resolves %+v, want %+v", name, read, want)
		}
	}
	try(nil, "")
}

// SPEC S6.5: when a budget's period began is the same in SQL and in Go, at its edges, and whatever the zone of the session.
func TestTheBeginOfAPeriodIsTheSameInSQLAndInGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.db.Conn(t.Context())
	w.ok(err)
	defer func() { w.ok(c.Close()) }()
	var instants []time.Time
	for _, edge := range []string{"2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", "2024-12-30T00:00:00Z", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z",
		"2026-03-08T07:00:00Z", "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-11-01T00:00:00Z", "2027-01-01T00:00:00Z", "2000-01-01T00:00:00Z"} {
		at, err := time.Parse(time.RFC3339, edge)
		w.ok(err)
		instants = append(instants, at.Add(-time.Microsecond), at, at.Add(time.Microsecond), at.Add(13*time.Hour))
	}
	for _, zone := range []string{"UTC", "America/New_York", "Pacific/Kiritimati", "Europe/Lisbon", "Asia/Kathmandu"} {
		if _, err := c.ExecContext(t.Context(), `SET TIME ZONE '`+zone+`'`); err != nil {
			t.Fatal(err)
		}
		for _, period := range domain.BudgetPeriod("").Values() {
			for _, at := range instants {
				var got sql.NullTime
				w.ok(c.QueryRowContext(t.Context(), `SELECT `+periodStartAt+` FROM (SELECT $1::text AS period, $2::timestamptz AS at) b`, period, at).Scan(&got))
				want := domain.BudgetPeriod(period).Start(at)
				if total := period == string(domain.BudgetPeriodTotal); total == got.Valid || !total && !got.Time.Equal(want) {
					t.Errorf("%s at %s in %s: %v in SQL, %s in Go", period, at, zone, got, want)
				}
			}
		}
	}
}

// SPEC S5.1: on which tasks the loop may act is the same in SQL and in Go, whether a task has a project, whichever workflow it is
// in, and whether the workspace has an office workflow.
func TestATaskOfTheOfficeIsTheSameInSQLAndInGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, project := w.agent("worker"), w.project("Project")
	task := w.projectTask(project, agent)
	office := one[string](w, `SELECT office_workflow_id FROM workspaces WHERE id = $1`, w.workspace)
	w.sql(`UPDATE workflows SET kind = 'KANBAN' WHERE workspace_id = $1`, w.workspace) // a workspace has one of kind ROUTINE
	seen := map[bool]int{}
	for _, kind := range domain.WorkflowKind("").Values() {
		w.sql(`UPDATE workflows SET kind = $2 WHERE id = $1`, office, kind)
		for _, chosen := range []bool{true, false} { // as the workspace's office workflow
			for _, hasProject := range []bool{true, false} {
				w.sql(`UPDATE workspaces SET office_workflow_id = CASE WHEN $2 THEN $3 END WHERE id = $1`, w.workspace, chosen, office)
				w.sql(`UPDATE tasks SET workflow_id = $2, project_id = CASE WHEN $3 THEN $4 END WHERE id = $1`, task, office, hasProject, project)
				want := domain.IsOffice(hasProject, chosen, domain.WorkflowKind(kind))
				got := one[bool](w, `SELECT `+officeTask+` FROM tasks t JOIN workspaces w ON w.id = t.workspace_id JOIN workflows f ON f.id = t.workflow_id WHERE t.id = $1`, task)
				if got != want {
					t.Errorf("workflow %s, chosen for the office: %t, with a project: %t: %t in SQL, %t in Go", kind, chosen, hasProject, got, want)
				}
				seen[got]++
			}
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("only one answer was tried: %v", seen)
	}
}
