package store

import (
	"fmt"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// A change that changes nothing leaves the revision alone: taking an executor away that is not there is none.
func TestTakingAwayAnExecutorThatIsNotThereChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, project := w.agent("worker"), w.project("Project")
	task := w.projectTask(project, agent)
	none := domain.Change[domain.ExecutorSpec]{Set: true}
	some := domain.To(domain.ExecutorSpec{Echo: &domain.EchoSpec{}})
	for table, c := range map[string]struct {
		id     xid.ID
		change func(domain.Change[domain.ExecutorSpec]) error
	}{
		"tasks": {task, func(x domain.Change[domain.ExecutorSpec]) error {
			_, _, err := w.UpdateTask(t.Context(), UpdateTask{WorkspaceID: w.workspace, TaskID: task, Executor: x})
			return err
		}},
		"projects": {project, func(x domain.Change[domain.ExecutorSpec]) error {
			_, err := w.UpdateProject(t.Context(), UpdateProject{WorkspaceID: w.workspace, ProjectID: project, Executor: x})
			return err
		}},
	} {
		revision := func() int { return one[int](w, `SELECT revision FROM `+table+` WHERE id = $1`, c.id) }
		want, entries := revision(), len(w.codes(reads.ActivityPosition{}))
		for _, step := range []struct {
			stored string
			change domain.Change[domain.ExecutorSpec]
			by     int
		}{{"NULL", none, 0}, {"'null'", none, 0}, {"NULL", some, 1}, {`'{"echo": {}}'`, none, 1}} {
			w.sql(`UPDATE `+table+` SET executor = `+step.stored+` WHERE id = $1`, c.id)
			w.ok(c.change(step.change))
			if want += step.by; revision() != want {
				t.Errorf("%s: the revision after a change of %s is %d, want %d", table, step.stored, revision(), want)
			}
		}
		if got := len(w.codes(reads.ActivityPosition{})) - entries; table == "tasks" && got != 2 {
			t.Errorf("the feed tells of %d changes, want 2", got)
		}
	}
}

// The feed names what a change changed in one order.
func TestTheFeedNamesWhatChangedInOneOrder(t *testing.T) {
	t.Parallel()
	var c change
	c.after.title, c.after.description, c.after.projectID, c.after.requiresApproval = "a", "b", "c", true
	for range 20 {
		if got := fmt.Sprint(changedFields(c, true)); got != "[description executor projectId requiresApproval title]" {
			t.Fatal(got)
		}
	}
}
