package main

import (
	"slices"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// TestProgramMasksAValueThatWasReplacedBetweenTwoAttempts lets an agent leave its key in a file, fail, get another key, and say
// both in its next attempt: of this process, and of a worker elsewhere.
func TestProgramMasksAValueThatWasReplacedBetweenTwoAttempts(t *testing.T) {
	p := start(t, pgtest.Folder(t), nil)
	for name, elsewhere := range map[string]bool{"of the server": false, "of a worker": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			j := newJourney(p)
			j = j.on(t, p)
			executor := func(key string) map[string]any {
				command := map[string]any{"argv": []string{"/bin/sh", "-c", `
if [ -e kept ]; then echo "was $(cat kept)"; echo "is $KEY"; echo '{"summary": "told '"$(cat kept) $KEY"'"}'; else printf %s "$KEY" >kept; exit 1; fi`},
					"workingDirectory": w.dir, "environment": []any{map[string]any{"name": "KEY", "value": key}}}
				if elsewhere {
					return map[string]any{"pull": map[string]any{"lease": "PT15S", "command": command}}
				}
				return map[string]any{"command": command}
			}
			if elsewhere {
				j.worker(t)
			}
			agent := j.agent("keeper", executor("first-secret-value"))
			run := j.wake(agent)
			eventually(t, "its first attempt failed", patience, func() bool { return j.run(run).attempts() == "FAILED" })
			var out any
			j.request(`mutation($in: UpdateAgentInput!) { updateAgent(input: $in) { agent { id } } }`, map[string]any{"in": map[string]any{"agentId": agent, "executor": executor("second-secret-value")}}, &out)
			j.request(`mutation($id: ID!) { retryRun(input: {runId: $id}) { run { id } } }`, map[string]any{"id": run}, &out)
			view := j.end(run)
			if got := j.linesOf(run, 2); view.attempts() != "FAILED SUCCEEDED" || !slices.Equal(got[:min(2, len(got))], []string{"was ***", "is ***"}) || view.Summary != "told *** ***" {
				t.Errorf("attempts %s, summary %q, lines %q", view.attempts(), view.Summary, got)
			}
		})
	}
}
