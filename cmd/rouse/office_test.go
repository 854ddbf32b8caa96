package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// office is a workspace on a running program whose agents are a shell script that records why it was woken, waits for as
// long as it is held, and answers with the result that the test has laid out for it.
type office struct {
	journey
	workshop
	house
}

// house is where a program lives: its database, as an operator reaches it, and its folder.
type house struct {
	db   *sql.DB
	url  string // of db
	data string
}

// newHouse is a place for a program, with an empty database.
func newHouse(t testing.TB) house {
	t.Helper()
	db, url := pgtest.NewURL(t)
	return house{db, url, pgtest.Folder(t)}
}

// start starts a program there.
func (h house) start(t testing.TB, args ...string) *program {
	t.Helper()
	return start(t, h.data, []string{"ROUSE_DATABASE_URL=" + h.url}, args...)
}

// sql changes rows behind the program's back, as time or an operator does.
func (o office) sql(query string, args ...any) {
	o.t.Helper()
	if _, err := o.db.ExecContext(o.t.Context(), query, args...); err != nil {
		o.t.Fatalf("%v: %s", err, query)
	}
}

// desk is the script of every agent.
func (w workshop) desk() string {
	return fmt.Sprintf(`cd %s || exit 1
cat >"$ROUSE_RUN_ID.prompt"
echo "$ROUSE_WAKE_REASON $ROUSE_TASK_ID $ROUSE_RUN_ID $ROUSE_WAKE_PAYLOAD_JSON" >>"$ROUSE_AGENT_ID.woken"
echo "$ROUSE_RUN_TOKEN" >"$ROUSE_AGENT_ID.token"
until [ ! -e "$ROUSE_AGENT_ID.hold" ]; do sleep 0.1; done
[ -e "$ROUSE_AGENT_ID.fail" ] && exit 3
if [ -e "$ROUSE_AGENT_ID.result" ]; then cat "$ROUSE_AGENT_ID.result"; else echo '{"summary": "done"}'; fi`, w.dir)
}

// another is a workspace of its own on the same program, for another test.
func (o office) another(t testing.TB) office {
	t.Helper()
	p := *o.program
	p.t = t
	return furnish(office{newJourney(&p), o.workshop, o.house})
}

// furnish lets wakes be due at once.
func furnish(o office) office {
	o.t.Helper()
	o.settle(map[string]any{"coalescingWindow": "PT0S"})
	return o
}

// settle changes the workspace's settings.
func (o office) settle(settings map[string]any) {
	o.t.Helper()
	settings["workspaceId"] = o.workspace
	var out struct{ Workspace struct{ ID string } }
	o.change("updateWorkspaceSettings", "workspace { id }", settings, &out)
}

// endAndStart ends the program with a signal and starts it again in its house, after what is done in between.
func (o office) endAndStart(t *testing.T, signal syscall.Signal, between func(), args ...string) office {
	t.Helper()
	if code := o.program.end(signal); code != 0 && signal != syscall.SIGKILL {
		t.Errorf("exit %d:\n%s", code, o.log)
	}
	between()
	o.journey = journey{o.house.start(t, args...), o.workspace}
	return o
}

func (o office) worker(name string) string { return o.script(name, o.desk()) }

// hire makes an agent at a desk; what is given goes before a worker's defaults.
func (o office) hire(given map[string]any) string {
	o.t.Helper()
	in := map[string]any{"workspaceId": o.workspace, "role": "WORKER", "cooldown": "PT0S",
		"executor": map[string]any{"command": map[string]any{"argv": []string{"/bin/sh", "-c", o.desk()}}}}
	maps.Copy(in, given)
	var out struct{ Agent struct{ ID string } }
	o.change("createAgent", "agent { id }", in, &out)
	return out.Agent.ID
}

// coordinator hires one whose heartbeat is switched off, so that it wakes for nothing but what the test causes.
func (o office) coordinator(name string) string {
	o.t.Helper()
	agent := o.hire(map[string]any{"name": name, "role": "COORDINATOR"})
	var out struct{ Routine struct{ ID string } }
	o.change("pauseRoutine", "routine { id }", map[string]any{"routineId": o.heartbeatOf(agent)}, &out)
	return agent
}

// board makes a Kanban workflow, whose steps have no actions unless given.
func (o office) board(name string, onDoing ...string) string {
	o.t.Helper()
	var out struct{ Workflow struct{ ID string } }
	o.change("createWorkflow", "workflow { id }", map[string]any{"workspaceId": o.workspace, "name": name, "steps": []map[string]any{
		{"name": "To do", "state": "TODO"}, {"name": "Doing", "state": "IN_PROGRESS", "onEnter": append([]string{}, onDoing...)}}}, &out)
	return out.Workflow.ID
}

func (o office) write(name, text string) {
	o.t.Helper()
	if err := os.WriteFile(o.path(name), []byte(text+"\n"), 0o666); err != nil {
		o.t.Fatal(err)
	}
}

func (o office) remove(name string) {
	o.t.Helper()
	if err := os.Remove(o.path(name)); err != nil {
		o.t.Fatal(err)
	}
}

// hold keeps the agent's runs at work until it is let go.
func (o office) hold(agent string)  { o.t.Helper(); o.write(agent+".hold", "") }
func (o office) letGo(agent string) { o.t.Helper(); o.remove(agent + ".hold") }

// tokenOf is the token of the run that an agent is at.
func (o office) tokenOf(agent string) (token string) {
	o.t.Helper()
	eventually(o.t, "the token of the agent's run", patience, func() bool {
		text, err := os.ReadFile(o.path(agent + ".token"))
		token = strings.TrimSpace(string(text))
		return err == nil && token != ""
	})
	return token
}

// answers lays out what the agent's next runs answer with.
func (o office) answers(agent string, actions ...map[string]any) {
	o.t.Helper()
	text, err := json.Marshal(map[string]any{"summary": "done", "actions": actions})
	if err != nil {
		o.t.Fatal(err)
	}
	o.write(agent+".result", string(text))
}

// woken is what the agent's command saw: reason, task, run and payload of each run so far.
func (o office) woken(agent string) [][]string {
	text, err := os.ReadFile(o.path(agent + ".woken"))
	if err != nil {
		return nil
	}
	var out [][]string
	for line := range strings.Lines(string(text)) {
		out = append(out, strings.SplitN(strings.TrimSpace(line), " ", 4))
	}
	return out
}

// awaitWake waits until the agent's command was started for the n-th time, from 1, and returns what it saw and its prompt.
func (o office) awaitWake(agent string, n int) (reason, run, prompt string) {
	o.t.Helper()
	eventually(o.t, fmt.Sprintf("launch %d of %s", n, agent), patience, func() bool { return len(o.woken(agent)) >= n })
	seen := o.woken(agent)[n-1]
	text, err := os.ReadFile(o.path(seen[2] + ".prompt"))
	if err != nil {
		o.t.Fatal(err)
	}
	return seen[0], seen[2], string(text)
}

// wantWake is awaitWake with what is expected of it.
func (o office) wantWake(agent string, n int, reason string, inPrompt ...string) (run string) {
	o.t.Helper()
	got, run, prompt := o.awaitWake(agent, n)
	if got != reason {
		o.t.Errorf("launch %d has ROUSE_WAKE_REASON %s, want %s", n, got, reason)
	}
	for _, part := range inPrompt {
		if !strings.Contains(prompt, part) {
			o.t.Errorf("launch %d: %q is not in the prompt:\n%s", n, part, prompt)
		}
	}
	return run
}

// wantSeen waits until the agent's command was started for a run and looks at what it saw; it returns the run's task.
func (o office) wantSeen(agent, run, reason string, inPrompt ...string) (task string) {
	o.t.Helper()
	n := 0
	eventually(o.t, "the launch of "+run, patience, func() bool {
		n = slices.IndexFunc(o.woken(agent), func(seen []string) bool { return seen[2] == run })
		return n >= 0
	})
	o.wantWake(agent, n+1, reason, inPrompt...)
	return o.woken(agent)[n][1]
}

// change sends a mutation with one input and decodes its payload into out.
func (o office) change(name, fields string, input map[string]any, out any) {
	o.t.Helper()
	kind := strings.ToUpper(name[:1]) + name[1:] + "Input"
	var data map[string]json.RawMessage
	o.request(fmt.Sprintf(`mutation($in: %s!) { %s(input: $in) { %s userErrors { code message } } }`, kind, name, fields), map[string]any{"in": input}, &data)
	if err := json.Unmarshal(data[name], out); err != nil {
		o.t.Fatalf("%v: %s", err, data[name])
	}
}

// wakeView is a wakeup as mutations list it.
type wakeView struct {
	ID, Source, Status string
	EndReason          *string
	Recovered          bool
	Agent              struct{ ID string }
	Run                *struct{ ID string }
}

const wakeFields = `wakeupRequests { id source status endReason agent { id } }`

// taskPayload is what mutations of a task answer.
type taskPayload struct {
	Task             struct{ ID, State string }
	WakeupRequests   []wakeView
	CancelledWakeups []wakeView
}

func (p taskPayload) sources() (list []string) {
	for _, w := range p.WakeupRequests {
		list = append(list, w.Source)
	}
	return list
}

func (o office) create(input map[string]any) (string, taskPayload) {
	o.t.Helper()
	input["workspaceId"] = o.workspace
	var out taskPayload
	o.change("createTask", "task { id state } "+wakeFields, input, &out)
	return out.Task.ID, out
}

func (o office) move(task, to string) taskPayload {
	o.t.Helper()
	var out taskPayload
	o.change("moveTask", "task { id state } "+wakeFields, map[string]any{"taskId": task, "to": to}, &out)
	return out
}

func (o office) assignTo(task, agent string) taskPayload {
	o.t.Helper()
	var out taskPayload
	o.change("assignTask", "task { id state } "+wakeFields+" cancelledWakeups { id source status endReason agent { id } }", map[string]any{"taskId": task, "assigneeId": agent}, &out)
	return out
}

func (o office) comment(task, body string, mentions ...string) taskPayload {
	o.t.Helper()
	var out taskPayload
	o.change("commentOnTask", "comment { id } "+wakeFields, map[string]any{"taskId": task, "body": body, "userId": "ann", "mentionedAgentIds": append([]string{}, mentions...)}, &out)
	return out
}

// wakeup reads a wakeup.
func (o office) wakeup(id string) (w wakeView) {
	o.t.Helper()
	var out struct{ WakeupRequest wakeView }
	o.request(`query($id: ID!) { wakeupRequest(id: $id) { id source status endReason recovered agent { id } run { id } } }`, map[string]any{"id": id}, &out)
	return out.WakeupRequest
}

// wantEnd waits until a wakeup has ended so; reason "" is none.
func (o office) wantEnd(id, status, reason string) {
	o.t.Helper()
	var last wakeView
	eventually(o.t, "wakeup "+id+" "+status, patience, func() bool { last = o.wakeup(id); return last.Status == status })
	got := ""
	if last.EndReason != nil {
		got = *last.EndReason
	}
	if got != reason {
		o.t.Errorf("the wakeup ended %s, want %s", got, reason)
	}
}

func (o office) wantTask(task, state string) {
	o.t.Helper()
	var got string
	eventually(o.t, "task "+state, patience, func() bool {
		var out struct{ Task struct{ State string } }
		o.request(`query($id: ID!) { task(id: $id) { state } }`, map[string]any{"id": task}, &out)
		got = out.Task.State
		return got == state
	})
}

// wantActivity waits for an entry of the feed about a task or an agent.
func (o office) wantActivity(about, code string) {
	o.t.Helper()
	eventually(o.t, code+" in the feed", patience, func() bool { return o.activities(about, code) > 0 })
}

// activities counts the feed's entries about a task or an agent, up to 100.
func (o office) activities(about, code string) int {
	o.t.Helper()
	filter := map[string]any{"code": []string{code}, "taskId": about}
	if strings.HasPrefix(about, "agt_") {
		filter = map[string]any{"code": []string{code}, "agentId": about}
	}
	var out struct {
		Workspace struct {
			Activity struct{ Edges []json.RawMessage }
		}
	}
	o.request(`query($w: ID!, $f: ActivityFilter) { workspace(id: $w) { activity(first: 100, filter: $f) { edges { node { id } } } } }`,
		map[string]any{"w": o.workspace, "f": filter}, &out)
	return len(out.Workspace.Activity.Edges)
}

// wakeups lists an agent's wakeups, newest first.
func (o office) wakeups(agent string) (list []wakeView) {
	o.t.Helper()
	var out struct {
		Agent struct {
			WakeupRequests struct{ Edges []struct{ Node wakeView } }
		}
	}
	o.request(`query($id: ID!) { agent(id: $id) { wakeupRequests(first: 100) { edges { node { id source status endReason recovered agent { id } run { id } } } } } }`,
		map[string]any{"id": agent}, &out)
	for _, e := range out.Agent.WakeupRequests.Edges {
		list = append(list, e.Node)
	}
	return list
}

// wantIdle waits until nothing of an agent is at work or due.
func (o office) wantIdle(agent string) {
	o.t.Helper()
	eventually(o.t, "nothing of "+agent+" is at work or due", patience, func() bool {
		return !slices.ContainsFunc(o.wakeups(agent), func(w wakeView) bool { return w.Status == "QUEUED" || w.Status == "CLAIMED" })
	})
}

// refused sends a mutation that must be refused, and returns the first user error.
func (o office) refused(name string, input map[string]any) (code, message string) {
	o.t.Helper()
	kind := strings.ToUpper(name[:1]) + name[1:] + "Input"
	_, body := o.post(o.owner, fmt.Sprintf(`mutation($in: %s!) { out: %s(input: $in) { userErrors { code message } } }`, kind, name), map[string]any{"in": input})
	var answer struct {
		Data struct {
			Out struct {
				UserErrors []struct{ Code, Message string }
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data.Out.UserErrors) == 0 {
		o.t.Fatalf("%s was not refused: %v %s", name, err, body)
	}
	return answer.Data.Out.UserErrors[0].Code, answer.Data.Out.UserErrors[0].Message
}

// decide decides the task's open approval.
func (o office) decide(task, decision, note string) taskPayload {
	o.t.Helper()
	var open struct {
		Task struct {
			Approvals struct {
				Edges []struct{ Node struct{ ID, Status string } }
			}
		}
	}
	o.request(`query($id: ID!) { task(id: $id) { approvals { edges { node { id status } } } } }`, map[string]any{"id": task}, &open)
	at := slices.IndexFunc(open.Task.Approvals.Edges, func(e struct{ Node struct{ ID, Status string } }) bool { return e.Node.Status == "PENDING" })
	if at < 0 {
		o.t.Fatal("no approval is open")
	}
	var out taskPayload
	o.change("decideApproval", "task { id state } "+wakeFields, map[string]any{"approvalId": open.Task.Approvals.Edges[at].Node.ID, "decision": decision, "note": note, "userId": "ann"}, &out)
	return out
}

// openOffice starts a program with one workspace that has no window.
func openOffice(t testing.TB, args ...string) office {
	t.Helper()
	h := newHouse(t)
	return furnish(office{newJourney(h.start(t, args...)), newWorkshop(t), h})
}
