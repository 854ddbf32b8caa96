package domain

import (
	"time"
)

// SkipsIdleWakeups is the default of skip_idle_wakeups: a coordinator looks around on every heartbeat, the others only
// when they have a task to do (SPEC S2).
func (r AgentRole) SkipsIdleWakeups() bool { return r != AgentRoleCoordinator }

// Defaults and bounds of an agent's settings. Lengths of texts: a name in characters, instructions in bytes.
const (
	DefaultSessions = 1
	MaxSessions     = 50
	DefaultCooldown = 10 * time.Second
	MaxCooldown     = 24 * time.Hour
	maxName         = 200
	maxInstructions = 64 << 10
)

// AgentSettings are what a person may set of an agent. Nil means no limit of a session's runs or age.
type AgentSettings struct {
	Name            string
	Instructions    string
	Sessions        int // at once
	Cooldown        time.Duration
	SkipIdleWakeups bool
	ManagerID       string // "": none
	SessionMaxRuns  *int
	SessionMaxAge   *time.Duration
	LaunchLimit     *LaunchLimit // of unattended launches; nil: none
}

// Check trims the name and says what is wrong with the settings.
func (s AgentSettings) Check() (AgentSettings, []FieldError) {
	var problems []FieldError
	problem := func(field string, code UserErrorCode, message string) {
		problems = append(problems, FieldError{Field: []string{field}, Code: code, Message: message})
	}
	s.Name, problems = CheckName(s.Name, problems)
	if s.Sessions < 1 || s.Sessions > MaxSessions {
		problem("maxConcurrentSessions", UserErrorCodeOutOfRange, "an agent has 1 to 50 sessions at once")
	}
	if s.Cooldown < 0 || s.Cooldown > MaxCooldown {
		problem("cooldown", UserErrorCodeOutOfRange, "a cooldown is PT0S to PT24H")
	}
	if len(s.Instructions) > maxInstructions {
		problem("instructions", UserErrorCodeTooLong, "instructions have at most 64 KiB")
	}
	if s.SessionMaxRuns != nil && *s.SessionMaxRuns < 1 {
		problem("sessionMaxRuns", UserErrorCodeOutOfRange, "a session serves at least 1 run; leave it out for no limit")
	}
	if s.SessionMaxAge != nil && *s.SessionMaxAge <= 0 {
		problem("sessionMaxAge", UserErrorCodeOutOfRange, "a session's greatest age is positive; leave it out for no limit")
	}
	if s.LaunchLimit != nil {
		problems = append(problems, s.LaunchLimit.problems()...)
	}
	return s, problems
}

// AgentPatch is a change of settings. A field that is not Set stays. A field that is Set to nil gets its default, or no
// value where it may have none. A name cannot be cleared.
type AgentPatch struct {
	Name            Change[string]
	Instructions    Change[string]
	Sessions        Change[int]
	Cooldown        Change[time.Duration]
	SkipIdleWakeups Change[bool] // cleared: the role's default
	ManagerID       Change[string]
	SessionMaxRuns  Change[int]
	SessionMaxAge   Change[time.Duration]
	LaunchLimit     Change[LaunchLimit] // cleared: none
}

// Apply gives the settings after the change, the names of the fields that became different, and what is wrong with them.
func (s AgentSettings) Apply(p AgentPatch, role AgentRole) (next AgentSettings, changed []string, problems []FieldError) {
	next = s
	next.Name = p.Name.Or(s.Name, "")
	next.Instructions = p.Instructions.Or(s.Instructions, "")
	next.Sessions = p.Sessions.Or(s.Sessions, DefaultSessions)
	next.Cooldown = p.Cooldown.Or(s.Cooldown, DefaultCooldown)
	next.SkipIdleWakeups = p.SkipIdleWakeups.Or(s.SkipIdleWakeups, role.SkipsIdleWakeups())
	next.ManagerID = p.ManagerID.Or(s.ManagerID, "")
	next.SessionMaxRuns = p.SessionMaxRuns.OrNil(s.SessionMaxRuns)
	next.SessionMaxAge = p.SessionMaxAge.OrNil(s.SessionMaxAge)
	next.LaunchLimit = p.LaunchLimit.OrNil(s.LaunchLimit)
	next, problems = next.Check()
	if next.Name == s.Name { // it may be older than the rules
		problems = withoutField(problems, "name")
	}
	d := differences{}
	d.add("name", next.Name != s.Name)
	d.add("instructions", next.Instructions != s.Instructions)
	d.add("maxConcurrentSessions", next.Sessions != s.Sessions)
	d.add("cooldown", next.Cooldown != s.Cooldown)
	d.add("skipIdleWakeups", next.SkipIdleWakeups != s.SkipIdleWakeups)
	d.add("managerId", next.ManagerID != s.ManagerID)
	d.add("sessionMaxRuns", !sameValue(next.SessionMaxRuns, s.SessionMaxRuns))
	d.add("sessionMaxAge", !sameValue(next.SessionMaxAge, s.SessionMaxAge))
	d.add("launchLimit", !sameValue(next.LaunchLimit, s.LaunchLimit))
	return next, d, problems
}
