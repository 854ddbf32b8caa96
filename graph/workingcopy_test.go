package graph_test

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/xid"
)

func TestAWorkerReportsAWorkingCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	if lease == nil {
		t.Fatal("no lease")
	}
	copied := map[string]any{"path": "/copies/x", "repository": "/srv/app", "branch": "rouse/x", "headBefore": strings.Repeat("a", 40)}
	if got := w.report("reportRunWorkingCopy", "run { status }", lease.input(), copied); got.Run == nil || len(got.UserErrors) > 0 {
		t.Fatalf("got %+v", got)
	}
	for field, bad := range map[string]any{"headBefore": "HEAD", "headAfter": "", "commits": -1, "diff": strings.Repeat("x", 129<<10), "path": strings.Repeat("p", 5000)} {
		in := map[string]any{}
		for k, v := range copied {
			in[k] = v
		}
		in[field] = bad
		if got := w.report("reportRunWorkingCopy", "", lease.input(), in).UserErrors.String(); !strings.HasSuffix(got, "input."+field) && !strings.HasSuffix(got, " "+field) {
			t.Errorf("%s: %q", field, got)
		}
	}
	copied["headAfter"], copied["commits"], copied["insertions"], copied["diff"] = strings.Repeat("b", 40), 1, 2, "+the key is hunter2\n"
	w.report("reportRunWorkingCopy", "", lease.input(), copied)
	var shown struct {
		Run struct {
			WorkingCopy struct {
				Path, Branch, HeadBefore, HeadAfter, Diff string
				Commits, Insertions, FilesChanged         int
				DiffCut                                   bool
			}
			Links []struct{ URL string }
		}
	}
	w.Do(t.Context(), `query($id: ID!) { run(id: $id) { workingCopy { path branch headBefore headAfter commits insertions filesChanged diff diffCut } links { url } } }`, map[string]any{"id": run}, &shown)
	if c := shown.Run.WorkingCopy; c.Path != "/copies/x" || c.HeadAfter[:2] != "bb" || c.Commits != 1 || c.Insertions != 2 || c.Diff != "+the key is ***\n" || shown.Run.Links == nil {
		t.Errorf("shown %+v", shown.Run)
	}
	w.report("reportRunSucceeded", "", lease.input(), map[string]any{"result": map[string]any{"summary": "ok", "actions": []any{map[string]any{"type": "add_link", "kind": "PULL_REQUEST", "url": "https://example.com/1", "title": "One"}}}})
	said := w.as(`query($id: ID!) { run(id: $id) { links { kind url title agent { name } run { id } } } }`, map[string]any{"id": run})
	if !strings.Contains(said, `"kind":"PULL_REQUEST","url":"https://example.com/1","title":"One"`) || !strings.Contains(said, run) {
		t.Errorf("links: %s", said)
	}
}

func TestAWorkerAsksWhatHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	ask := func(more string) string {
		return w.as(`mutation($w: ID!, $run: ID!, $gone: ID!) { reportWorkingCopies(input: {workspaceId: $w, owners: [$run, $gone], `+more+`}) { owners { id exists endedAt } userErrors { code field } } }`,
			map[string]any{"w": w.workspace, "run": run, "gone": string(xid.New("tsk"))})
	}
	got := ask(`kept: [{name: "x@1", ownerId: $run, path: "/copies/x", reason: "because"}]`)
	if !strings.Contains(got, `"id":"`+run+`","exists":true,"endedAt":null`) || !strings.Contains(got, `"exists":false`) {
		t.Errorf("got %s", got)
	}
	if n := w.one(`SELECT count(*)::text FROM inbox_items WHERE kind = 'WORKING_COPY' AND subject_id = '` + run + `'`); n != "1" {
		t.Errorf("%s items", n)
	}
	if got := ask(`removed: ["x@1"]`); strings.Contains(got, "code") {
		t.Errorf("got %s", got)
	}
	if n := w.one(`SELECT count(*)::text FROM inbox_items WHERE resolved_at IS NOT NULL`); n != "1" {
		t.Errorf("%s items are handled", n)
	}
	if got := ask(`removed: [""]`); !strings.Contains(got, `"removed","0"`) {
		t.Errorf("got %s", got)
	}
}
