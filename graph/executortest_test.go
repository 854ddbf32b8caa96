package graph_test

import (
	"fmt"
	"testing"
)

func TestAnExecutorIsTestedWithTheRecordItComesFrom(t *testing.T) {
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
