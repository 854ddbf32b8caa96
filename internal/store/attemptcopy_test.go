package store

import (
	"errors"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

func TestARunShowsItsWorkingCopyAndLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("a")
	task := w.task("Plan", assignedTo(agent))
	claimed := w.claimOne()
	w.start(claimed)
	found := domain.WorkingCopy{Path: "/copies/x", Repository: "/srv/app", Branch: "rouse/x", HeadBefore: strings.Repeat("a", 40)}
	w.ok(w.RecordWorkingCopy(t.Context(), claimed.Attempt, found))
	const shown = `SELECT path || ' ' || branch || ' ' || left(head_before, 2) || ' ' || coalesce(left(head_after, 2), '-') || ' ' || commits || ' ' || insertions || ' ' || diff FROM run_working_copies WHERE run_id = $1`
	if got := one[string](w, shown, claimed.RunID); got != "/copies/x rouse/x aa - 0 0 " {
		t.Errorf("at first: %q", got)
	}
	left := found
	left.HeadAfter, left.Commits, left.Insertions, left.Diff = strings.Repeat("b", 40), 2, 5, "+x"
	w.ok(w.RecordWorkingCopy(t.Context(), claimed.Attempt, left))
	w.ok(w.RecordWorkingCopy(t.Context(), claimed.Attempt, found)) // the next attempt begins
	if got := one[string](w, shown, claimed.RunID); got != "/copies/x rouse/x aa bb 2 5 +x" {
		t.Errorf("after that: %q", got)
	}
	for id, ended := range w.copyOwners(task, claimed.RunID, xid.New("run")) {
		if ended {
			t.Errorf("%s has ended", id)
		}
	}
	link := func(kind, url, title string) map[string]any {
		return map[string]any{"type": "add_link", "kind": kind, "url": url, "title": title}
	}
	w.ok(w.Finish(t.Context(), claimed.Attempt, Success{Result: map[string]any{"summary": "ok", "actions": []any{
		link("PULL_REQUEST", "https://example.com/1", "first"), link("PULL_REQUEST", "https://example.com/1", "One"), link("", "https://example.com/2", ""),
		link("PREVIEW", "javascript:alert(1)", "x"), link("PREVIEW", "https://ada:secret@example.com/", "x"), link("HOME", "https://example.com/3", "x"), map[string]any{"type": "complete_task"},
	}}}))
	if got := one[string](w, `SELECT string_agg(kind || ' ' || url || ' ' || title, ', ' ORDER BY url) FROM links WHERE task_id = $1 AND run_id = $2`, task, claimed.RunID); got != "PULL_REQUEST https://example.com/1 One, OTHER https://example.com/2 https://example.com/2" {
		t.Errorf("links: %q", got)
	}
	if err := w.RecordWorkingCopy(t.Context(), claimed.Attempt, left); !errors.Is(err, ErrFenced) {
		t.Errorf("after the end: %v", err)
	}
	for id, ended := range w.copyOwners(task, claimed.RunID) {
		if !ended {
			t.Errorf("%s has not ended", id)
		}
	}
	w.sql(`DELETE FROM runs WHERE id = $1`, claimed.RunID)
	w.ok(second(w.Repair(t.Context())))
	if n := one[int](w, `SELECT (SELECT count(*) FROM links) + (SELECT count(*) FROM run_working_copies)`); n != 0 {
		t.Errorf("%d rows are left of a run that is gone", n)
	}
}

func second[T any](_ T, err error) error { return err }

// copyOwners says of tasks and runs that are there whether they have ended.
func (w *world) copyOwners(ids ...xid.ID) map[xid.ID]bool {
	w.Helper()
	known, err := w.CopyOwners(w.Context(), w.workspace, ids)
	w.ok(err)
	ended := map[xid.ID]bool{}
	for id, owner := range known {
		ended[id] = !owner.EndedAt.IsZero()
	}
	if elsewhere, err := w.CopyOwners(w.Context(), xid.New("wsp"), ids); err != nil || len(elsewhere) != 0 {
		w.Errorf("another workspace knows %v, %v", elsewhere, err)
	}
	return ended
}

// A task whose end is undone, or that a run still works on, goes on.
func TestATaskWithALiveRunHasNotEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("a")
	task := w.bareTask(agent)
	w.wakeOn(agent, task)
	w.sql(`UPDATE tasks SET state = 'DONE' WHERE id = $1`, task)
	if ended := w.copyOwners(task); len(ended) != 1 || ended[task] {
		t.Errorf("got %v", ended)
	}
}

func TestTheInboxTellsOfAWorkingCopyOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("a")
	task := w.task("Plan", assignedTo(agent))
	kept := domain.KeptCopy{Name: "x@1", Owner: task, Path: "/copies/x", Reason: "because"}
	w.ok(w.CopyKept(t.Context(), w.workspace, kept))
	w.ok(w.CopyKept(t.Context(), w.workspace, kept))
	const items = `SELECT coalesce(string_agg(kind || ' ' || title || ' ' || body || ' ' || coalesce(subject_id, '') || ' ' || (resolved_at IS NOT NULL), ';'), '') FROM inbox_items`
	if got := one[string](w, items); got != "WORKING_COPY A working copy is kept for the work in it: Plan because "+string(task)+" false" {
		t.Errorf("got %q", got)
	}
	w.ok(w.CopyRemoved(t.Context(), w.workspace, "y@1"))
	w.ok(w.CopyRemoved(t.Context(), w.workspace, "x@1"))
	if got := one[string](w, items); !strings.HasSuffix(got, " true") {
		t.Errorf("after it is gone: %q", got)
	}
}
