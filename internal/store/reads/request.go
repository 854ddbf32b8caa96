package reads

import (
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
)

// UnroutedRequest says in SQL of a wakeup request that it waits and no run has it yet.
const UnroutedRequest = guard.Unrouted

// RequestOfLiveRun says in SQL of a wakeup request that it has this status and that a live run of a workspace has it, whose id
// stands for the question mark. OFFSET 0 makes PostgreSQL begin with the live runs, which are few, and not with the requests.
func RequestOfLiveRun(status domain.WakeupStatus) string {
	return `id IN (
  SELECT q.id
  FROM runs r
  CROSS JOIN LATERAL (
    SELECT w.id FROM wakeup_requests w WHERE w.run_id = r.id AND w.status = '` + string(status) + `' OFFSET 0) q
  WHERE r.workspace_id = ? AND r.status IN ('` + string(domain.RunStatusQueued) + `', '` + string(domain.RunStatusClaimed) + `'))`
}
