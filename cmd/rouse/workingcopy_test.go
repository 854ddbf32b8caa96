package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// testWorkingCopies runs an agent of the server and one of a worker in working copies of one repository, which belongs to whoever runs
// the test: as root the agents may only read it.
func testWorkingCopies(t *testing.T, j journey) {
	repository := newWorkshop(t).path("app")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@x"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(repository, 0o755); err != nil { //nolint:gosec // the agents' account reads it
		t.Fatal(err)
	}
	git("init", "--quiet", "-b", "main")
	git("commit", "--quiet", "--allow-empty", "-m", "one")
	const script = `cat >/dev/null; echo two > a.txt; git add -A; git -c user.name=a -c user.email=a@x commit -qm two; echo "on $(git symbolic-ref --short HEAD)"
echo '{"summary": "done", "actions": [{"type": "add_link", "kind": "PREVIEW", "url": "https://example.com/1", "title": "One"}]}'`
	command := map[string]any{"argv": []string{"/bin/sh", "-c", script}, "checkout": map[string]any{"repository": repository, "per": "RUN", "keep": "PT1H"}}
	for name, executor := range map[string]map[string]any{"copier": {"command": command}, "copier elsewhere": {"pull": map[string]any{"lease": "PT15S", "command": command}}} {
		id := j.wake(j.agent(name, executor))
		run := j.end(id)
		if run.Status != "FINISHED" || !strings.Contains(strings.Join(run.lines(), "\n"), "on rouse/"+id) {
			t.Errorf("%s: %+v, %q", name, run, run.lines())
			continue
		}
		var shown struct {
			Run struct {
				WorkingCopy *struct {
					Branch, HeadBefore, HeadAfter, Diff string
					Commits, Insertions, Uncommitted    int
				}
				Links []struct{ Title string }
			}
		}
		j.request(`query($id: ID!) { run(id: $id) { workingCopy { branch headBefore headAfter commits insertions uncommitted diff } links { title } } }`, map[string]any{"id": id}, &shown)
		if w := shown.Run.WorkingCopy; w == nil || w.Branch != "rouse/"+id || w.HeadBefore != git("rev-parse", "HEAD") || w.HeadAfter == "" || w.Commits != 1 || w.Insertions != 1 || w.Uncommitted != 0 || !strings.Contains(w.Diff, "+two") {
			t.Errorf("%s: %+v", name, w)
		}
		if len(shown.Run.Links) != 1 {
			t.Errorf("%s: links %+v", name, shown.Run.Links)
		}
	}
}
