package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Hop is one committed step on the way from a cause to its end, for traces: the cause and a request made (both take no
// time), an attempt, or a run from its request to its end. All hops of a cause share CausationID. ParentID "" means the
// cause itself, whose own hop has ID CausationID.
type Hop struct {
	Name                      string // cause, wakeup, run or attempt
	CausationID, ID, ParentID xid.ID
	Began, Ended              time.Time
	Failed                    string            // why it failed; "" when it did not
	Calls                     bool              // it was a call of a service elsewhere
	Facts                     map[string]string // log keys and their values
}

// logKeys are the keys of the log and of spans, in the order in which a line shows them (SPEC S10.5).
var logKeys = []string{"run_id", "attempt", "wakeup_id", "agent_id", "workspace_id", "causation_id", "source", "status", "outcome", "reason"}

// line is what the log says of the hop: how a run ended is worth a line, each request and attempt only one for those who look closer.
func (h Hop) line() (level slog.Level, message string, fields []any) {
	for _, key := range logKeys {
		if value := h.Facts[key]; value != "" {
			fields = append(fields, key, logValue(key, value))
		}
	}
	if h.Failed != "" {
		fields = append(fields, "error", h.Failed)
	}
	switch h.Name {
	case "run":
		return slog.LevelInfo, "run ended", append(fields, "took", h.Ended.Sub(h.Began).Round(time.Millisecond).String())
	case "attempt":
		return slog.LevelDebug, "attempt ended", append(fields, "took", h.Ended.Sub(h.Began).Round(time.Millisecond).String())
	}
	return slog.LevelDebug, "wakeup requested", fields
}

// logValue prints the words of enums in lower case (SPEC S2), and an attempt as the number that it is.
func logValue(key, value string) any {
	switch key {
	case "source", "status":
		return strings.ToLower(value)
	case "attempt":
		if n, err := strconv.Atoi(value); err == nil {
			return n
		}
	}
	return value
}

// keysOf names a run in the log, with what more there is to say of it.
func keysOf(run runRow, more ...any) []any {
	return append([]any{"run_id", run.id, "attempt", run.attempt, "agent_id", run.agentID, "workspace_id", run.workspaceID, "causation_id", run.causationID}, more...)
}

// Tracer is told of hops after their commit. It never blocks.
type Tracer interface{ Trace(h Hop) }

// trace tells the log and the traces of a hop.
func (t *tx) trace(h Hop) {
	t.onCommit(func(s *Store) {
		level, message, fields := h.line()
		s.log.Log(context.Background(), level, message, fields...)
		if s.tracer != nil {
			s.tracer.Trace(h)
		}
	})
}

// traceWakeup tells of a request, and with the first one of its cause of the cause itself, which is made in the transaction
// that begins it (SPEC S3.10): what a cause leads to later has more hops.
func (t *tx) traceWakeup(id xid.ID, at time.Time, r newRequest) {
	if r.hops == 0 && !t.causes[r.causationID] {
		if t.causes == nil {
			t.causes = map[xid.ID]bool{}
		}
		t.causes[r.causationID] = true
		t.traceCause(at, r)
	}
	t.trace(Hop{Name: "wakeup", CausationID: r.causationID, ID: id, Began: at, Ended: at, Facts: map[string]string{
		"wakeup_id": string(id), "agent_id": string(r.agentID), "workspace_id": string(r.workspaceID), "causation_id": string(r.causationID),
		"source": string(r.source), "reason": r.reason}})
}

// traceCause tells the traces of a cause. The log has the requests that it made.
func (t *tx) traceCause(at time.Time, r newRequest) {
	t.onCommit(func(s *Store) {
		if s.tracer != nil {
			s.tracer.Trace(Hop{Name: "cause", CausationID: r.causationID, ID: r.causationID, Began: at, Ended: at,
				Facts: map[string]string{"causation_id": string(r.causationID), "workspace_id": string(r.workspaceID), "source": string(r.source), "reason": r.reason}})
		}
	})
}

func (t *tx) traceRun(run runRow, e runEnd) {
	h := Hop{Name: "run", CausationID: run.causationID, ID: run.id, Began: run.requestedAt, Ended: t.now, Facts: factsOf(run)}
	h.Facts["status"], h.Facts["outcome"] = string(e.status), e.outcome
	if run.attempt > 0 {
		h.Facts["attempt"] = strconv.Itoa(run.attempt)
	}
	if e.reason != nil {
		h.Facts["reason"] = strings.ToLower(string(*e.reason))
	}
	if e.status == domain.RunStatusFailed && e.failure != nil {
		h.Failed = e.failure.Message
	}
	t.trace(h)
}

// abandonedText is the error of an attempt that nobody ended.
const abandonedText = "the attempt was abandoned: its lease ran out, or its process ended"

func (t *tx) traceAttempt(run runRow, e leave, claimedAt time.Time, executor string) {
	h := Hop{Name: "attempt", CausationID: run.causationID, ID: xid.ID(fmt.Sprintf("%s/%d", run.id, run.attempt)), ParentID: run.id,
		Began: claimedAt, Ended: t.now, Facts: factsOf(run)}
	h.Facts["attempt"], h.Facts["status"], h.Facts["executor"] = fmt.Sprint(run.attempt), string(e.attempt), executor
	h.Calls = executor == string(domain.ExecutorHTTP)
	switch {
	case e.failure != nil:
		h.Failed = cmp.Or(e.failure.Message, strings.ToLower(string(e.failure.Code)))
	case e.attempt == domain.RunAttemptStatusAbandoned:
		h.Failed = abandonedText
	}
	t.trace(h)
}

func factsOf(run runRow) map[string]string {
	return map[string]string{"run_id": string(run.id), "agent_id": string(run.agentID), "workspace_id": string(run.workspaceID),
		"causation_id": string(run.causationID), "source": string(run.source)}
}
