package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

// memory is a program that speaks as claude does and keeps its sessions in files, so that one can be lost. It records the
// prompt of each run.
const memory = `#!/bin/sh
cd %s || exit 1
[ "$1" = --version ] && { echo "2.0.1 (Claude Code)"; exit; }
session=
while [ $# -gt 0 ]; do
	case $1 in
	--resume) session=$2; shift 2 ;;
	*) shift ;;
	esac
done
if [ -n "$session" ] && [ ! -e "$session.session" ]; then
	echo "No conversation found with session ID: $session" >&2
	exit 1
fi
[ -n "$session" ] || session=s-$ROUSE_RUN_ID
echo run >>"$session.session"
chmod 666 "$session.session"
cat >"$ROUSE_RUN_ID.prompt"
echo '{"type":"system","subtype":"init","session_id":"'$session'","tools":[]}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"prompt '$(wc -l <"$session.session")' of '$session'","session_id":"'$session'","total_cost_usd":0.0425,"usage":{"input_tokens":10,"output_tokens":7}}'
`

// sessionRun is a run as these tests look at it.
type sessionRun struct {
	ID, Status, SessionID, AssembledPrompt, Summary string
	Usage                                           *struct {
		InputTokens, OutputTokens int
		CostUsd                   string
	}
	Attempts []struct{ HeartbeatAt *string }
}

func (o office) sessionRun(run string) sessionRun {
	o.t.Helper()
	o.end(run)
	var out struct{ Run sessionRun }
	o.request(`query($id: ID!) { run(id: $id) { id status sessionId assembledPrompt summary usage { inputTokens outputTokens costUsd } attempts { heartbeatAt } } }`,
		map[string]any{"id": run}, &out)
	return out.Run
}

// queue asks an agent to work on a task and waits for the end of the run.
func (o office) queue(task string) sessionRun {
	o.t.Helper()
	var out struct {
		WakeupRequest struct{ Run struct{ ID string } }
	}
	o.change("queueRun", "wakeupRequest { run { id } }", map[string]any{"taskId": task}, &out)
	run := o.sessionRun(out.WakeupRequest.Run.ID)
	if run.Status != "FINISHED" || run.SessionID == "" {
		o.t.Fatalf("run %+v", run)
	}
	return run
}

// sessionsOf are a task's sessions, as "external id state runs".
func (o office) sessionsOf(task string) (list []string) {
	o.t.Helper()
	var out struct {
		Task struct {
			Sessions []struct {
				ExternalID, State string
				RunCount          int
				Agent             struct{ ID string }
			}
		}
	}
	o.request(`query($id: ID!) { task(id: $id) { sessions { externalId state runCount agent { id } } } }`, map[string]any{"id": task}, &out)
	for _, s := range out.Task.Sessions {
		list = append(list, fmt.Sprint(s.ExternalID, " ", s.State, " ", s.RunCount))
	}
	slices.Sort(list)
	return list
}

func (o office) wantSessions(task string, want ...string) {
	o.t.Helper()
	slices.Sort(want)
	if got := o.sessionsOf(task); !slices.Equal(got, want) {
		o.t.Errorf("sessions %q, want %q", got, want)
	}
}

const (
	aboutItself = "# Who you are" // only the full prompt says it
	aboutTheRun = "# This run"
)

// wantPrompt looks at a run's stored prompt, and at what its agent was really told.
func (o office) wantPrompt(run sessionRun, full bool) {
	o.t.Helper()
	if strings.Contains(run.AssembledPrompt, aboutItself) != full || !strings.Contains(run.AssembledPrompt, aboutTheRun) {
		o.t.Errorf("the stored prompt, which should be full: %v, is\n%s", full, run.AssembledPrompt)
	}
	if told, err := os.ReadFile(o.path(run.ID + ".prompt")); err != nil || string(told) != run.AssembledPrompt {
		o.t.Errorf("%v: the agent was told\n%s\nbut stored is\n%s", err, told, run.AssembledPrompt)
	}
}

// install writes an executable that agents of any account can run.
func (w workshop) install(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return w.path(name)
}

// TestSessionsOfACommandLine plays the sessions of SPEC S7.2 with a preset that the server starts, and with one that a
// worker starts: the same rules hold.
func TestSessionsOfACommandLine(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	o.journey.worker(t)
	program := o.install(t, "claude", fmt.Sprintf(memory, o.dir))
	command := map[string]any{"preset": "claude", "argv": []string{program}}
	for name, executor := range map[string]map[string]any{
		"started by the server": {"command": command},
		"started by a worker":   {"pull": map[string]any{"command": command}},
	} {
		t.Run(name, func(t *testing.T) { testSessions(office{o.on(t, o.program), o.workshop, o.house}, executor) })
	}
}

func testSessions(o office, executor map[string]any) {
	agent := o.agent("remembers "+o.t.Name(), executor)
	task, _ := o.create(map[string]any{"title": "Long work", "assigneeId": nil})
	var assigned taskPayload
	o.change("assignTask", "task { id state } "+wakeFields, map[string]any{"taskId": task, "assigneeId": agent}, &assigned)
	o.wantEnd(assigned.WakeupRequests[0].ID, "FINISHED", "")

	first := o.queue(task) // the assignment opened the session that this run resumes
	session := first.SessionID
	o.wantPrompt(first, false)
	o.wantSessions(task, session+" IDLE 2")
	if u := first.Usage; u == nil || u.InputTokens != 10 || u.OutputTokens != 7 || u.CostUsd != "0.042500" {
		o.t.Errorf("usage %+v", u)
	}
	if first.Attempts[0].HeartbeatAt == nil {
		o.t.Error("no sign of life")
	}

	o.remove(session + ".session")
	lost := o.queue(task)
	if lost.SessionID == session || !strings.HasPrefix(lost.Summary, "prompt 1 of ") {
		o.t.Errorf("after the session was lost: %+v", lost)
	}
	o.wantPrompt(lost, true)
	o.wantSessions(task, session+" ENDED 2", lost.SessionID+" IDLE 1")

	var changed struct{ Agent struct{ ID string } }
	o.change("updateAgent", "agent { id }", map[string]any{"agentId": agent, "sessionMaxRuns": 2}, &changed)
	second := o.queue(task)
	renewed := o.queue(task)
	if second.SessionID != lost.SessionID || renewed.SessionID == lost.SessionID {
		o.t.Errorf("sessions of at most two runs: %s, %s, %s", lost.SessionID, second.SessionID, renewed.SessionID)
	}
	o.wantPrompt(second, false)
	o.wantPrompt(renewed, true)
	o.wantSessions(task, session+" ENDED 2", lost.SessionID+" ENDED 2", renewed.SessionID+" IDLE 1")

	taskless := map[string]bool{}
	for range 2 {
		run := o.sessionRun(o.wake(agent))
		o.wantPrompt(run, true)
		taskless[run.SessionID] = true
	}
	if len(taskless) != 2 {
		o.t.Errorf("runs without a task opened %v", taskless)
	}
	o.wantCosts(agent, 7, "0.2975")
}

// wantCosts looks at what an agent's runs cost in all.
func (o office) wantCosts(agent string, runs int, usd string) {
	o.t.Helper()
	var out struct {
		Workspace struct {
			Costs []struct {
				Subject                         *struct{ ID string }
				CostUsd                         string
				Runs, InputTokens, OutputTokens int
			}
		}
	}
	o.request(`query($id: ID!, $from: DateTime!, $until: DateTime!) { workspace(id: $id) { costs(from: $from, until: $until, by: AGENT) { subject { ... on Agent { id } } costUsd runs inputTokens outputTokens } } }`,
		map[string]any{"id": o.workspace, "from": time.Now().Add(-24 * time.Hour).UTC(), "until": time.Now().Add(24 * time.Hour).UTC()}, &out)
	for _, c := range out.Workspace.Costs {
		if c.Subject != nil && c.Subject.ID == agent {
			if c.Runs != runs || c.CostUsd != usd || c.InputTokens != 10*runs || c.OutputTokens != 7*runs {
				o.t.Errorf("costs %+v, want %d runs and %s", c, runs, usd)
			}
			return
		}
	}
	o.t.Errorf("no costs of %s in %+v", agent, out)
}

// TestSessionsOfTheAgentClientProtocol: the runs of a task load one session in one agent process after the other; one that
// is lost is replaced.
func TestSessionsOfTheAgentClientProtocol(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	argv := o.acpAgent(t)
	agent := o.instructed("acp", map[string]any{"acp": map[string]any{"argv": argv, "workingDirectory": o.dir, "permissions": "READ_ONLY"}}, "tool edit", "history")
	task, made := o.create(map[string]any{"title": "Long work", "assigneeId": agent})
	o.wantEnd(made.WakeupRequests[0].ID, "FINISHED", "")
	prompts := func(session string) (list []string) {
		text, err := os.ReadFile(o.path(session + ".session"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	second := o.queue(task)
	o.wantSessions(task, second.SessionID+" IDLE 2")
	if told := prompts(second.SessionID); len(told) != 2 || !strings.Contains(told[0], aboutItself) || strings.Contains(told[1], aboutItself) ||
		strings.Contains(second.AssembledPrompt, aboutItself) {
		t.Errorf("the session was told %q", told)
	}
	o.remove(second.SessionID + ".session")
	third := o.queue(task)
	if told := prompts(third.SessionID); len(told) != 1 || !strings.Contains(third.AssembledPrompt, aboutItself) || !strings.HasSuffix(third.Summary, "prompts 1") {
		t.Errorf("after the session was lost: %+v, told %q", third, told)
	}
	o.wantSessions(task, second.SessionID+" ENDED 2", third.SessionID+" IDLE 1")
	o.wantSteps(third.ID, `{"tool":{"id":"t-edit","kind":"edit","status":"pending","title":"tool edit"}}`,
		`{"permission":{"allowed":false,"kind":"edit","policy":"READ_ONLY","title":"tool edit","tool":"t-edit"}}`)
	fresh := map[string]bool{}
	for range 2 {
		fresh[o.sessionRun(o.wake(agent)).SessionID] = true
	}
	if len(fresh) != 2 {
		t.Errorf("runs without a task opened %v", fresh)
	}
}

// wantSteps looks at the PROGRESS events of a run.
func (o office) wantSteps(run string, want ...string) {
	o.t.Helper()
	var out struct {
		Run struct {
			Events struct {
				Edges []struct {
					Node struct {
						Kind string
						Data json.RawMessage
					}
				}
			}
		}
	}
	o.request(`query($id: ID!) { run(id: $id) { events(first: 100) { edges { node { kind data } } } } }`, map[string]any{"id": run}, &out)
	var got []string
	for _, e := range out.Run.Events.Edges {
		if e.Node.Kind == "PROGRESS" {
			got = append(got, string(e.Node.Data))
		}
	}
	if !slices.Equal(got, want) {
		o.t.Errorf("steps %q, want %q", got, want)
	}
}

// TestSessionsOfAnAgentService: the session that a service names is given to the next run of the task.
func TestSessionsOfAnAgentService(t *testing.T) {
	t.Parallel()
	const secret = "a secret of the service"
	url := startService(t, secret)
	o := openOffice(t, "--http-allow", "127.0.0.0/8", "--drain", "1s")
	agent := o.agent("service", map[string]any{"http": map[string]any{"url": url + "/sessions", "secret": secret}})
	task, made := o.create(map[string]any{"title": "Long work", "assigneeId": agent})
	o.wantEnd(made.WakeupRequests[0].ID, "FINISHED", "")
	second := o.queue(task)
	if second.Summary != "delta prompt in "+second.SessionID || strings.Contains(second.AssembledPrompt, aboutItself) {
		t.Errorf("second %+v", second)
	}
	third := o.queue(task) // the service has forgotten the session after two runs
	if third.SessionID == second.SessionID || third.Summary != "full prompt in "+third.SessionID || !strings.Contains(third.AssembledPrompt, aboutItself) {
		t.Errorf("third %+v", third)
	}
	o.wantSessions(task, second.SessionID+" ENDED 2", third.SessionID+" IDLE 1")
}

// TestThePromptFileOfAKilledServerIsRemoved: a preset that takes its prompt from a file leaves none behind.
func TestThePromptFileOfAKilledServerIsRemoved(t *testing.T) {
	t.Parallel()
	w, data, tmp := newWorkshop(t), pgtest.Installed(t), newWorkshop(t)
	env := []string{"TMPDIR=" + tmp.dir}
	program := w.install(t, "aider", fmt.Sprintf("#!/bin/sh\ncd %s\n[ -e tried ] && { echo done; exit; }\ntouch tried\nexec sleep 1000\n", w.dir))
	p := start(t, data, env)
	j := newJourney(p)
	run := j.wake(j.agent("aider", map[string]any{"command": map[string]any{"preset": "aider", "argv": []string{program}}}))
	eventually(t, "the agent works", patience, func() bool { return w.exists("tried") })
	files := func() []string {
		found, err := filepath.Glob(tmp.path("rouse-prompt-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if len(files()) != 1 {
		t.Errorf("prompt files %v", files())
	}
	p.end(syscall.SIGKILL)
	if view := j.on(t, start(t, data, env, "--drain", "1s")).end(run); view.Status != "FINISHED" || view.attempts() != "ABANDONED SUCCEEDED" {
		t.Errorf("%+v", view)
	}
	if left := files(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
