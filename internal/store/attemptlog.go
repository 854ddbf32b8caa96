package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// appendsTogether is how many attempts write lines in one statement: each has up to half a MiB.
const appendsTogether = 32

// LogLine is one line of an agent's output. Seq counts from 1 within the attempt; Text is masked and at most 8 KiB.
type LogLine struct {
	Seq    int64
	Stream domain.LogStream
	Text   string
	At     time.Time
}

// appending is a call of AppendLog.
type appending struct {
	Attempt
	lines []LogLine
}

// AppendLog stores lines of a live attempt; ErrFenced when the attempt is not the live one any more. What several attempts write at
// once is one statement. Lines that are written again come in the same calls as before.
func (s *Attempts) AppendLog(ctx context.Context, a Attempt, lines []LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	x := &appending{a, lines}
	err := s.appends.Ask(ctx, x)
	if errors.Is(err, errHeld) {
		var found bool
		if found, err = s.appendAlone(ctx, x); err == nil && !found {
			err = ErrFenced
		}
	}
	return pgtx.Wrap("append log lines", err)
}

// appendTogether stores lines of several attempts in one statement. Who ends an attempt holds its lease: its lines are left out, and
// wait alone.
func (s *Attempts) appendTogether(ctx context.Context, batch []*appending) []error {
	return pgtx.Together(ctx, batch, func(some []*appending) ([]error, error) {
		live, err := s.appendLines(ctx, some, ` SKIP LOCKED`)
		results := make([]error, len(some))
		for i, x := range some {
			if !live[x.Attempt] {
				results[i] = errHeld
			}
		}
		return results, err
	})
}

func (s *Attempts) appendAlone(ctx context.Context, x *appending) (live bool, err error) {
	found, err := s.appendLines(ctx, []*appending{x}, "")
	return found[x.Attempt], err
}

// appendLines stores lines of attempts that are live and whose leases are free, and returns those.
func (s *Attempts) appendLines(ctx context.Context, some []*appending, wait string) (live map[Attempt]bool, err error) {
	var runs, owners []string
	var numbers []int64
	var p logPieces
	for _, x := range some {
		for _, row := range inRows(x.lines) {
			runs, numbers, owners = append(runs, string(x.RunID)), append(numbers, int64(x.Number)), append(owners, string(x.Owner))
			if err := p.add(row); err != nil {
				return nil, err
			}
		}
	}
	query := `
-- $1 runs, $2 attempts, $3 owners; of the lines of each $4 the first number, $5 the last, $6 bytes, $7 streams,
-- $8 texts, $9 instants
WITH n AS (
  SELECT *
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[],
      $9::text[]) AS n (run, number, owner, first_seq, last_seq, bytes, streams, texts, micros)),
live AS (
  -- KEY SHARE: the lease may be renewed meanwhile, but it can neither end nor change hands
  SELECT l.workspace_id, n.*
  FROM attempt_leases l
  JOIN n ON l.run_id = n.run AND l.attempt = n.number AND l.owner = n.owner
  WHERE l.run_id = ANY($1)
  FOR KEY SHARE OF l` + wait + `),
added AS (
  INSERT INTO run_log_pieces (workspace_id, run_id, attempt, first_seq, last_seq, bytes, streams, texts, micros)
  SELECT workspace_id, run, number, first_seq, last_seq, bytes, streams::log_stream[], texts::text[], micros::bigint[]
  FROM live
  ON CONFLICT (run_id, attempt, last_seq) DO NOTHING)
SELECT run, number, owner, workspace_id FROM live`
	live = map[Attempt]bool{}
	told, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (e event.Event, err error) {
		var a Attempt
		err = rows.Scan(&a.RunID, &a.Number, &a.Owner, &e.WorkspaceID)
		live[a] = true
		e.Kind, e.ID = event.Log, a.RunID
		return e, err
	}, query, append([]any{pgtx.TextArray(runs), pgtx.IntArray(numbers), pgtx.TextArray(owners)}, p.arguments()...)...)
	if err != nil {
		return nil, err
	}
	s.events.Publish(told...)
	return live, nil
}

// appendLast stores the lines that attempts bring with their ends, in one statement. Their runs are locked, which is the fence.
func (t *tx) appendLast(ctx context.Context, list []*transition) error {
	var workspaces, runs []string
	var numbers []int64
	var p logPieces
	for _, x := range list {
		for _, row := range inRows(x.success.Lines) {
			workspaces, runs, numbers = append(workspaces, string(x.run.workspaceID)), append(runs, string(x.RunID)), append(numbers, int64(x.Number))
			if err := p.add(row); err != nil {
				return err
			}
		}
		if len(x.success.Lines) > 0 {
			t.Publish(event.Event{Kind: event.Log, WorkspaceID: x.run.workspaceID, ID: x.RunID})
		}
	}
	if len(runs) == 0 {
		return nil
	}
	const query = `
-- $1 workspaces, $2 runs, $3 attempts; of the lines of each $4 the first number, $5 the last, $6 bytes, $7 streams,
-- $8 texts, $9 instants
INSERT INTO run_log_pieces (workspace_id, run_id, attempt, first_seq, last_seq, bytes, streams, texts, micros)
SELECT workspace, run, number, first_seq, last_seq, bytes, streams::log_stream[], texts::text[], micros::bigint[]
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[],
    $9::text[]) AS n (workspace, run, number, first_seq, last_seq, bytes, streams, texts, micros)
ON CONFLICT (run_id, attempt, last_seq) DO NOTHING`
	_, err := pgtx.Exec(ctx, t, query, append([]any{pgtx.TextArray(workspaces), pgtx.TextArray(runs), pgtx.IntArray(numbers)}, p.arguments()...)...)
	return pgtx.Wrap("append the last lines", err)
}

// logPieces are lines as they are stored: those that were written together, and whose numbers follow each other, in one row
// (docs/decisions/0032-logs-in-pieces.md). The lines of a piece are three arrays, each an array's literal here.
type logPieces struct {
	first, last, bytes     []int64
	streams, texts, micros []string
}

// add adds a piece of lines whose numbers follow each other.
func (p *logPieces) add(lines []LogLine) error {
	n := len(lines)
	streams, texts, micros := make(pq.StringArray, n), make(pq.StringArray, n), make(pq.Int64Array, n)
	bytes := 0
	for i, line := range lines {
		streams[i], texts[i], micros[i] = string(line.Stream), line.Text, line.At.UnixMicro()
		bytes += len(line.Text)
	}
	p.first, p.last, p.bytes = append(p.first, lines[0].Seq), append(p.last, lines[n-1].Seq), append(p.bytes, int64(bytes))
	for _, part := range []struct {
		list *[]string
		of   driver.Valuer
	}{{&p.streams, streams}, {&p.texts, texts}, {&p.micros, micros}} {
		literal, err := part.of.Value()
		if err != nil {
			return fmt.Errorf("encode log lines: %w", err)
		}
		*part.list = append(*part.list, literal.(string))
	}
	return nil
}

// arguments are those of a statement that stores the pieces, in the order of the columns.
func (p *logPieces) arguments() []any {
	return []any{pgtx.IntArray(p.first), pgtx.IntArray(p.last), pgtx.IntArray(p.bytes), pgtx.TextArray(p.streams), pgtx.TextArray(p.texts), pgtx.TextArray(p.micros)}
}

// inRows divides numbered lines where a number is missing.
func inRows(lines []LogLine) (rows [][]LogLine) {
	from := 0
	for i := range lines {
		if i+1 == len(lines) || lines[i+1].Seq != lines[i].Seq+1 {
			rows, from = append(rows, lines[from:i+1]), i+1
		}
	}
	return rows
}

// appendReported stores a worker's lines; it locks the lease, which comes after the run.
func (t *tx) appendReported(ctx context.Context, a Attempt, first int64, lines []LogLine) (newest int64, err error) {
	var workspaceID xid.ID
	var stored int64
	const lock = `
SELECT workspace_id, log_bytes
FROM attempt_leases
WHERE run_id = $1 AND attempt = $2 AND owner = $3
FOR NO KEY UPDATE`
	err = pgtx.QueryRow(ctx, t, []any{&workspaceID, &stored}, lock, a.RunID, a.Number, a.Owner)
	if pgtx.NoRows(err) {
		return 0, ErrFenced
	}
	if err != nil {
		return 0, fmt.Errorf("lock the lease: %w", err)
	}
	if err := t.ReadClock(ctx); err != nil {
		return 0, err
	}
	allowed, err := t.logAllowance(ctx, a)
	if err != nil {
		return 0, err
	}
	fresh, err := t.freshLines(ctx, a, first, lines)
	if err != nil {
		return 0, err
	}
	kept, cut := boundLines(allowed, fresh, stored, t.Now)
	if newest, err = t.insertLines(ctx, a, workspaceID, kept, cut); err != nil {
		return 0, err
	}
	if len(kept) > 0 {
		t.Publish(event.Event{Kind: event.Log, WorkspaceID: workspaceID, ID: a.RunID})
	}
	return newest, nil
}

// logAllowance is what is kept of an attempt's output, after what is kept of the attempts of its run before it.
func (t *tx) logAllowance(ctx context.Context, a Attempt) (domain.LogAllowance, error) {
	var lines, bytes int64
	if a.Number > 1 {
		const query = `SELECT coalesce(sum(last_seq - first_seq + 1), 0), coalesce(sum(bytes), 0) FROM run_log_pieces WHERE run_id = $1 AND attempt < $2`
		if err := pgtx.QueryRow(ctx, t, []any{&lines, &bytes}, query, a.RunID, a.Number); err != nil {
			return domain.LogAllowance{}, fmt.Errorf("measure the run's output: %w", err)
		}
	}
	return domain.AttemptLog(lines, bytes), nil
}

// freshLines numbers the lines, and leaves out those that are stored already.
func (t *tx) freshLines(ctx context.Context, a Attempt, first int64, lines []LogLine) (fresh []LogLine, err error) {
	const query = `
SELECT generate_series(greatest(first_seq, $3), least(last_seq, $4))
FROM run_log_pieces
WHERE run_id = $1 AND attempt = $2 AND last_seq >= $3 AND first_seq <= $4`
	list, err := pgtx.Collect(ctx, t, pgtx.ScanOne[int64], query, a.RunID, a.Number, first, first+int64(len(lines))-1)
	if err != nil {
		return nil, fmt.Errorf("look for stored lines: %w", err)
	}
	stored := make(map[int64]bool, len(list))
	for _, seq := range list {
		stored[seq] = true
	}
	for i, line := range lines {
		if line.Seq = first + int64(i); !stored[line.Seq] {
			fresh = append(fresh, line)
		}
	}
	return fresh, nil
}

// boundLines leaves out what is beyond the bounds of numbered lines; cut says that a mark stands at the end.
func boundLines(allowed domain.LogAllowance, lines []LogLine, stored int64, now time.Time) (kept []LogLine, cut bool) {
	numbers, sizes := make([]int64, len(lines)), make([]int, len(lines))
	for i, line := range lines {
		numbers[i], sizes[i] = line.Seq, len(line.Text)
	}
	keep, cut := allowed.BoundLog(numbers, sizes, stored)
	kept = lines[:keep:keep]
	if cut {
		kept = append(kept, LogLine{Seq: min(numbers[keep], allowed.Lines+1), Stream: domain.LogStreamSystem, Text: allowed.CutMark(), At: now})
	}
	return kept, cut
}

// insertLines stores lines that are not stored yet, and counts their bytes, for as long as the output is not cut.
func (t *tx) insertLines(ctx context.Context, a Attempt, workspaceID xid.ID, lines []LogLine, cut bool) (newest int64, err error) {
	var p logPieces
	for _, row := range inRows(lines) {
		if err := p.add(row); err != nil {
			return 0, err
		}
	}
	const insert = `
-- $1 workspace, $2 run, $3 attempt; of pieces $4 the first numbers, $5 the last, $6 bytes, $7 streams, $8 texts,
-- $9 instants; $10 whether the output is cut here, $11 what marks it as cut
WITH added AS (
  INSERT INTO run_log_pieces (workspace_id, run_id, attempt, first_seq, last_seq, bytes, streams, texts, micros)
  SELECT $1, $2, $3, n.first_seq, n.last_seq, n.bytes, n.streams::log_stream[], n.texts::text[], n.micros::bigint[]
  FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[])
    AS n (first_seq, last_seq, bytes, streams, texts, micros)
  RETURNING bytes)
UPDATE attempt_leases
SET log_bytes = CASE WHEN $10 THEN $11 ELSE log_bytes + coalesce((SELECT sum(bytes) FROM added), 0) END
WHERE run_id = $2`
	arguments := append([]any{workspaceID, a.RunID, a.Number}, p.arguments()...)
	if err := pgtx.ExecOne(ctx, t, insert, append(arguments, cut, int64(domain.LogCut))...); err != nil {
		return 0, fmt.Errorf("insert lines: %w", err)
	}
	newest, err = pgtx.QueryOne[int64](ctx, t, `SELECT coalesce(max(last_seq), 0) FROM run_log_pieces WHERE run_id = $1 AND attempt = $2`, a.RunID, a.Number)
	return newest, pgtx.Wrap("read the newest line", err)
}
