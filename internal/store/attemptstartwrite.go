package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

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
	Content  xid.ID              `json:"content"`
	Activity xid.ID              `json:"activity"`
	Prompt   string              `json:"prompt"`
	Summary  string              `json:"summary"`
	Snapshot json.RawMessage     `json:"snapshot"`
	Full     string              `json:"full"`
	Executor domain.ExecutorKind `json:"executor"`
	Digest   string              `json:"digest"`
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
	return startRecord{Run: x.run.id, Number: x.run.attempt, Content: xid.New("rct"), Activity: xid.New("act"), Prompt: x.prompt.Text,
		Summary: x.prompt.SummaryInjected, Snapshot: snapshot, Full: x.full, Executor: x.spec.Kind(), Digest: x.token.Digest().String(), Details: details}, nil
}

// writeStarts stores the prompts and their receipts, and moves the attempts on.
func (t *tx) writeStarts(ctx context.Context, starts []*starting) error {
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
	const query = `
-- $1 the starts as JSON, $2 now, $3 the runs again, so that the plan looks them up by their ids
WITH n AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1) AS n (run text, number int, content text, activity text, prompt text,
    summary text, snapshot jsonb, "full" text, executor text, digest text, details jsonb)),
r AS (
  UPDATE runs
  SET started_at = $2, revision = revision + 1, event_seq = event_seq + 1
  FROM n
  WHERE id = n.run AND id = ANY($3)
  RETURNING id, workspace_id, agent_id, task_id, causation_id, event_seq, n.*),
told AS (` + activityInto + `
  SELECT activity, workspace_id, '` + string(domain.ActivityCodeRunLaunched) + `', 'The run was launched.', 'SYSTEM',
    'queue', id, agent_id, task_id,
    details || jsonb_strip_nulls(jsonb_build_object('agent', agent_id, 'task_id', task_id, 'attempt', number)),
    causation_id, $2
  FROM r),
contents AS (
  INSERT INTO run_contents (id, workspace_id, run_id, assembled_prompt, summary_injected, context_snapshot,
    full_prompt)
  SELECT content, workspace_id, id, prompt, summary, snapshot, "full" FROM r
  ON CONFLICT (run_id) DO UPDATE
  SET assembled_prompt = excluded.assembled_prompt, summary_injected = excluded.summary_injected,
    context_snapshot = excluded.context_snapshot, full_prompt = excluded.full_prompt, result = NULL),
attempts AS (
  UPDATE run_attempts a
  SET executor = n.executor, token_digest = n.digest, heartbeat_at = $2
  FROM n
  WHERE a.run_id = n.run AND a.number = n.number AND a.run_id = ANY($3)),
receipts AS (
  UPDATE wakeup_requests
  SET delivered_at = $2
  WHERE run_id = ANY($3) AND status IN ('CLAIMED', 'COALESCED') AND delivered_at IS NULL),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, 'LAUNCHED', number, details, $2 FROM r)
SELECT count(*) FROM r`
	started, err := pgtx.QueryOne[int](ctx, t, query, encoded, t.Now, pgtx.IDs(runs))
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
