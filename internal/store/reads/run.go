package reads

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/runcontent"
	"rouse.dev/rouse/ent/runworkingcopy"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// RunEvent is a step in the life of a run. Seq is gapless within the run, from 1; Attempt 0 means none.
type RunEvent struct {
	Seq        int64
	Kind       domain.RunEventKind
	Attempt    int
	Data       json.RawMessage
	OccurredAt time.Time
}

// IDs is the condition of ent's queries that a row is one of these. Unlike ent's own it is one text however many there are, so that
// the statement stays prepared.
func IDs(ids []string) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Ident(s.C("id")).WriteString(" = ANY(").Arg(pgtx.TextArray(ids)).WriteString(")")
		}))
	}
}

// RunHead is a run's status with the newest that is stored of what happened to it.
type RunHead struct {
	Found  bool
	Status domain.RunStatus
	Event  int64       // sequence of the newest event; 0: none
	Line   LogPosition // of the newest log line; zero: none, or not asked for
}

// RunHead reads a run's head in one snapshot; lines says whether its log is of interest.
func (s *Reads) RunHead(ctx context.Context, runID xid.ID, lines bool) (RunHead, error) {
	const query = `
SELECT r.status, r.event_seq, coalesce(l.attempt, 0), coalesce(l.last_seq, 0)
FROM runs r
LEFT JOIN LATERAL (
  SELECT attempt, last_seq FROM run_log_pieces
  WHERE $2 AND run_id = r.id
  ORDER BY attempt DESC, last_seq DESC LIMIT 1) l ON true
WHERE r.id = $1`
	found, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (h RunHead, err error) {
		h.Found = true
		return h, rows.Scan(&h.Status, &h.Event, &h.Line.Attempt, &h.Line.Seq)
	}, query, runID, lines)
	if err != nil || len(found) == 0 {
		return RunHead{}, pgtx.Wrap("read the head of a run", err)
	}
	return found[0], nil
}

// RunEventsAfter reads a run's events after a sequence number, oldest first, at most limit.
func (s *Reads) RunEventsAfter(ctx context.Context, runID xid.ID, seq int64, limit int) ([]RunEvent, error) {
	const query = `
SELECT seq, kind, coalesce(attempt, 0), data, occurred_at
FROM run_events
WHERE run_id = $1 AND seq > $2
ORDER BY seq
LIMIT $3`
	events, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (e RunEvent, err error) {
		return e, rows.Scan(&e.Seq, &e.Kind, &e.Attempt, &e.Data, &e.OccurredAt)
	}, query, runID, seq, limit)
	if err != nil {
		return nil, fmt.Errorf("read run events: %w", err)
	}
	return events, nil
}

// EventSpan is a part of a run's events: after one number and before another, from its beginning on, or from its end.
type EventSpan struct {
	After, Before int64
	Newest        bool // from the end, newest first
}

// RunEvents reads a part of a run's events, at most limit.
func (s *Reads) RunEvents(ctx context.Context, runID xid.ID, span EventSpan, limit int) ([]RunEvent, error) {
	query := `
SELECT seq, kind, coalesce(attempt, 0), data, occurred_at
FROM run_events
WHERE run_id = $1 AND seq > $2 AND seq < $3
ORDER BY seq ` + direction(span.Newest) + `
LIMIT $4`
	events, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (e RunEvent, err error) {
		return e, rows.Scan(&e.Seq, &e.Kind, &e.Attempt, &e.Data, &e.OccurredAt)
	}, query, runID, span.After, span.Before, limit)
	return events, pgtx.Wrap("read run events", err)
}

func direction(newest bool) string {
	if newest {
		return "DESC"
	}
	return "ASC"
}

// LogPosition is the place of a log line: its attempt and its number within it. The zero position is before all.
type LogPosition struct {
	Attempt int
	Seq     int64
}

// JustBefore is the place before a line's, so that what comes after it begins with the line itself.
func (p LogPosition) JustBefore() LogPosition { return LogPosition{p.Attempt, p.Seq - 1} }

// JustBehind is the place behind a line's, so that what comes before it ends with the line itself.
func (p LogPosition) JustBehind() LogPosition { return LogPosition{p.Attempt, p.Seq + 1} }

// LogEnd is behind all lines.
var LogEnd = LogPosition{math.MaxInt32, math.MaxInt64}

// LogSpan is a part of a run's log: after one place and before another, from its beginning on, or from its end.
type LogSpan struct {
	After, Before LogPosition
	Newest        bool // from the end, newest first
}

// UpTo says whether the place is not after another one.
func (p LogPosition) UpTo(other LogPosition) bool {
	return p.Attempt < other.Attempt || p.Attempt == other.Attempt && p.Seq <= other.Seq
}

// LogRow is a stored log line.
type LogRow struct {
	LogPosition
	Stream domain.LogStream
	Text   string
	At     time.Time
}

// LogFilter narrows a run's log; zero members do not narrow, an empty list of streams lets nothing through. Search is a part of the text, any case.
type LogFilter struct {
	Streams []domain.LogStream
	Attempt int
	Search  string
}

// LogAfter reads a run's log lines after a position, in order, at most limit.
func (s *Reads) LogAfter(ctx context.Context, runID xid.ID, after LogPosition, limit int) ([]LogRow, error) {
	return s.Log(ctx, runID, LogFilter{}, after, limit)
}

// Log reads the lines of a run's log that the filter lets through, after a position, in order, at most limit.
func (s *Reads) Log(ctx context.Context, runID xid.ID, f LogFilter, after LogPosition, limit int) ([]LogRow, error) {
	const query = `
-- $1 run, $2 attempt of the position, $3 its line, $4 streams; NULL: all, $5 one attempt; 0: all, $6 text to
-- find; "": all, $7 most lines
SELECT attempt, seq, stream, text, at FROM run_log_lines
WHERE run_id = $1
  AND (attempt, last_seq) > ($2, $3) -- its piece, by the index
  AND (attempt, seq) > ($2, $3)
  AND ($4::log_stream[] IS NULL OR stream = ANY($4::log_stream[]))
  AND ($5 = 0 OR attempt = $5)
  AND ($6 = '' OR position(lower($6) IN lower(text)) > 0)
ORDER BY attempt, last_seq, seq LIMIT $7`
	var streams any
	if f.Streams != nil {
		streams = pgtx.EnumArray(f.Streams)
	}
	lines, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (l LogRow, err error) {
		return l, rows.Scan(&l.Attempt, &l.Seq, &l.Stream, &l.Text, &l.At)
	}, query, runID, after.Attempt, after.Seq, streams, f.Attempt, f.Search, limit)
	if err != nil {
		return nil, fmt.Errorf("read log lines: %w", err)
	}
	return lines, nil
}

// logIn is the lines of a run's log in a span that a filter lets through, as SQL.
const logIn = `
-- $1 run, $2 and $3 attempt and line before the span, $4 and $5 those behind it, $6 streams; NULL: all, $7 one attempt; 0: all,
-- $8 text to find; "": all
FROM run_log_lines
WHERE run_id = $1
  AND (attempt, last_seq) > ($2, $3) -- its pieces, by the index
  AND (attempt, last_seq) <= ($4, coalesce(
    (SELECT last_seq FROM run_log_pieces WHERE run_id = $1 AND attempt = $4 AND last_seq >= $5 ORDER BY last_seq LIMIT 1), $5))
  AND (attempt, seq) > ($2, $3)
  AND (attempt, seq) < ($4, $5)
  AND ($6::log_stream[] IS NULL OR stream = ANY($6::log_stream[]))
  AND ($7 = 0 OR attempt = $7)
  AND ($8 = '' OR position(lower($8) IN lower(text)) > 0)`

func (f LogFilter) arguments(runID xid.ID, span LogSpan) []any {
	var streams any
	if f.Streams != nil {
		streams = pgtx.EnumArray(f.Streams)
	}
	return []any{runID, span.After.Attempt, span.After.Seq, span.Before.Attempt, span.Before.Seq, streams, f.Attempt, f.Search}
}

// LogIn reads the lines of a part of a run's log that the filter lets through, at most limit.
func (s *Reads) LogIn(ctx context.Context, runID xid.ID, f LogFilter, span LogSpan, limit int) ([]LogRow, error) {
	d := direction(span.Newest)
	query := `SELECT attempt, seq, stream, text, at` + logIn + `
ORDER BY attempt ` + d + `, last_seq ` + d + `, seq ` + d + ` LIMIT $9`
	lines, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (l LogRow, err error) {
		return l, rows.Scan(&l.Attempt, &l.Seq, &l.Stream, &l.Text, &l.At)
	}, query, append(f.arguments(runID, span), limit)...)
	return lines, pgtx.Wrap("read log lines", err)
}

// CountLog counts the lines of a run's log that the filter lets through.
func (s *Reads) CountLog(ctx context.Context, runID xid.ID, f LogFilter) (int, error) {
	n, err := pgtx.QueryOne[int](ctx, s.pool, `SELECT count(*)`+logIn, f.arguments(runID, LogSpan{Before: LogEnd})...)
	return n, pgtx.Wrap("count log lines", err)
}

// EventBeside is the newest of the run's events that happened up to a log line: those that a stream of both sends before the
// line. It is 0 when the line is gone, so that nothing is left out.
func (s *Reads) EventBeside(ctx context.Context, runID xid.ID, line LogPosition) (int64, error) {
	const query = `
WITH l AS MATERIALIZED (
  SELECT max(at) AS at FROM run_log_lines WHERE run_id = $1 AND (attempt, seq) <= ($2, $3)
    AND EXISTS (SELECT 1 FROM run_log_pieces WHERE run_id = $1 AND attempt = $2 AND $3 BETWEEN first_seq AND last_seq))
SELECT CASE WHEN l.at IS NULL THEN 0 ELSE coalesce(
  (SELECT seq - 1 FROM run_events WHERE run_id = $1 AND occurred_at > l.at ORDER BY seq LIMIT 1),
  (SELECT seq FROM run_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 1), 0) END FROM l`
	seq, err := pgtx.QueryOne[int64](ctx, s.pool, query, runID, line.Attempt, line.Seq)
	return seq, pgtx.Wrap("find the events before a log line", err)
}

// LineBeside is the newest of the run's log lines from before an event: those that a stream of both sends before the event. It is
// zero when there is no such event.
func (s *Reads) LineBeside(ctx context.Context, runID xid.ID, event int64) (LogPosition, error) {
	const query = `
WITH e AS MATERIALIZED (
  SELECT max(occurred_at) AS at
  FROM run_events
  WHERE run_id = $1 AND seq <= $2 AND EXISTS (SELECT 1 FROM run_events WHERE run_id = $1 AND seq = $2)),
later AS MATERIALIZED (
  SELECT l.attempt, l.seq
  FROM e
  JOIN run_log_lines l ON l.run_id = $1 AND l.at >= e.at
  ORDER BY l.attempt, l.last_seq, l.seq
  LIMIT 1)
SELECT l.attempt, l.seq FROM e JOIN run_log_lines l ON l.run_id = $1
WHERE e.at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM later n WHERE (l.attempt, l.seq) >= (n.attempt, n.seq))
ORDER BY l.attempt DESC, l.last_seq DESC, l.seq DESC LIMIT 1`
	lines, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (p LogPosition, err error) { return p, rows.Scan(&p.Attempt, &p.Seq) }, query, runID, event)
	if err != nil || len(lines) == 0 {
		return LogPosition{}, pgtx.Wrap("find the log lines before an event", err)
	}
	return lines[0], nil
}

// RunWorkingCopies reads what several runs left in their working copies, in one query and without the diffs.
func (s *Reads) RunWorkingCopies(ctx context.Context, runIDs []xid.ID) (map[xid.ID]*ent.RunWorkingCopy, error) {
	columns := slices.DeleteFunc(slices.Clone(runworkingcopy.Columns), func(c string) bool { return c == runworkingcopy.FieldDiff })
	found, err := s.client.RunWorkingCopy.Query().Where(runworkingcopy.RunIDIn(runIDs...)).Select(columns...).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the runs' working copies: %w", err)
	}
	byRun := make(map[xid.ID]*ent.RunWorkingCopy, len(found))
	for _, c := range found {
		byRun[c.RunID] = c
	}
	return byRun, nil
}

// RunContents reads the long texts of several runs in one query; runs that never started have none.
func (s *Reads) RunContents(ctx context.Context, runIDs []xid.ID) (map[xid.ID]*ent.RunContent, error) {
	found, err := s.client.RunContent.Query().Where(runcontent.RunIDIn(runIDs...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read run contents: %w", err)
	}
	byRun := make(map[xid.ID]*ent.RunContent, len(found))
	for _, c := range found {
		byRun[c.RunID] = c
	}
	return byRun, nil
}
