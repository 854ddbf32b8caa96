package prompt

import (
	"fmt"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// What each cause says to its agent, and what it does not say.
func TestEachCauseSaysWhatIsToBeDone(t *testing.T) {
	for name, c := range map[string]struct {
		wake      Wake
		want, not []string
	}{
		"a routine that a webhook fired": {Wake{Source: domain.WakeupSourceRoutine, Routine: "Watch", Payload: &domain.RoutinePayload{RoutineID: "rtn_1", TriggerID: "trg_1"}},
			[]string{"was fired from outside, by its trigger trg_1."}, []string{"You missed", "Variables"}},
		"a routine that missed one slot": {Wake{Source: domain.WakeupSourceRoutine, Routine: "Watch", Payload: &domain.RoutinePayload{RoutineID: "rtn_1", TriggerID: "trg_1", MissedTicks: 1, Variables: map[string]string{"region": "north"}}},
			[]string{"You missed 1 tick.", "Variables:\n> {\"region\":\"north\"}"}, nil},
		"a routine that a person fired": {Wake{Source: domain.WakeupSourceRoutine, Routine: "Watch", Payload: &domain.RoutinePayload{RoutineID: "rtn_1"}},
			[]string{"A person fired your routine"}, []string{"trigger"}},
		"a task that waits for an approver": {Wake{Source: domain.WakeupSourceTaskAssigned, Payload: &domain.TaskPayload{TaskID: "tsk_1", Basis: domain.WakeBasisApprover},
			Approvals: []Approval{{"apr_1", "May I merge?"}, {"apr_2", "And ship?"}}},
			[]string{"Task tsk_1 waits for your approval.", "Approval apr_1 asks:\n> May I merge?", "Approval apr_2 asks:\n> And ship?"}, []string{"is assigned to you"}},
		"a task that waits for a reviewer": {Wake{Source: domain.WakeupSourceTaskAssigned, Payload: &domain.TaskPayload{TaskID: "tsk_1", Basis: domain.WakeBasisReviewer}},
			[]string{"Task tsk_1 waits for your review."}, []string{"is assigned to you"}},
		"a task that somebody was asked for by name": {Wake{Source: domain.WakeupSourceTaskAssigned, Payload: &domain.TaskPayload{TaskID: "tsk_1", Basis: domain.WakeBasisExplicit}},
			[]string{"You were asked by name to work on task tsk_1."}, []string{"is assigned to you"}},
		"an approval": {Wake{Source: domain.WakeupSourceApprovalResolved, Question: "May I?", Payload: &domain.ApprovalPayload{ApprovalID: "apr_1", Status: domain.ApprovalStatusApproved, DecisionNote: "Yes."}},
			[]string{"is approved: go ahead.", "> May I?", "> Yes."}, []string{"do not go ahead"}},
		"a rejection": {Wake{Source: domain.WakeupSourceApprovalResolved, Payload: &domain.ApprovalPayload{ApprovalID: "apr_1", Status: domain.ApprovalStatusRejected}},
			[]string{"is rejected: do not go ahead as planned."}, nil},
		"blockers by their names": {Wake{Source: domain.WakeupSourceTaskBlockersResolved, Tasks: []TaskRef{{ID: "tsk_2", Title: "Design"}},
			Payload: &domain.BlockersPayload{TaskID: "tsk_1", ResolvedBlockerIDs: []string{"tsk_2", "tsk_3"}}}, []string{"Design"}, []string{"tsk_3"}},
		"blockers whose names are not known": {Wake{Source: domain.WakeupSourceTaskBlockersResolved,
			Payload: &domain.BlockersPayload{TaskID: "tsk_1", ResolvedBlockerIDs: []string{"tsk_2", "tsk_3"}}}, []string{"tsk_2", "tsk_3"}, nil},
		"a budget of nobody in particular": {Wake{Source: domain.WakeupSourceBudgetAlert, Payload: &domain.BudgetPayload{BudgetPct: 80}},
			[]string{"A budget is 80 percent spent. Decide what work can wait, or tell a person."}, []string{"of agent"}},
		"the budget of an agent": {Wake{Source: domain.WakeupSourceBudgetAlert, Agent: "Ben", Payload: &domain.BudgetPayload{AgentID: "agt_2", BudgetPct: 120}},
			[]string{"The budget of agent", "Ben", "is 120 percent spent."}, nil},
		"a person without context": {Wake{Source: domain.WakeupSourceUser, User: "Ann", Payload: &domain.UserPayload{UserID: "ann"}}, []string{"woke you"}, []string{"What they gave you"}},
		"a person with context": {Wake{Source: domain.WakeupSourceUser, User: "Ann", Payload: &domain.UserPayload{UserID: "ann", Context: map[string]any{"pr": 7}}},
			[]string{"What they gave you:\n> {\"pr\":7}"}, nil},
		"oneself, without details":    {Wake{Source: domain.WakeupSourceSelf, Payload: &domain.SelfPayload{Reason: "look"}}, []string{"> look"}, []string{"Details you left"}},
		"oneself, with details":       {Wake{Source: domain.WakeupSourceSelf, Payload: &domain.SelfPayload{Reason: "look", Payload: map[string]any{"n": 1}}}, []string{"Details you left:\n> {\"n\":1}"}, nil},
		"a cause that cannot be read": {Wake{Source: domain.WakeupSourceSelf}, []string{"A wakeup of source SELF without readable details."}, nil},
	} {
		got := Build(withWakes(base(), c.wake)).Text
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
			}
		}
		for _, not := range c.not {
			if strings.Contains(got, not) {
				t.Errorf("%s: %q is in\n%s", name, not, got)
			}
		}
	}
}

func TestARunWithoutACauseSaysSo(t *testing.T) {
	if got := Build(base()).Text; !strings.Contains(got, "No cause is recorded for this run. Look at your open work and continue with it.\n") {
		t.Errorf("it says\n%s", got)
	}
}

func TestTheTaskShowsItsBlockersAndAllOfFewComments(t *testing.T) {
	in := withTask(base())
	in.Run.Task.Blockers = []TaskRef{{ID: "tsk_9", Title: "Design", State: domain.TaskStateTodo}}
	in.Run.Task.Comments = []Comment{{ID: "cmt_1", Author: "Ben", Body: "Fine."}}
	got := Build(in).Text
	for _, want := range []string{"Open blockers, which must end first:\n", "Design", "Earlier comments, as background:\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	in.Run.Task.CommentCount = 2
	if got := Build(in).Text; !strings.Contains(got, "(the newest 1 of 2):") {
		t.Errorf("with one more that is not shown it says\n%s", got)
	}
}

// Two texts share their room: each gets what the other leaves, and at least its half.
func TestTwoTextsShareTheirRoom(t *testing.T) {
	short, long := strings.Repeat("s", 10), strings.Repeat("l", 2000)
	for name, c := range map[string]struct {
		a, b         string
		wantA, wantB int // bytes, with the mark of a quotation
	}{
		"both fit":           {short, short, 12, 12},
		"the first is long":  {long, short, 200 - 12, 12},
		"the second is long": {short, long, 12, 200 - 12},
		"both are long":      {long, long, 100, 100},
	} {
		a, b := both(200, quoted(c.a), quoted(c.b))
		if len(a) != c.wantA || len(b) != c.wantB {
			t.Errorf("%s: %d and %d bytes, want %d and %d", name, len(a), len(b), c.wantA, c.wantB)
		}
	}
}

// As many causes as are shown are shown, and what is merged away is counted by its source, always in the same order.
func TestTheMostCausesThatAreShown(t *testing.T) {
	var wakes []Wake
	for n := range maxWakes {
		wakes = append(wakes, commentWake(n))
	}
	if got := Build(withWakes(base(), wakes...)).Text; strings.Contains(got, "Not shown") || !strings.Contains(got, fmt.Sprintf("\n%d. ", maxWakes)) {
		t.Errorf("of as many as are shown it says\n%.600s", got)
	}
	early := []Wake{{Source: domain.WakeupSourceUser, Payload: &domain.UserPayload{}}, {Source: domain.WakeupSourceSelf, Payload: &domain.SelfPayload{}}, {Source: domain.WakeupSourceComment, Payload: &domain.CommentPayload{}}}
	for range 10 {
		if got := Build(withWakes(base(), append(early, wakes...)...)).Text; !strings.Contains(got, "the oldest 3 of them: 1 COMMENT, 1 SELF, 1 USER.") {
			t.Fatalf("of more it says\n%.600s", got)
		}
	}
}
