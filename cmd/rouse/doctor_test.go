package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

const testExecutor = `mutation($id: ID!) { testExecutor(input: {agentId: $id}) { checks { name ok detail hint } userErrors { message } } }`

// TestDoctor examines installations that are well and that are not.
func TestDoctor(t *testing.T) {
	t.Parallel()
	w, data := newWorkshop(t), pgtest.Installed(t)
	j := newJourney(start(t, data, nil, "--drain", "1s"))
	good := j.agent("good", map[string]any{"command": map[string]any{"argv": []string{"/bin/sh", "-c", `cat >` + w.path("prompt") + `; echo '{"summary":"ready"}'`}}})
	var named struct{ Node struct{ Slug string } }
	j.request(`query($id: ID!) { node(id: $id) { ... on Workspace { slug } } }`, map[string]any{"id": j.workspace}, &named)
	slug := named.Node.Slug
	doctor := func(args ...string) (code int, out string) {
		t.Helper()
		p := launch(t, nil, append([]string{"doctor", "--data-dir", data}, args...)...)
		return p.wait(), p.out.String() + p.log.String()
	}

	t.Run("all is well, and no agent is asked without --ask", func(t *testing.T) {
		code, out := doctor()
		for _, want := range []string{"ok   database: PostgreSQL", "ok   migrations:", "ok   server: process " + strconv.Itoa(j.program.cmd.Process.Pid) + " on ", "ok   clock:", "ok   " + slug + ": loop: NOT_ARMED", slug + "/good: program: /bin/sh"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing", want)
			}
		}
		if code != 0 || strings.Contains(out, "FAIL") || w.exists("prompt") {
			t.Errorf("exit %d:\n%s", code, out)
		}
		if code, out = doctor("--ask"); code != 0 || !strings.Contains(out, "ready") || !w.exists("prompt") {
			t.Errorf("exit %d:\n%s", code, out)
		}
	})
	t.Run("another secret key is told also while nothing is sealed", func(t *testing.T) {
		if code, out := doctor(); code != 0 || !strings.Contains(out, "ok   secret key: key ") {
			t.Errorf("exit %d:\n%s", code, out)
		}
		other := launch(t, []string{"ROUSE_SECRET_KEY=" + strings.Repeat("0123456789abcdef", 4)}, "doctor", "--data-dir", data)
		if code, out := other.wait(), other.out.String(); code != 1 || !strings.Contains(out, "FAIL secret key: this database's secrets are sealed with key ") || !strings.Contains(out, "secret.key") {
			t.Errorf("exit %d:\n%s", code, out)
		}
	})
	t.Run("testExecutor tells the same through the API", func(t *testing.T) {
		var out struct {
			TestExecutor struct {
				Checks []struct {
					Name, Detail, Hint string
					Ok                 bool
				}
			}
		}
		j.on(t, j.program).request(testExecutor, map[string]any{"id": good}, &out)
		if c := out.TestExecutor.Checks; len(c) != 2 || !c[0].Ok || !c[1].Ok || !strings.Contains(c[1].Detail, "ready") {
			t.Errorf("%+v", c)
		}
		bad := j.on(t, j.program).agent("bad", map[string]any{"command": map[string]any{"preset": "codex", "argv": []string{"/no/such/codex"}}})
		j.on(t, j.program).request(testExecutor, map[string]any{"id": bad}, &out)
		if c := out.TestExecutor.Checks; len(c) != 1 || c[0].Ok || !strings.Contains(c[0].Detail, "/no/such/codex does not exist") || c[0].Hint == "" {
			t.Errorf("%+v", c)
		}
	})
	t.Run("an agent that cannot be started is named with a hint, and the exit code is 1", func(t *testing.T) {
		code, out := doctor()
		if code != 1 || !strings.Contains(out, "FAIL "+slug+"/bad: program: the program /no/such/codex does not exist") || !strings.Contains(out, "→ ") || !strings.Contains(out, "ok   "+slug+"/good") {
			t.Errorf("exit %d:\n%s", code, out)
		}
	})
	t.Run("a secret that cannot be opened is told, and not said", func(t *testing.T) {
		j.on(t, j.program).agent("sealed", map[string]any{"command": map[string]any{"argv": []string{"/bin/cat"}, "environment": []any{map[string]any{"name": "KEY", "value": "hunter2hunter2"}}}})
		other := launch(t, []string{"ROUSE_SECRET_KEY=" + strings.Repeat("0123456789abcdef", 4)}, "doctor", "--data-dir", data)
		if code, out := other.wait(), other.out.String(); code != 1 || !strings.Contains(out, "FAIL "+slug+"/sealed: secrets: the value of KEY cannot be opened") || strings.Contains(out, "hunter2") {
			t.Errorf("exit %d:\n%s", code, out)
		}
	})
	t.Run("it starts no database", func(t *testing.T) {
		if code := j.program.end(syscall.SIGTERM); code != 0 {
			t.Fatalf("exit %d", code)
		}
		code, out := doctor()
		if code != 1 || !strings.Contains(out, "does not run") || !strings.Contains(out, "rouse serve") {
			t.Errorf("exit %d:\n%s", code, out)
		}
		log, err := os.ReadFile(filepath.Join(data, "postgres", "server.log"))
		if err != nil || strings.Count(string(log), "ready to accept connections") != 1 {
			t.Errorf("%v:\n%s", err, log)
		}
	})
	t.Run("a folder without a database is no installation", func(t *testing.T) {
		p := launch(t, nil, "doctor", "--data-dir", pgtest.Folder(t))
		if code := p.wait(); code != 1 || !strings.Contains(p.out.String(), "FAIL database: there is no database") {
			t.Errorf("exit %d:\n%s%s", code, p.out, p.log)
		}
	})
}
