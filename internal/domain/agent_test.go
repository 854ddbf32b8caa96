package domain

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAPatchOfAnAgent(t *testing.T) {
	age := time.Hour
	now := AgentSettings{Name: "Ada", Sessions: 2, Cooldown: time.Minute, SkipIdleWakeups: true, ManagerID: "agt_1", SessionMaxAge: &age}
	for _, c := range []struct {
		name    string
		patch   AgentPatch
		want    func(*AgentSettings)
		changed []string
		problem UserErrorCode
	}{
		{"nothing given changes nothing", AgentPatch{}, nil, nil, ""},
		{"a given value takes the old one's place", AgentPatch{Name: To(" Eve "), Sessions: To(3)}, func(s *AgentSettings) { s.Name, s.Sessions = "Eve", 3 }, []string{"name", "maxConcurrentSessions"}, ""},
		{"the same value is no change", AgentPatch{Name: To("Ada"), SessionMaxAge: To(time.Hour)}, nil, nil, ""},
		{"what is cleared gets its default", AgentPatch{Sessions: Clear[int](), Cooldown: Clear[time.Duration]()}, func(s *AgentSettings) { s.Sessions, s.Cooldown = 1, 10*time.Second }, []string{"maxConcurrentSessions", "cooldown"}, ""},
		{"what may be empty is emptied", AgentPatch{ManagerID: Clear[string](), SessionMaxAge: Clear[time.Duration]()}, func(s *AgentSettings) { s.ManagerID, s.SessionMaxAge = "", nil }, []string{"managerId", "sessionMaxAge"}, ""},
		{"a worker's idle skip goes back to its role's default", AgentPatch{SkipIdleWakeups: Clear[bool]()}, nil, nil, ""},
		{"a name cannot be cleared", AgentPatch{Name: Clear[string]()}, nil, nil, UserErrorCodeRequired},
		{"51 sessions are too many", AgentPatch{Sessions: To(51)}, nil, nil, UserErrorCodeOutOfRange},
		{"a day is the longest cooldown", AgentPatch{Cooldown: To(25 * time.Hour)}, nil, nil, UserErrorCodeOutOfRange},
		{"65 KiB of instructions are too long", AgentPatch{Instructions: To(strings.Repeat("x", 65<<10))}, nil, nil, UserErrorCodeTooLong},
		{"a session that serves no run", AgentPatch{SessionMaxRuns: To(0)}, nil, nil, UserErrorCodeOutOfRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, changed, problems := now.Apply(c.patch, AgentRoleWorker)
			if c.problem != "" {
				if len(problems) != 1 || problems[0].Code != c.problem {
					t.Errorf("problems are %v, want %s", problems, c.problem)
				}
				return
			}
			want := now
			if c.want != nil {
				c.want(&want)
			}
			if next.Name != want.Name || next.Sessions != want.Sessions || next.Cooldown != want.Cooldown || next.SkipIdleWakeups != want.SkipIdleWakeups ||
				next.ManagerID != want.ManagerID || !sameValue(next.SessionMaxAge, want.SessionMaxAge) || len(problems) > 0 {
				t.Errorf("got %+v %v, want %+v", next, problems, want)
			}
			if !slices.Equal(changed, c.changed) {
				t.Errorf("changed are %v, want %v", changed, c.changed)
			}
		})
	}
}

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

func TestAPatchOfSettings(t *testing.T) {
	now := WorkspaceSettings{MaxRuns: new(4), LookbackHours: 24, Window: 5 * time.Second, TimeZone: "UTC"}
	known := func(zone string) bool { return zone == "UTC" || zone == "Europe/Lisbon" }
	for _, c := range []struct {
		name             string
		patch            SettingsPatch
		want             WorkspaceSettings
		changed, clamped []string
		problem          UserErrorCode
	}{
		{"nothing given changes nothing", SettingsPatch{}, now, nil, nil, ""},
		{"hours are clamped and said so", SettingsPatch{LookbackHours: To(5000)}, WorkspaceSettings{new(4), 720, 5 * time.Second, "UTC"}, []string{"recoveryLookbackHours"}, []string{"recoveryLookbackHours"}, ""},
		{"so are few hours and a long window", SettingsPatch{LookbackHours: To(0), Window: To(time.Hour)}, WorkspaceSettings{new(4), 1, time.Minute, "UTC"},
			[]string{"recoveryLookbackHours", "coalescingWindow"}, []string{"recoveryLookbackHours", "coalescingWindow"}, ""},
		{"a ceiling is lifted", SettingsPatch{MaxRuns: Clear[int]()}, WorkspaceSettings{nil, 24, 5 * time.Second, "UTC"}, []string{"maxConcurrentRuns"}, nil, ""},
		{"a ceiling of 0 is refused", SettingsPatch{MaxRuns: To(0)}, now, nil, nil, UserErrorCodeOutOfRange},
		{"a zone that nobody knows is refused", SettingsPatch{TimeZone: To("Mars/Olympus")}, now, nil, nil, UserErrorCodeUnknownTimeZone},
		{"a zone", SettingsPatch{TimeZone: To("Europe/Lisbon")}, WorkspaceSettings{new(4), 24, 5 * time.Second, "Europe/Lisbon"}, []string{"defaultTimeZone"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := now.Apply(c.patch, known)
			if c.problem != "" {
				if len(problems) != 1 || problems[0].Code != c.problem {
					t.Errorf("problems are %v, want %s", problems, c.problem)
				}
				return
			}
			n := got.Next
			if !sameValue(n.MaxRuns, c.want.MaxRuns) || n.LookbackHours != c.want.LookbackHours || n.Window != c.want.Window || n.TimeZone != c.want.TimeZone || len(problems) > 0 {
				t.Errorf("got %+v %v, want %+v", n, problems, c.want)
			}
			if !slices.Equal(got.Changed, c.changed) || !slices.Equal(got.Clamped, c.clamped) {
				t.Errorf("changed %v, clamped %v, want %v and %v", got.Changed, got.Clamped, c.changed, c.clamped)
			}
		})
	}
}
