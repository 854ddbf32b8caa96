package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

// worker starts `rouse worker` for a journey's workspace and waits until it is ready.
func (j journey) worker(t *testing.T, own ...string) *program {
	t.Helper()
	args := []string{"worker", "--server", strings.TrimSuffix(j.url, "/graphql"), "--workspace", j.workspace, "--workers", "4",
		"--data-dir", newWorkshop(t).path("worker"), "--drain", "100ms"}
	if len(own) > 0 {
		args = append(append(args, "--"), own...)
	}
	w := launch(t, j.local(), args...)
	eventually(t, "the worker is ready", patience, func() bool { return strings.Contains(w.log.String(), "worker ready") || !w.alive() })
	if !w.alive() {
		t.Fatalf("the worker ended:\n%s", w.log)
	}
	return w
}

// local is the environment of a worker that finds the token of the program's data folder by itself.
func (p *program) local() []string { return []string{"ROUSE_DATA_DIR=" + p.data} }

// puller makes an agent whose workers run a script; without one they run their own command.
func (j journey) puller(name, script string) string {
	pull := map[string]any{"lease": "PT15S"}
	if script != "" {
		pull["command"] = map[string]any{"argv": []string{"/bin/sh", "-c", script}, "grace": "PT2S",
			"environment": []any{map[string]any{"name": "API_KEY", "value": "hunter2hunter2"}}}
	}
	return j.agent(name, map[string]any{"pull": pull})
}

// fixedAddress is an address that is free now, for a server that is started again at the same place.
func fixedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestProgramWithWorkersElsewhere(t *testing.T) {
	t.Parallel()
	underRaceDetector(t)
	data, address := newWorkshop(t).dir, fixedAddress(t)
	p := start(t, data, nil, "--addr", address)
	j := newJourney(p)
	j.worker(t, "/bin/sh", "-c", `echo "own: $(head -c 20)"; echo '{"summary": "by its own command", "usage": {"input_tokens": 7, "cost_usd": 0.5}}'`)
	t.Run("runs the command that the lease carries", func(t *testing.T) {
		j := j.on(t, p)
		run := j.end(j.wake(j.puller("carried", `cat >/dev/null; echo "key $API_KEY run $ROUSE_RUN_ID"; echo '{"summary": "carried", "session_id": "s-9"}'`)))
		if run.Status != "FINISHED" || run.Summary != "carried" || run.SessionID != "s-9" || run.attempts() != "SUCCEEDED" {
			t.Errorf("run %+v", run)
		}
		if lines := run.lines(); len(lines) != 2 || lines[0] != "key *** run "+run.ID {
			t.Errorf("lines %q", lines)
		}
	})
	t.Run("runs its own command where the lease carries none", func(t *testing.T) {
		j := j.on(t, p)
		run := j.end(j.wake(j.puller("own", "")))
		if run.Status != "FINISHED" || run.Summary != "by its own command" || run.SessionID == "" || !strings.HasPrefix(run.lines()[0], "own: # Who you are") {
			t.Errorf("run %+v", run)
		}
	})
	t.Run("reports a failure, which is retried", func(t *testing.T) {
		j := j.on(t, p)
		id := j.wake(j.puller("failing", `cat >/dev/null; echo broken >&2; exit 3`))
		eventually(t, "the failure is known", patience, func() bool { return j.run(id).RetryCount == 1 })
		if run := j.run(id); run.Attempts[0].Error == nil || run.Attempts[0].Error.Code != "CRASH" || !strings.Contains(run.Attempts[0].Error.Message, "broken") {
			t.Errorf("run %+v", run)
		}
	})
	t.Run("a run for which nobody says what to run fails for good", func(t *testing.T) {
		j := j.on(t, p)
		bare := launch(t, j.local(), "worker", "--server", strings.TrimSuffix(j.url, "/graphql"), "--workspace", j.workspace, "--queue", "bare",
			"--data-dir", newWorkshop(t).path("worker"), "--drain", "100ms")
		run := j.end(j.wake(j.agent("bare", map[string]any{"pull": map[string]any{"queue": "bare"}})))
		if run.Status != "FAILED" || run.attempts() != "FAILED" || !strings.Contains(run.Attempts[0].Error.Message, "no command of its own") {
			t.Errorf("run %+v", run)
		}
		eventually(t, "its log has the end", patience, func() bool {
			return strings.Contains(bare.log.String(), "run ended") && strings.Contains(bare.log.String(), "permanent=true")
		})
	})
	t.Run("works in a working copy, as an agent of the server does", func(t *testing.T) { testWorkingCopies(t, j.on(t, p)) })
	t.Run("obeys a cancel", func(t *testing.T) { testWorkerCancel(t, j.on(t, p)) })
	t.Run("outlives a restart of the server", func(t *testing.T) { p = testWorkerOutlives(t, j, p, data, address) })
	t.Run("hands its runs back when it is stopped, and loses them when it is killed", func(t *testing.T) { testWorkerEnds(t, j.on(t, p)) })
}

func testWorkerCancel(t *testing.T, j journey) {
	id := j.wake(j.puller("long", longWork))
	pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": id}).line())
	var out struct {
		CancelRun struct{ Run struct{ ID string } }
	}
	j.request(cancelRun, map[string]any{"id": id}, &out)
	if run := j.end(id); run.Status != "CANCELLED" || run.attempts() != "CANCELLED" {
		t.Errorf("run %+v", run)
	}
	eventually(t, "its processes are gone", patience, func() bool { return len(living(pids)) == 0 })
}

// testWorkerOutlives stops the server while an agent works, and starts it again: the same attempt goes on.
func testWorkerOutlives(t *testing.T, j journey, p *program, data, address string) *program {
	shop := newWorkshop(t)
	k := j.on(t, p)
	id := k.wake(k.agent("patient", map[string]any{"pull": map[string]any{"lease": "PT5M", // longer than any restart takes
		"command": map[string]any{"argv": []string{"/bin/sh", "-c", shop.threeLines()}}}}))
	follow := k.subscribe(k.owner, followRun, map[string]any{"id": id})
	if line := follow.line(); line != "line 1" {
		t.Fatalf("first came %q", line)
	}
	if code := k.program.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}
	shop.touch(t, "seen1")
	again := start(j.t, data, nil, "--addr", address)
	k = j.on(t, again)
	shop.touch(t, "seen2")
	shop.touch(t, "seen3")
	run := k.end(id)
	if run.Status != "FINISHED" || run.attempts() != "SUCCEEDED" || strings.Join(run.lines()[:3], ",") != "line 1,line 2,line 3" {
		t.Errorf("run %+v", run)
	}
	return again
}

// testWorkerEnds stops one worker and kills another in mid-run: the first gives its run back at once, the second's lease
// runs out, and no process of either is left.
func testWorkerEnds(t *testing.T, j journey) {
	shop := newWorkshop(t)
	agent := j.agent("guarded", map[string]any{"pull": map[string]any{"queue": "solo", "lease": "PT15S", "command": map[string]any{
		"argv": []string{"/bin/sh", "-c", shop.guarded()}, "grace": "PT1S"}}})
	folder := newWorkshop(t).path("worker")
	solo := func() *program {
		return launch(t, j.local(), "worker", "--server", strings.TrimSuffix(j.url, "/graphql"), "--workspace", j.workspace, "--queue", "solo",
			"--data-dir", folder, "--drain", "100ms")
	}
	id := j.wake(agent)
	first := solo()
	pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": id}).line())
	if code := first.end(syscall.SIGKILL); code != -1 {
		t.Errorf("it ended with %d", code)
	}
	eventually(t, "the killed worker's agent is gone, but for what left its group", patience, func() bool { return len(living(pids[:2])) == 0 })
	second := solo()
	eventually(t, "the next worker ends the rest", patience, func() bool { return len(living(pids)) == 0 })
	if run := j.end(id); run.Status != "FINISHED" || run.Summary != "done in a later attempt" || run.attempts() != "ABANDONED SUCCEEDED" {
		t.Errorf("run %+v", run)
	}
	if shop.exists("overlap") {
		t.Error("two processes of the run lived at once")
	}
	held := j.wake(j.agent("held", map[string]any{"pull": map[string]any{"queue": "solo", "command": map[string]any{"argv": []string{"/bin/sh", "-c", longWork}, "grace": "PT1S"}}}))
	pids = pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": held}).line())
	if code := second.end(syscall.SIGTERM); code != 0 {
		t.Errorf("a stopped worker ends with %d", code)
	}
	if left := living(pids); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if run := j.run(held); run.attempts() != "INTERRUPTED" && run.attempts() != "INTERRUPTED OFFERED" || run.RetryCount != 0 {
		t.Errorf("run %+v", run)
	}
}

func TestProgramWorkerSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no address":       {[]string{"--server", "nonsense"}, 1, "give one such as https://rouse.example.org"},
		"nobody answers":   {[]string{"--server", "http://127.0.0.1:1"}, 1, "connection refused"},
		"no such command":  {[]string{"--server", "http://127.0.0.1:1", "--", "/no/such/agent"}, 1, "the program /no/such/agent does not exist"},
		"too many workers": {[]string{"--server", "http://127.0.0.1:1", "--workers", "0"}, 2, "--workers"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			w := launch(t, nil, append([]string{"worker", "--data-dir", newWorkshop(t).path("w")}, c.args...)...)
			if code := w.wait(); code != c.code || !strings.Contains(w.log.String(), c.want) {
				t.Errorf("exit %d after %s: %s", code, time.Since(began), w.log)
			}
		})
	}
}

func TestProgramCarriesOnFromFireToFire(t *testing.T) {
	t.Parallel()
	p := start(t, newWorkshop(t).dir, nil)
	j := newJourney(p)
	agent := j.script("watcher", `head -n 5; cat >/dev/null; echo '{"summary": "saw two pull requests", "next_action": "ask Ben", "usage": {"input_tokens": 5, "cost_usd": 0.25}}'`)
	var made struct {
		CreateRoutine struct{ Routine struct{ ID string } }
	}
	j.request(createRoutine, map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": "watch", "assigneeId": agent,
		"triggers": []any{map[string]any{"manual": map[string]any{}}}}}, &made)
	routine := made.CreateRoutine.Routine.ID
	seen := map[string]bool{}
	fire := func() runView {
		var out struct {
			FireRoutine struct{ RoutineRun struct{ ID, Status string } }
		}
		j.request(fireRoutine, map[string]any{"id": routine}, &out)
		var id string
		eventually(t, "the fire has a run", patience, func() bool {
			var run struct {
				Agent struct {
					Runs struct {
						Edges []struct{ Node struct{ ID string } }
					}
				}
			}
			j.request(`query($id: ID!) { agent(id: $id) { runs(first: 1) { edges { node { id } } } } }`, map[string]any{"id": agent}, &run)
			if edges := run.Agent.Runs.Edges; len(edges) == 1 && !seen[edges[0].Node.ID] {
				id = edges[0].Node.ID
			}
			return id != ""
		})
		seen[id] = true
		return j.end(id)
	}
	first := fire()
	if lines := first.lines(); first.Status != "FINISHED" || lines[0] != "# Who you are" {
		t.Errorf("the first fire: %+v", first)
	}
	second := fire()
	if lines := second.lines(); second.Status != "FINISHED" || lines[0] != "# What you noted at the end of earlier runs" || lines[3] != "saw two pull requests" {
		t.Errorf("the second fire: %q", lines)
	}
	var out struct {
		Routine struct {
			ContinuationSummary struct {
				Content      string
				UpdatedByRun struct {
					ID              string
					SummaryInjected string
					Usage           struct{ CostUsd string }
				}
			}
		}
	}
	j.request(`query($id: ID!) { routine(id: $id) { continuationSummary { content updatedByRun { id summaryInjected usage { costUsd } } } } }`, map[string]any{"id": routine}, &out)
	s := out.Routine.ContinuationSummary
	if !strings.Contains(s.Content, "## Next action\nask Ben") || s.UpdatedByRun.ID != second.ID || !strings.Contains(s.UpdatedByRun.SummaryInjected, "saw two") || s.UpdatedByRun.Usage.CostUsd != "0.250000" {
		t.Errorf("it remembers %+v", s)
	}
}

func TestProgramWorkerThatIsRefusedEnds(t *testing.T) {
	t.Parallel()
	p := start(t, pgtest.Installed(t), nil)
	j := newJourney(p)
	w := launch(t, []string{"ROUSE_TOKEN=rse_" + strings.Repeat("ab", 22)}, "worker", "--server", strings.TrimSuffix(j.url, "/graphql"), "--workspace", j.workspace,
		"--data-dir", newWorkshop(t).path("worker"), "--", "/bin/true")
	if code := w.wait(); code != exitTokenEnded || !strings.Contains(w.log.String(), "rouse token create --scope EXECUTE") {
		t.Errorf("exit %d: %s", code, w.log)
	}
}

// TestProgramWorkerWhoseTokenIsRevokedEnds: while it works, and its agent with it.
func TestProgramWorkerWhoseTokenIsRevokedEnds(t *testing.T) {
	t.Parallel()
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	j := newJourney(p)
	token, id := tokenWith(t, data, "EXECUTE")
	w := launch(t, []string{"ROUSE_TOKEN=" + token}, "worker", "--server", strings.TrimSuffix(j.url, "/graphql"), "--workspace", j.workspace,
		"--queue", "revoked", "--data-dir", newWorkshop(t).path("worker"))
	agent := j.agent("long", map[string]any{"pull": map[string]any{"queue": "revoked", "command": map[string]any{"argv": []string{"/bin/sh", "-c", longWork}, "grace": "PT1S"}}})
	pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": j.wake(agent)}).line())
	if out, err := exec.Command(binary, "token", "revoke", "--data-dir", data, id).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code := w.wait(); code != exitTokenEnded || !strings.Contains(w.log.String(), "rouse token create --scope EXECUTE") {
		t.Errorf("exit %d: %s", code, w.log)
	}
	if left := living(pids); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// tokenWith makes a token with a scope.
func tokenWith(t *testing.T, data, scope string) (token, id string) {
	t.Helper()
	out, err := exec.Command(binary, "token", "create", "--data-dir", data, "--name", "revoked", "--scope", scope).Output()
	if err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command(binary, "token", "list", "--data-dir", data).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if strings.Contains(line, "revoked") {
			id = strings.Fields(line)[0]
		}
	}
	return strings.TrimSpace(string(out)), id
}

func TestAWorkerWhoseFolderAgentsMayNotEnterEndsBeforeItTakesARun(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only a worker of root has agents of another account; CI runs as root")
	}
	closed := filepath.Join(t.TempDir(), "closed") // below a folder that is closed to others
	if err := os.MkdirAll(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	w := launch(t, nil, "worker", "--server", "http://127.0.0.1:1", "--workspace", "wsp_1", "--data-dir", filepath.Join(closed, "worker"), "--", "/bin/cat")
	want := "may not be entered by"
	if os.Geteuid() != 0 {
		want = "127.0.0.1:1" // its agents are it: it goes on, and meets the server that is none
	}
	if code := w.wait(); code != 1 || !strings.Contains(w.log.String(), want) {
		t.Errorf("exit %d: %s", code, w.log)
	}
}
