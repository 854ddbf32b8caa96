package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// acpAgent installs the test agent on the protocol's npm library where agents of any account can run it.
func (w workshop) acpAgent(t *testing.T) (argv []string) {
	t.Helper()
	for _, name := range []string{"package.json", "package-lock.json", "agent.mjs"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "internal", "executor", "testdata", "acpagent", name))
		if err == nil {
			err = os.WriteFile(w.path(name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = w.dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("this test needs Node 20 with npm (Debian: apt-get install nodejs npm): %v\n%s", err, out)
	}
	return []string{"node", w.path("agent.mjs")}
}

// instructed makes an agent whose instructions the test agents read as a script.
func (j journey) instructed(name string, executor map[string]any, instructions ...string) string {
	j.t.Helper()
	var out struct {
		CreateAgent struct{ Agent struct{ ID string } }
	}
	j.request(createAgent, map[string]any{"in": map[string]any{
		"workspaceId": j.workspace, "name": name, "role": "WORKER", "cooldown": "PT0S", "skipIdleWakeups": false, "executor": executor,
		"instructions": strings.Join(instructions, "\n"),
	}}, &out)
	return out.CreateAgent.Agent.ID
}

// TestAgentOfTheAgentClientProtocol runs an agent on a library that is not ours, from a wake to its end, and through the
// death of the server.
func TestAgentOfTheAgentClientProtocol(t *testing.T) {
	t.Parallel()
	w, data := newWorkshop(t), pgtest.Installed(t)
	argv := w.acpAgent(t)
	executor := map[string]any{"acp": map[string]any{"argv": argv, "workingDirectory": w.dir, "permissions": "READ_ONLY",
		"environment": []any{map[string]any{"name": "KEY", "value": "hunter2hunter2"}}}}
	p := start(t, data, nil)
	j := newJourney(p)

	run := j.wake(j.instructed("acp", executor, "say hello", "tool edit", "tool read", "env KEY", "say {\"summary\": \"did as told\", \"usage\": {\"input_tokens\": 7}}"))
	view := j.end(run)
	if view.Status != "FINISHED" || view.Summary != "did as told" || view.SessionID == "" || view.attempts() != "SUCCEEDED" {
		t.Errorf("%+v", view)
	}
	if got := view.lines(); len(got) != 5 || !slices.Equal(got[:3], []string{"hello", "edit no", "read yes"}) || strings.Contains(got[3], "hunter2") {
		t.Errorf("it said %q", got)
	}

	run = j.wake(j.instructed("guarded acp", map[string]any{"acp": map[string]any{
		"argv": []string{"/bin/sh", "-c", `exec 9>>lock; flock -n 9 || { echo overlap >>overlap; exit 9; }; exec "$0" "$@"`, argv[0], argv[1]}, "workingDirectory": w.dir,
	}}, "once tries", "child", "wait"))
	pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": run}).line())
	j.program.end(syscall.SIGKILL)
	view = j.on(t, start(t, data, nil, "--drain", "1s")).end(run)
	if view.Status != "FINISHED" || view.attempts() != "ABANDONED SUCCEEDED" || view.Summary != "done in a later attempt" {
		t.Errorf("%+v", view)
	}
	if got := view.lines(); len(got) != 2 || got[0] != fmt.Sprintf("pids %d %d", pids[0], pids[1]) || got[1] != "done in a later attempt" {
		t.Errorf("lines of both attempts: %q", got)
	}
	if w.exists("overlap") {
		t.Error("two processes of the agent lived at the same time")
	}
	if left := append(living(pids), processesOf(t, run)...); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}
