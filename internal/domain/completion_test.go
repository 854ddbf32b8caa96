package domain

import "testing"

// Who said what, and when, against what a step does by default (AUTO_COMPLETE).
func TestAnExplicitWordWinsOverADefaultCompletion(t *testing.T) {
	plain := WordFacts{StepCompletes: true, State: TaskStateInProgress, Assigned: true}
	with := func(change func(*WordFacts)) WordFacts {
		f := plain
		change(&f)
		return f
	}
	for name, row := range map[string]struct {
		f    WordFacts
		want LeftOpen
	}{
		"nobody said anything, the step completes: done":                               {plain, ""},
		"nobody said anything, and the agent was told of a task to do: done":           {with(func(f *WordFacts) { f.State = TaskStateTodo }), ""},
		"nobody said anything, the step does not complete: it stays":                   {with(func(f *WordFacts) { f.StepCompletes = false }), LeftOpenNoStep},
		"the agent moved it to TODO by its token or its result: it stays":              {with(func(f *WordFacts) { f.State, f.Said = TaskStateTodo, true }), LeftOpenWord},
		"the agent moved it to BLOCKED: it stays":                                      {with(func(f *WordFacts) { f.State, f.Said = TaskStateBlocked, true }), LeftOpenWord},
		"the agent moved it to IN_REVIEW: it stays":                                    {with(func(f *WordFacts) { f.State, f.Said = TaskStateInReview, true }), LeftOpenWord},
		"the agent moved it to the state that it had: it stays":                        {with(func(f *WordFacts) { f.Said = true }), LeftOpenWord},
		"the agent moved it away and back: it stays":                                   {with(func(f *WordFacts) { f.Said, f.Asked = true, true }), LeftOpenWord},
		"the agent's move was refused: it stays all the same":                          {with(func(f *WordFacts) { f.Asked = true }), LeftOpenWord},
		"the agent completed it, then a person moved it back: it stays":                {with(func(f *WordFacts) { f.Said, f.Asked = true, true }), LeftOpenWord},
		"the agent completed it: there is nothing to do by default":                    {with(func(f *WordFacts) { f.State, f.Said, f.Asked = TaskStateDone, true, true }), LeftOpenEnded},
		"a person moved it while the agent worked: it stays":                           {with(func(f *WordFacts) { f.Said = true }), LeftOpenWord},
		"a person cancelled it while the agent worked: it stays cancelled":             {with(func(f *WordFacts) { f.State, f.Said = TaskStateCancelled, true }), LeftOpenEnded},
		"a person archived it while the agent worked: it stays archived":               {with(func(f *WordFacts) { f.Archived = true }), LeftOpenEnded},
		"a person gave it to another agent: it is that agent's":                        {with(func(f *WordFacts) { f.Assigned = false }), LeftOpenAssignee},
		"a person gave it away and back: the wake of that is on its way":               {with(func(f *WordFacts) { f.MoreToCome = true }), LeftOpenMore},
		"a person commented while the agent worked: the answer comes first":            {with(func(f *WordFacts) { f.MoreToCome = true }), LeftOpenMore},
		"it was BLOCKED before the run, and nobody took it out of that: it stays":      {with(func(f *WordFacts) { f.State = TaskStateBlocked }), LeftOpenState},
		"it waits for a review: it stays":                                              {with(func(f *WordFacts) { f.State = TaskStateInReview }), LeftOpenState},
		"it was given a blocker while the agent worked: it stays":                      {with(func(f *WordFacts) { f.OpenBlocker = true }), LeftOpenBlocker},
		"the agent asked a question about it, in this run or an earlier one: it stays": {with(func(f *WordFacts) { f.OpenApproval = true }), LeftOpenApproval},
	} {
		if got := DefaultCompletion(row.f); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestWhatAResultSaysOfItsTask(t *testing.T) {
	for name, row := range map[string]struct {
		result map[string]any
		want   bool
	}{
		"no action":                           {nil, false},
		"a comment, a subtask":                {map[string]any{"actions": []any{map[string]any{"type": "comment", "body": "x"}, map[string]any{"type": "create_subtask", "title": "x"}}}, false},
		"a move":                              {map[string]any{"actions": []any{map[string]any{"type": "move_task", "state": "BLOCKED"}}}, true},
		"a move to a state that there is not": {map[string]any{"actions": []any{map[string]any{"type": "move_task", "state": "WAITING"}}}, true},
		"a completion":                        {map[string]any{"actions": []any{map[string]any{"type": "complete_task"}}}, true},
		"a question":                          {map[string]any{"actions": []any{map[string]any{"type": "request_approval", "question": "May I?"}}}, true},
	} {
		if got := AsksAboutTask(ParseActions(row.result, true)); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
