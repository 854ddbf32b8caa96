package domain

import "fmt"

// Advice is something to think about. Member is the member of a routine's or an agent's input that it is about; "" when it is
// about several things.
type Advice struct {
	Code    AdvisoryCode
	Message string
	Member  string
}

// RoutineAdviceFacts are the facts from which advice about a routine follows.
type RoutineAdviceFacts struct {
	Heavy         bool // has a task template
	Scheduled     bool // a schedule of it is switched on
	Unattended    bool // a schedule or a webhook of it is switched on
	NeverFires    bool // a schedule of it was switched off, since no slot is left
	ShortDeadline bool // a schedule of it has a startDeadline below TickInterval
	UnusedSecret  bool // a webhook of it has a secret and takes callers without proof
	Agent         string
	AgentGone     bool
	AgentStatus   AgentStatus
	SkipsIdle     bool // skip_idle_wakeups of the agent
	HasTask       bool // the agent has a task in TODO or IN_PROGRESS
	Executor      bool // the agent, the template's project or the workspace has an executor
	Echo          bool // that executor only echoes, which costs nothing
	Budget        bool // of the agent, the template's project or the workspace
}

// AdviseRoutine is what to think about in a routine, what matters most first.
func AdviseRoutine(f RoutineAdviceFacts) (list []Advice) {
	say := func(when bool, code AdvisoryCode, member, format string, args ...any) {
		if when {
			list = append(list, Advice{code, fmt.Sprintf(format, args...), member})
		}
	}
	say(f.AgentGone, AdvisoryAssigneeGone, "assigneeId", "the routine does not fire, because its agent was deleted: give it another assignee")
	if f.AgentGone {
		return list
	}
	say(f.idleSkips(), AdvisoryIdleSkip, "", "%s skips scheduled wakes while it has no task in TODO or IN_PROGRESS, and it has %s: %s. Set skipIdleWakeups of the agent to false, or give the routine a task template",
		f.Agent, taskWord(f.HasTask), idleOutcome(f.HasTask))
	say(!f.Executor, AdvisoryNoExecutor, "", "each run of this routine fails, because nothing says how %s works: set an executor on the agent, its project, or as the workspace's default", f.Agent)
	say(f.AgentStatus == AgentStatusPaused || f.AgentStatus == AgentStatusStopped, AdvisoryAssigneePaused, "assigneeId",
		"%s is %s, so no fire of this routine starts work: resume the agent", f.Agent, statusWord(f.AgentStatus))
	say(f.NeverFires, AdvisoryNeverFires, "", "a schedule of this routine was switched off, because no slot is left within its bounds: give it a later endsAt, another instant, or remove it")
	say(f.ShortDeadline, AdvisoryDeadlineShort, "", "a schedule of this routine has a startDeadline below %s, which may pass between two looks at it: slots may be missed although nothing is wrong", TickInterval)
	say(f.UnusedSecret, AdvisorySecretUnused, "", "a webhook of this routine has a secret that nobody is asked for, because its signing mode is NONE: choose BEARER or HMAC_SHA256")
	say(f.Unattended && f.Executor && !f.Echo && !f.Budget, AdvisoryNoBudget, "", "the routine spends without a person, and no budget limits it: set one for the workspace, the project or %s", f.Agent)
	return list
}

// idleSkips says whether the idle guard may end the routine's scheduled fires without a launch (SPEC S6.2).
func (f RoutineAdviceFacts) idleSkips() bool { return f.Scheduled && !f.Heavy && f.SkipsIdle }

// SkipsNow says whether a scheduled fire would end IDLE_SKIPPED, were it claimed now.
func (f RoutineAdviceFacts) SkipsNow() bool { return !f.Heavy && f.SkipsIdle && !f.HasTask }

func taskWord(has bool) string {
	if has {
		return "one now"
	}
	return "none now"
}

func idleOutcome(has bool) string {
	if has {
		return "once that is done, the routine's scheduled fires end SKIPPED"
	}
	return "the routine's scheduled fires end SKIPPED"
}

func statusWord(s AgentStatus) string {
	if s == AgentStatusStopped {
		return "stopped"
	}
	return "paused"
}

// AgentAdviceFacts are the facts from which advice about an agent follows.
type AgentAdviceFacts struct {
	Name             string
	SkipsIdle        bool
	Heartbeats       int    // lightweight routines with a schedule that is switched on and that fire for it
	Heartbeat        string // one of them
	Executor, Budget bool   // of the agent or the workspace
	Echo             bool
}

// AdviseAgent is what to think about in an agent, what matters most first.
func AdviseAgent(f AgentAdviceFacts) (list []Advice) {
	if f.SkipsIdle && f.Heartbeats > 0 {
		list = append(list, Advice{AdvisoryIdleSkip, fmt.Sprintf("%s skips scheduled wakes while it has no task in TODO or IN_PROGRESS: then the scheduled fires of %d of its routines end SKIPPED, %s among them. Set skipIdleWakeups to false, or give the routines task templates",
			f.Name, f.Heartbeats, f.Heartbeat), "skipIdleWakeups"})
	}
	if !f.Executor {
		list = append(list, Advice{AdvisoryNoExecutor, f.Name + " has no executor, and neither has the workspace: each run fails unless its task or project has one", "executor"})
	}
	if f.Executor && !f.Echo && !f.Budget {
		list = append(list, Advice{AdvisoryNoBudget, fmt.Sprintf("no budget limits what %s spends: set one for the agent or the workspace", f.Name), ""})
	}
	return list
}
