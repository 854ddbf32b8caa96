package store

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/xid"
)

// Span is one committed step on the way from a cause to its end, for traces: the cause and a request made (both take no
// time), an attempt, or a run from its request to its end. All spans of a cause share CausationID. ParentID "" means the
// cause itself, whose own span has ID CausationID.
type Span struct {
	Name                      string // cause, wakeup, run or attempt
	CausationID, ID, ParentID xid.ID
	Began, Ended              time.Time
	Failed                    string            // why it failed; "" when it did not
	Calls                     bool              // it was a call of a service elsewhere
	Facts                     map[string]string // log keys and their values
}

// logKeys are the keys of the log and of spans, in the order in which a line shows them (SPEC S10.5).
var logKeys = []string{"run_id", "attempt", "wakeup_id", "agent_id", "workspace_id", "causation_id", "source", "status", "outcome", "reason"}

// line is the log's line about the span. The end of a run is logged at INFO, requests and attempts at DEBUG.
func (s Span) line() (level slog.Level, message string, fields []any) {
	for _, key := range logKeys {
		if value := s.Facts[key]; value != "" {
			fields = append(fields, key, logValue(key, value))
		}
	}
	if s.Failed != "" {
		fields = append(fields, "error", s.Failed)
	}
	switch s.Name {
	case "run":
		return slog.LevelInfo, "run ended", append(fields, "took", s.Ended.Sub(s.Began).Round(time.Millisecond).String())
	case "attempt":
		return slog.LevelDebug, "attempt ended", append(fields, "took", s.Ended.Sub(s.Began).Round(time.Millisecond).String())
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

// Tracer receives spans after their commit. It never blocks.
type Tracer interface{ Trace(s Span) }

// trace logs a span and sends it to the traces, after the commit.
func (t *tx) trace(span Span) {
	t.onCommit(func(s *base) {
		level, message, fields := span.line()
		s.log.Log(context.Background(), level, message, fields...)
		if s.tracer != nil {
			s.tracer.Trace(span)
		}
	})
}
