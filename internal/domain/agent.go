package domain

// SkipsIdleWakeups is the default of skip_idle_wakeups: a coordinator looks around on every heartbeat, the others only
// when they have a task to do (SPEC S2).
func (r AgentRole) SkipsIdleWakeups() bool { return r != AgentRoleCoordinator }
