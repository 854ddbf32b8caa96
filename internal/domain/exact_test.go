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
