package agentstage

import "testing"

// TestAWatchdogObeysItsLines: what it does with them is tested with real processes, in internal/executor.
func TestAWatchdogObeysItsLines(t *testing.T) {
	live := map[int]*watched{}
	for _, line := range []string{"add 4000001 /sys/fs/cgroup/a b", "add 4000002 ", "add 1 ", "add x ", "", "nonsense 4000003", "until 4000002 60000", "until 4000009 1", "until 4000001 soon", "del 4000002", "del 4000008"} {
		obey(live, line)
	}
	if len(live) != 1 || live[4000001].cgroup != "/sys/fs/cgroup/a b" || live[4000001].over != nil {
		t.Errorf("it watches %+v", live)
	}
}
