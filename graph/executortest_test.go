package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnExecutorIsTestedWithTheRecordItComesFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	test := func(id string) (string, string) {
		t.Helper()
		var out struct {
			TestExecutor struct {
				Checks []struct {
					Name, Detail string
					Ok           bool
					Hint         *string
				}
			}
		}
		e := w.mutate("testExecutor", "checks { name ok detail hint }", map[string]any{"agentId": id}, &out)
		text := ""
		for _, c := range out.TestExecutor.Checks {
			text += fmt.Sprintf("%s %v %s %v; ", c.Name, c.Ok, c.Detail, c.Hint != nil)
		}
		return text, e
	}
	if got, e := test(agent); e != "" || got != "kind true echo of agt false; agent false wsp agt true; " {
		t.Errorf("%q %s", got, e)
	}
	w.sql(`UPDATE agents SET executor = NULL`)
	w.sql(`UPDATE workspaces SET default_executor = '{"command": {"argv": ["true"]}}'`)
	if got, e := test(agent); e != "" || got != "kind true command of wsp false; agent false wsp agt true; " {
		t.Errorf("%q %s", got, e)
	}
	if got, e := test("agt_01k60000000000000000000000"); got != "" || e == "" {
		t.Errorf("%q %s", got, e)
	}
}

func TestWhatAWakeTellsItsAgentIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	wake := func(n int) string {
		return w.mutate("wakeAgent", "wakeupRequest { id }", map[string]any{"agentId": agent, "userId": "ada", "context": map[string]any{"text": strings.Repeat("<", n)}}, nil)
	}
	if e := wake(32<<10 - 100); e != "" {
		t.Errorf("almost 32 KiB: %s", e)
	}
	if e := wake(32 << 10); e != "TOO_LONG input.context" {
		t.Errorf("more than 32 KiB: %s", e)
	}
	var made struct {
		CreateRoutine struct{ Routine struct{ ID string } }
	}
	if e := w.mutate("createRoutine", "routine { id }", map[string]any{"workspaceId": w.workspace, "name": "By hand", "assigneeId": agent}, &made); e != "" {
		t.Fatal(e)
	}
	fire := map[string]any{"routineId": made.CreateRoutine.Routine.ID, "variables": map[string]any{"text": strings.Repeat("x", 33<<10)}}
	if e := w.mutate("fireRoutine", "routineRun { id }", fire, nil); e != "TOO_LONG input.variables" {
		t.Errorf("fired: %s", e)
	}
}
