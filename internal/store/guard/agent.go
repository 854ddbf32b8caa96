package guard

import (
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// AgentColumns are what the guards look at of the agent a of any run; AgentInto says where they go. The tasks of an agent are
// looked at only where it skips idle wakes, and whether there is one is all that counts.
const AgentColumns = `a.deleted_at IS NOT NULL, a.skip_idle_wakeups,
  CASE
    WHEN a.skip_idle_wakeups
      AND EXISTS (SELECT 1 FROM tasks x WHERE x.assignee_id = a.id AND ` + TaskActionable + `) THEN 1
    ELSE 0 END, coalesce(a.launch_limit, 0), a.launch_limit_ms`

// AgentInto is where a row's AgentColumns are scanned to.
func AgentInto(f *domain.AdmitFacts) []any {
	return []any{&f.AgentDeleted, &f.SkipIdleWakeups, &f.ActionableTasks, &f.LaunchLimit.Count, milliseconds{&f.LaunchLimit.Per}}
}

// milliseconds scans a duration that is stored so.
type milliseconds struct{ into *time.Duration }

// Scan takes the number that the driver gives.
func (m milliseconds) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a duration is stored as %T, want a number of milliseconds", v)
	}
	*m.into = time.Duration(n) * time.Millisecond
	return nil
}
