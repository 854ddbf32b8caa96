package domain

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// Bounds, each at its last good value and at the first one beyond.

func TestTheBoundsOfLinksNotesAndWindows(t *testing.T) {
	wantCodes(t, "100 links", CheckLinks("blockedByIds", make([]string, 100)))
	wantCodes(t, "101 links", CheckLinks("blockedByIds", make([]string, 101)), "blockedByIds TOO_LONG")
	wantCodes(t, "no note", CheckNote("note", ""))
	wantCodes(t, "a blank note", CheckNote("note", " "), "note REQUIRED")
	wantCodes(t, "a long note", CheckNote("note", strings.Repeat("x", 64<<10+1)), "note TOO_LONG")
	for window, fine := range map[time.Duration]bool{30 * time.Second: true, 30*time.Second - 1: false, 24 * time.Hour: true, 24*time.Hour + 1: false} {
		if problem := CheckReplayWindow(window); (problem == nil) != fine || problem != nil && !slices.Equal(problem.Field, []string{"replayWindow"}) {
			t.Errorf("a window of %v: %+v", window, problem)
		}
	}
	known := func(zone string) bool { return zone == "UTC" }
	for runs, want := range map[int][]string{1: nil, 1000: nil, 0: {"maxConcurrentRuns OUT_OF_RANGE"}, 1001: {"maxConcurrentRuns OUT_OF_RANGE"}} {
		wantCodes(t, "a ceiling", Settings{MaxRuns: &runs, MaxHops: DefaultMaxHops, TimeZone: "UTC"}.problems(known), want...)
	}
	wantCodes(t, "a zone that is none", Settings{MaxHops: DefaultMaxHops, TimeZone: "Middle/Earth"}.problems(known), "defaultTimeZone UNKNOWN_TIME_ZONE")
	if got := SecretHint("0123456789abcdef"); got != "cdef" {
		t.Errorf("of a secret is shown %q", got)
	}
	if got := SecretHint("0123456789abcde"); got != "" {
		t.Errorf("of a short secret is shown %q", got)
	}
	for id, fits := range map[string]bool{"": false, "s": true, strings.Repeat("s", 256): true, strings.Repeat("s", 257): false, "a\nb": false} {
		if got := SessionIDFits(id); got != fits {
			t.Errorf("%.20q fits: %t", id, got)
		}
	}
	for errors, want := range map[int]time.Duration{-1: 5 * time.Second, 0: 5 * time.Second, 1: 5 * time.Second, 2: 10 * time.Second, 7: 320 * time.Second, 8: 10 * time.Minute, 100: 10 * time.Minute} {
		if got := GuardBackoff(errors); got != want {
			t.Errorf("after %d errors of the guards a run waits %v, want %v", errors, got, want)
		}
	}
}

func TestWordsOfTheAPIAreReadAndWritten(t *testing.T) {
	for _, word := range notWokenValues {
		var b bytes.Buffer
		var read NotWoken
		word.MarshalGQL(&b)
		if err := read.UnmarshalGQL(strings.Trim(b.String(), `"`)); err != nil || read != word || b.String() != `"`+string(word)+`"` {
			t.Errorf("%s is written %s and read %s, %v", word, &b, read, err)
		}
	}
	for _, in := range []any{"NOTHING", 5, nil} {
		read := NotWokenAuthor
		if err := read.UnmarshalGQL(in); err == nil || read != NotWokenAuthor || !strings.Contains(err.Error(), "TASK_ENDED, NO_ASSIGNEE, NOT_OFFICE, AUTHOR") {
			t.Errorf("%v is read as %s, %v", in, read, err)
		}
	}
	for want, write := range map[string]func(*bytes.Buffer){
		`"INVALID"`: func(b *bytes.Buffer) { UserErrorCodeInvalid.MarshalGQL(b) },
	} {
		var b bytes.Buffer
		if write(&b); b.String() != want {
			t.Errorf("it writes %s, want %s", &b, want)
		}
	}
}

func TestWhetherAVariableChanged(t *testing.T) {
	word := func(text string) *string { return &text }
	v := RoutineVariable{Name: "a", Type: VariableTypeText, Default: word("x"), Options: []string{"x"}}
	for name, change := range map[string]func(*RoutineVariable){
		"its name": func(o *RoutineVariable) { o.Name = "b" }, "its type": func(o *RoutineVariable) { o.Type = VariableTypeSelect }, "whether it is required": func(o *RoutineVariable) { o.Required = true },
		"its default": func(o *RoutineVariable) { o.Default = word("y") }, "its options": func(o *RoutineVariable) { o.Options = []string{"y"} },
	} {
		other := v
		if change(&other); v.same(other) {
			t.Errorf("%s changed, and it is the same", name)
		}
	}
	if other := v; !v.same(other) {
		t.Error("it is not the same as itself")
	}
}

func TestWhichSourcesAreAboutATask(t *testing.T) {
	bound := []WakeupSource{WakeupSourceComment, WakeupSourceTaskAssigned, WakeupSourceTaskBlockersResolved, WakeupSourceTaskChildrenCompleted}
	for _, source := range append([]WakeupSource{WakeupSourceRoutine, WakeupSourceSelf, WakeupSourceUser, WakeupSourceApprovalResolved, WakeupSourceAgentError, WakeupSourceBudgetAlert}, bound...) {
		if got := source.TaskBound(); got != slices.Contains(bound, source) {
			t.Errorf("%s is about a task: %t", source, got)
		}
	}
}

// SPEC S8.7: what a person's retry is told of a run that cannot be retried.
func TestARefusedRetrySaysWhichRunItIs(t *testing.T) {
	for name, c := range map[string]struct {
		facts RetryFacts
		says  string
	}{
		"a live run":                   {RetryFacts{Status: RunStatusClaimed}, "the run is live"},
		"an offered run":               {RetryFacts{Status: RunStatusClaimed, Offered: true}, "is offered to workers"},
		"a finished run, once offered": {RetryFacts{Status: RunStatusFinished, Offered: true}, "has finished"},
		"one that waits for blockers":  {RetryFacts{Status: RunStatusQueued, ParkedReason: ParkedReasonTaskBlocked, Blocked: true}, "open blockers"},
		"one behind another":           {RetryFacts{Status: RunStatusQueued, ParkedReason: ParkedReasonScopeBusy}, "follows another one"},
		"one of an agent that is gone": {RetryFacts{Status: RunStatusFailed, AgentDeleted: true}, "was deleted"},
	} {
		_, problems := RetryRun(c.facts)
		if len(problems) != 1 || !slices.Equal(problems[0].Field, []string{"runId"}) || !strings.Contains(problems[0].Message, c.says) {
			t.Errorf("%s: %+v", name, problems)
		}
	}
	for name, facts := range map[string]RetryFacts{"a due run, once offered": {Status: RunStatusQueued, Offered: true}, "one whose blockers are gone": {Status: RunStatusQueued, ParkedReason: ParkedReasonTaskBlocked}} {
		if action, problems := RetryRun(facts); action != RetryMakeDue || problems != nil {
			t.Errorf("%s: %s, %+v", name, action, problems)
		}
	}
}

func TestSmallWords(t *testing.T) {
	if got := MissedText(Missed{Ticks: 3, Truncated: true, Since: time.Unix(0, 0)}); got != "\n\nYou missed at least 3 ticks since 1970-01-01T00:00:00Z." {
		t.Errorf("%q", got)
	}
	if got := MissedText(Missed{Ticks: 3, Since: time.Unix(0, 0)}); got != "\n\nYou missed 3 ticks since 1970-01-01T00:00:00Z." {
		t.Errorf("%q", got)
	}
	for agent, want := range map[string]string{"": heartbeatName, "Ada": heartbeatName + " of Ada"} {
		if got := HeartbeatName(agent); got != want {
			t.Errorf("the heartbeat of %q is called %q", agent, got)
		}
	}
	for name, c := range map[string]struct {
		object map[string]any
		want   string
	}{"a summary": {map[string]any{"summary": "done", "error": "x"}, "done"}, "an error alone": {map[string]any{"error": "x"}, "x"}, "nothing": {nil, ""}} {
		if got := ResultText(c.object); got != c.want {
			t.Errorf("of %s is told %q", name, got)
		}
	}
	if got := LogLineText("a\r\nb"); got != "a b" {
		t.Errorf("a line is %q", got)
	}
	if CancelReason(true) != EndReasonAgentDeleted || CancelReason(false) != EndReasonCancelledByUser {
		t.Error("a cancel has another reason")
	}
	if got := ActionsOf(false); !slices.Equal(got, []string{string(ActionAddLink), string(ActionDecideApproval), string(ActionSelfWake)}) {
		t.Errorf("without a task there are %v", got)
	}
	if got := ActionsOf(true); len(got) != len(taskActions)+3 || got[0] != string(taskActions[0]) {
		t.Errorf("about a task there are %v", got)
	}
	if got := UnreadUsage("torn"); !got.CostUnread || got.Unread != "torn" {
		t.Errorf("what cannot be read is %+v", got)
	}
	for said, want := range map[string]string{strings.Repeat("x", 40): `"` + strings.Repeat("x", 40) + `" `, strings.Repeat("x", 41): ""} {
		if got := quoteAmount(said); got != want {
			t.Errorf("%d characters are quoted as %s", len(said), got)
		}
	}
	if got := quoteAmount(1i); got != `"(0+1i)" ` {
		t.Errorf("what is no JSON is quoted as %s", got)
	}
	if got := quoteAmount(true); got != `"true" ` {
		t.Errorf("a truth is quoted as %s", got)
	}
	echo, command := &ExecutorSpec{Echo: &EchoSpec{}}, &ExecutorSpec{Command: &CommandSpec{}}
	if got := ResolveExecutor(nil, &ExecutorSpec{}, echo, command); got != echo {
		t.Errorf("the executor is %+v", got)
	}
	if got := ResolveExecutor(nil, nil, nil, &ExecutorSpec{}); got != nil {
		t.Errorf("without one it is %+v", got)
	}
	var none *AttemptUsage
	mask := func(string) string { return "***" }
	read := &AttemptUsage{CostUSD: "1"}
	if none.Masked(mask) != nil || read.Masked(mask) != read {
		t.Error("what was read is masked")
	}
}
