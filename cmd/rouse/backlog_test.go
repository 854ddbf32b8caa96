package main

import (
	"testing"
	"time"
)

// queueMany queues wakes of an agent.
func (o office) queueMany(agent string, n int) {
	o.t.Helper()
	queueWakes(o.t, o.db, o.workspace, []string{agent}, n)
}

func (o office) count(query string, args ...any) int {
	o.t.Helper()
	return countIn(o.t, o.db, query, args...)
}

// An agent with 2,000 queued runs is paused, resumed and deleted. Each act is answered soon, and another agent of the workspace is launched as if
// there were no queue: before passes were bounded, its wake waited for 18 s behind 300 runs of a paused agent (SPEC S6.2).
func TestABacklogOfOneAgentDelaysNobody(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	const queued = 2000
	busy := o.script("Busy", `cat >/dev/null; sleep 600`)
	other := o.agent("Other", map[string]any{"echo": map[string]any{}})
	began := time.Now()
	o.end(o.wake(other))
	// No measure: what grows with the backlog takes minutes at this length. A busy machine is as slow without one.
	soon := time.Minute + 50*time.Since(began)
	o.queueMany(busy, queued)
	eventually(t, "the wakes are routed and one is at work", patience, func() bool {
		return o.count(`SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'QUEUED'`, busy) >= queued-20 &&
			o.count(`SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'CLAIMED'`, busy) > 0
	})
	for _, act := range []string{"pauseAgent", "resumeAgent", "pauseAgent", "deleteAgent"} {
		began := time.Now()
		var out struct{}
		o.change(act, "", map[string]any{"agentId": busy}, &out)
		if took := time.Since(began); took > soon {
			t.Errorf("%s took %v", act, took)
		}
		for range 5 {
			began := time.Now()
			if run := o.end(o.wake(other)); run.Status != "FINISHED" {
				t.Errorf("after %s the other agent's run is %+v", act, run)
			}
			if took := time.Since(began); took > soon {
				t.Errorf("after %s a wake of another agent took %v", act, took)
			}
		}
	}
	eventually(t, "the deleted agent's runs have ended", patience, func() bool {
		return o.count(`SELECT count(*) FROM runs WHERE agent_id = $1 AND finished_at IS NULL`, busy) == 0
	})
	if n := o.count(`SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND finished_at IS NULL`, busy); n != 0 {
		t.Errorf("%d wakes of the deleted agent are open", n)
	}
}
