package domain

import (
	"fmt"
	"slices"
)

// ActivityDetails are the members that the data of one code's entries has, for programs that read the feed: those that each
// entry has, and those that some have, depending on what happened. Entries of earlier versions may have fewer.
type ActivityDetails struct{ Always, Sometimes []string }

// Members that the sources name (agent, task_id, reason, old_agent, dispatched_count) are spelled as there, others as in the API.
var activityDetails = map[ActivityCode]ActivityDetails{
	ActivityCodeWakeupQueued:               {[]string{"agent", "runId", "source"}, []string{"task_id"}},
	ActivityCodeWakeupCoalesced:            {[]string{"agent", "runId", "source"}, []string{"task_id"}},
	ActivityCodeWakeupIdleSkipped:          {[]string{"agent", "reason"}, []string{"task_id"}},
	ActivityCodeWakeupAgentInactive:        {[]string{"agent", "reason"}, []string{"task_id"}},
	ActivityCodeWakeupCheckoutHeld:         {[]string{"agent", "reason", "task_id"}, nil},
	ActivityCodeWakeupResent:               {[]string{"agent"}, []string{"task_id"}},
	ActivityCodeWakeupBudgetBlocked:        {[]string{"agent", "reason"}, []string{"task_id"}},
	ActivityCodeWakeupStaleCancelled:       {[]string{"agent", "reason"}, []string{"task_id"}},
	ActivityCodeWakeupRetryScheduled:       {[]string{"agent"}, []string{"task_id", "until", "source", "failures", "limits", "code", "was", "resent", "resentRequestIds", "note"}},
	ActivityCodeWakeupRetryCancelled:       {[]string{"agent", "old_agent", "reason", "task_id"}, nil},
	ActivityCodeRecoveryDispatch:           {[]string{"agent", "task_id", "wakeupRequestId"}, nil},
	ActivityCodeRecoverySweepComplete:      {[]string{"dispatched_count", "dispatchedCount"}, nil},
	ActivityCodeRunClaimed:                 {[]string{"agent", "attempt"}, []string{"task_id", "queue"}},
	ActivityCodeRunLaunched:                {[]string{"agent", "attempt", "executor", "wakeupRequests"}, []string{"task_id", "resumedSession"}},
	ActivityCodeRunFinished:                {[]string{"agent", "attempt", "outcome"}, []string{"task_id"}},
	ActivityCodeRunFailed:                  {[]string{"agent", "code", "reason"}, []string{"task_id"}},
	ActivityCodeRunCancelled:               {[]string{"agent", "reason"}, []string{"task_id", "note"}},
	ActivityCodeRunRescued:                 {[]string{"agent", "attempt", "losses"}, []string{"task_id", "parked", "until"}},
	ActivityCodeRoutineChanged:             {[]string{"agent", "routineId"}, []string{"created", "name", "triggers", "changed", "status", "deleted", "runsCancelled", "cancelledRunIds", "reason"}},
	ActivityCodeRoutineFired:               {[]string{"agent", "routineId", "source", "status"}, []string{"triggerId", "reason", "heldBy", "coalescedInto"}},
	ActivityCodeTriggerChanged:             {[]string{"agent", "routineId", "triggerId"}, []string{"created", "changed", "deleted", "enabled", "error"}},
	ActivityCodeTriggerSecretRotated:       {[]string{"agent", "routineId", "triggerId", "overlap"}, nil},
	ActivityCodeAgentChanged:               {[]string{"agent"}, []string{"created", "name", "role", "changed", "status", "note", "deleted", "runsCancelled", "cancelledRunIds", "runsAskedToEnd", "askedToEndRunIds", "runsDue", "dueRunIds"}},
	ActivityCodeAgentPaused:                {[]string{"agent", "status", "pauseReason"}, []string{"note"}},
	ActivityCodeAgentResumed:               {[]string{"agent", "was"}, []string{"resent", "resentRequestIds"}},
	ActivityCodeTaskChanged:                {[]string{"task_id"}, []string{"agent", "created", "changed", "from", "to", "step", "note", "blockedBy", "reviewers", "approvers", "archived", "runsDue", "dueRunIds"}},
	ActivityCodeTaskCommented:              {[]string{"task_id", "commentId"}, []string{"agent", "notWoken", "mentionsNotWoken"}},
	ActivityCodeApprovalRequested:          {[]string{"task_id", "approvalId", "completion"}, []string{"agent"}},
	ActivityCodeApprovalDecided:            {[]string{"task_id", "approvalId", "completion", "status"}, []string{"agent"}},
	ActivityCodeBudgetChanged:              {[]string{"budgetId", "subjectKind", "subjectId", "limitUsd", "period", "onExceed"}, []string{"agent", "created", "deleted", "renewed", "runsDue", "dueRunIds"}},
	ActivityCodeBudgetThreshold:            {[]string{"budgetId", "subjectKind", "subjectId", "threshold", "spentUsd", "limitUsd"}, []string{"agent"}},
	ActivityCodeSettingsChanged:            {[]string{"changed"}, []string{"agent", "runsDue", "dueRunIds"}},
	ActivityCodeWebhookRejected:            {[]string{"routineId", "triggerId", "outcome"}, nil},
	ActivityCodeInboxItemMade:              {[]string{"inboxItemId", "kind", "title"}, []string{"agent", "task_id", "subjectId"}},
	ActivityCodeInboxItemHandled:           {[]string{"inboxItemId", "kind", "title"}, []string{"agent", "task_id", "subjectId"}},
	ActivityCodeTokenCreated:               {[]string{"tokenId", "name", "prefix", "scopes"}, []string{"expiresAt"}},
	ActivityCodeTokenRevoked:               {[]string{"tokenId", "name", "prefix", "scopes"}, nil},
	ActivityCodeProjectChanged:             {[]string{"projectId"}, []string{"agent", "created", "name", "changed", "runsDue", "dueRunIds"}},
	ActivityCodeWorkflowChanged:            {[]string{"workflowId", "created", "name", "kind", "steps"}, nil},
	ActivityCodeWorkspaceCreated:           {[]string{"workspaceId", "name", "slug", "officeWorkflow"}, nil},
	ActivityCodeExecutorTested:             {[]string{"agent", "executor", "checks", "failed"}, nil},
	ActivityCodeWakeupRequested:            {[]string{"agent", "wakeupRequestId", "source"}, []string{"task_id", "userId", "note"}},
	ActivityCodeWorkspaceHeld:              {[]string{"since", "fires"}, []string{"note"}},
	ActivityCodeWorkspaceReleased:          {[]string{"since", "fires"}, []string{"note"}},
	ActivityCodeWorkspaceChanged:           {[]string{"changed"}, []string{"name"}},
	ActivityCodeRunCancelRequested:         {[]string{"agent", "reason"}, []string{"task_id", "note"}},
	ActivityCodeNotificationChannelChanged: {[]string{"channelId"}, []string{"created", "name", "kind", "changed", "deleted"}},
	ActivityCodeNotificationChannelTested:  {[]string{"channelId", "delivered"}, nil},
}

// ActivityDetailsOf are the members of a code's data.
func ActivityDetailsOf(code ActivityCode) ActivityDetails { return activityDetails[code] }

// Differ says what is wrong with the members of an entry's data: one that each entry has is missing, or one is there that
// readers are not told of.
func (d ActivityDetails) Differ(members []string) (problems []string) {
	for _, name := range d.Always {
		if !slices.Contains(members, name) {
			problems = append(problems, fmt.Sprintf("%s is missing", name))
		}
	}
	for _, name := range members {
		if !slices.Contains(d.Always, name) && !slices.Contains(d.Sometimes, name) {
			problems = append(problems, fmt.Sprintf("%s is not listed", name))
		}
	}
	return problems
}
