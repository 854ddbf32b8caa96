package guard

import "rouse.dev/rouse/internal/domain"

// AgentColumns are what the guards look at of the agent a of any run; AgentInto says where they go. The tasks of an agent are
// looked at only where it skips idle wakes, and whether there is one is all that counts.
const AgentColumns = `a.deleted_at IS NOT NULL, a.skip_idle_wakeups,
  CASE
    WHEN a.skip_idle_wakeups
      AND EXISTS (SELECT 1 FROM tasks x WHERE x.assignee_id = a.id AND ` + TaskActionable + `) THEN 1
    ELSE 0 END`

// AgentInto is where a row's AgentColumns are scanned to.
func AgentInto(f *domain.AdmitFacts) []any {
	return []any{&f.AgentDeleted, &f.SkipIdleWakeups, &f.ActionableTasks}
}
