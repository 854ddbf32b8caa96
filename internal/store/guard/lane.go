// Package guard is what stands between a run and its launch, as SQL and as facts: claims and the API read them alike, so that
// what is shown is what is done. Each predicate stands here once.
package guard

import "rouse.dev/rouse/internal/domain"

// LaneBacklog says of a lane that it has something to be ended or sent again in steps.
const LaneBacklog = `(head_at IS NOT NULL AND status <> 'IDLE' OR resend_from IS NOT NULL AND status = 'IDLE' OR clearing)`

// LaneDue says of a lane that a claim may take its head, once its agent has rested. What a held agent has queued is ended
// apart from the claims (SettleBacklog), so that it never stands in front of others.
const LaneDue = `head_at IS NOT NULL AND running < max_sessions AND status = '` + string(domain.AgentStatusIdle) + `'`

// LaneRests says of a lane that its agent has rested before, or rests. It is the condition of the index by which the next end of a rest is found.
const LaneRests = `eligible_at > '1970-01-01Z'`

// WorkspacesDue is the workspaces that have a due lane, found by a loose index scan: one probe for each of them, however
// many lanes or idle workspaces there are. It is a part of a WITH RECURSIVE.
const WorkspacesDue = `
due_workspaces AS (
  (SELECT workspace_id FROM agent_lanes WHERE ` + LaneDue + ` ORDER BY workspace_id LIMIT 1)
  UNION ALL
  SELECT (SELECT l.workspace_id FROM agent_lanes l WHERE ` + LaneDue + ` AND l.workspace_id > d.workspace_id
          ORDER BY l.workspace_id LIMIT 1)
  FROM due_workspaces d WHERE d.workspace_id IS NOT NULL),
open_workspaces AS (
  SELECT w.workspace_id FROM due_workspaces d JOIN workspace_lanes w ON w.workspace_id = d.workspace_id
  WHERE w.held_at IS NULL AND (w.max_running IS NULL OR w.running < w.max_running))`

// Places is how many more runs of the workspace lane w may be live, NULL without a ceiling. A workspace that a person holds has none.
const Places = `CASE WHEN w.held_at IS NULL THEN w.max_running - w.running ELSE 0 END`

// HoldsFires says in SQL of a workspace, whose id is an expression, that it is held and its schedules' slots wait meanwhile.
func HoldsFires(workspaceID string) string {
	return `EXISTS (SELECT 1 FROM workspaces hw WHERE hw.id = ` + workspaceID + ` AND hw.hold ->> 'fires' = '` + string(domain.HoldFiresHold) + `')`
}
