package domain

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Decisions as a whole: what each consists of, and every part of the conditions that lead to it.

func codesOf(problems []FieldError) (list []string) {
	for _, p := range problems {
		list = append(list, fmt.Sprint(strings.Join(p.Field, "."), " ", p.Code))
	}
	return list
}

func wantCodes(t *testing.T, what string, problems []FieldError, want ...string) {
	t.Helper()
	if got := codesOf(problems); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// SPEC S6.5: whom a budget is for.
func TestABudgetIsForItsSubjectAlone(t *testing.T) {
	charge := BudgetCharge{WorkspaceID: "w", AgentID: "a", ProjectID: "p"}
	for kind, subject := range map[BudgetSubjectKind]string{BudgetSubjectKindWorkspace: "w", BudgetSubjectKindAgent: "a", BudgetSubjectKindProject: "p"} {
		for _, id := range []string{"w", "a", "p", "other"} {
			if got := (Budget{SubjectKind: kind, SubjectID: id}).Applies(charge); got != (id == subject) {
				t.Errorf("a budget of %s %s applies: %t", kind, id, got)
			}
		}
	}
	if (Budget{SubjectKind: BudgetSubjectKindProject}).Applies(BudgetCharge{WorkspaceID: "w", AgentID: "a"}) {
		t.Error("a budget of no project applies to a run without one")
	}
}

func TestWhenABudgetHasMoreRoomThanBefore(t *testing.T) {
	month, next := instantOf(t, "2026-11-01T00:00:00Z"), instantOf(t, "2026-12-01T00:00:00Z")
	before := Budget{OnExceed: BudgetActionPauseAgent, Limit: 100, Spent: 60, Reserved: 20, PeriodStart: month} // 20 are left
	for name, c := range map[string]struct {
		change func(before, after *Budget)
		want   bool
	}{
		"nothing changed":                      {func(_, _ *Budget) {}, false},
		"a higher limit":                       {func(_, b *Budget) { b.Limit = 101 }, true},
		"a lower limit":                        {func(_, b *Budget) { b.Limit = 99 }, false},
		"a hold that ended":                    {func(_, b *Budget) { b.Reserved = 19 }, true},
		"less was spent":                       {func(_, b *Budget) { b.Spent = 59 }, true},
		"more was spent":                       {func(_, b *Budget) { b.Spent = 61 }, false},
		"a new period with the same room":      {func(_, b *Budget) { b.PeriodStart = next }, true},
		"a new period without room":            {func(_, b *Budget) { b.PeriodStart, b.Spent = next, 80 }, false},
		"more room, and still none":            {func(a, b *Budget) { a.Spent, b.Spent = 90, 80 }, false},
		"more room, one millionth":             {func(a, b *Budget) { a.Spent, b.Spent = 90, 79 }, true},
		"it only tells from now on":            {func(_, b *Budget) { b.OnExceed, b.Limit = BudgetActionNotify, 1 }, true},
		"it only told, and pauses from now on": {func(a, b *Budget) { a.OnExceed, b.Limit = BudgetActionNotify, 200 }, false},
		"it only told, and only tells":         {func(a, b *Budget) { a.OnExceed, b.OnExceed = BudgetActionNotify, BudgetActionNotify }, false},
	} {
		was, is := before, before
		c.change(&was, &is)
		if got := is.Frees(was); got != c.want {
			t.Errorf("%s: it frees: %t", name, got)
		}
	}
}

func TestWhatARunIsExpectedToCost(t *testing.T) {
	for name, c := range map[string]struct {
		ofAgent, ofWorkspace []Money
		want                 Money
		known                bool
	}{
		"as its agent's last ones":          {[]Money{2, 4}, []Money{100}, 3, true},
		"as its agent's only one":           {[]Money{2}, []Money{100}, 2, true},
		"as the workspace's, for a new one": {nil, []Money{10, 20}, 15, true},
		"as the workspace's only one":       {nil, []Money{10}, 10, true},
		"nobody knows":                      {nil, nil, 0, false},
	} {
		if got, known := ExpectedCost(c.ofAgent, c.ofWorkspace); got != c.want || known != c.known {
			t.Errorf("%s: %v, %t", name, got, known)
		}
	}
}

func TestALedgerReservesOfEachBudgetThatApplies(t *testing.T) {
	ledger := BudgetLedger{Expected: map[string]Money{"known": 7}, Budgets: []Budget{
		{ID: "workspace", SubjectKind: BudgetSubjectKindWorkspace, SubjectID: "w", Limit: 100, Spent: 30, OnExceed: BudgetActionPauseAgent},
		{ID: "other", SubjectKind: BudgetSubjectKindAgent, SubjectID: "other", Limit: 100, OnExceed: BudgetActionPauseAgent},
		{ID: "telling", SubjectKind: BudgetSubjectKindWorkspace, SubjectID: "w", Limit: 100, OnExceed: BudgetActionNotify},
		{ID: "spent", SubjectKind: BudgetSubjectKindWorkspace, SubjectID: "w", Limit: 10, Spent: 30, OnExceed: BudgetActionPauseAgent},
	}}
	tried := ledger.Clone()
	if got := tried.Reserve(BudgetCharge{WorkspaceID: "w", AgentID: "known"}); !slices.Equal(got, []BudgetHold{{"workspace", 7}, {"telling", 7}, {"spent", 7}}) {
		t.Errorf("of a run whose cost is known it holds %v", got)
	}
	if ledger.Budgets[0].Reserved != 0 || tried.Budgets[0].Reserved != 7 || tried.Budgets[1].Reserved != 0 {
		t.Errorf("reserved are %v, and in the copy %v", ledger.Budgets[0].Reserved, tried.Budgets[0].Reserved)
	}
	if got := tried.Reserve(BudgetCharge{WorkspaceID: "w", AgentID: "new"}); !slices.Equal(got, []BudgetHold{{"workspace", 63}, {"telling", 0}, {"spent", 0}}) {
		t.Errorf("of a run of unknown cost it holds %v", got)
	}
	if answer := tried.Admit(BudgetCharge{WorkspaceID: "w", AgentID: "known"}); answer.Blocked == nil || answer.Blocked.ID != "spent" {
		t.Errorf("what is spent does not hold a run up: %+v", answer)
	}
	tried.Budgets = tried.Budgets[1:2]
	if answer := tried.Admit(BudgetCharge{WorkspaceID: "w", AgentID: "known"}); answer.Blocked != nil || answer.Reserved != nil {
		t.Errorf("another agent's budget holds a run up: %+v", answer)
	}
	if want := (Settlement{Run: RunStatusFinished, Outcome: "budget_blocked", Request: WakeupStatusSkipped, Reason: EndReasonBudgetBlocked, Activity: ActivityCodeWakeupBudgetBlocked}); BudgetBlocked != want {
		t.Errorf("a run that a budget blocks ends as %+v", BudgetBlocked)
	}
}

// SPEC S7.6: the sealed values of each kind of executor, which are masked in all that it says.
func TestTheSealedValuesOfEachKindOfExecutor(t *testing.T) {
	values := []SealedValue{{Name: "KEY", Sealed: "s1"}}
	for name, c := range map[string]struct {
		spec *ExecutorSpec
		want []SealedValue
	}{
		"none":                      {nil, nil},
		"a command":                 {&ExecutorSpec{Command: &CommandSpec{Environment: values}}, values},
		"a protocol's agent":        {&ExecutorSpec{ACP: &ACPSpec{Environment: values}}, values},
		"a service":                 {&ExecutorSpec{HTTP: &HTTPSpec{Headers: values}}, values},
		"a service that signs":      {&ExecutorSpec{HTTP: &HTTPSpec{Headers: values, Secret: "s2"}}, append(slices.Clone(values), SealedValue{Name: HTTPSecretName, Sealed: "s2"})},
		"a worker's command":        {&ExecutorSpec{Pull: &PullSpec{Command: &CommandSpec{Environment: values}}}, values},
		"a worker that has its own": {&ExecutorSpec{Pull: &PullSpec{}}, nil},
		"echo":                      {&ExecutorSpec{Echo: &EchoSpec{}}, nil},
	} {
		got := c.spec.Sealed("agt_1")
		if got.Holder != "agt_1" || !slices.Equal(got.Values, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestTheWorkflowsThatTheSchedulerMakes(t *testing.T) {
	none := []StepAction{}
	if got, want := RoutineWorkflow(), (WorkflowPlan{Name: "Routine", Kind: WorkflowKindRoutine, System: true, Hidden: true, Steps: []StepPlan{
		{"In progress", TaskStateInProgress, []StepAction{StepActionAutoStartAgent, StepActionAutoComplete}}, {"Done", TaskStateDone, none}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("of routines: %+v", got)
	}
	if got, want := OfficeWorkflow(), (WorkflowPlan{Name: "Office", Kind: WorkflowKindOffice, System: true, Steps: []StepPlan{
		{"To do", TaskStateTodo, none}, {"In progress", TaskStateInProgress, none}, {"In review", TaskStateInReview, none}, {"Blocked", TaskStateBlocked, none},
		{"Done", TaskStateDone, none}, {"Cancelled", TaskStateCancelled, none}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("of the office: %+v", got)
	}
}

func TestWhatIsWrongWithAWorkflow(t *testing.T) {
	steps := func(n int) []StepPlan { return slices.Repeat([]StepPlan{{Name: " Step "}}, n) }
	plan, problems := WorkflowPlan{Name: " Mine ", Steps: steps(50)}.Check()
	wantCodes(t, "the most steps", problems)
	if plan.Name != "Mine" || plan.Steps[49].Name != "Step" {
		t.Errorf("the names are %q and %q", plan.Name, plan.Steps[49].Name)
	}
	_, problems = WorkflowPlan{Name: "Mine", Steps: steps(51)}.Check()
	wantCodes(t, "one step more", problems, "steps TOO_LONG")
	_, problems = WorkflowPlan{Name: "Mine"}.Check()
	wantCodes(t, "no step", problems, "steps REQUIRED")
	_, problems = WorkflowPlan{Name: "Mine", Kind: WorkflowKindRoutine, Steps: steps(1)}.Check()
	wantCodes(t, "a second one of routines", problems, "kind INVALID")
	_, problems = WorkflowPlan{Name: "", Steps: []StepPlan{{Name: "a"}, {Name: ""}}}.Check()
	wantCodes(t, "no names", problems, "name REQUIRED", "steps.1.name REQUIRED")
}

// SPEC S6.2: what each guard makes of a run, as a whole.
func TestWhatTheGuardsDecideAsAWhole(t *testing.T) {
	assignment := RequestFacts{Source: WakeupSourceTaskAssigned, Basis: BasisFacts{TaskBound: true, Basis: WakeBasisAssignee, Assigned: true, TaskState: TaskStateTodo}}
	lost := assignment
	lost.Basis.Assigned = false
	comment := RequestFacts{Source: WakeupSourceComment, Basis: BasisFacts{TaskBound: true, Assigned: true, TaskState: TaskStateTodo}}
	stale := []StaleRequests{{WakeupSourceTaskAssigned, WakeBasisAssignee, EndReasonAssigneeChanged}}
	settle := func(s Settlement) Admission { return Admission{Settle: &s} }
	idle := settle(Settlement{Run: RunStatusFinished, Outcome: "idle_skipped", Request: WakeupStatusFinished, Reason: EndReasonIdleSkipped, Activity: ActivityCodeWakeupIdleSkipped})
	inactive := settle(Settlement{Run: RunStatusFinished, Outcome: "agent_inactive", Request: WakeupStatusFinished, Reason: EndReasonAgentInactive, Activity: ActivityCodeWakeupAgentInactive})
	held := Settlement{Run: RunStatusFinished, Outcome: "checkout_held", Request: WakeupStatusSkipped, Reason: EndReasonCheckoutHeld, Activity: ActivityCodeWakeupCheckoutHeld}
	gone := Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: EndReasonAssigneeChanged, Activity: ActivityCodeWakeupStaleCancelled}
	retried := gone
	retried.Reason, retried.Activity = EndReasonRetryStaleAssignee, ActivityCodeWakeupRetryCancelled
	for name, c := range map[string]struct {
		facts AdmitFacts
		want  Admission
	}{
		"a deleted agent":  {AdmitFacts{AgentDeleted: true, CancelRequested: true}, settle(Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: EndReasonAgentDeleted, Activity: ActivityCodeWakeupStaleCancelled})},
		"a cancelled run":  {AdmitFacts{CancelRequested: true, AgentStatus: AgentStatusPaused}, settle(Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: EndReasonCancelledByUser, Activity: ActivityCodeRunCancelled})},
		"a paused agent":   {AdmitFacts{AgentStatus: AgentStatusPaused}, inactive},
		"a stopped agent":  {AdmitFacts{AgentStatus: AgentStatusStopped}, inactive},
		"nothing to do":    {AdmitFacts{WakeClass: WakeClassPeriodic, SkipIdleWakeups: true}, idle},
		"something to do":  {AdmitFacts{WakeClass: WakeClassPeriodic, SkipIdleWakeups: true, ActionableTasks: 1}, Admission{}},
		"all are stale":    {AdmitFacts{Requests: []RequestFacts{lost}}, Admission{Settle: &gone, Stale: stale}},
		"a stale retry":    {AdmitFacts{Requests: []RequestFacts{lost}, Retry: true}, Admission{Settle: &retried, Stale: []StaleRequests{{WakeupSourceTaskAssigned, WakeBasisAssignee, EndReasonRetryStaleAssignee}}}},
		"one is left":      {AdmitFacts{Requests: []RequestFacts{lost, comment}}, Admission{Stale: stale}},
		"a blocked task":   {AdmitFacts{Requests: []RequestFacts{assignment, lost}, TaskBlocked: true}, Admission{Park: ParkedReasonTaskBlocked, Stale: stale}},
		"a comment on it":  {AdmitFacts{Requests: []RequestFacts{assignment, comment}, TaskBlocked: true}, Admission{}},
		"blocked, no task": {AdmitFacts{TaskBlocked: true}, Admission{}},
		"another has it":   {AdmitFacts{Requests: []RequestFacts{comment, lost}, CheckoutHeld: true}, Admission{Settle: &held, Stale: stale}},
	} {
		got := Admit(c.facts)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v (%+v), want %+v (%+v)", name, got, got.Settle, c.want, c.want.Settle)
		}
		if launches := c.want.Settle == nil && c.want.Park == "" && c.want.Stale == nil; got.Launches() != launches {
			t.Errorf("%s: it launches: %t", name, got.Launches())
		}
	}
	for reason, want := range map[EndReason]EndReason{EndReasonAssigneeChanged: EndReasonRetryStaleAssignee, EndReasonTaskCancelled: EndReasonRetryTaskCancelled, EndReasonAgentDeleted: EndReasonAgentDeleted} {
		if got := RetryReason(reason, true); got != want {
			t.Errorf("%s of a retry is %s", reason, got)
		}
		if got := RetryReason(reason, false); got != reason {
			t.Errorf("%s of no retry is %s", reason, got)
		}
		code := ActivityCodeWakeupRetryCancelled
		if want == reason {
			code = ActivityCodeWakeupStaleCancelled
		}
		if got := StaleActivity(want); got != code {
			t.Errorf("%s is told as %s", want, got)
		}
	}
}

func TestTheErrorThatAnAgentReports(t *testing.T) {
	for name, c := range map[string]struct {
		object map[string]any
		want   string
	}{
		"none":                                 {map[string]any{}, ""},
		"a text":                               {map[string]any{"error": "broken"}, "broken"},
		"an object":                            {map[string]any{"error": map[string]any{"code": "E1"}}, `{"code":"E1"}`},
		"what cannot be JSON":                  {map[string]any{"error": 1i}, "(0+1i)"},
		"beside a summary it is none":          {map[string]any{"error": "broken", "summary": "done"}, ""},
		"beside an empty summary it is one":    {map[string]any{"error": "broken", "summary": ""}, "broken"},
		"beside a result it is none":           {map[string]any{"error": "broken", "result": 1.0}, ""},
		"null is none":                         {map[string]any{"error": nil, "is_error": false}, ""},
		"with is_error beside a summary it is": {map[string]any{"error": "broken", "is_error": true, "summary": "done"}, "broken"},
		"is_error with the reason in result":   {map[string]any{"is_error": true, "result": "no credit"}, "no credit"},
		"is_error with the reason in subtype":  {map[string]any{"is_error": true, "result": "", "subtype": "error_max_turns"}, "error_max_turns"},
		"is_error without a reason":            {map[string]any{"is_error": true}, "the agent gave no reason"},
		"is_error in words":                    {map[string]any{"is_error": "true", "result": "fine"}, ""},
	} {
		if got := ReportedError(c.object); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhichReasonsLeaveATaskOpenByAWord(t *testing.T) {
	for reason, want := range map[LeftOpen]bool{"": false, LeftOpenNoStep: false, LeftOpenEnded: false, LeftOpenAssignee: false, LeftOpenWord: true, LeftOpenState: true,
		LeftOpenBlocker: true, LeftOpenApproval: true, LeftOpenMore: true} {
		if got := reason.Explicit(); got != want {
			t.Errorf("%q is explicit: %t", reason, got)
		}
	}
}

// SPEC S7.4: what becomes of an accepted attempt whose time is up.
func TestAfterTheTimeOfAService(t *testing.T) {
	for _, c := range []struct {
		asked, cancel bool
		grace         time.Duration
		want          Fate
	}{
		{false, false, 1, FateAsk}, {false, true, 1, FateAsk}, {false, false, 0, FateRetry}, {false, true, 0, FateCancel}, {true, false, time.Minute, FateRetry}, {true, true, time.Minute, FateCancel},
	} {
		if got := AfterServiceTime(c.asked, c.cancel, c.grace); got != c.want {
			t.Errorf("asked %t, cancelled %t, grace %v: %s, want %s", c.asked, c.cancel, c.grace, got, c.want)
		}
	}
	minute := time.Minute
	if got := (&HTTPSpec{}).EndGrace(); got != DefaultServiceGrace {
		t.Errorf("without a grace of its own it has %v", got)
	}
	if got := (&HTTPSpec{Grace: &minute}).EndGrace(); got != minute {
		t.Errorf("with one it has %v", got)
	}
}

func TestWhoMayDecideAndWhoIsAsked(t *testing.T) {
	approval := ApprovalFacts{ID: "apr_1", Status: ApprovalStatusPending, RequestedByID: "asker", AssigneeID: "worker", Approvers: []string{"judge", "asker", "worker"}}
	done, completion := approval, approval
	done.Status, completion.Completion = ApprovalStatusApproved, true
	wantCodes(t, "what is decided", MayDecide(done, ""), "approvalId INVALID_STATE")
	wantCodes(t, "a person", MayDecide(approval, ""))
	wantCodes(t, "an approver", MayDecide(approval, "judge"))
	wantCodes(t, "no approver", MayDecide(approval, "other"), "agentId INVALID")
	wantCodes(t, "who asked", MayDecide(approval, "asker"), "agentId INVALID")
	wantCodes(t, "the assignee about something else", MayDecide(approval, "worker"))
	wantCodes(t, "the assignee about its own work", MayDecide(completion, "worker"), "agentId INVALID")
	people := completion
	people.RequestedByID, people.AssigneeID = "", ""
	wantCodes(t, "a person about what people asked", MayDecide(people, ""))

	task := TaskFacts{ID: "tsk_1", Office: true, State: TaskStateInReview}
	wake := TaskWake{AgentID: "judge", Source: WakeupSourceTaskAssigned, Basis: WakeBasisApprover, Reason: "approval wanted",
		Payload: &TaskPayload{TaskID: "tsk_1", Basis: WakeBasisApprover}, Key: "approve:apr_1:judge"}
	if got := ApproverWakes(task, approval, "worker"); !reflect.DeepEqual(got, []TaskWake{wake}) {
		t.Errorf("called are %+v", got)
	}
	kanban, over := task, task
	kanban.Office, over.State = false, TaskStateDone
	for name, f := range map[string]TaskFacts{"a Kanban task": kanban, "a task that is over": over} {
		if got := ApproverWakes(f, approval, ""); got != nil {
			t.Errorf("of %s are called %+v", name, got)
		}
	}
	decided := TaskWake{AgentID: "asker", Source: WakeupSourceApprovalResolved, Reason: "approval decided", Key: "approval:apr_1",
		Payload: &ApprovalPayload{ApprovalID: "apr_1", Status: ApprovalStatusRejected, DecisionNote: "no"}}
	if got := DecisionWake(approval, ApprovalStatusRejected, "no", ""); !reflect.DeepEqual(got, []TaskWake{decided}) {
		t.Errorf("the decision wakes %+v", got)
	}
	if DecisionWake(completion, ApprovalStatusRejected, "no", "") != nil || DecisionWake(people, ApprovalStatusApproved, "", "") != nil || DecisionWake(approval, ApprovalStatusApproved, "", "asker") != nil {
		t.Error("a decision wakes who is not to be woken")
	}
}

// SPEC S5.2, S5.3: the wakes of a task's changes, as a whole.
func TestTheWakesOfATaskAsAWhole(t *testing.T) {
	task := TaskFacts{ID: "t", Office: true, State: TaskStateTodo, StepID: "s", AssigneeID: "a", Generation: 4}
	with := func(change func(*TaskFacts)) TaskFacts { f := task; change(&f); return f }
	assigned := TaskWake{AgentID: "a", Source: WakeupSourceTaskAssigned, Basis: WakeBasisAssignee, Reason: "task assigned", Payload: &TaskPayload{TaskID: "t", Basis: WakeBasisAssignee}, Key: "task_assigned:t:a:4"}
	started := assigned
	started.PersonWaiting = true
	back := TaskWake{AgentID: "a", Source: WakeupSourceComment, PersonWaiting: true, Reason: "comment", Payload: &CommentPayload{TaskID: "t", CommentID: "c"}, Key: "comment:c:a"}
	explicit := TaskWake{AgentID: "a", Source: WakeupSourceTaskAssigned, Basis: WakeBasisExplicit, Reason: "step entered", Payload: &TaskPayload{TaskID: "t", Basis: WakeBasisExplicit}, Key: "queue_run:t:a:go.4"}
	review := TaskWake{AgentID: "r", Source: WakeupSourceTaskAssigned, Basis: WakeBasisReviewer, Reason: "review wanted", Payload: &TaskPayload{TaskID: "t", Basis: WakeBasisReviewer}, Key: "review:t:r:4"}
	unblocked := func(blockers ...string) TaskWake {
		return TaskWake{AgentID: "a", Source: WakeupSourceTaskBlockersResolved, Reason: "blockers resolved", Payload: &BlockersPayload{TaskID: "t", ResolvedBlockerIDs: append([]string{}, blockers...)}, Key: "blockers_resolved:t:4"}
	}
	progress := func(f *TaskFacts) { f.State = TaskStateInProgress }
	enter := func(actions ...StepAction) func(*TaskFacts) {
		return func(f *TaskFacts) { f.Office, f.StepID, f.StepActions = false, "go", actions }
	}
	kanban := with(func(f *TaskFacts) { f.Office = false })
	reviewed := with(func(f *TaskFacts) { f.State = TaskStateInReview })
	for name, c := range map[string]struct {
		change TaskChange
		want   []TaskWake
	}{
		"an assignment":                         {TaskChange{Before: with(func(f *TaskFacts) { f.AssigneeID = "" }), After: task}, []TaskWake{assigned}},
		"a task that is made in progress":       {TaskChange{After: with(progress)}, []TaskWake{assigned}},
		"a person starts it":                    {TaskChange{Before: task, After: with(progress)}, []TaskWake{started}},
		"an agent starts it":                    {TaskChange{Before: task, After: with(progress), ByAgentID: "b"}, []TaskWake{assigned}},
		"it stays in progress":                  {TaskChange{Before: with(progress), After: with(progress)}, nil},
		"a person sends it back with a comment": {TaskChange{Before: reviewed, After: with(progress), ReturnCommentID: "c"}, []TaskWake{back}},
		"and without one":                       {TaskChange{Before: reviewed, After: with(progress)}, []TaskWake{started}},
		"a comment of another move":             {TaskChange{Before: task, After: with(progress), ReturnCommentID: "c"}, []TaskWake{started}},
		"a review":                              {TaskChange{Before: task, After: with(func(f *TaskFacts) { f.State, f.Reviewers = TaskStateInReview, []string{"r"} })}, []TaskWake{review}},
		"the last blocker ended":                {TaskChange{Before: with(func(f *TaskFacts) { f.OpenBlockers = 1 }), After: task, EndedBlockers: []string{"x"}}, []TaskWake{unblocked("x")}},
		"the last blocker was taken off":        {TaskChange{Before: with(func(f *TaskFacts) { f.OpenBlockers = 1 }), After: task}, []TaskWake{unblocked()}},
		"of a Kanban task it wakes nobody":      {TaskChange{Before: with(func(f *TaskFacts) { f.OpenBlockers = 1 }), After: kanban}, nil},
		"unless its assignment is still queued": {TaskChange{Before: with(func(f *TaskFacts) { f.OpenBlockers = 1 }), After: with(func(f *TaskFacts) { f.Office, f.AssignmentQueued = false, true })}, []TaskWake{unblocked()}},
		"a step that queues a run":              {TaskChange{Before: kanban, After: with(enter(StepActionQueueRun)), ByAgentID: "b"}, []TaskWake{explicit}},
		"nobody is there to be woken":           {TaskChange{Before: kanban, After: with(func(f *TaskFacts) { enter(StepActionQueueRun)(f); f.AssigneeID = "" })}, nil},
		"a task that is made in a plain step":   {TaskChange{After: with(enter())}, nil},
		"a step that was not entered":           {TaskChange{Before: with(enter(StepActionQueueRun)), After: with(enter(StepActionQueueRun))}, nil},
	} {
		if got := WakeupsFor(c.change); !reflect.DeepEqual(got, c.want) && (len(got) > 0 || len(c.want) > 0) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	move := TaskChange{Before: kanban, After: with(func(f *TaskFacts) { enter(StepActionQueueRun)(f); progress(f) })}
	if got := WakeupsFor(move); len(got) != 1 || !got[0].PersonWaiting {
		t.Errorf("a person's move into a step that queues a run wakes %+v", got)
	}
	children := TaskWake{AgentID: "a", Source: WakeupSourceTaskChildrenCompleted, Reason: "children completed", Payload: &TaskPayload{TaskID: "t"}, Key: "children_completed:t:4"}
	if got := ChildrenCompletedWake(task, 0); !reflect.DeepEqual(got, []TaskWake{children}) {
		t.Errorf("ended children wake %+v", got)
	}
	for name, f := range map[string]TaskFacts{"nobody's": with(func(f *TaskFacts) { f.AssigneeID = "" }), "Kanban": kanban, "no task": {Office: true, AssigneeID: "a"}} {
		if got := ChildrenCompletedWake(f, 0); got != nil {
			t.Errorf("%s: ended children wake %+v", name, got)
		}
	}
	if got := QueueRunWake("t", "a", "asked", ""); got.Key != "" || got.Reason != "asked" {
		t.Errorf("without a key: %+v", got)
	}
	comment := CommentFacts{ID: "c", Task: task, TaskTitle: "T", Body: "hi", AuthorName: "ann", Mentions: []string{"a", "m", "", "m"}}
	mention := TaskWake{AgentID: "m", Source: WakeupSourceUser, PersonWaiting: true, Reason: "mentioned", Key: "mention:c:m",
		Payload: &UserPayload{UserID: "ann", Context: map[string]any{"task_id": "t", "task_title": "T", "comment_id": "c", "comment": "hi"}}}
	if got := WakeupsForComment(comment); !reflect.DeepEqual(got, []TaskWake{back, mention}) {
		t.Errorf("a comment wakes %+v", got)
	}
	comment.AuthorAgentID, comment.Mentions = "b", []string{"m"}
	if got := WakeupsForComment(comment); len(got) != 2 || got[1].Payload.(*UserPayload).UserID != "b" {
		t.Errorf("an agent's comment wakes %+v", got)
	}
}

func TestTheBoundsOfAnAgentsSettings(t *testing.T) {
	good := AgentSettings{Name: "a", Sessions: 1}
	one, zero, age := 1, 0, time.Duration(1)
	none := time.Duration(0)
	for name, c := range map[string]struct {
		change func(*AgentSettings)
		want   []string
	}{
		"good": {func(*AgentSettings) {}, nil},
		"the most of all": {func(s *AgentSettings) {
			s.Sessions, s.Cooldown, s.Instructions = 50, 24*time.Hour, strings.Repeat("x", 64<<10)
		}, nil},
		"the least of a session": {func(s *AgentSettings) { s.SessionMaxRuns, s.SessionMaxAge = &one, &age }, nil},
		"no session":             {func(s *AgentSettings) { s.Sessions = 0 }, []string{"maxConcurrentSessions OUT_OF_RANGE"}},
		"one session more":       {func(s *AgentSettings) { s.Sessions = 51 }, []string{"maxConcurrentSessions OUT_OF_RANGE"}},
		"a cooldown before now":  {func(s *AgentSettings) { s.Cooldown = -1 }, []string{"cooldown OUT_OF_RANGE"}},
		"a cooldown over a day":  {func(s *AgentSettings) { s.Cooldown = 24*time.Hour + 1 }, []string{"cooldown OUT_OF_RANGE"}},
		"one byte more":          {func(s *AgentSettings) { s.Instructions = strings.Repeat("x", 64<<10+1) }, []string{"instructions TOO_LONG"}},
		"a session of no runs":   {func(s *AgentSettings) { s.SessionMaxRuns = &zero }, []string{"sessionMaxRuns OUT_OF_RANGE"}},
		"a session of no age":    {func(s *AgentSettings) { s.SessionMaxAge = &none }, []string{"sessionMaxAge OUT_OF_RANGE"}},
	} {
		s := good
		c.change(&s)
		_, problems := s.Check()
		wantCodes(t, name, problems, c.want...)
	}
	skips := AgentSettings{Name: "a", Sessions: 1, SkipIdleWakeups: true}
	next, changed, problems := skips.Apply(AgentPatch{Instructions: To("new"), SkipIdleWakeups: To(false), SessionMaxRuns: To(3)}, AgentRoleWorker)
	if len(problems) > 0 || next.SkipIdleWakeups || !slices.Equal(changed, []string{"instructions", "skipIdleWakeups", "sessionMaxRuns"}) {
		t.Errorf("changed are %q, %v, %+v", changed, problems, next)
	}
}

func TestTheBoundsOfABudgetsSettings(t *testing.T) {
	many := func(n int) (list []int) {
		for i := range n {
			list = append(list, i+1)
		}
		return list
	}
	for name, c := range map[string]struct {
		s    BudgetSettings
		want []string
	}{
		"ten thresholds, the highest":  {BudgetSettings{"1", append(many(9), 1000)}, nil},
		"eleven":                       {BudgetSettings{"1", many(11)}, []string{"alertThresholds TOO_LONG"}},
		"eleven, two of them the same": {BudgetSettings{"1", append(many(10), 10)}, nil},
		"a higher one":                 {BudgetSettings{"1", []int{1001}}, []string{"alertThresholds OUT_OF_RANGE"}},
		"nought and less, told once":   {BudgetSettings{"1", []int{0, -5}}, []string{"alertThresholds OUT_OF_RANGE"}},
		"no amount":                    {BudgetSettings{"x", nil}, []string{"limitUsd INVALID"}},
		"nothing":                      {BudgetSettings{"0", nil}, []string{"limitUsd OUT_OF_RANGE"}},
	} {
		_, _, problems := c.s.Check()
		wantCodes(t, name, problems, c.want...)
	}
}

func TestHoldsAsAWhole(t *testing.T) {
	person, budget := AgentPauseReasonUser, AgentPauseReasonBudget
	for status, held := range map[AgentStatus]bool{AgentStatusIdle: false, AgentStatusWorking: false, AgentStatusPaused: true, AgentStatusStopped: true} {
		if got := (AgentHold{Status: status}).Held(); got != held {
			t.Errorf("%s holds: %t", status, got)
		}
	}
	_, problems := AgentHold{Status: AgentStatusStopped}.Pause(person, time.Now())
	wantCodes(t, "a pause of a stopped agent", problems, "agentId INVALID_STATE")
	paused := AgentHold{Status: AgentStatusPaused, PauseReason: &person}
	if got, _ := paused.Pause(budget, time.Now()); got.PauseReason != &person {
		t.Errorf("a budget takes a person's place: %+v", got)
	}
	if got, _ := (AgentHold{Status: AgentStatusIdle}).Pause(budget, time.Now()); got.Status != AgentStatusPaused || *got.PauseReason != budget {
		t.Errorf("a budget's pause is %+v", got)
	}
	for name, c := range map[string]struct {
		other AgentHold
		same  bool
	}{
		"the same": {AgentHold{Status: AgentStatusPaused, PauseReason: &person}, true}, "for another reason": {AgentHold{Status: AgentStatusPaused, PauseReason: &budget}, false},
		"another hold": {AgentHold{Status: AgentStatusStopped, PauseReason: &person}, false},
	} {
		if got := paused.Same(c.other); got != c.same {
			t.Errorf("%s is the same: %t", name, got)
		}
	}
}

func TestAnExampleOfEachVariable(t *testing.T) {
	word := func(text string) *string { return &text }
	declared := []RoutineVariable{
		{Name: "text", Type: VariableTypeText}, {Name: "number", Type: VariableTypeNumber}, {Name: "truth", Type: VariableTypeBoolean},
		{Name: "select", Type: VariableTypeSelect, Options: []string{"a<b", "c"}}, {Name: "open", Type: VariableTypeSelect}, {Name: "options", Type: VariableTypeText, Options: []string{"no"}},
		{Name: "one", Type: VariableTypeNumber, Default: word("2.5")}, {Name: "odd", Type: VariableTypeNumber, Default: word("+5")}, {Name: "like a number", Type: VariableTypeText, Default: word("7")},
	}
	const want = `{"text":"value","number":1,"truth":true,"select":"a<b","open":"","options":"value","one":2.5,"odd":"+5","like a number":"7"}`
	if got := SampleBody(declared); got != want {
		t.Errorf("the sample is\n%s, want\n%s", got, want)
	}
}

func TestTheKeyOfADelivery(t *testing.T) {
	for key, plain := range map[string]bool{
		"abc-1": true, "!~": true, strings.Repeat("k", maxDeliveryKey): true, strings.Repeat("k", maxDeliveryKey+1): false,
		" b": false, "a b": false, "a\x7f": false, "\x1f": false, "é": false,
	} {
		if got := WebhookFireKey("R", "T", key); (got == "routine:R:T:webhook:"+key) != plain || plain == strings.HasPrefix(got, "routine:R:T:webhook-sha256:") {
			t.Errorf("%.20q becomes %s", key, got)
		}
	}
}
