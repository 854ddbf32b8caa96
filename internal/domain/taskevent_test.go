package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// wakeKeys are the keys of wakes; one without a key is its source.
func wakeKeys(wakes []TaskWake) []string {
	list := []string{}
	for _, w := range wakes {
		key := w.Key
		if key == "" {
			key = string(w.Source)
		}
		list = append(list, key)
	}
	return list
}

func TestWakeupsFor(t *testing.T) {
	office := TaskFacts{ID: "t", Office: true, State: TaskStateTodo, StepID: "s", Generation: 4}
	kanban := office
	kanban.Office = false
	type change = func(*TaskFacts)
	with := func(f TaskFacts, changes ...change) TaskFacts {
		for _, c := range changes {
			c(&f)
		}
		return f
	}
	assignee := func(id string) change { return func(f *TaskFacts) { f.AssigneeID = id } }
	state := func(s TaskState) change { return func(f *TaskFacts) { f.State = s } }
	reviewers := func(ids ...string) change { return func(f *TaskFacts) { f.Reviewers = ids } }
	open := func(n int) change { return func(f *TaskFacts) { f.OpenBlockers = n } }
	step := func(id string, actions ...StepAction) change {
		return func(f *TaskFacts) { f.StepID, f.StepActions = id, actions }
	}
	archived := func(f *TaskFacts) { f.Archived = true }
	for _, c := range []struct {
		name          string
		before, after TaskFacts
		by, comment   string
		want          []string
	}{
		{"S5.2 an assignment wakes the assignee", office, with(office, assignee("a")), "", "", []string{"task_assigned:t:a:4"}},
		{"S5.2 so does one when the task is made", TaskFacts{}, with(office, assignee("a")), "", "", []string{"task_assigned:t:a:4"}},
		{"S5.2 it wakes the new one alone", with(office, assignee("a")), with(office, assignee("b")), "", "", []string{"task_assigned:t:b:4"}},
		{"an assignee taken away wakes nobody", with(office, assignee("a")), office, "", "", nil},
		{"nobody is woken who stays", with(office, assignee("a")), with(office, assignee("a")), "", "", nil},
		{"S5.2 moved to In Progress", with(office, assignee("a")), with(office, assignee("a"), state(TaskStateInProgress)), "", "", []string{"task_assigned:t:a:4"}},
		{"moved to In Progress without an assignee", office, with(office, state(TaskStateInProgress)), "", "", nil},
		{"C223 its own move does not wake an agent", with(office, assignee("a")), with(office, assignee("a"), state(TaskStateInProgress)), "a", "", nil},
		{"C223 nor does what it assigns to itself", office, with(office, assignee("a")), "a", "", nil},
		{"another agent's move does", with(office, assignee("a")), with(office, assignee("a"), state(TaskStateInProgress)), "b", "", []string{"task_assigned:t:a:4"}},
		{"S5.2 in review wakes the reviewers", with(office, assignee("a"), reviewers("r", "s")), with(office, assignee("a"), reviewers("r", "s"), state(TaskStateInReview)), "", "",
			[]string{"review:t:r:4", "review:t:s:4"}},
		{"a reviewer who moves it there is not woken", with(office, reviewers("r", "s")), with(office, reviewers("r", "s"), state(TaskStateInReview)), "r", "", []string{"review:t:s:4"}},
		{"one who joins the review is", with(office, reviewers("r"), state(TaskStateInReview)), with(office, reviewers("r", "s"), state(TaskStateInReview)), "", "", []string{"review:t:s:4"}},
		{"one who joins before it is not", office, with(office, reviewers("r")), "", "", nil},
		{"S5.2 back from review is a comment, and no assignment besides", with(office, assignee("a"), state(TaskStateInReview)), with(office, assignee("a"), state(TaskStateInProgress)), "", "c",
			[]string{"comment:c:a"}},
		{"S5.3 no blocker is open any more", with(office, assignee("a"), open(1)), with(office, assignee("a")), "", "", []string{"blockers_resolved:t:4"}},
		{"S5.3 by any cause: also the assignee's own", with(office, assignee("a"), open(1)), with(office, assignee("a")), "a", "", []string{"blockers_resolved:t:4"}},
		{"one of two blockers is left", with(office, assignee("a"), open(2)), with(office, assignee("a"), open(1)), "", "", nil},
		{"nobody has the task", with(office, open(1)), office, "", "", nil},
		{"done wakes nobody about itself", with(office, assignee("a"), reviewers("r")), with(office, assignee("a"), reviewers("r"), state(TaskStateDone)), "", "", nil},
		{"but the end of its last blocker ends the wait of what is queued about it", with(office, assignee("a"), open(1), state(TaskStateDone)), with(office, assignee("a"), state(TaskStateDone)), "", "",
			[]string{"blockers_resolved:t:4"}},
		{"nor does what happens to an archived task", with(office, archived), with(office, archived, assignee("a")), "", "", nil},
		{"S5.1 a Kanban task's assignee is not woken", kanban, with(kanban, assignee("a")), "", "", nil},
		{"S5.1 nor by a move, a review or its blockers", with(kanban, assignee("a"), open(1), reviewers("r")), with(kanban, assignee("a"), state(TaskStateInReview), reviewers("r")), "", "", nil},
		{"S5.1 until a project makes it an office task", with(kanban, assignee("a")), with(office, assignee("a")), "", "", []string{"task_assigned:t:a:4"}},
		{"S5.1 a step's QUEUE_RUN works in any workflow", with(kanban, assignee("a")), with(kanban, assignee("a"), step("go", StepActionQueueRun)), "", "", []string{"queue_run:t:a:go.4"}},
		{"it does not come on top of an assignment", with(office, assignee("a")), with(office, assignee("a"), state(TaskStateInProgress), step("go", StepActionQueueRun)), "", "",
			[]string{"task_assigned:t:a:4"}},
		{"a step's own agent that enters it is not woken", with(kanban, assignee("a")), with(kanban, assignee("a"), step("go", StepActionQueueRun)), "a", "", nil},
		{"AUTO_START_AGENT starts what is made there", TaskFacts{}, with(kanban, assignee("a"), step("go", StepActionAutoStartAgent)), "", "", []string{"queue_run:t:a:go.4"}},
		{"and nothing that comes there later", with(kanban, assignee("a")), with(kanban, assignee("a"), step("go", StepActionAutoStartAgent)), "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := wakeKeys(WakeupsFor(TaskChange{Before: c.before, After: c.after, ByAgentID: c.by, ReturnCommentID: c.comment, EndedBlockers: []string{"x"}}))
			if !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestGenerationsRise(t *testing.T) {
	base := TaskFacts{ID: "t", State: TaskStateTodo, Generation: 7}
	for name, change := range map[string]func(*TaskFacts){
		"assignment": func(f *TaskFacts) { f.AssigneeID = "a" }, "state": func(f *TaskFacts) { f.State = TaskStateDone },
		"blockers": func(f *TaskFacts) { f.OpenBlockers = 1 }, "reviewers": func(f *TaskFacts) { f.Reviewers = []string{"r"} }, "approvers": func(f *TaskFacts) { f.Approvers = []string{"r"} },
	} {
		after := base
		change(&after)
		if got := (TaskChange{Before: base, After: after}).NextGeneration(false); got != 8 {
			t.Errorf("S3.3 %s: generation %d, want 8", name, got)
		}
	}
	if got := (TaskChange{Before: base, After: base}).NextGeneration(false); got != 7 {
		t.Errorf("an edit of the text: generation %d, want 7", got)
	}
	if got := (TaskChange{Before: base, After: base}).NextGeneration(true); got != 8 {
		t.Errorf("S3.3 the end of a blocker or child: generation %d, want 8", got)
	}
}

func TestWakeupsForComment(t *testing.T) {
	office := TaskFacts{ID: "t", Office: true, State: TaskStateTodo, AssigneeID: "a"}
	kanban := office
	kanban.Office = false
	for _, c := range []struct {
		name     string
		task     TaskFacts
		author   string
		mentions []string
		want     []string
		waits    bool // the first has somebody waiting
	}{
		{"the assignee", office, "", nil, []string{"comment:c:a"}, false},
		{"C223 not its own", office, "a", nil, []string{}, false},
		{"another agent's comment", office, "b", nil, []string{"comment:c:a"}, false},
		{"S5.2 the assignee's own mention is its comment, without a window", office, "", []string{"a"}, []string{"comment:c:a"}, true},
		{"others who are mentioned", office, "", []string{"b", "b", "d"}, []string{"comment:c:a", "mention:c:b", "mention:c:d"}, false},
		{"the author mentions itself", office, "b", []string{"b"}, []string{"comment:c:a"}, false},
		{"S5.1 a Kanban task's assignee", kanban, "", nil, []string{}, false},
		{"who is asked for by name on one", kanban, "", []string{"a"}, []string{"mention:c:a"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			wakes := WakeupsForComment(CommentFacts{ID: "c", Task: c.task, AuthorAgentID: c.author, AuthorName: "ann", Body: "x", Mentions: c.mentions})
			if got := wakeKeys(wakes); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if len(wakes) > 0 && wakes[0].PersonWaiting != c.waits {
				t.Errorf("somebody waits: %v", wakes[0].PersonWaiting)
			}
		})
	}
}

func TestChildrenCompletedWake(t *testing.T) {
	parent := TaskFacts{ID: "p", Office: true, State: TaskStateInProgress, AssigneeID: "lead", Generation: 3}
	if got := wakeKeys(ChildrenCompletedWake(parent, 0)); !slices.Equal(got, []string{"children_completed:p:3"}) {
		t.Errorf("S5.3: %v", got)
	}
	ended, kanban := parent, parent
	ended.State, kanban.Office = TaskStateDone, false
	if n := len(ChildrenCompletedWake(parent, 1)) + len(ChildrenCompletedWake(ended, 0)) + len(ChildrenCompletedWake(kanban, 0)); n != 0 {
		t.Errorf("%d wakes for a parent with an open child, one that is done, one that is no office task", n)
	}
}

func TestApprovals(t *testing.T) {
	for _, c := range []struct {
		requires, pending, byAgent bool
		want                       Completion
	}{
		{false, false, true, CompletionDone}, {false, false, false, CompletionDone}, {true, false, true, CompletionAsk}, {true, false, false, CompletionAsk},
		{true, true, true, CompletionRefuse}, {true, true, false, CompletionApprove},
	} {
		if got := Complete(c.requires, c.pending, c.byAgent); got != c.want {
			t.Errorf("S5.4 Complete(%v, %v, %v) = %s, want %s", c.requires, c.pending, c.byAgent, got, c.want)
		}
	}
	open := ApprovalFacts{ID: "x", Status: ApprovalStatusPending, RequestedByID: "a", Approvers: []string{"b"}}
	decided := open
	decided.Status = ApprovalStatusApproved
	for _, c := range []struct {
		facts ApprovalFacts
		agent string
		ok    bool
	}{{open, "", true}, {open, "b", true}, {open, "c", false}, {decided, "", false}, {decided, "b", false}} {
		if got := MayDecide(c.facts, c.agent); (len(got) == 0) != c.ok {
			t.Errorf("S5.4 %q decides %s: %v", c.agent, c.facts.Status, got)
		}
	}
	own := ApprovalFacts{ID: "o", Status: ApprovalStatusPending, RequestedByID: "a", AssigneeID: "b", Approvers: []string{"a", "b", "c"}}
	done := own
	done.Completion = true
	for _, c := range []struct {
		name  string
		facts ApprovalFacts
		agent string
		ok    bool
	}{
		{"who asked does not answer itself", own, "a", false}, {"the assignee answers what another asked", own, "b", true},
		{"nobody approves its own work", done, "b", false}, {"who called its work done does not approve that", done, "a", false},
		{"another approver does", done, "c", true}, {"a person does", done, "", true},
	} {
		if got := MayDecide(c.facts, c.agent); (len(got) == 0) != c.ok {
			t.Errorf("S5.4 %s: %v", c.name, got)
		}
	}
	completion := open
	completion.Completion = true
	for name, got := range map[string][]TaskWake{
		"its answer wakes who asked":    DecisionWake(open, ApprovalStatusApproved, "", ""),
		"a completion's wakes no other": DecisionWake(completion, ApprovalStatusApproved, "", ""),
		"nobody is told its own answer": DecisionWake(open, ApprovalStatusApproved, "", "a"),
	} {
		want := 0
		if name == "its answer wakes who asked" {
			want = 1
		}
		if len(got) != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	office := TaskFacts{ID: "t", Office: true, State: TaskStateInReview}
	asked := ApprovalFacts{ID: "x", RequestedByID: "a", AssigneeID: "d", Approvers: []string{"a", "b", "c", "d"}}
	if got := wakeKeys(ApproverWakes(office, asked, "b")); !slices.Equal(got, []string{"approve:x:c", "approve:x:d"}) {
		t.Errorf("approvers but who acts and who asked: %v", got)
	}
	asked.Completion = true
	if got := wakeKeys(ApproverWakes(office, asked, "")); !slices.Equal(got, []string{"approve:x:b", "approve:x:c"}) {
		t.Errorf("approvers of a completion, but who asked and whose work it is: %v", got)
	}
}

func TestIsOffice(t *testing.T) {
	for _, c := range []struct {
		project, office bool
		kind            WorkflowKind
		want            bool
	}{
		{false, false, WorkflowKindKanban, false}, {true, false, WorkflowKindKanban, true}, {false, true, WorkflowKindOffice, true},
		{false, false, WorkflowKindOffice, false}, {false, false, WorkflowKindRoutine, true}, {false, true, WorkflowKindKanban, true},
	} {
		if got := IsOffice(c.project, c.office, c.kind); got != c.want {
			t.Errorf("S5.1 IsOffice(%v, %v, %s) = %v", c.project, c.office, c.kind, got)
		}
	}
}

func TestBlockerCycle(t *testing.T) {
	blockedBy := map[string][]string{"b": {"c"}, "c": {"d", "e"}, "e": {"a"}}
	for _, c := range []struct {
		blockers []string
		want     []string
	}{
		{[]string{"d"}, nil}, {[]string{"a"}, []string{"a", "a"}}, {[]string{"d", "b"}, []string{"a", "b", "c", "e", "a"}}, {nil, nil},
	} {
		if got := BlockerCycle("a", c.blockers, blockedBy); !slices.Equal(got, c.want) {
			t.Errorf("S5.3 blockers %v: %v, want %v", c.blockers, got, c.want)
		}
	}
}

func TestAdmitTasks(t *testing.T) {
	assigned := BasisFacts{TaskBound: true, Basis: WakeBasisAssignee, TaskState: TaskStateTodo, Assigned: true}
	gone := assigned
	gone.Assigned = false
	cancelled := assigned
	cancelled.TaskState = TaskStateCancelled
	comment := assigned
	comment.Basis = ""
	assignment, remark := RequestFacts{WakeupSourceTaskAssigned, assigned}, RequestFacts{WakeupSourceComment, comment}
	explicit := RequestFacts{WakeupSourceTaskAssigned, BasisFacts{TaskBound: true, Basis: WakeBasisExplicit, TaskState: TaskStateTodo}}
	lost := RequestFacts{WakeupSourceTaskAssigned, gone}
	idle := AdmitFacts{AgentStatus: AgentStatusIdle, WakeClass: WakeClassEvent}
	for _, c := range []struct {
		name   string
		change func(*AdmitFacts)
		end    EndReason
		park   ParkedReason
		stale  int
	}{
		{"an assignment is launched", func(f *AdmitFacts) { f.Requests = []RequestFacts{assignment} }, "", "", 0},
		{"C82 the last basis is lost", func(f *AdmitFacts) { f.Requests = []RequestFacts{lost} }, EndReasonAssigneeChanged, "", 1},
		{"S3.8 the rest of a run goes on", func(f *AdmitFacts) { f.Requests = []RequestFacts{lost, explicit} }, "", "", 1},
		{"S8.3 a retry for a former assignee", func(f *AdmitFacts) { f.Requests, f.Retry = []RequestFacts{lost}, true }, EndReasonRetryStaleAssignee, "", 1},
		{"S8.3 the retry of a cancelled task", func(f *AdmitFacts) {
			f.Requests, f.Retry = []RequestFacts{{WakeupSourceTaskAssigned, cancelled}}, true
		}, EndReasonRetryTaskCancelled, "", 1},
		{"S6.2 a blocked assignment is parked", func(f *AdmitFacts) { f.Requests, f.TaskBlocked = []RequestFacts{assignment}, true }, "", ParkedReasonTaskBlocked, 0},
		{"S5.3 with another event it is not", func(f *AdmitFacts) { f.Requests, f.TaskBlocked = []RequestFacts{assignment, remark}, true }, "", "", 0},
		{"one asked for by name is not", func(f *AdmitFacts) { f.Requests, f.TaskBlocked = []RequestFacts{explicit}, true }, "", "", 0},
		{"C86 the task is held", func(f *AdmitFacts) { f.Requests, f.CheckoutHeld = []RequestFacts{assignment}, true }, EndReasonCheckoutHeld, "", 0},
		{"C219 a paused agent goes before all of it", func(f *AdmitFacts) { f.Requests, f.AgentStatus = []RequestFacts{lost}, AgentStatusPaused }, EndReasonAgentInactive, "", 0},
		{"stale goes before blocked and held", func(f *AdmitFacts) {
			f.Requests, f.TaskBlocked, f.CheckoutHeld = []RequestFacts{lost}, true, true
		}, EndReasonAssigneeChanged, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := idle
			c.change(&facts)
			a := Admit(facts)
			var end EndReason
			if a.Settle != nil {
				end = a.Settle.Reason
			}
			if end != c.end || a.Park != c.park || len(a.Stale) != c.stale {
				t.Errorf("got %s %s %v", end, a.Park, a.Stale)
			}
		})
	}
	facts := idle
	facts.Requests, facts.TaskBlocked, facts.CheckoutHeld = []RequestFacts{assignment}, true, true
	if a := AdmitStart(facts); !a.Launches() {
		t.Errorf("S6.2: blockers and checkout are judged again at the start: %+v", a)
	}
	facts.Requests = []RequestFacts{lost}
	if a := AdmitStart(facts); a.Settle == nil {
		t.Error("S6.2: staleness is not judged again at the start")
	}
}

func TestReassignCancels(t *testing.T) {
	for _, c := range []struct {
		source WakeupSource
		basis  WakeBasis
		retry  bool
		want   EndReason
	}{
		{WakeupSourceTaskAssigned, WakeBasisAssignee, false, EndReasonAssigneeChanged},
		{WakeupSourceTaskAssigned, WakeBasisAssignee, true, EndReasonRetryStaleAssignee},
		{WakeupSourceComment, "", false, ""},
		{WakeupSourceComment, "", true, EndReasonRetryStaleAssignee},
		{WakeupSourceTaskAssigned, WakeBasisReviewer, true, ""},
		{WakeupSourceTaskAssigned, WakeBasisExplicit, false, ""},
	} {
		if got := ReassignCancels(c.source, c.basis, c.retry); got != c.want {
			t.Errorf("S5.5 %s %s retry %v: %q, want %q", c.source, c.basis, c.retry, got, c.want)
		}
	}
}

func TestParseActions(t *testing.T) {
	list := func(actions ...any) map[string]any { return map[string]any{"actions": actions} }
	for _, c := range []struct {
		name      string
		result    map[string]any
		aboutTask bool
		want      []string // the problem of each
	}{
		{"none", map[string]any{"summary": "x"}, true, nil},
		{"no list", map[string]any{"actions": "x"}, true, []string{"actions is not a list"}},
		{"comment", list(map[string]any{"type": "comment", "body": "x"}), true, []string{""}},
		{"an empty comment", list(map[string]any{"type": "comment"}), true, []string{"body is missing"}},
		{"S7.5 unknown", list(map[string]any{"type": "dance"}), true, []string{`there is no action "dance"`}},
		{"no type", list(map[string]any{}), true, []string{"type is missing"}},
		{"about a task without one", list(map[string]any{"type": "complete_task"}, map[string]any{"type": "self_wake", "reason": "x"}), false, []string{"the run has no task", ""}},
		{"a decision without one", list(map[string]any{"type": "decide_approval", "approval_id": "x"}), false, []string{"approved is missing"}},
		{"a long type", list(map[string]any{"type": strings.Repeat("d", 5000)}), true, []string{`there is no action "` + strings.Repeat("d", 40) + `…"`}},
		{"a long state", list(map[string]any{"type": "move_task", "state": strings.Repeat("d", 5000)}), true,
			[]string{fmt.Sprintf("state is %q, want one of %v", strings.Repeat("d", 40)+"…", taskStateValues)}},
		{"what is longer than an id", list(map[string]any{"type": "create_subtask", "title": "x", "assignee": strings.Repeat("a", 65)},
			map[string]any{"type": "create_subtask", "title": "x", "blocked_by": []any{"#1", strings.Repeat("b", 65)}}), true,
			[]string{`assignee is no id: "` + strings.Repeat("a", 40) + `…"`, `blocked_by is no id: "` + strings.Repeat("b", 40) + `…"`}},
		{"many blockers", list(map[string]any{"type": "create_subtask", "title": "x", "blocked_by": slices.Repeat([]any{"#1"}, 101)}), true,
			[]string{"blocked_by has 101 ids, at most 100 may be named"}},
		{"a long reason", list(map[string]any{"type": "self_wake", "reason": strings.Repeat("r", 64<<10+1)}), false, []string{"reason has more than 64 KiB"}},
		{"a long payload", list(map[string]any{"type": "self_wake", "reason": "r", "payload": map[string]any{"x": strings.Repeat("p", 32<<10)}}), false,
			[]string{"payload has more than 32 KiB of JSON: keep the rest where the next run finds it"}},
		{"just fitting ones", list(map[string]any{"type": "self_wake", "reason": strings.Repeat("r", 64<<10), "payload": map[string]any{"x": strings.Repeat("p", 32<<10-8)}}), false, []string{""}},
		{"no object", list("x"), true, []string{"it cannot be read: json: cannot unmarshal string into Go value of type domain.wireAction"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, a := range ParseActions(c.result, c.aboutTask) {
				got = append(got, a.Problem)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	many := make([]any, 60)
	for i := range many {
		many[i] = map[string]any{"type": "self_wake", "reason": "x"}
	}
	if got := ParseActions(list(many...), true); len(got) != maxActions+1 || got[maxActions].Problem == "" {
		t.Errorf("%d actions of 60", len(got))
	}
}

// FuzzParseActions: whatever an agent answers, each member of its list gives one action, and none without a problem lacks
// what it needs.
func FuzzParseActions(f *testing.F) {
	f.Add(`{"actions":[{"type":"comment","body":"x"},{"type":"move_task","state":"DONE"},{"type":"create_subtask","title":"x","blocked_by":["#1"]}]}`, true)
	f.Add(`{"actions":[{"type":"decide_approval","approval_id":"x","approved":false},null,3,"x",[]]}`, false)
	f.Add(`{"actions":{}}`, true)
	f.Fuzz(func(t *testing.T, text string, aboutTask bool) {
		var result struct{ Result map[string]any }
		if decodeObject([]byte(`{"result":`+text+`}`), &result) != nil {
			return
		}
		actions := ParseActions(result.Result, aboutTask)
		if list, ok := result.Result["actions"].([]any); ok && len(list) <= maxActions && len(actions) != len(list) {
			t.Fatalf("%d actions of %d", len(actions), len(list))
		}
		for _, a := range actions {
			if a.Problem == "" && (a.Type == "" || slices.Contains(taskActions, a.Type) && !aboutTask || a.Type == ActionComment && a.Body == "") {
				t.Fatalf("no problem with %+v", a)
			}
		}
	})
}

func TestAMentionKeepsTheWholeComment(t *testing.T) {
	body := strings.Repeat("x", 64<<10)
	wakes := WakeupsForComment(CommentFacts{ID: "c", Task: TaskFacts{ID: "t"}, AuthorName: "ann", Body: body, Mentions: []string{"b"}})
	if len(wakes) != 1 {
		t.Fatalf("%d wakes", len(wakes))
	}
	if got := wakes[0].Payload.(*UserPayload).Context["comment"]; got != body {
		t.Errorf("it keeps %d bytes of %d", len(got.(string)), len(body))
	}
}

// Why a comment does not wake the assignee, and that nothing is sent then.
func TestWhomACommentDoesNotWake(t *testing.T) {
	open := TaskFacts{ID: "tsk_1", Office: true, State: TaskStateInProgress, AssigneeID: "agt_1"}
	with := func(change func(*TaskFacts)) TaskFacts {
		f := open
		change(&f)
		return f
	}
	for name, row := range map[string]struct {
		task   TaskFacts
		author string
		want   NotWoken
	}{
		"a person's, on an open task":           {open, "", ""},
		"another agent's, on an open task":      {open, "agt_2", ""},
		"the assignee's own":                    {open, "agt_1", NotWokenAuthor},
		"a person's, on a task that is done":    {with(func(f *TaskFacts) { f.State = TaskStateDone }), "", NotWokenTaskEnded},
		"a person's, on a cancelled task":       {with(func(f *TaskFacts) { f.State = TaskStateCancelled }), "", NotWokenTaskEnded},
		"a person's, on an archived task":       {with(func(f *TaskFacts) { f.Archived = true }), "", NotWokenTaskEnded},
		"another agent's, on a task done":       {with(func(f *TaskFacts) { f.State = TaskStateDone }), "agt_2", NotWokenTaskEnded},
		"its assignee's, on a task done":        {with(func(f *TaskFacts) { f.State = TaskStateDone }), "agt_1", NotWokenAuthor},
		"a person's, on nobody's task done":     {with(func(f *TaskFacts) { f.State, f.AssigneeID = TaskStateDone, "" }), "", NotWokenNoAssignee},
		"a person's, on nobody's task":          {with(func(f *TaskFacts) { f.AssigneeID = "" }), "", NotWokenNoAssignee},
		"a person's, on a task of a mere board": {with(func(f *TaskFacts) { f.Office = false }), "", NotWokenNotOffice},
	} {
		c := CommentFacts{ID: "cmt_1", Task: row.task, AuthorAgentID: row.author, Body: "look"}
		if got := c.NotWoken(); got != row.want || got != "" && got.Text() == "" {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
		if sent := len(WakeupsForComment(c)); (sent > 0) != (row.want == "") {
			t.Errorf("%s: %d wakes", name, sent)
		}
	}
}
