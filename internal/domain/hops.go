package domain

import "fmt"

// DefaultMaxHops is how many times in a row wakes may cause wakes before a loop is assumed and broken (SPEC S3.10), unless the
// workspace says otherwise.
const DefaultMaxHops = 25

// mostHops is the highest limit that a workspace may set.
const mostHops = 1000

// MaxBacklog is how many queued runs an agent may have before more of what can be refused is refused (SPEC S3.10).
const MaxBacklog = 1000

// NextHops is the hop count of a request that a run caused; pass -1 as the cause for a person, a schedule or a webhook.
func NextHops(cause int) int { return max(cause, -1) + 1 }

// HopLimit is HOP_LIMIT when a request with this hop count must be SKIPPED, with an inbox item, and else "". most is the
// workspace's limit.
func HopLimit(hops, most int) EndReason {
	if hops > most {
		return EndReasonHopLimit
	}
	return ""
}

// WakeCause is how a request came about, as far as the backlog bound depends on it.
type WakeCause string

const (
	WakeCauseSchedule    WakeCause = "SCHEDULE"     // a cron fire
	WakeCauseWebhook     WakeCause = "WEBHOOK"      // a delivery
	WakeCauseWakeAgent   WakeCause = "WAKE_AGENT"   // mutation wakeAgent
	WakeCauseQueueRun    WakeCause = "QUEUE_RUN"    // mutation queueRun
	WakeCauseFireRoutine WakeCause = "FIRE_ROUTINE" // mutation fireRoutine
	WakeCauseOther       WakeCause = "OTHER"        // comments, assignments, self wakes, alerts …
)

// BacklogAnswer is what the backlog bound does to a cause.
type BacklogAnswer string

const (
	BacklogAccept BacklogAnswer = "ACCEPT" // take it
	BacklogSkip   BacklogAnswer = "SKIP"   // record the fire SKIPPED with BACKLOG_FULL
	BacklogRefuse BacklogAnswer = "REFUSE" // record nothing; webhooks answer 429, mutations the user error BacklogFull
)

// Backlog decides whether one more wake of an agent with this many queued runs is taken.
func Backlog(queued int, cause WakeCause) BacklogAnswer {
	if queued <= MaxBacklog {
		return BacklogAccept
	}
	switch cause {
	case WakeCauseSchedule:
		return BacklogSkip
	case WakeCauseWebhook, WakeCauseWakeAgent, WakeCauseQueueRun, WakeCauseFireRoutine:
		return BacklogRefuse
	}
	return BacklogAccept
}

// BacklogFull is the user error of a refused mutation.
func BacklogFull(queued int) FieldError {
	return FieldError{
		Code: UserErrorCodeBacklogFull,
		Message: fmt.Sprintf("the agent already has %d queued runs, more than %d: wait until some are done, cancel some, "+
			"or raise its maxConcurrentSessions", queued, MaxBacklog),
	}
}
