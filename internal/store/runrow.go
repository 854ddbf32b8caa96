package store

import (
	"database/sql"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// runRow is a run as the queue's transitions need it.
type runRow struct {
	id, workspaceID, agentID, taskID, routineID, causationID xid.ID
	scope                                                    string
	source                                                   domain.WakeupSource
	class                                                    domain.WakeClass
	status                                                   domain.RunStatus
	parkedReason                                             *domain.ParkedReason
	parkedUntil                                              *time.Time
	attempt, abandonments, retryCount, guardErrors, hops     int
	unattended                                               bool
	sessionID                                                *string
	requestedAt                                              time.Time
	startedAt, cancelRequestedAt                             *time.Time

	launchLimit *domain.LaunchLimit // of its agent; the claim alone fills it in

	queue   string    // whose workers are to execute it; the claim alone fills it in
	refused []outcome // what its attempt's result asked for in vain; takeIn alone fills it in
	unread  string    // what its attempt said of its use and nobody can read; spend alone fills it in, and
	charged string    // what it is charged with instead of such a cost, "" for nothing
}

const runColumns = `r.id, r.workspace_id, r.agent_id, r.task_id, r.routine_id, r.causation_id, r.scope, r.source, r.wake_class, r.status,
  r.parked_reason, r.parked_until, r.attempt, r.abandonments, r.retry_count, r.guard_errors, r.hops, r.unattended, r.session_id,
  r.requested_at, r.started_at, r.cancel_requested_at`

func scanRun(rows *sql.Rows) (runRow, error) { return scanRunAnd(rows) }

// scanRunAnd reads a run and the columns that follow it.
func scanRunAnd(rows *sql.Rows, more ...any) (r runRow, err error) {
	err = rows.Scan(append([]any{&r.id, &r.workspaceID, &r.agentID, &r.taskID, &r.routineID, &r.causationID, &r.scope, &r.source, &r.class, &r.status,
		&r.parkedReason, &r.parkedUntil, &r.attempt, &r.abandonments, &r.retryCount, &r.guardErrors, &r.hops, &r.unattended, &r.sessionID, &r.requestedAt,
		&r.startedAt, &r.cancelRequestedAt}, more...)...)
	return r, err
}

// launched says whether the run's current attempt got past its start, so that an agent may have been at work.
func (r runRow) launched() bool { return r.status == domain.RunStatusClaimed && r.startedAt != nil }

// outcome is what became of one action of a result, as the run's last event tells it.
type outcome struct {
	Type    domain.ActionType `json:"type,omitempty"`
	Done    bool              `json:"done"`
	Before  bool              `json:"before,omitempty"`  // a call of the agent had done it before, so that it was not done again
	ID      xid.ID            `json:"id,omitempty"`      // of what it made or changed
	Problem string            `json:"problem,omitempty"` // why it was not done
}

// Usage is what one attempt used by its agent's own account.
type Usage = domain.AttemptUsage

// Failure is why an attempt failed. Message is masked. A Permanent one is not tried again. Usage nil means that the agent
// did not say what it used. Result is what the agent gave with its error; its actions are not carried out. SessionID,
// Resumable and Fresh are as in Success.
type Failure struct {
	Code      domain.RunErrorCode
	Message   string
	Permanent bool
	// Words are those of an error, in which a rate limit is looked for; what an agent printed ordinarily is not among them. Zone is
	// that of the machine whose program said them; nil: UTC. Code RATE_LIMITED says as data that it is one.
	Words string
	Zone  *time.Location
	// RetryAfter is how long to wait before a retry, as the other side said in data; 0 when it did not say.
	RetryAfter time.Duration
	Result     map[string]any
	SessionID  string
	Resumable  bool
	Fresh      bool
	Usage      *Usage
}

// leave is how a live attempt ends, whatever becomes of its run.
type leave struct {
	attempt  domain.RunAttemptStatus
	failure  *Failure
	launched bool   // an agent was at work: the cooldown follows (SPEC S6.1)
	session  string // that its end records; "" for none
}

// departure is a run that leaves CLAIMED.
type departure struct {
	run runRow
	leave
}
