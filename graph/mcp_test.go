package graph_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/mcpserver"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// toolUser is a program that has a run's tools, over the protocol and over HTTP.
type toolUser struct {
	w       *world
	session *mcp.ClientSession
}

// tools connects a program of an agent's live attempt.
func (w *world) tools(agent, task string, a store.Attempt) toolUser {
	w.t.Helper()
	caller := w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent), TaskID: xid.ID(task), RunID: a.RunID, Attempt: a.Number})
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var asked struct {
			Query     string
			Variables map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.t.Error(err)
		}
		data, errs := caller.Try(r.Context(), asked.Query, asked.Variables)
		if err := json.NewEncoder(rw).Encode(map[string]any{"data": data, "errors": errs}); err != nil {
			w.t.Error(err)
		}
	}))
	w.t.Cleanup(api.Close)
	client, err := mcpserver.NewAPI(api.URL+"/graphql", secret.NewString("rsr_of_the_test"))
	w.ok(err)
	here, there := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(client, "test").Connect(w.t.Context(), there, nil)
	w.ok(err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "program", Version: "1"}, nil).Connect(w.t.Context(), here, nil)
	w.ok(err)
	w.t.Cleanup(func() { _, _ = session.Close(), server.Wait() }) // both ends of a connection that ends
	return toolUser{w, session}
}

// call calls a tool and gives its answer's text.
func (u toolUser) call(name string, given map[string]any) (text string, refused bool) {
	u.w.t.Helper()
	result, err := u.session.CallTool(u.w.t.Context(), &mcp.CallToolParams{Name: name, Arguments: given})
	if err != nil {
		u.w.t.Fatalf("%s: %v", name, err)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// do calls a tool that must be carried out, and decodes its answer.
func (u toolUser) do(name string, given map[string]any) (answer struct{ ID, State, Message string }) {
	u.w.t.Helper()
	text, refused := u.call(name, given)
	if refused {
		u.w.t.Fatalf("%s%v: %s", name, given, text)
	}
	u.w.ok(json.Unmarshal([]byte(text), &answer))
	return answer
}

// want calls a tool whose answer holds all of some words.
func (u toolUser) want(refused bool, name string, given map[string]any, words ...string) {
	u.w.t.Helper()
	text, is := u.call(name, given)
	for _, word := range words {
		if !strings.Contains(text, word) {
			u.w.t.Errorf("%s%v lacks %q: %s", name, given, word, text)
		}
	}
	if is != refused {
		u.w.t.Errorf("%s%v: refused %t, want %t: %s", name, given, is, refused, text)
	}
}

type object = map[string]any

// Every tool does what the action of its name does, once, and what is refused is refused in words that say what to do next.
func TestAModelWorksByTheToolsOfItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben, cat := w.agent("Ada"), w.agent("Ben"), w.agent("Cat")
	parent := w.newTask("Parent", nil).Task.ID
	foreign := w.newTask("Foreign", object{"description": "secret plans"}).Task.ID
	task := w.newTask("Work", object{"description": "Count the beans.", "parentId": parent, "assigneeId": ada}).Task.ID
	a := w.start()
	w.must("commentOnTask", "comment { id }", object{"taskId": task, "body": "The red ones, too."})
	u := w.tools(ada, task, a)

	u.want(false, "get_task", nil, `"title":"Work"`, "Count the beans.", "The red ones, too.", `"yours":true`, `"parent":{"id":"`+parent)
	u.want(false, "get_task", object{"task_id": parent}, `"title":"Parent"`, `"yours":false`)
	u.want(true, "get_task", object{"task_id": foreign}, "no task "+foreign+" that you may read", task, "list_children")
	u.want(false, "get_wake", nil, "TASK_ASSIGNED", `"basis":"ASSIGNEE"`, task)
	u.want(false, "list_agents", nil, ada, ben, `"name":"Ben"`, `"you":true`)
	u.want(false, "list_agents", object{"role": "COORDINATOR"}, `"agents":[]`)

	said := u.do("comment", object{"body": "4,211 so far", "mentions": []string{ben}})
	if !strings.Contains(said.Message, "Whom it mentions is woken.") {
		t.Errorf("a comment: %+v", said)
	}
	if again := u.do("comment", object{"body": "4,211 so far", "mentions": []string{ben}}); again.ID != said.ID || !strings.Contains(again.Message, "nothing was done a second time") {
		t.Errorf("the comment once more: %+v", again)
	}
	u.want(true, "comment", object{"task_id": foreign, "body": "hi"}, foreign+" is not your task", task+" (Work)", "nothing was done", "create_subtask")
	nobody := string(xid.New("agt"))
	u.want(true, "comment", object{"body": "hi", "mentions": []string{nobody}}, "there is no agent "+nobody, "list_agents")
	u.want(true, "comment", object{"body": "hi", "mentions": []string{"Ben"}}, `mentions has "Ben", which is no id of an agent (list_agents`)
	u.want(true, "comment", object{"text": "hi"}, `there is no argument "text"`, "body is missing", "Call comment with: body (a text, required)")

	child := u.do("create_subtask", object{"title": "Count the red ones", "assignee": ben})
	if again := u.do("create_subtask", object{"title": "Count the red ones", "assignee": ben}); again.ID != child.ID {
		t.Errorf("the subtask once more: %+v, %+v", child, again)
	}
	u.want(false, "create_subtask", object{"title": "Write it down", "assignee": ada, "blocked_by": []string{child.ID}}, "once nothing blocks it")
	u.want(true, "create_subtask", object{"title": "x", "assignee": nobody}, "assignee", "list_agents")
	u.want(true, "create_subtask", object{"title": strings.Repeat("x", 201)}, "title", "200")
	u.want(false, "list_children", nil, "Count the red ones", `"name":"Ben"`, `"is_blocked":true`, `"left_out":0`)
	u.want(false, "get_task", object{"task_id": child.ID}, `"title":"Count the red ones"`, `"yours":false`)
	u.want(true, "list_children", object{"task_id": child.ID}, "is not your task")

	if moved := u.do("move_task", object{"state": "BLOCKED", "note": "No scales"}); moved.State != "BLOCKED" {
		t.Errorf("moved: %+v", moved)
	}
	u.want(true, "move_task", object{"state": "LATER"}, `state is "LATER"`, "BLOCKED, DONE")
	asked := u.do("request_approval", object{"question": "May I use the kitchen's scales?"})
	if again := u.do("request_approval", object{"question": "May I use the kitchen's scales?"}); again.ID != asked.ID {
		t.Errorf("the question once more: %+v", again)
	}
	u.want(true, "decide_approval", object{"approval_id": asked.ID, "approved": true}, "approver")
	u.want(true, "decide_approval", object{"approval_id": string(xid.New("apr")), "approved": true}, "approval", "get_task")
	u.want(false, "report_progress", object{"message": "half of them", "percent": 50})
	wake := u.do("self_wake", object{"reason": "look at the scales", "payload": object{"shelf": 3}})
	if again := u.do("self_wake", object{"reason": "look at the scales", "payload": object{"shelf": 3}}); again.ID != wake.ID {
		t.Errorf("the self wake once more: %+v", again)
	}
	link := u.do("add_link", object{"url": "https://example.com/beans/1", "kind": "PULL_REQUEST", "title": "Beans"})
	if again := u.do("add_link", object{"url": "https://example.com/beans/1"}); again.ID != link.ID {
		t.Errorf("the link once more: %+v", again)
	}
	u.want(true, "add_link", object{"url": "file:///etc/passwd"}, "url", "no http or https address")
	u.want(true, "add_link", object{"url": "https://example.com/2", "kind": "HOME"}, `kind is "HOME"`, "PULL_REQUEST")
	u.want(false, "complete_task", nil, `"state":"DONE"`)
	u.want(false, "complete_task", nil, `"state":"DONE"`) // a client's retry

	for query, want := range map[string]string{
		`SELECT count(*) FROM comments WHERE author_kind = 'AGENT'`:                                             "1",
		`SELECT count(*) FROM tasks WHERE parent_id = '` + task + `'`:                                           "2",
		`SELECT count(*) FROM approvals`:                                                                        "1",
		`SELECT count(*) FROM wakeup_requests WHERE source = 'SELF'`:                                            "1",
		`SELECT string_agg(data->>'action', ' ' ORDER BY seq) FROM run_events WHERE kind = 'ACTED'`:             "comment create_subtask create_subtask move_task request_approval self_wake add_link add_link move_task move_task",
		`SELECT string_agg(kind || ' ' || url || ' ' || title, ', ') FROM links WHERE task_id = '` + task + `'`: "PULL_REQUEST https://example.com/beans/1 Beans",
		`SELECT data::text FROM run_events WHERE kind = 'PROGRESS'`:                                             `{"message": "half of them", "percent": 50}`,
		`SELECT payload->>'reason' || (payload->'payload')::text FROM wakeup_requests WHERE source = 'SELF'`:    `look at the scales{"shelf": 3}`,
	} {
		if got := w.one(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}

	// The result that asks for the same once more is told so, and nothing is done twice.
	w.ok(w.store.Finish(t.Context(), a, store.Success{Result: object{"summary": "counted", "actions": []any{
		object{"type": "comment", "body": "4,211 so far"},
		object{"type": "comment", "body": "4,211 so far", "mentions": []any{ben}},
		object{"type": "comment", "body": "4,211 so far", "mentions": []any{ben, cat}},
		object{"type": "comment", "body": "Hello.", "mentions": []any{nobody}},
		object{"type": "create_subtask", "title": "Count the red ones", "assignee": ben},
		object{"type": "create_subtask", "title": "Weigh them", "assignee": ben, "blocked_by": []any{"#5"}},
		object{"type": "request_approval", "question": "May I use the kitchen's scales?"},
		object{"type": "self_wake", "reason": "look at the scales", "payload": object{"shelf": 3}},
		object{"type": "complete_task"},
		object{"type": "comment", "body": "All done."},
	}}, SessionID: "ses_1"}))
	for query, want := range map[string]string{
		`SELECT string_agg(body, ' ' ORDER BY id) FROM comments WHERE author_kind = 'AGENT'`:                                      "4,211 so far 4,211 so far All done.",
		`SELECT string_agg(a.name, ' ' ORDER BY m.comment_id, a.name) FROM comment_mentions m JOIN agents a ON a.id = m.agent_id`: "Ben Ben Cat",
		`SELECT count(*) FROM wakeup_requests WHERE agent_id = '` + cat + `' AND reason = 'mentioned'`:                            "1",
		`SELECT string_agg(title, ', ' ORDER BY id) FROM tasks WHERE parent_id = '` + task + `'`:                                  "Count the red ones, Write it down, Weigh them",
		`SELECT blocker_id FROM task_blockers b JOIN tasks t ON t.id = b.task_id WHERE t.title = 'Weigh them'`:                    child.ID,
		`SELECT count(*) FROM approvals`:                             "1",
		`SELECT count(*) FROM wakeup_requests WHERE source = 'SELF'`: "1",
		`SELECT string_agg(coalesce(x->>'before', '-'), ' ' ORDER BY n) FROM run_events, jsonb_array_elements(data->'actions') WITH ORDINALITY AS a (x, n) WHERE kind = 'FINISHED'`: "true true - - true - true true true -",
		`SELECT state FROM tasks WHERE id = '` + task + `'`: "DONE",
	} {
		if got := w.one(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}

	// After its end the run does nothing more by its token.
	u.want(true, "comment", object{"body": "one more"}, "has ended", "Stop working")
}

// A decision that is made twice, because its answer was lost, is made once. A completion that waits for an approval is not refused when
// it is asked for again.
func TestAModelDecidesAndWaitsForDecisionsByTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	task := w.newTask("Work", object{"assigneeId": ada, "requiresApproval": true}).Task.ID
	w.must("setTaskParticipants", "task { id }", object{"taskId": task, "approverIds": []string{ben}})
	a := w.start()
	u := w.tools(ada, task, a)
	u.want(false, "complete_task", nil, "needs an approval", `"state":"IN_REVIEW"`)
	u.want(false, "complete_task", nil, "needs an approval", `"state":"IN_REVIEW"`)
	u.want(true, "move_task", object{"state": "IN_PROGRESS"}, "waits for the decision", "get_task")
	approval := w.one(`SELECT id FROM approvals`)

	w.ok(w.store.Finish(t.Context(), a, store.Success{SessionID: "ses_1"}))
	w.ok(w.store.RouteRequests(t.Context(), []xid.ID{xid.ID(w.one(`SELECT id FROM wakeup_requests WHERE agent_id = '` + ben + `'`))}))
	judge := w.tools(ben, task, w.start())
	judge.want(false, "get_wake", nil, "APPROVER")
	judge.want(false, "get_task", nil, approval, "PENDING", "Is “Work” done?")
	judge.want(false, "decide_approval", object{"approval_id": approval, "approved": true, "note": "fine"}, "APPROVED")
	judge.want(false, "decide_approval", object{"approval_id": approval, "approved": true, "note": "fine"}, "APPROVED")
	judge.want(true, "decide_approval", object{"approval_id": approval, "approved": false}, "decided")
	if state := w.one(`SELECT state FROM tasks WHERE id = '` + task + `'`); state != "DONE" {
		t.Errorf("the task is %s", state)
	}
}

// A run without a task has tools that need none, and the others say so.
func TestToolsOfARunWithoutATask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	w.wake(ada)
	u := w.tools(ada, "", w.start())
	u.want(true, "get_task", nil, "this run has no task", "get_wake")
	for name, given := range map[string]object{"comment": {"body": "x"}, "complete_task": nil, "move_task": {"state": "DONE"}, "create_subtask": {"title": "x"}, "request_approval": {"question": "x"}, "list_children": nil} {
		u.want(true, name, given, "this run has no task", "Nothing was done")
	}
	u.want(false, "get_wake", nil, "USER")
	u.want(false, "self_wake", object{"reason": "again"}, "woken again")
	u.want(true, "self_wake", object{"reason": strings.Repeat("x", 65<<10)}, "64 KiB")
	u.want(true, "decide_approval", object{"approval_id": "the first", "approved": true}, "no id of an approval", "get_task")
	u.want(false, "report_progress", object{"message": "begun"})
	u.want(true, "report_progress", object{"message": strings.Repeat("x", 17<<10)}, "16 KiB")
}
