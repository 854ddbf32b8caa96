package domain

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestAnActionThatACallHasDoneIsNotDoneAgain(t *testing.T) {
	move := func(to TaskState) Action { return Action{Type: ActionMoveTask, State: to} }
	subtask := func(title, agent string) Action {
		return Action{Type: ActionCreateSubtask, Title: title, Assignee: agent}
	}
	say := func(body string) Action { return Action{Type: ActionComment, Body: body} }
	tell := func(body string, agents ...string) Action {
		return Action{Type: ActionComment, Body: body, Mentions: agents}
	}
	link := func(url, title string) Action {
		return Action{Type: ActionAddLink, Kind: LinkKindPreview, URL: url, Title: title}
	}
	complete := Action{Type: ActionCompleteTask}
	for name, test := range map[string]struct {
		calls, result []Action
		again         []int // places of the result's actions that calls have done
	}{
		"nothing was called":                   {nil, []Action{say("hi"), complete}, nil},
		"the same comment":                     {[]Action{say("hi")}, []Action{say(" hi\n")}, []int{0}},
		"another comment":                      {[]Action{say("hi")}, []Action{say("ho")}, nil},
		"the same comment twice in the result": {[]Action{say("hi")}, []Action{say("hi"), say("hi")}, []int{0, 1}},
		"the same comment with a mention wakes whom it mentions":  {[]Action{say("hi")}, []Action{tell("hi", "agt_1")}, nil},
		"the same comment with the same mention":                  {[]Action{tell("hi", "agt_1")}, []Action{tell("hi", "agt_1")}, []int{0}},
		"the same comment with one more mention":                  {[]Action{tell("hi", "agt_1")}, []Action{tell("hi", "agt_1", "agt_2")}, nil},
		"the same comment without its mention wakes nobody again": {[]Action{tell("hi", "agt_1")}, []Action{say("hi")}, []int{0}},
		"mentions of two equal comments count together":           {[]Action{tell("hi", "agt_1"), tell("hi", "agt_2")}, []Action{tell("hi", "agt_2", "agt_1")}, []int{0}},
		"the mentions of another comment do not count":            {[]Action{say("hi"), tell("ho", "agt_1")}, []Action{tell("hi", "agt_1")}, nil},
		"a comment in other words is another one":                 {[]Action{say("It is done.")}, []Action{say("Done.")}, nil},
		"the same link":                                            {[]Action{link("https://x/1", "One")}, []Action{link("https://x/1", "One ")}, []int{0}},
		"a link that gets another title":                           {[]Action{link("https://x/1", "One")}, []Action{link("https://x/1", "Two")}, nil},
		"a link that turns out to be something else":               {[]Action{link("https://x/1", "One")}, []Action{{Type: ActionAddLink, Kind: LinkKindPullRequest, URL: "https://x/1", Title: "One"}}, nil},
		"numbers of a payload are equal in any form":               {[]Action{{Type: ActionSelfWake, Reason: "r", Payload: map[string]any{"n": json.Number("2.0")}}}, []Action{{Type: ActionSelfWake, Reason: "r", Payload: map[string]any{"n": 2.0}}}, []int{0}},
		"a completion is a move to DONE":                           {[]Action{complete}, []Action{move(TaskStateDone)}, []int{0}},
		"a move to DONE is a completion":                           {[]Action{move(TaskStateDone)}, []Action{complete}, []int{0}},
		"a remark does not make it another move":                   {[]Action{move(TaskStateBlocked)}, []Action{{Type: ActionMoveTask, State: TaskStateBlocked, Note: "why"}}, []int{0}},
		"the result says all moves again":                          {[]Action{move(TaskStateInProgress), complete}, []Action{move(TaskStateInProgress), complete}, []int{0, 1}},
		"the result says the last move again":                      {[]Action{move(TaskStateInProgress), complete}, []Action{complete}, []int{0}},
		"the result goes on from where the calls came to":          {[]Action{move(TaskStateInProgress)}, []Action{move(TaskStateInProgress), complete}, []int{0}},
		"the result moves back to where the calls came by":         {[]Action{move(TaskStateBlocked), move(TaskStateInProgress)}, []Action{move(TaskStateBlocked)}, nil},
		"the result moves elsewhere":                               {[]Action{complete}, []Action{move(TaskStateInReview)}, nil},
		"the result leaves and comes back":                         {[]Action{move(TaskStateInProgress)}, []Action{move(TaskStateBlocked), move(TaskStateInProgress)}, nil},
		"a move that cannot be read is none":                       {[]Action{complete}, []Action{{Type: ActionMoveTask, State: "LATER", Problem: "state"}, complete}, []int{1}},
		"the same subtask":                                         {[]Action{subtask("dig", "agt_1")}, []Action{subtask("dig", "agt_1")}, []int{0}},
		"a subtask of the same title for another agent":            {[]Action{subtask("dig", "agt_1")}, []Action{subtask("dig", "agt_2")}, nil},
		"the same question":                                        {[]Action{{Type: ActionRequestApproval, Question: "May I?"}}, []Action{{Type: ActionRequestApproval, Question: "May I?"}}, []int{0}},
		"the same decision with another remark":                    {[]Action{{Type: ActionDecideApproval, ApprovalID: "apr_1", Approved: true}}, []Action{{Type: ActionDecideApproval, ApprovalID: "apr_1", Approved: true, Note: "fine"}}, []int{0}},
		"the opposite decision":                                    {[]Action{{Type: ActionDecideApproval, ApprovalID: "apr_1", Approved: true}}, []Action{{Type: ActionDecideApproval, ApprovalID: "apr_1"}}, nil},
		"the same self wake":                                       {[]Action{{Type: ActionSelfWake, Reason: "look again"}}, []Action{{Type: ActionSelfWake, Reason: "look again", Payload: map[string]any{}}}, []int{0}},
		"a self wake that leaves itself something else":            {[]Action{{Type: ActionSelfWake, Reason: "look again"}}, []Action{{Type: ActionSelfWake, Reason: "look again", Payload: map[string]any{"n": 2}}}, nil},
		"a comment of the same words as a question is no question": {[]Action{say("May I?")}, []Action{{Type: ActionRequestApproval, Question: "May I?"}}, nil},
	} {
		var acts []Act
		for i, a := range test.calls {
			acts = append(acts, Act{Key: a.Key(), ID: string(rune('a' + i)), State: a.MovesTo(), Mentions: a.Mentions})
		}
		restated := NewRestated(acts, test.result)
		var again []int
		for i, a := range test.result {
			if a.Problem != "" {
				continue
			}
			if act, ok := restated.Take(a); ok {
				again = append(again, i)
				if act.ID == "" {
					t.Errorf("%s: action %d has no act", name, i)
				}
			}
		}
		if !slices.Equal(again, test.again) {
			t.Errorf("%s: done before are %v, want %v", name, again, test.again)
		}
	}
}
