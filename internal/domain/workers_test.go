package domain

import (
	"strings"
	"testing"
)

func TestWorkersOfAQueue(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		facts        WorkerFacts
		ok           bool
		detail, hint string
	}{
		"one waits":                           {WorkerFacts{Queue: "gpu", Waits: &yes}, true, `waits for runs of the queue "gpu"`, ""},
		"none waits, and some are at work":    {WorkerFacts{Queue: "gpu", Waits: &no, AtWork: 2}, true, "at work on 2 runs", ""},
		"there is none":                       {WorkerFacts{WorkspaceID: "wsp_1", Queue: "gpu", Waits: &no}, false, "no worker", "--workspace wsp_1 --queue gpu"},
		"the doctor sees none, nor who waits": {WorkerFacts{Queue: "gpu"}, true, "the server knows", "testExecutor"},
	} {
		got := CheckWorkers(c.facts)
		if got.OK != c.ok || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Hint, c.hint) || c.hint == "" && got.Hint != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
