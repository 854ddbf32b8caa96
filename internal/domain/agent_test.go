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
		{"what is cleared gets its default", AgentPatch{Sessions: Change[int]{Set: true}, Cooldown: Change[time.Duration]{Set: true}}, func(s *AgentSettings) { s.Sessions, s.Cooldown = 1, 10*time.Second }, []string{"maxConcurrentSessions", "cooldown"}, ""},
		{"what may be empty is emptied", AgentPatch{ManagerID: Change[string]{Set: true}, SessionMaxAge: Change[time.Duration]{Set: true}}, func(s *AgentSettings) { s.ManagerID, s.SessionMaxAge = "", nil }, []string{"managerId", "sessionMaxAge"}, ""},
		{"a worker's idle skip goes back to its role's default", AgentPatch{SkipIdleWakeups: Change[bool]{Set: true}}, nil, nil, ""},
		{"a name cannot be cleared", AgentPatch{Name: Change[string]{Set: true}}, nil, nil, UserErrorCodeRequired},
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
