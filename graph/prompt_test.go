package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// long is a text that a prompt does not hold whole; its end is its name.
func long(name string, bytes int) string { return strings.Repeat("x", bytes) + " the end of " + name }

// read answers a query about one record, its answer as it came.
func (w *world) read(query, id string) string {
	w.t.Helper()
	var out json.RawMessage
	w.Do(w.t.Context(), query, map[string]any{"id": id}, &out)
	return string(out)
}

// wantCut looks whether the prompt of a run leaves out what the names stand for, and says so, for at least so many of them.
func (w *world) wantCut(run string, marks int, names ...string) {
	w.t.Helper()
	var prompt string
	w.ok(w.db.QueryRow(`SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, run).Scan(&prompt))
	for _, name := range names {
		if strings.Contains(prompt, "the end of "+name) {
			w.t.Errorf("the prompt has %s whole: nothing is tested", name)
		}
	}
	if n := strings.Count(prompt, "[… cut, "); n < marks {
		w.t.Errorf("%d marks, want %d", n, marks)
	}
}

// wantWhole looks for the ends of texts in answers.
func (w *world) wantWhole(answer string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		if !strings.Contains(answer, "the end of "+name) {
			w.t.Errorf("%s cannot be read whole", name)
		}
	}
}

// cause asks for a wake of an agent, as its cause would have.
func (w *world) cause(agentID, scope, source, task, payload string) {
	w.t.Helper()
	w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, recovered, resends, hops, retry_count)
		VALUES ($1, $2, $3, NULLIF($4, ''), $5, $6, $7, 'EVENT', false, 'test', $8, 'QUEUED', false, 0, 0, 0)`,
		xid.New("wkp"), w.workspace, agentID, task, xid.New("cau"), scope, source, payload)
}

// launched routes what an agent was woken for, and starts its run.
func (w *world) launched(agentID string) string {
	w.t.Helper()
	_, err := w.store.Route(w.t.Context(), xid.ID(agentID))
	w.ok(err)
	return string(w.start().RunID)
}

const wakesOfRun = `query($id: ID!) { run(id: $id) { wakeupRequests(first: 100) { edges { node { payload {
	... on UserWakeup { context } ... on SelfWakeup { reason details: payload } ... on AgentErrorWakeup { error }
	... on ApprovalWakeup { note approval { question } } ... on CommentWakeup { comment { body } } ... on RoutineWakeup { text variables } } } } } } }`

func TestWhatAPromptCutsOfItsWakesCanBeReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("Ada")
	approval := xid.New("apr")
	task := w.newTask("Any", nil).Task.ID
	w.sql(`INSERT INTO approvals (id, workspace_id, task_id, question, status, requested_by_id, causation_id) VALUES ($1, $2, $3, $4, 'REJECTED', $5, 'cau')`,
		approval, w.workspace, task, long("the question", 130<<10), agentID)
	w.cause(agentID, "taskless", "USER", "", fmt.Sprintf(`{"user_id": "ann", "context": {"q": %q}}`, long("the context", 130<<10)))
	w.cause(agentID, "taskless", "SELF", "", fmt.Sprintf(`{"reason": %q, "payload": {"p": %q}}`, long("the reason", 130<<10), long("the details", 130<<10)))
	w.cause(agentID, "taskless", "AGENT_ERROR", "", fmt.Sprintf(`{"failed_agent_id": %q, "error": %q}`, agentID, long("the error", 130<<10)))
	w.cause(agentID, "taskless", "APPROVAL_RESOLVED", "", fmt.Sprintf(`{"approval_id": %q, "status": "REJECTED", "decision_note": %q}`, approval, long("the note", 130<<10)))
	run := w.launched(agentID)
	parts := []string{"the context", "the reason", "the details", "the error", "the question", "the note"}
	w.wantCut(run, len(parts), parts...)
	w.wantWhole(w.read(wakesOfRun, run), parts...)
}

func TestAPromptHasInstructionsWholeAtTheirLongest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createAgent("Ada", map[string]any{"executor": map[string]any{"echo": map[string]any{}}, "instructions": long("the instructions", 64<<10-len(long("the instructions", 0)))})
	if made.CreateAgent.Agent == nil {
		t.Fatal(made.CreateAgent.UserErrors)
	}
	run := w.wake(made.CreateAgent.Agent.ID)
	w.start()
	w.wantWhole(w.read(`query($id: ID!) { run(id: $id) { assembledPrompt } }`, run), "the instructions")
}

func TestWhatAPromptCutsOfItsTaskCanBeReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("Ada")
	task := w.newTask("Long", map[string]any{"description": long("the description", 63<<10)}).Task.ID
	refs := func(column string, value any) {
		for i := range 60 {
			made := w.newTask(fmt.Sprintf("%s, the end of %s %d", column, column, i), nil).Task.ID
			if column == "child" {
				w.sql(`UPDATE tasks SET parent_id = $1 WHERE id = $2`, value, made)
			} else {
				w.sql(`INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) VALUES ($3, $4, $1, $2)`, value, made, xid.New("blk"), w.workspace)
			}
		}
	}
	refs("child", task)
	refs("blocker", task)
	comment := func(name string) string {
		id := xid.New("cmt")
		w.sql(`INSERT INTO comments (id, workspace_id, task_id, causation_id, author_kind, author_name, body) VALUES ($1, $2, $3, 'cau', 'USER', 'ben', $4)`, id, w.workspace, task, long(name, 6<<10))
		return string(id)
	}
	background := []string{"remark 0", "remark 1", "remark 2", "remark 3", "remark 4", "remark 5"}
	for _, name := range background {
		comment(name)
	}
	var woke []string
	for i := range 60 {
		name := fmt.Sprint("comment ", i)
		w.cause(agentID, "task:"+task, "COMMENT", task, fmt.Sprintf(`{"task_id": %q, "comment_id": %q}`, task, comment(name)))
		woke = append(woke, name)
	}
	w.sql(`UPDATE tasks SET assignee_id = $1 WHERE id = $2`, agentID, task)
	run := w.launched(agentID)
	w.wantCut(run, 27, append(append([]string{"the description"}, background...), woke[20:40]...)...) // 50 wakes are shown, the newest of them whole
	var prompt string
	w.ok(w.db.QueryRow(`SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, run).Scan(&prompt))
	if n := strings.Count(prompt, "- and 10 more"); n != 2 || !strings.Contains(prompt, "oldest 10 of them: 10 COMMENT") {
		t.Errorf("the prompt leaves out references %d times, or counts no wakes", n)
	}
	w.wantWhole(w.read(wakesOfRun, run), woke...)
	w.wantWhole(w.read(`query($id: ID!) { task(id: $id) { description comments(first: 100) { edges { node { body } } } } }`, task), append(background, "the description")...)
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprint("child ", i), fmt.Sprint("blocker ", i))
	}
	w.wantWhole(w.read(`query($id: ID!) { task(id: $id) { children(first: 100) { edges { node { title } } } blockedBy(first: 100) { edges { node { title } } } } }`, task), all...)
}

func TestWhatAPromptCutsOfItsRoutineCanBeReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("Ada")
	r := w.routine(agentID, map[string]any{"description": "{{what}} " + long("the text", 20<<10)})
	fire := func(name string) {
		w.must("fireRoutine", "routineRun { id }", map[string]any{"routineId": r.ID, "variables": map[string]any{"what": long(name, 20<<10)}})
	}
	fire("the first")
	w.ok(w.store.Finish(t.Context(), w.start(), store.Success{Summary: "seen"}))
	w.sql(`UPDATE continuation_summaries SET content = $1`, long("the summary", 3000))
	merged := []string{"variable 0", "variable 1", "variable 2", "variable 3", "variable 4"} // each fire's text has 40 KiB
	for _, name := range merged {
		fire(name)
	}
	run := string(w.start().RunID)
	w.wantCut(run, 2, merged[:2]...)
	var injected string
	w.ok(w.db.QueryRow(`SELECT summary_injected FROM run_contents WHERE run_id = $1`, run).Scan(&injected))
	if len(injected) != 1500 {
		t.Errorf("%d characters of the summary", len(injected))
	}
	w.wantWhole(w.read(wakesOfRun, run), append(merged, "the text")...)
	w.wantWhole(w.read(`query($id: ID!) { routine(id: $id) { continuationSummary { content } } }`, r.ID), "the summary")
}
