package domain

import "time"

// AgentHold says whether an agent is held, why, and since when. Since is the start of the first of several holds that
// followed each other. A resume sends again what was dropped from then on (SPEC S6.3). It is nil unless the agent is
// PAUSED or STOPPED.
type AgentHold struct {
	Status      AgentStatus
	PauseReason *AgentPauseReason
	Since       *time.Time
}

// Held says whether the agent launches nothing.
func (h AgentHold) Held() bool {
	return h.Status == AgentStatusPaused || h.Status == AgentStatusStopped
}

func (h AgentHold) since(now time.Time) *time.Time {
	if h.Since != nil {
		return h.Since
	}
	return &now
}

// Pause holds an agent. A person's pause takes the place of a budget's, which would end by itself, and not the other way
// round. A stopped agent is not paused: that would set it free a step earlier than who stopped it meant.
func (h AgentHold) Pause(reason AgentPauseReason, now time.Time) (AgentHold, []FieldError) {
	switch {
	case h.Status == AgentStatusStopped:
		return h, []FieldError{{Field: []string{"agentId"}, Code: UserErrorCodeInvalidState, Message: "the agent is stopped; resume it before you pause it"}}
	case h.Status == AgentStatusPaused && reason == AgentPauseReasonBudget:
		return h, nil
	}
	return AgentHold{Status: AgentStatusPaused, PauseReason: &reason, Since: h.since(now)}, nil
}

// Stop switches an agent off.
func (h AgentHold) Stop(now time.Time) AgentHold {
	return AgentHold{Status: AgentStatusStopped, Since: h.since(now)}
}

// Resume lets an agent go on, whoever held it.
func (h AgentHold) Resume() AgentHold { return AgentHold{Status: AgentStatusIdle} }

// Same says whether nothing has changed.
func (h AgentHold) Same(other AgentHold) bool {
	return h.Status == other.Status && sameValue(h.PauseReason, other.PauseReason)
}
