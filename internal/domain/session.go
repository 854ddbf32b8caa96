package domain

import (
	"regexp"
	"time"
)

// TaskConversation is the agent-side session that the runs of one agent on one task resume. The zero value is none.
type TaskConversation struct {
	ExternalID string // the agent's own name for it
	Runs       int    // served so far
	OpenedAt   time.Time
}

// SessionFacts are what decides whether a run resumes a session (SPEC S7.2).
type SessionFacts struct {
	Former  TaskConversation // zero for a taskless run, which has none
	Now     time.Time
	MaxRuns *int           // of the agent; nil: no limit
	MaxAge  *time.Duration // of the agent; nil: no limit
	Failed  bool           // the run's last attempt resumed this session and failed (see SpoilsSession)
}

// SessionPlan says which session an attempt resumes; "" is a fresh one, which gets the full prompt. Ends says that the
// former one is not used any more.
type SessionPlan struct {
	Resume string
	Ends   bool
}

// PlanSession decides which session an attempt opens. Without a former one it opens a fresh one. A task-bound run resumes
// the session of its agent and task. It opens a new one when that session has served as many runs, or become as old, as
// the agent's settings allow, or could not be resumed.
func PlanSession(f SessionFacts) SessionPlan {
	switch {
	case f.Former.ExternalID == "":
		return SessionPlan{}
	case f.MaxRuns != nil && f.Former.Runs >= *f.MaxRuns,
		f.MaxAge != nil && !f.Now.Before(f.Former.OpenedAt.Add(*f.MaxAge)),
		f.Failed:
		return SessionPlan{Ends: true}
	}
	return SessionPlan{Resume: f.Former.ExternalID}
}

// SpoilsSession says whether a failure of an attempt that resumed a session may come from the session, so that the next
// attempt opens a new one. A rate limit, an account that is refused, a timeout and a lost lease have other causes. So has the
// trouble of a model's provider, which the message tells.
func SpoilsSession(code RunErrorCode, message string) bool {
	switch code {
	case RunErrorCodeLaunch, RunErrorCodeCrash, RunErrorCodeOther:
		return !providerTrouble.MatchString(message)
	}
	return false
}

// providerTrouble is what the programs of agents say when their model's provider cannot answer.
var providerTrouble = regexp.MustCompile(`(?i)\boverloaded\b|\boverloaded_error\b|api error: (?:5[0-9]{2}|internal server error|connection error|request timed out)|unexpected status 5[0-9]{2}\b` +
	`|\b5[0-9]{2} (?:internal server error|bad gateway|service unavailable|gateway timeout)|\bstream disconnected\b|\bservice[_ ]unavailable\b|"(?:code|status)":\s*5[0-9]{2}\b|\bmodel is (?:currently )?overloaded\b`)

// SessionEnd is what an attempt's end does to the session of its agent and task.
type SessionEnd string

// What becomes of it.
const (
	SessionKept     SessionEnd = "KEPT"     // nothing: it waits, if there is one
	SessionUsed     SessionEnd = "USED"     // it served one run more
	SessionReplaced SessionEnd = "REPLACED" // another one takes its place
)

// AfterSession decides what becomes of the former session when an attempt ended in the session that its agent named. Only
// one that can be resumed is kept.
func AfterSession(former TaskConversation, named string, resumable bool) SessionEnd {
	switch {
	case !resumable, named == "":
		return SessionKept
	case named == former.ExternalID:
		return SessionUsed
	}
	return SessionReplaced
}
