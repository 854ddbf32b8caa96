package domain

import (
	"slices"
	"strings"
	"testing"
)

func adviceCodes(list []Advice) (codes []string) {
	for _, a := range list {
		codes = append(codes, string(a.Code))
		if a.Message == "" || strings.Contains(a.Message, "%!") {
			codes = append(codes, "?"+a.Message)
		}
	}
	return codes
}

func TestWhatIsAdvisedOfARoutine(t *testing.T) {
	sound := RoutineAdviceFacts{Scheduled: true, Unattended: true, Agent: "Ada", AgentStatus: AgentStatusIdle, Executor: true, Budget: true}
	for _, c := range []struct {
		name string
		of   func(*RoutineAdviceFacts)
		want string
	}{
		{"nothing of one whose fires launch within a budget", func(*RoutineAdviceFacts) {}, ""},
		{"an agent that skips idle wakes and has nothing to do skips each scheduled fire", func(f *RoutineAdviceFacts) { f.SkipsIdle = true }, "IDLE_SKIP"},
		{"it is said also while the agent has a task, because that task will end", func(f *RoutineAdviceFacts) { f.SkipsIdle, f.HasTask = true, true }, "IDLE_SKIP"},
		{"a heavy routine brings its own task", func(f *RoutineAdviceFacts) { f.SkipsIdle, f.Heavy = true, true }, ""},
		{"what webhooks and people fire is no periodic wake", func(f *RoutineAdviceFacts) { f.SkipsIdle, f.Scheduled = true, false }, ""},
		{"without an executor each run fails, and what it would cost is no matter", func(f *RoutineAdviceFacts) { f.Executor, f.Budget = false, false }, "NO_EXECUTOR"},
		{"a paused agent starts nothing", func(f *RoutineAdviceFacts) { f.AgentStatus = AgentStatusPaused }, "ASSIGNEE_PAUSED"},
		{"a stopped agent starts nothing", func(f *RoutineAdviceFacts) { f.AgentStatus = AgentStatusStopped }, "ASSIGNEE_PAUSED"},
		{"a working agent is there", func(f *RoutineAdviceFacts) { f.AgentStatus = AgentStatusWorking }, ""},
		{"of a deleted agent nothing else matters", func(f *RoutineAdviceFacts) { f.AgentGone, f.Executor, f.SkipsIdle = true, false, true }, "ASSIGNEE_GONE"},
		{"a schedule without a slot that is left does nothing", func(f *RoutineAdviceFacts) { f.NeverFires = true }, "NEVER_FIRES"},
		{"a deadline below the time between two looks misses slots", func(f *RoutineAdviceFacts) { f.ShortDeadline = true }, "DEADLINE_BELOW_TICK"},
		{"a secret that nobody is asked for protects nothing", func(f *RoutineAdviceFacts) { f.UnusedSecret = true }, "SECRET_UNUSED"},
		{"what spends without a person wants a budget", func(f *RoutineAdviceFacts) { f.Budget = false }, "NO_BUDGET"},
		{"a person who fires by hand sees what it costs", func(f *RoutineAdviceFacts) { f.Budget, f.Unattended, f.Scheduled = false, false, false }, ""},
		{"an echo costs nothing", func(f *RoutineAdviceFacts) { f.Budget, f.Echo = false, true }, ""},
		{"what keeps fires from working comes before what they cost", func(f *RoutineAdviceFacts) { f.SkipsIdle, f.Budget, f.AgentStatus = true, false, AgentStatusPaused }, "IDLE_SKIP ASSIGNEE_PAUSED NO_BUDGET"},
	} {
		f := sound
		c.of(&f)
		if got := strings.Join(adviceCodes(AdviseRoutine(f)), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestIdleAdviceSaysWhetherTheNextFireIsSkipped(t *testing.T) {
	for hasTask, want := range map[bool]string{false: "it has none now: the routine's scheduled fires end SKIPPED", true: "it has one now: once that is done"} {
		f := RoutineAdviceFacts{Scheduled: true, SkipsIdle: true, HasTask: hasTask, Agent: "Ada", Executor: true, Budget: true}
		if text := AdviseRoutine(f)[0].Message; !strings.Contains(text, want) || !strings.HasPrefix(text, "Ada ") || f.SkipsNow() == hasTask {
			t.Errorf("with a task %v: %s, skips now %v", hasTask, text, f.SkipsNow())
		}
	}
	if f := (RoutineAdviceFacts{SkipsIdle: true, Heavy: true}); f.SkipsNow() {
		t.Error("a heavy fire brings a task and is not skipped")
	}
}

func TestWhatIsAdvisedOfAnAgent(t *testing.T) {
	sound := AgentAdviceFacts{Name: "Ada", Executor: true, Budget: true}
	for _, c := range []struct {
		name string
		of   func(*AgentAdviceFacts)
		want []string
	}{
		{"nothing of one that can work within a budget", func(*AgentAdviceFacts) {}, nil},
		{"one that skips idle wakes and has no scheduled routine loses none", func(f *AgentAdviceFacts) { f.SkipsIdle = true }, nil},
		{"one that skips idle wakes loses those of its scheduled routines", func(f *AgentAdviceFacts) { f.SkipsIdle, f.Heartbeats, f.Heartbeat = true, 2, "Daily" }, []string{"IDLE_SKIP"}},
		{"one that takes idle wakes loses none", func(f *AgentAdviceFacts) { f.Heartbeats, f.Heartbeat = 2, "Daily" }, nil},
		{"one without executor fails", func(f *AgentAdviceFacts) { f.Executor, f.Budget = false, false }, []string{"NO_EXECUTOR"}},
		{"one without budget spends without limit", func(f *AgentAdviceFacts) { f.Budget = false }, []string{"NO_BUDGET"}},
		{"an echo costs nothing", func(f *AgentAdviceFacts) { f.Budget, f.Echo = false, true }, nil},
	} {
		f := sound
		c.of(&f)
		if got := adviceCodes(AdviseAgent(f)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
