package doctor

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
)

func TestRoutinesThatSkipAreToldTogetherAndAreNoFault(t *testing.T) {
	facts := domain.RoutineAdviceFacts{Scheduled: true, Unattended: true, SkipsIdle: true, Agent: "Ada", AgentStatus: domain.AgentStatusIdle, Executor: true, Budget: true}
	var list []reads.AdvisedRoutine
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		list = append(list, reads.AdvisedRoutine{Name: name, RoutineAdviceFacts: facts})
	}
	list[4].SkipsIdle, list[4].Budget = false, false
	got := adviceChecks(list)
	if len(got) != 2 || !got[0].OK || got[0].Detail != "IDLE_SKIP: 4 of 5 active routines: a, b, c, and 1 more" || !strings.Contains(got[0].Hint, "skipIdleWakeups") ||
		got[1].Detail != "NO_BUDGET: 1 of 5 active routines: e" {
		t.Errorf("%+v", got)
	}
	if got := adviceChecks(list[:0]); len(got) != 0 {
		t.Errorf("of no routine: %+v", got)
	}
}
