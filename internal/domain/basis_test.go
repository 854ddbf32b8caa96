package domain

import "testing"

func TestBasisLost(t *testing.T) {
	task := func(basis WakeBasis, change func(*BasisFacts)) BasisFacts {
		f := BasisFacts{TaskBound: true, Basis: basis, TaskState: TaskStateInProgress}
		change(&f)
		return f
	}
	none := func(*BasisFacts) {}
	for _, c := range []struct {
		name  string
		facts BasisFacts
		want  EndReason
	}{
		{"C313 a taskless wake always holds", BasisFacts{TaskMissing: true}, ""},
		{"C313 a comment holds while the agent is assigned", task("", func(f *BasisFacts) { f.Assigned = true }), ""},
		{"C82 not when somebody else is", task("", none), EndReasonAssigneeChanged},
		{"C82 an assignment neither", task(WakeBasisAssignee, none), EndReasonAssigneeChanged},
		{"C82 not when the task is gone", task("", func(f *BasisFacts) { f.TaskMissing, f.Assigned = true, true }), EndReasonTaskNotFound},
		{"C82 not when it is done", task("", func(f *BasisFacts) { f.TaskState, f.Assigned = TaskStateDone, true }), EndReasonTaskDone},
		{"C82 not when it is cancelled", task("", func(f *BasisFacts) { f.TaskState, f.Assigned = TaskStateCancelled, true }), EndReasonTaskCancelled},
		{"C82 not when it is archived", task("", func(f *BasisFacts) { f.TaskArchived, f.Assigned = true, true }), EndReasonTaskCancelled},
		{"C319 a reviewer's wake holds on a task assigned to somebody else", task(WakeBasisReviewer, func(f *BasisFacts) { f.Reviews = true }), ""},
		{"C82 not when the agent reviews no more", task(WakeBasisReviewer, func(f *BasisFacts) { f.Assigned, f.Approves = true, true }), EndReasonReviewParticipantChanged},
		{"an approver's wake holds while the agent approves", task(WakeBasisApprover, func(f *BasisFacts) { f.Approves = true }), ""},
		{"what was asked for by hand holds whoever is assigned", task(WakeBasisExplicit, none), ""},
		{"but not on a task that is done", task(WakeBasisExplicit, func(f *BasisFacts) { f.TaskState = TaskStateDone }), EndReasonTaskDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := BasisLost(c.facts); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
