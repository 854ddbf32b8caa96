package store

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// keysOf names a run in the log, with what more there is to say of it.
func keysOf(run runRow, more ...any) []any {
	return append([]any{"run_id", run.id, "attempt", run.attempt, "agent_id", run.agentID, "workspace_id", run.workspaceID, "causation_id", run.causationID}, more...)
}

// traceWakeup traces a request. With the first request of a cause it also traces the cause, which begins in the same
// transaction. Later requests of the cause have more hops (SPEC S3.10), and so are told from the first.
func (t *tx) traceWakeup(id xid.ID, at time.Time, r newRequest) {
	if r.hops == 0 && !t.causes[r.causationID] {
		if t.causes == nil {
			t.causes = map[xid.ID]bool{}
		}
		t.causes[r.causationID] = true
		t.traceCause(at, r)
	}
	t.trace(Span{Name: "wakeup", CausationID: r.causationID, ID: id, Began: at, Ended: at, Facts: map[string]string{
		"wakeup_id": string(id), "agent_id": string(r.agentID), "workspace_id": string(r.workspaceID), "causation_id": string(r.causationID),
		"source": string(r.source), "reason": r.reason}})
}

// traceCause tells the traces of a cause. The log has the requests that it made.
func (t *tx) traceCause(at time.Time, r newRequest) {
	t.onCommit(func(s *base) {
		if s.tracer != nil {
			s.tracer.Trace(Span{Name: "cause", CausationID: r.causationID, ID: r.causationID, Began: at, Ended: at,
				Facts: map[string]string{"causation_id": string(r.causationID), "workspace_id": string(r.workspaceID), "source": string(r.source), "reason": r.reason}})
		}
	})
}

func (t *tx) traceRun(run runRow, e runEnd) {
	s := Span{Name: "run", CausationID: run.causationID, ID: run.id, Began: run.requestedAt, Ended: t.Now, Facts: factsOf(run)}
	s.Facts["status"], s.Facts["outcome"] = string(e.status), e.outcome
	if run.attempt > 0 {
		s.Facts["attempt"] = strconv.Itoa(run.attempt)
	}
	if e.reason != nil {
		s.Facts["reason"] = strings.ToLower(string(*e.reason))
	}
	if e.status == domain.RunStatusFailed && e.failure != nil {
		s.Failed = e.failure.Message
	}
	t.trace(s)
}

// abandonedText is the error of an attempt that nobody ended.
const abandonedText = "the attempt was abandoned: its lease ran out, or its process ended"

func (t *tx) traceAttempt(run runRow, e leave, claimedAt time.Time, executor string) {
	s := Span{Name: "attempt", CausationID: run.causationID, ID: xid.ID(fmt.Sprintf("%s/%d", run.id, run.attempt)), ParentID: run.id,
		Began: claimedAt, Ended: t.Now, Facts: factsOf(run)}
	s.Facts["attempt"], s.Facts["status"], s.Facts["executor"] = fmt.Sprint(run.attempt), string(e.attempt), executor
	s.Calls = executor == string(domain.ExecutorHTTP)
	switch {
	case e.failure != nil:
		s.Failed = cmp.Or(e.failure.Message, strings.ToLower(string(e.failure.Code)))
	case e.attempt == domain.RunAttemptStatusAbandoned:
		s.Failed = abandonedText
	}
	t.trace(s)
}

func factsOf(run runRow) map[string]string {
	return map[string]string{"run_id": string(run.id), "agent_id": string(run.agentID), "workspace_id": string(run.workspaceID),
		"causation_id": string(run.causationID), "source": string(run.source)}
}
