package domain

import (
	"testing"
	"time"
)

func TestHoldsOfAnAgent(t *testing.T) {
	first, now := time.Unix(100, 0), time.Unix(200, 0)
	user, budget := AgentPauseReasonUser, AgentPauseReasonBudget
	idle := AgentHold{Status: AgentStatusIdle}
	byUser, byBudget := AgentHold{AgentStatusPaused, &user, &first}, AgentHold{AgentStatusPaused, &budget, &first}
	stopped := AgentHold{Status: AgentStatusStopped, Since: &first}
	pause := func(reason AgentPauseReason) func(AgentHold) (AgentHold, []FieldError) {
		return func(h AgentHold) (AgentHold, []FieldError) { return h.Pause(reason, now) }
	}
	stop := func(h AgentHold) (AgentHold, []FieldError) { return h.Stop(now), nil }
	resume := func(h AgentHold) (AgentHold, []FieldError) { return h.Resume(), nil }
	for _, c := range []struct {
		name    string
		from    AgentHold
		do      func(AgentHold) (AgentHold, []FieldError)
		want    AgentHold
		refused bool
	}{
		{"a person pauses an idle agent", idle, pause(user), AgentHold{AgentStatusPaused, &user, &now}, false},
		{"a second pause keeps the instant of the first", byUser, pause(user), byUser, false},
		{"a person's pause takes a budget's place, and its instant", byBudget, pause(user), byUser, false},
		{"a budget does not soften a person's pause", byUser, pause(budget), byUser, false},
		{"a stopped agent is not paused", stopped, pause(user), stopped, true},
		{"an idle agent is stopped", idle, stop, AgentHold{Status: AgentStatusStopped, Since: &now}, false},
		{"a paused agent is stopped, held since its pause", byUser, stop, stopped, false},
		{"a stop twice is one", stopped, stop, stopped, false},
		{"a paused agent is resumed", byUser, resume, idle, false},
		{"a person may end a budget's pause", byBudget, resume, idle, false},
		{"a stopped agent is resumed", stopped, resume, idle, false},
		{"to resume an idle agent changes nothing", idle, resume, idle, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := c.do(c.from)
			if !got.Same(c.want) || !sameValue(got.Since, c.want.Since) || (len(problems) > 0) != c.refused {
				t.Errorf("got %+v %v, want %+v", got, problems, c.want)
			}
		})
	}
}
