package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/domain"
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
  SELECT x.run_id, x.number
  FROM run_attempts x
  JOIN l ON x.run_id = l.run_id AND x.number = l.attempt
  FOR NO KEY UPDATE OF x SKIP LOCKED),
att AS (UPDATE run_attempts SET heartbeat_at = clock_timestamp() WHERE (run_id, number) IN (SELECT run_id, number FROM living))
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
