package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// startRecord is the start of an attempt as the statement that writes it reads it.
type startRecord struct {
	Run      xid.ID              `json:"run"`
	Number   int                 `json:"number"`
	Fresh    bool                `json:"fresh"`
	ID       xid.ID              `json:"id"`    // of a fresh attempt
	Claim    xid.ID              `json:"claim"` // the entry about its claim
	Content  xid.ID              `json:"content"`
	Activity xid.ID              `json:"activity"`
	Prompt   string              `json:"prompt"`
	Summary  string              `json:"summary"`
	Snapshot json.RawMessage     `json:"snapshot"`
	Full     string              `json:"full"`
	Executor domain.ExecutorKind `json:"executor"`
	Digest   string              `json:"digest"`
	Secrets  *domain.SealedSet   `json:"secrets"` // of a fresh attempt
	Details  map[string]any      `json:"details"`
}

func (x *starting) record() (startRecord, error) {
	snapshot, err := contextSnapshot(x.requests)
	if err != nil {
		return startRecord{}, err
	}
	details := map[string]any{"executor": x.spec.Kind(), "wakeupRequests": len(x.requests)}
	if x.resume != "" {
		details["resumedSession"] = x.resume
	}
	r := startRecord{Run: x.run.id, Number: x.run.attempt, Fresh: x.fresh, ID: xid.New("att"), Claim: xid.New("act"), Content: xid.New("rct"),
		Activity: xid.New("act"), Prompt: x.prompt.Text, Summary: x.prompt.SummaryInjected, Snapshot: snapshot, Full: x.full,
		Executor: x.spec.Kind(), Digest: x.token.Digest().String(), Details: details}
	if set := x.spec.Sealed(x.holder); len(set.Values) > 0 {
		r.Secrets = &set
	}
	return r, nil
}

// hold is who has fresh attempts, and until when unless he renews their leases.
type hold struct {
	owner Owner
	until time.Time
}

// writeStarts claims the fresh runs, stores the prompts and their receipts, and moves the attempts on, in one statement.
func (t *tx) writeStarts(ctx context.Context, starts []*starting, h hold) error {
	records, runs := make([]startRecord, len(starts)), make([]xid.ID, len(starts))
	for i, x := range starts {
		var err error
		if x.token, err = auth.NewRunToken(rand.Reader); err != nil {
			return fmt.Errorf("make a run token: %w", err)
		}
		if records[i], err = x.record(); err != nil {
			return err
		}
		runs[i] = x.run.id
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode the starts: %w", err)
	}
	started, err := pgtx.QueryOne[int](ctx, t, startsQuery, encoded, t.Now, pgtx.IDs(runs),
		h.owner.ID, h.until, h.owner.Host, h.owner.BootID, h.owner.PID, h.owner.Started)
	if err == nil && started != len(starts) {
		err = fmt.Errorf("started %d of %d", started, len(starts))
	}
	if err != nil {
		return fmt.Errorf("write the starts: %w", err)
	}
	for _, x := range starts {
		t.fed(x.run.workspaceID)
		t.Publish(event.Event{Kind: event.Run, WorkspaceID: x.run.workspaceID, ID: x.run.id})
	}
	return nil
}

const startsQuery = `
-- $1 the starts as JSON, $2 now, $3 the runs again, so that the plan looks them up by their ids. Of fresh ones:
-- $4 owner, $5 end of the leases, $6 his host, $7 the host's boot, $8 his process, $9 when that began
WITH n AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1) AS n (run text, number int, fresh boolean, id text, claim text, content text,
    activity text, prompt text, summary text, snapshot jsonb, "full" text, executor text, digest text,
    secrets jsonb, details jsonb)),
r AS (
  UPDATE runs
  SET status = 'CLAIMED', attempt = n.number, started_at = $2::timestamptz,
    claimed_at = CASE WHEN n.fresh THEN $2::timestamptz ELSE claimed_at END,
    session_id = CASE WHEN n.fresh THEN NULL ELSE session_id END,
    revision = revision + 1, event_seq = event_seq + 1 + n.fresh::int
  FROM n
  WHERE runs.id = n.run AND runs.id = ANY($3)
    AND status = CASE WHEN n.fresh THEN 'QUEUED' ELSE 'CLAIMED' END::run_status AND attempt = n.number - n.fresh::int
  RETURNING runs.id AS run_id, workspace_id, agent_id, task_id, causation_id, event_seq, n.*),
checkouts AS (
  UPDATE tasks t
  SET checkout_agent_id = r.agent_id, checkout_run_id = r.run_id, checkout_at = $2
  FROM r
  WHERE t.id = r.task_id AND r.fresh),
told AS (` + activityInto + `
  SELECT e.entry, workspace_id, e.code, e.summary, 'SYSTEM', 'queue', run_id, agent_id, task_id,
    e.data || jsonb_strip_nulls(jsonb_build_object('agent', agent_id, 'task_id', task_id, 'attempt', number)),
    causation_id, $2
  FROM r
  CROSS JOIN LATERAL (VALUES
    (claim, fresh, '` + string(domain.ActivityCodeRunClaimed) + `', 'The run was claimed.', '{}'::jsonb),
    (activity, true, '` + string(domain.ActivityCodeRunLaunched) + `', 'The run was launched.', details))
    AS e (entry, holds, code, summary, data)
  WHERE e.holds),
events AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, run_id, event_seq - e.before, e.kind, number, e.data, $2
  FROM r
  CROSS JOIN LATERAL (VALUES (1, fresh, 'CLAIMED', '{}'::jsonb), (0, true, 'LAUNCHED', details))
    AS e (before, holds, kind, data)
  WHERE e.holds),
contents AS (
  INSERT INTO run_contents (id, workspace_id, run_id, assembled_prompt, summary_injected, context_snapshot,
    full_prompt)
  SELECT content, workspace_id, run_id, prompt, summary, snapshot, "full" FROM r
  ON CONFLICT (run_id) DO UPDATE
  SET assembled_prompt = excluded.assembled_prompt, summary_injected = excluded.summary_injected,
    context_snapshot = excluded.context_snapshot, full_prompt = excluded.full_prompt, result = NULL),
attempts AS (
  INSERT INTO run_attempts (id, workspace_id, run_id, number, executor, status, owner, token_digest, started_at,
    heartbeat_at)
  SELECT id, workspace_id, run_id, number, executor, '` + string(domain.RunAttemptStatusLaunching) + `', $4::text, digest, $2, $2
  FROM r
  WHERE fresh),
leases AS (
  INSERT INTO attempt_leases (run_id, workspace_id, agent_id, attempt, owner, lease_until, host, boot_id, owner_pid,
    owner_started, secrets)
  SELECT run_id, workspace_id, agent_id, number, $4::text, $5::timestamptz, $6::text, $7::text, $8::bigint, $9::bigint, secrets
  FROM r
  WHERE fresh),
earlier AS (
  UPDATE run_attempts a
  SET executor = n.executor, token_digest = n.digest, heartbeat_at = $2
  FROM n
  WHERE a.run_id = n.run AND a.number = n.number AND a.run_id = ANY($3) AND NOT n.fresh),
receipts AS (
  UPDATE wakeup_requests
  SET status = CASE status WHEN 'QUEUED' THEN 'CLAIMED' ELSE status END,
    claimed_at = CASE status WHEN 'QUEUED' THEN $2 ELSE claimed_at END, delivered_at = coalesce(delivered_at, $2)
  WHERE run_id = ANY($3)
    AND (status = 'QUEUED' OR status IN ('CLAIMED', 'COALESCED') AND delivered_at IS NULL))
SELECT count(*) FROM r`

// contextSnapshot is what the run was started with: the newest requests' payloads in full, the rest counted.
func contextSnapshot(requests []requestRow) ([]byte, error) {
	type entry struct {
		ID      xid.ID              `json:"id"`
		Source  domain.WakeupSource `json:"source"`
		Reason  string              `json:"reason"`
		Payload json.RawMessage     `json:"payload"`
	}
	shown := requests[max(0, len(requests)-shownWakes):]
	entries := make([]entry, len(shown))
	for i, q := range shown {
		entries[i] = entry{q.id, q.source, q.reason, q.payload}
	}
	snapshot, err := json.Marshal(map[string]any{"wakeupRequests": entries, "count": len(requests)})
	if err != nil {
		return nil, fmt.Errorf("encode the context snapshot: %w", err)
	}
	return snapshot, nil
}
