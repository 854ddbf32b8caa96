package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/xid"
)

// namedIn is the path and the code of each problem.
func namedIn(problems []FieldError) string {
	var all []string
	for _, p := range problems {
		all = append(all, strings.Join(p.Field, ".")+" "+string(p.Code))
	}
	return strings.Join(all, ", ")
}

// A problem names the field that it is about and the code that a program tells it by.
func TestAProblemNamesItsFieldAndItsCode(t *testing.T) {
	ofError := func(err error) []FieldError {
		refused, ok := errors.AsType[*UserError](err)
		if !ok {
			t.Fatalf("%v is no refusal", err)
		}
		return refused.Problems
	}
	long, settings := strings.Repeat("x", maxDescription+1), RoutineSettings{Name: "R", AssigneeID: "agt_1", CatchUpMax: 1}
	change := func(p RoutinePatch) []FieldError { _, problems := settings.Apply(p, false); return problems }
	check := func(s RoutineSettings) []FieldError { _, _, problems := s.Check(false); return problems }
	_, archived := RoutineStatusArchived.To(RoutineStatusActive)
	_, unkept := KeepSecrets(nil, &ExecutorSpec{HTTP: &HTTPSpec{KeepSecret: true, Headers: []SealedValue{{Name: "X", Keep: true}}}}, []string{"executor"})
	described := settings
	described.Description = long
	for name, c := range map[string]struct {
		problems []FieldError
		want     string
	}{
		"a refusal":                         {ofError(Refuse(UserErrorCodeTaken, "no")), " TAKEN"},
		"a refusal of a field":              {ofError(RefuseField([]string{"a", "b"}, UserErrorCodeTaken, "no")), "a.b TAKEN"},
		"a long description":                {check(described), "description TOO_LONG"},
		"a long template":                   {CheckTemplate(nil, TaskTemplate{Title: long, Description: long}), "title TOO_LONG, description TOO_LONG"},
		"many variables":                    {tooManyVariables(make([]RoutineVariable, maxVariables+1)), "variables TOO_LONG"},
		"a routine that wakes nobody":       {change(RoutinePatch{AssigneeID: Change[xid.ID]{Set: true}}), "assigneeId REQUIRED"},
		"a routine that is archived":        {archived, "routineId INVALID_STATE"},
		"secrets that are not there":        {unkept, "executor.http.headers.0.keep INVALID, executor.http.keepSecret INVALID"},
		"a field of another kind":           {TriggerPatch{Cron: Change[string]{Set: true}}.misplaced(TriggerKindWebhook), "cron INVALID"},
		"a webhook that has no secret yet":  {TriggerSettings{Kind: TriggerKindWebhook, SigningMode: SigningModeBearer, ReplayWindow: time.Minute}.problems(), "signingMode INVALID_STATE"},
		"a webhook that needs none":         {TriggerSettings{Kind: TriggerKindWebhook, SigningMode: SigningModeNone, ReplayWindow: time.Minute}.problems(), ""},
		"a required variable of a schedule": {RoutineVariable{Name: "a", Type: VariableTypeText, Required: true}.problems(true, false), "default REQUIRED"},
		"an empty default of one":           {RoutineVariable{Name: "a", Type: VariableTypeText, Required: true, Default: new("")}.problems(true, false), "default REQUIRED"},
		"a default of one":                  {RoutineVariable{Name: "a", Type: VariableTypeText, Required: true, Default: new("x")}.problems(true, false), ""},
	} {
		if got := namedIn(c.problems); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	names := []FieldError{{Field: []string{"name"}}, {Field: []string{"name", "x"}}, {}, {Field: []string{"other"}}}
	if left := withoutField(names, "name"); len(left) != 3 {
		t.Errorf("without the problems of a name are left %v", left)
	}
}

// What has exactly the size of a bound is taken, and what has one more is not.
func TestWhatIsExactlyAtABound(t *testing.T) {
	of := func(n int) string { return strings.Repeat("x", n) }
	action := func(change func(map[string]any)) string {
		raw := map[string]any{"type": "create_subtask", "title": "t"}
		change(raw)
		return parseAction(raw, true).Problem
	}
	for name, c := range map[string]struct {
		problem func(over int) string
	}{
		"a routine's description": {func(over int) string {
			return namedIn(first3(RoutineSettings{Name: "R", Description: of(maxDescription + over), CatchUpMax: 1}.Check(false)))
		}},
		"a template's title": {func(over int) string { return namedIn(TaskTemplate{Title: of(maxDescription + over)}.tooLong()) }},
		"variables":          {func(over int) string { return namedIn(tooManyVariables(make([]RoutineVariable, maxVariables+over))) }},
		"an option": {func(over int) string {
			return namedIn(RoutineVariable{Options: []string{of(maxOptionRunes + over)}}.optionProblems())
		}},
		"blockers of a subtask": {func(over int) string {
			return action(func(raw map[string]any) {
				raw["blocked_by"] = strings.Fields(strings.Repeat("tsk ", maxTaskLinks+over))
			})
		}},
		"an id in an action": {func(over int) string {
			return action(func(raw map[string]any) { raw["assignee"] = of(maxActionID + over) })
		}},
		"a number": {func(over int) string {
			_, problem := parseAmount("1" + strings.Repeat("0", maxAmountText-1+over))
			return problem
		}},
	} {
		if at, over := c.problem(0), c.problem(1); at != "" || over == "" {
			t.Errorf("%s at its bound: %q, and over it: %q", name, at, over)
		}
	}
	a := LogAllowance{Lines: 10, Bytes: 100}
	for size, mark := range map[int]bool{60: false, 61: true} {
		if keep, got := a.BoundLog([]int64{1}, []int{size}, 40); got != mark || keep == 1 == mark {
			t.Errorf("%d bytes where 60 are left: %d kept, mark %t", size, keep, got)
		}
	}
	if got := Brief(of(5), 5); got != of(5) {
		t.Errorf("a message of the greatest length became %q", got)
	}
	if got := Brief(`"`+of(81)+`"`, 500); got != `"`+of(79)+`…"` {
		t.Errorf("a long quotation became %q", got)
	}
	if got := cutTitle(of(MaxTaskTitle)); got != of(MaxTaskTitle) {
		t.Errorf("a title of the greatest length has %d characters", len(got))
	}
	if OneLine("\x07bell") || OneLine("a\x07") || !OneLine("bell") {
		t.Error("a control character at the beginning of a name")
	}
	for failures, want := range map[int]time.Duration{1: 0, 2: time.Second, 7: 32 * time.Second, 8: LongestLaneRest, 9: LongestLaneRest} {
		if got := LaneRest(failures); got != want {
			t.Errorf("a lane that failed %d times rests %v, want %v", failures, got, want)
		}
	}
}

func first3[A, B, C any](_ A, _ B, c C) C { return c }

// Enums reach the API as their words.
func TestEnumsAreWrittenAsTheirWords(t *testing.T) {
	var out bytes.Buffer
	ScheduleState("ARMED").MarshalGQL(&out)
	TriggerConditionOverdue.MarshalGQL(&out)
	VariableOriginMissing.MarshalGQL(&out)
	if got := out.String(); got != `"ARMED""OVERDUE""MISSING"` {
		t.Errorf("they are written as %s", got)
	}
}

// SPEC S10.2: every combination of how a run ended has the shape that the rule says, and no other.
func TestEveryEndHasItsShape(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for name, c := range map[string]struct {
		f    ShapeFacts
		want TerminalShape
	}{
		"finished, skipped, with a session":         {ShapeFacts{Status: RunStatusFinished, Outcome: OutcomeIdleSkipped, SessionID: "s"}, TerminalShapeUnclassified},
		"finished, skipped":                         {ShapeFacts{Status: RunStatusFinished, Outcome: OutcomeIdleSkipped}, TerminalShapeUnlaunchedSkipped},
		"failed, with a skip's outcome":             {ShapeFacts{Status: RunStatusFailed, Outcome: OutcomeIdleSkipped}, TerminalShapeUnlaunchedFailed},
		"failed, with a reason":                     {ShapeFacts{Status: RunStatusFailed, EndReason: EndReasonTaskDone}, TerminalShapeUnlaunchedFailed},
		"cancelled without a reason":                {ShapeFacts{Status: RunStatusCancelled}, TerminalShapeUnclassified},
		"cancelled with a reason":                   {ShapeFacts{Status: RunStatusCancelled, EndReason: EndReasonTaskDone}, TerminalShapeUnlaunchedSkipped},
		"cancelled with a reason and a session":     {ShapeFacts{Status: RunStatusCancelled, EndReason: EndReasonTaskDone, SessionID: "s"}, TerminalShapeLaunchedFailed},
		"finished, another outcome, with a reason":  {ShapeFacts{Status: RunStatusFinished, Outcome: "other", EndReason: EndReasonTaskDone}, TerminalShapeUnclassified},
		"finished, another outcome, with a session": {ShapeFacts{Status: RunStatusFinished, Outcome: "other", EndReason: EndReasonTaskDone, SessionID: "s"}, TerminalShapeUnclassified},
	} {
		c.f.ActivatedAt, c.f.RequestedAt = &early, late
		if got := ShapeOf(c.f); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What changed of a routine is named, and a cap that was brought into its bounds is told.
func TestWhatChangedOfARoutineIsNamed(t *testing.T) {
	s := RoutineSettings{Name: "R", AssigneeID: "agt_1", CatchUpMax: 1, Policy: ConcurrencyPolicyCoalesceIfActive, CatchUp: CatchUpPolicyEnqueueMissedWithCap}
	change, problems := s.Apply(RoutinePatch{Name: To("S"), AssigneeID: To(xid.ID("agt_2")), CatchUpMax: To(MaxCatchUpMax + 1)}, false)
	if want := []string{"name", "assigneeId", "catchUpMax"}; !slices.Equal(change.Changed, want) || len(problems) > 0 {
		t.Errorf("%v changed, want %v (%v)", change.Changed, want, problems)
	}
	if !slices.Equal(change.Clamped, []string{"catchUpMax"}) {
		t.Errorf("%v were clamped", change.Clamped)
	}
}

// What an agent says of its use is read with all its digits, and what is no number is no use.
func TestAmountsAtTheirEdges(t *testing.T) {
	for _, said := range []any{math.NaN(), math.Inf(1), math.Inf(-1), "1e999", true, nil} {
		if amount, problem := readAmount(said); amount != 0 || problem == "" {
			t.Errorf("%v is read as %v, %q", said, amount, problem)
		}
	}
	if amount, problem := parseAmount("x"); amount != 0 || problem != "is no number" {
		t.Errorf("x is read as %v, %q", amount, problem)
	}
	if n, problem := ReadTokens(0); n != 0 || problem != "" {
		t.Errorf("no token is read as %d, %q", n, problem)
	}
	var said Said
	if err := json.Unmarshal([]byte("12345678901234567890123"), &said); err != nil || said.Value != json.Number("12345678901234567890123") {
		t.Errorf("a long number is kept as %v (%v)", said.Value, err)
	}
	var tally Tally
	tally.Cost("a", MaxCostUSD-1)
	tally.Cost("b", 1)
	if u := tally.Usage(); !u.CostUnread {
		t.Errorf("costs that come to a billion are believed: %+v", u)
	}
	if got := ResultUsage(map[string]any{"usage": map[string]any{"cost_usd": "x"}, "total_cost_usd": 2}); got.CostUnread || got.CostUSD != "2" {
		t.Errorf("a total beside a cost that cannot be read: %+v", got)
	}
	if got := ResultUsage(map[string]any{"usage": map[string]any{"cost_usd": 1}, "total_cost_usd": 2}); got.CostUSD != "1" {
		t.Errorf("a total beside a cost: %+v", got)
	}
}

// SPEC S4.6: what an active fire waits for, at each word of the rule.
func TestWhatAFireWaitsFor(t *testing.T) {
	parked := FireWork{RunStatus: RunStatusQueued, Parked: ParkedReasonNoWorker, ParkedLong: true}
	with := func(change func(*FireWork)) FireWork { w := parked; change(&w); return w }
	for name, c := range map[string]struct {
		w    FireWork
		want FireWait
	}{
		"its run is parked for long":       {parked, FireWaitParked},
		"but another request is unrouted":  {with(func(w *FireWork) { w.RequestUnrouted = true }), ""},
		"but the run is live":              {with(func(w *FireWork) { w.RunStatus = RunStatusClaimed }), ""},
		"but the parking is short":         {with(func(w *FireWork) { w.ParkedLong = false }), ""},
		"a lightweight fire without a run": {FireWork{TaskState: TaskStateBlocked}, ""},
		"a heavy one without a run":        {FireWork{Heavy: true, TaskState: TaskStateBlocked}, FireWaitBlocked},
	} {
		if got := c.w.Waits(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What a caller gave is not changed when a message about it is shortened.
func TestShorteningLeavesWhatWasGiven(t *testing.T) {
	long := strings.Repeat("x", maxMessage+1)
	given := []FieldError{{Field: []string{strings.Repeat("y", maxEcho+1)}, Message: long}}
	short := briefly(given)
	if short[0].Message == long || len(short[0].Field[0]) > maxEcho+len("…") || given[0].Message != long || len(given[0].Field[0]) != maxEcho+1 {
		t.Errorf("given %q, shortened %q", given, short)
	}
	only := []FieldError{{Field: []string{strings.Repeat("y", maxEcho+1)}}}
	if briefly(only); len(only[0].Field[0]) != maxEcho+1 {
		t.Error("the path that was given is shortened")
	}
}

// Each action of a result is read with all that it says.
func TestActionsAreReadWhole(t *testing.T) {
	of := func(raw map[string]any) Action { return parseAction(raw, true) }
	if a := of(map[string]any{"type": "create_subtask", "title": "t", "requires_approval": true}); !a.RequiresApproval || a.Problem != "" {
		t.Errorf("a subtask: %+v", a)
	}
	if a := of(map[string]any{"type": "decide_approval", "approval_id": "apr_1", "approved": true}); !a.Approved || a.Problem != "" {
		t.Errorf("a decision: %+v", a)
	}
	if a := of(map[string]any{"type": "complete_task"}); a.Problem != "" {
		t.Errorf("the end of a task: %+v", a)
	}
	if a := of(map[string]any{"type": "request_approval"}); a.Problem != "question is missing" {
		t.Errorf("a request without a question: %+v", a)
	}
	if a := of(map[string]any{"type": strings.Repeat("x", 10_000)}); len(a.Type) > 1000 || a.Problem == "" {
		t.Errorf("a type of %d characters", len(a.Type))
	}
}

// What a value must be is said, and a built-in value fits whatever is declared of its name.
func TestValuesAreHeldToTheirTypes(t *testing.T) {
	for wants, v := range map[string]RoutineVariable{
		"a number such as 3 or 2.5": {Name: "v", Type: VariableTypeNumber}, "true or false": {Name: "v", Type: VariableTypeBoolean}, "one of a, b": {Name: "v", Type: VariableTypeSelect, Options: []string{"a", "b"}},
	} {
		if problem := v.check("x"); problem == nil || !strings.Contains(problem.Message, wants) {
			t.Errorf("%s: %v", wants, problem)
		}
	}
	_, problems := ResolveVariables([]RoutineVariable{{Name: "date", Type: VariableTypeNumber}}, nil, map[string]string{"date": "2026-01-01"})
	if len(problems) > 0 {
		t.Errorf("a built-in date is refused: %v", problems)
	}
	for secret, want := range map[string]string{"whsec_": "", "whsec_AAAA!": "", "whsec_AAAA": "\x00\x00\x00"} {
		if key, standard := StandardWebhookKey(secret); string(key) != want || !standard || want == "" && key != nil {
			t.Errorf("the key of %s is %q", secret, key)
		}
	}
	one := 1
	if c := CheckWorkers(WorkerFacts{Queue: "q", AtWork: one}); !strings.Contains(c.Detail, "are at work on 1 runs") {
		t.Errorf("of a queue with one run at work is said %q", c.Detail)
	}
	stored := &ExecutorSpec{HTTP: &HTTPSpec{Headers: []SealedValue{{Name: "A", Sealed: "s"}}}}
	if _, problems := KeepSecrets(stored, &ExecutorSpec{HTTP: &HTTPSpec{Headers: []SealedValue{{Name: "B", Keep: true}}}}, nil); len(problems) != 1 {
		t.Errorf("a header of another name is kept: %v", problems)
	}
}

// A number is written out as far as a secret could hide in it, and no further.
func TestNumbersAreWrittenOutUpToABound(t *testing.T) {
	for text, want := range map[string]string{
		"12": "12", "1e3": "1000", "1.5E1": "15", "25e-1": "2.5", "1e": "1e", "1ex": "1ex", "1.5": "1.5",
		"1e399": "1" + strings.Repeat("0", 399), "1e400": "1e400", "1e-399": "0." + strings.Repeat("0", 398) + "1", "1e-400": "1e-400",
	} {
		if got := plainNumber(text); got != want {
			t.Errorf("%s is written as %s", text, got)
		}
	}
}

// Each word of a rule counts by itself: what changes one of the facts changes the answer.
func TestEachWordOfARuleCounts(t *testing.T) {
	part := func(basis WakeBasis, reviews, approves bool) EndReason {
		return BasisLost(BasisFacts{TaskBound: true, Basis: basis, Reviews: reviews, Approves: approves})
	}
	if part(WakeBasisApprover, true, false) == "" || part(WakeBasisReviewer, false, true) == "" || part(WakeBasisApprover, false, false) == "" || part(WakeBasisApprover, false, true) != "" {
		t.Error("a reviewer is asked as a reviewer, and an approver as an approver")
	}
	assigned := RequestFacts{Source: WakeupSourceTaskAssigned, Basis: BasisFacts{Basis: WakeBasisAssignee}}
	moved := RequestFacts{Source: WakeupSourceSelf, Basis: BasisFacts{Basis: WakeBasisAssignee}}
	if !onlyAssignments([]RequestFacts{assigned}) || onlyAssignments([]RequestFacts{assigned, moved}) || onlyAssignments(nil) {
		t.Error("only what tells an assignee of its task is an assignment")
	}
	if (Admission{}).Launches() != true || (Admission{Park: ParkedReasonTaskBlocked}).Launches() || (Admission{Settle: &Settlement{}}).Launches() {
		t.Error("what is parked or settled is not launched")
	}
	if got := DecisionWake(ApprovalFacts{ID: "apr_1"}, ApprovalStatusApproved, "", "agt_1"); len(got) > 0 {
		t.Errorf("the decision of an approval that no agent asked for wakes %v", got)
	}
	if got := (FireFacts{Source: RoutineRunSourceWebhook}).cause(); got != WakeCauseWebhook {
		t.Errorf("a webhook fires for %v", got)
	}
	if got := (FireFacts{Source: RoutineRunSourceManual, DeliveryKey: "k"}).key(); got != "" {
		t.Errorf("a fire by hand has the key %q", got)
	}
	if problem := CheckWebhookSecret("short"); problem == nil || !slices.Equal(problem.Field, []string{"secret"}) {
		t.Errorf("a short secret: %+v", problem)
	}
	for name, c := range map[string]struct {
		request CoalesceRequest
		want    bool
	}{
		"an event about a blocked task": {CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceComment}, true},
		"its assignment":                {CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceTaskAssigned, Basis: WakeBasisAssignee}, false},
		"another word to its assignee":  {CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceSelf, Basis: WakeBasisAssignee}, true},
		"a schedule, which is no event": {CoalesceRequest{Class: WakeClassPeriodic, Source: WakeupSourceSelf}, false},
	} {
		if got := unparks(c.request, ParkedReasonTaskBlocked); got != c.want {
			t.Errorf("%s ends the waiting for a blocker: %t", name, got)
		}
	}
	beat := ScopeRun{ID: "r", Status: RunStatusClaimed, RoutineID: "o", WakeClass: WakeClassEvent}
	same := CoalesceRequest{Class: WakeClassPeriodic, RoutineID: "o"}
	if got := joinClaimed(same, beat); got.Action != CoalesceMerge {
		t.Errorf("a heartbeat beside a run that has not started: %+v", got)
	}
	facts := CoalesceFacts{Now: time.Unix(0, 0), Runs: []ScopeRun{{ID: "ended", Status: RunStatusFinished}, {ID: "own", Status: RunStatusQueued}}}
	if scopeTaken(facts, "own") || !scopeTaken(facts, "") {
		t.Error("a scope is taken by another run that is live or due, and by none that has ended")
	}
}
