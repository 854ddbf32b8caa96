package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// LeasedAttempt finds the live attempt that a token may report about. It is the attempt whose lease has the worker's
// token. For an agent service that rouse called, it is the attempt with that run token. The error is ErrFenced when
// there is none, or a later attempt (SPEC S7.7).
func (s *Attempts) LeasedAttempt(ctx context.Context, runID xid.ID, number int, tokenDigest string) (Attempt, error) {
	a := Attempt{RunID: runID, Number: number}
	const query = `
SELECT coalesce(l.owner, '')
FROM attempt_leases l
JOIN run_attempts x ON x.run_id = l.run_id AND x.number = l.attempt
WHERE l.run_id = $1
  AND l.attempt = $2
  AND l.owner IS NOT NULL
  AND (l.owner = $3 OR x.executor = 'http' AND x.token_digest = $3)`
	var err error
	a.Owner, err = pgtx.QueryOne[xid.ID](ctx, s.db, query, runID, number, tokenDigest)
	if pgtx.NoRows(err) {
		return a, ErrFenced
	}
	return a, pgtx.Wrap("find the attempt", err)
}

// Renew lengthens the lease of an attempt by a worker's sign of life. The lease of one that a process of ours owns is
// renewed by that process, and left as it is. ErrFenced when the attempt is not the live one any more.
func (s *Attempts) Renew(ctx context.Context, a Attempt) (AttemptState, error) {
	st := AttemptState{Attempt: a}
	const query = `
WITH l AS (
  UPDATE attempt_leases
  SET lease_until = CASE
    WHEN lease_ms = 0 THEN lease_until
    ELSE clock_timestamp() + lease_ms * interval '1 millisecond' END,
    call_key = NULL -- the worker has the answer of its call, so that it is not given again
  WHERE run_id = $1 AND attempt = $2 AND owner = $3 RETURNING run_id, attempt, lease_until, ending_at),
living AS (
  -- left out rather than waited for: who ends the attempt may hold its row and wait for the lease
  SELECT x.id
  FROM run_attempts x
  JOIN l ON x.run_id = l.run_id AND x.number = l.attempt
  FOR NO KEY UPDATE OF x SKIP LOCKED),
att AS (UPDATE run_attempts SET heartbeat_at = clock_timestamp() WHERE id IN (SELECT id FROM living))
SELECT l.lease_until, r.cancel_requested_at IS NOT NULL OR l.ending_at IS NOT NULL
FROM l
JOIN runs r ON r.id = l.run_id`
	err := pgtx.QueryRow(ctx, s.db, []any{&st.LeaseUntil, &st.CancelRequested}, query, a.RunID, a.Number, a.Owner)
	if pgtx.NoRows(err) {
		return st, ErrFenced
	}
	return st, pgtx.Wrap("renew lease", err)
}

// Progress notes steps of an attempt's work, in their order. ErrFenced when the attempt is not the live one any more.
func (s *Attempts) Progress(ctx context.Context, a Attempt, steps ...map[string]any) error {
	return pgtx.Wrap("note progress", s.withLive(ctx, a, func(t *tx, run runRow) error {
		for _, details := range steps {
			if err := t.runEvent(ctx, run, domain.RunEventKindProgress, a.Number, details); err != nil {
				return err
			}
		}
		return nil
	}))
}

// AppendReported stores lines that a worker sent, the first of them with the number first, within the bounds of a run's
// output (SPEC S7.6). Lines that are stored already are left as they are. It returns the number of the newest stored line.
// ErrFenced when the attempt is not the live one any more.
func (s *Attempts) AppendReported(ctx context.Context, a Attempt, first int64, lines []LogLine) (newest int64, err error) {
	err = s.inTx(ctx, func(t *tx) (err error) { newest, err = t.appendReported(ctx, a, first, lines); return err })
	return newest, pgtx.Wrap("append reported lines", err)
}

// ReportProgress is Progress and AppendReported in one transaction: what a report says is kept whole, or not at all.
func (s *Attempts) ReportProgress(ctx context.Context, a Attempt, step map[string]any, first int64, lines []LogLine) (newest int64, err error) {
	if step == nil {
		return s.AppendReported(ctx, a, first, lines)
	}
	err = s.withLive(ctx, a, func(t *tx, run runRow) (err error) {
		if err := t.runEvent(ctx, run, domain.RunEventKindProgress, a.Number, step); err != nil {
			return err
		}
		newest, err = t.appendReported(ctx, a, first, lines)
		return err
	})
	return newest, pgtx.Wrap("note progress and lines", err)
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
		const query = `SELECT count(*), coalesce(sum(octet_length(text)), 0) FROM run_log_lines WHERE run_id = $1 AND attempt < $2`
		if err := pgtx.QueryRow(ctx, t, []any{&lines, &bytes}, query, a.RunID, a.Number); err != nil {
			return domain.LogAllowance{}, fmt.Errorf("measure the run's output: %w", err)
		}
	}
	return domain.AttemptLog(lines, bytes), nil
}

// freshLines numbers the lines, and leaves out those that are stored already.
func (t *tx) freshLines(ctx context.Context, a Attempt, first int64, lines []LogLine) (fresh []LogLine, err error) {
	const query = `SELECT seq FROM run_log_lines WHERE run_id = $1 AND attempt = $2 AND seq >= $3 AND seq < $4`
	list, err := pgtx.Collect(ctx, t, pgtx.ScanOne[int64], query, a.RunID, a.Number, first, first+int64(len(lines)))
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

func (t *tx) insertLines(ctx context.Context, a Attempt, workspaceID xid.ID, lines []LogLine, cut bool) (newest int64, err error) {
	seqs, streams, texts, ats := make([]int64, len(lines)), make([]string, len(lines)), make([]string, len(lines)), make([]time.Time, len(lines))
	for i, line := range lines {
		seqs[i], streams[i], texts[i], ats[i] = line.Seq, string(line.Stream), line.Text, line.At
	}
	const insert = `
-- $1 workspace, $2 run, $3 attempt, $4 numbers of the lines, $5 their streams, $6 texts, $7 instants, $8
-- whether the output is cut here, $9 what marks it as cut
WITH added AS (
  INSERT INTO run_log_lines (workspace_id, run_id, attempt, seq, stream, text, at)
  SELECT $1, $2, $3, n.seq, n.stream, n.text, n.at
  FROM unnest($4::bigint[], $5::text[], $6::text[], $7::timestamptz[]) AS n (seq, stream, text, at)
  ON CONFLICT (run_id, attempt, seq) DO NOTHING RETURNING octet_length(text) AS size)
UPDATE attempt_leases
SET log_bytes = CASE WHEN $8 THEN $9 ELSE log_bytes + coalesce((SELECT sum(size) FROM added), 0) END
WHERE run_id = $2`
	err = pgtx.ExecOne(ctx, t, insert, workspaceID, a.RunID, a.Number, pq.Array(seqs), pq.Array(streams), pq.Array(texts), pq.Array(ats), cut, int64(domain.LogCut))
	if err != nil {
		return 0, fmt.Errorf("insert lines: %w", err)
	}
	newest, err = pgtx.QueryOne[int64](ctx, t, `SELECT coalesce(max(seq), 0) FROM run_log_lines WHERE run_id = $1 AND attempt = $2`, a.RunID, a.Number)
	return newest, pgtx.Wrap("read the newest line", err)
}

// SecretsOf are the sealed values that a run's agent may say: those of its executor as it is set now, those that its live attempt
// was launched with, which the agent keeps when they are replaced, and those of its earlier attempts and of earlier runs of its
// session, whose files and conversation it may have found.
func (s *Attempts) SecretsOf(ctx context.Context, runID xid.ID) (sets []domain.SealedSet, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		var run runRow
		const query = `SELECT id, agent_id, task_id FROM runs WHERE id = $1`
		if err := pgtx.QueryRow(ctx, t, []any{&run.id, &run.agentID, &run.taskID}, query, runID); err != nil {
			return fmt.Errorf("read the run: %w", err)
		}
		ag, err := t.Agent.Query().Where(agent.ID(run.agentID)).WithWorkspace().Only(ctx)
		if err != nil {
			return fmt.Errorf("read the agent: %w", err)
		}
		spec, holder, err := t.resolveExecutor(ctx, run, ag)
		if err != nil {
			return err
		}
		launched, err := t.launchSecrets(ctx, runID)
		if err != nil {
			return err
		}
		former, err := t.formerSecrets(ctx, run)
		sets = append(append(launched, former...), spec.Sealed(holder))
		return err
	})
	return sets, pgtx.Wrap("read the secrets of the run's executor", err)
}

// launchSecrets are what the run's live attempt was launched with.
func (t *tx) launchSecrets(ctx context.Context, runID xid.ID) ([]domain.SealedSet, error) {
	const query = `SELECT secrets FROM attempt_leases WHERE run_id = $1 AND secrets IS NOT NULL`
	sets, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (set domain.SealedSet, err error) {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return set, err
		}
		return set, json.Unmarshal(text, &set)
	}, query, runID)
	return sets, pgtx.Wrap("read what the attempt was launched with", err)
}
