package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// write writes what the router decided, then the lanes' heads, which must see it.
func (r *router) write(ctx context.Context) error {
	if err := r.endOrphans(ctx); err != nil {
		return err
	}
	if err := r.writeRuns(ctx); err != nil {
		return err
	}
	if err := r.writeParkings(ctx); err != nil {
		return err
	}
	if err := r.writeMerges(ctx); err != nil {
		return err
	}
	var workspaces []xid.ID
	for _, n := range r.runs {
		workspaces = append(workspaces, n.workspaceID)
	}
	for _, m := range r.merges {
		workspaces = append(workspaces, m.workspaceID)
	}
	for _, workspace := range pgtx.Distinct(workspaces) {
		r.fed(workspace)
	}
	return r.fixHeads(ctx)
}

// newRun is a run to insert for a request.
type newRun struct {
	unroutedRequest
	run domain.ScopeRun
}

// runRecord is a new run as the statement that writes it reads it.
type runRecord struct {
	ID          string               `json:"id"`
	Workspace   xid.ID               `json:"workspace"`
	Agent       xid.ID               `json:"agent"`
	Task        xid.ID               `json:"task,omitempty"`
	Routine     xid.ID               `json:"routine,omitempty"`
	Causation   xid.ID               `json:"causation"`
	Scope       string               `json:"scope"`
	Source      domain.WakeupSource  `json:"source"`
	Class       domain.WakeClass     `json:"class"`
	Fingerprint *string              `json:"fingerprint"`
	Parked      *domain.ParkedReason `json:"parked"`
	Until       time.Time            `json:"until,omitzero"`
	Retries     int                  `json:"retries"`
	Hops        int                  `json:"hops"`
	At          time.Time            `json:"at"`
	Request     xid.ID               `json:"request"`
	Fire        xid.ID               `json:"fire,omitempty"`
	Activity    xid.ID               `json:"activity,omitempty"` // a re-send is in the feed already
	Data        map[string]any       `json:"data"`
}

func (n *newRun) record() runRecord {
	var parked *domain.ParkedReason
	if n.run.ParkedReason != "" {
		parked = &n.run.ParkedReason
	}
	record := runRecord{ID: n.run.ID, Workspace: n.workspaceID, Agent: n.agentID, Task: n.taskID, Routine: n.routineID, Causation: n.causationID, Scope: n.scope,
		Source: n.source, Class: n.class, Fingerprint: n.fingerprint, Parked: parked, Until: n.run.ParkedUntil, Retries: n.retryCount, Hops: n.hops,
		At: n.run.RequestedAt, Request: n.id, Fire: n.routineRunID, Data: map[string]any{"wakeupRequestId": n.id, "source": n.source, "parked": parked}}
	if n.resends == 0 {
		record.Activity = xid.New("act")
	}
	return record
}

// writeRuns inserts the new runs with their first events, links the requests that were stored before, and says so in the feed. A fire that was
// recorded as COALESCED and got a run of its own all the same, since what it was merged into had begun, is open as long as
// that run: later fires find it active (SPEC S4.6).
func (r *router) writeRuns(ctx context.Context) error {
	if len(r.runs) == 0 {
		return nil
	}
	records := make([]runRecord, len(r.runs))
	var stored, fires []xid.ID
	for i := range r.runs {
		records[i] = r.runs[i].record()
		if fire := r.runs[i].routineRunID; fire != "" {
			fires = append(fires, fire)
		}
		if r.runs[i].fresh == nil {
			stored = append(stored, r.runs[i].id)
		}
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode runs: %w", err)
	}
	const query = `
-- $1 the runs as JSON, $2 now, $3 the requests that are stored, $4 the fires
WITH n AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($1) AS n (id text, workspace text, agent text, task text, routine text, causation text,
      scope text, source text, class text, fingerprint text, parked text, until timestamptz, retries int,
      hops int, at timestamptz, request text, fire text, activity text, data jsonb)),
run AS (
  INSERT INTO runs (id, workspace_id, agent_id, task_id, routine_id, causation_id, scope, source, wake_class,
    fingerprint, status, parked_reason, parked_until, due_at, retry_count, hops, requested_at, event_seq)
  SELECT id, workspace, agent, task, routine, causation, scope, source, class, fingerprint, 'QUEUED', parked, until,
    CASE WHEN parked IS NULL THEN $2::timestamptz END, retries, hops, at, 1
  FROM n),
told AS (` + activityInto + `
  SELECT activity, workspace, '` + string(domain.ActivityCodeWakeupQueued) + `', 'The wakeup was queued.',
    'SYSTEM', 'router', request, agent, task,
    jsonb_strip_nulls(jsonb_build_object('agent', agent, 'task_id', task, 'runId', id, 'source', source)), causation, $2
  FROM n WHERE activity IS NOT NULL),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, data, occurred_at)
  SELECT workspace, id, 1, 'CREATED', data, $2
  FROM n),
linked AS (
  UPDATE wakeup_requests q
  SET run_id = n.id
  FROM n
  WHERE q.id = n.request AND q.id = ANY($3)
  RETURNING q.id),
open AS (
  UPDATE routine_runs f
  SET completed_at = NULL
  FROM n
  WHERE f.id = n.fire AND f.id = ANY($4) AND f.status = 'COALESCED')
SELECT count(*) FROM linked`
	linked, err := pgtx.QueryOne[int](ctx, r, query, encoded, r.Now, pgtx.IDs(stored), pgtx.IDs(fires))
	if err == nil && linked != len(stored) {
		err = fmt.Errorf("linked %d requests, want %d", linked, len(stored))
	}
	if err != nil {
		return fmt.Errorf("insert runs: %w", err)
	}
	for _, n := range r.runs {
		r.Publish(event.Event{Kind: event.Run, WorkspaceID: n.workspaceID, ID: xid.ID(n.run.ID)})
	}
	return nil
}

// writeParkings writes the parkings that merges changed.
func (r *router) writeParkings(ctx context.Context) error {
	for id, run := range r.parked {
		const park = `
UPDATE runs
SET parked_reason = $2, parked_until = $3, due_at = $4, revision = revision + 1
WHERE id = $1 AND status = 'QUEUED'`
		if err := pgtx.ExecOne(ctx, r, park, id, pgtx.Nullable(run.ParkedReason), pgtx.NullableTime(run.ParkedUntil), dueFrom(run.ParkedReason, r.Now)); err != nil {
			return fmt.Errorf("change the run's parking: %w", err)
		}
	}
	return nil
}

// mergeRecord is a merge as the statement that writes it reads it.
type mergeRecord struct {
	Run      xid.ID `json:"run"`
	Requests int    `json:"requests"`
	Promote  bool   `json:"promote"`
	Hops     int    `json:"hops"`
}

// mergedRecord is a request that is merged, as the statement that writes it reads it.
type mergedRecord struct {
	ID        xid.ID              `json:"id"`
	Run       xid.ID              `json:"run"`
	Workspace xid.ID              `json:"workspace"`
	Agent     xid.ID              `json:"agent"`
	Task      xid.ID              `json:"task,omitempty"`
	Causation xid.ID              `json:"causation"`
	Source    domain.WakeupSource `json:"source"`
	Activity  xid.ID              `json:"activity"`
}

// writeMerges raises the counts of runs that requests are merged into, promotes the runs, links the requests that were stored
// before, and tells it in the runs' events and in the feed.
func (r *router) writeMerges(ctx context.Context) error {
	if len(r.merges) == 0 {
		return nil
	}
	var records []mergeRecord
	var merged []mergedRecord
	var runs, stored []xid.ID
	for _, m := range r.merges {
		records, runs = append(records, mergeRecord{m.run, len(m.requests), m.promote, m.hops}), append(runs, m.run)
		for _, q := range m.requests {
			merged = append(merged, mergedRecord{q.id, m.run, q.workspaceID, q.agentID, q.taskID, q.causationID, q.source, xid.New("act")})
			if q.fresh == nil {
				stored = append(stored, q.id)
			}
		}
	}
	encoded, err := json.Marshal(records)
	encodedRequests, requestsErr := json.Marshal(merged)
	if err := errors.Join(err, requestsErr); err != nil {
		return fmt.Errorf("encode merges: %w", err)
	}
	const query = `
-- $1 merges as JSON, $2 their requests as JSON, $3 the requests that are stored, $4 runs, $5 now
WITH n AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($2) AS n (id text, run text, workspace text, agent text, task text, causation text,
      source text, activity text)),
linked AS (
  UPDATE wakeup_requests q
  SET status = 'COALESCED', run_id = n.run
  FROM n
  WHERE q.id = n.id AND q.id = ANY($3)
  RETURNING q.id),
told AS (` + activityInto + `
  SELECT activity, workspace, '` + string(domain.ActivityCodeWakeupCoalesced) + `', 'The wakeup was merged into a run.',
    'SYSTEM', 'router', id, agent, task,
    jsonb_strip_nulls(jsonb_build_object('agent', agent, 'task_id', task, 'runId', run, 'source', source)),
    causation, $5
  FROM n),
raised AS (
  UPDATE runs r
  SET coalesced_count = coalesced_count + m.requests, hops = greatest(r.hops, m.hops), revision = revision + 1,
    event_seq = event_seq + CASE WHEN m.promote THEN 2 ELSE 1 END,
    wake_class = CASE WHEN m.promote THEN 'EVENT' ELSE wake_class END
  FROM json_to_recordset($1) AS m (run text, requests int, promote boolean, hops int)
  WHERE r.id = m.run AND r.id = ANY($4)
  RETURNING r.id, r.workspace_id, r.event_seq, m.requests, m.promote),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, data, occurred_at)
  SELECT workspace_id, id, event_seq - promote::int, '` + string(domain.RunEventKindCoalesced) + `', jsonb_build_object('requests', requests), $5
  FROM raised
  UNION ALL
  SELECT workspace_id, id, event_seq, '` + string(domain.RunEventKindPromoted) + `', '{}', $5
  FROM raised
  WHERE promote)
SELECT (SELECT count(*) FROM linked), (SELECT count(*) FROM raised)`
	var nLinked, nRaised int
	err = pgtx.QueryRow(ctx, r, []any{&nLinked, &nRaised}, query, encoded, encodedRequests, pgtx.IDs(stored), pgtx.IDs(runs), r.Now)
	if err == nil && (nLinked != len(stored) || nRaised != len(runs)) {
		err = fmt.Errorf("linked %d of %d requests to %d of %d runs", nLinked, len(stored), nRaised, len(runs))
	}
	if err != nil {
		return fmt.Errorf("merge requests: %w", err)
	}
	for _, m := range r.merges {
		r.Publish(event.Event{Kind: event.Run, WorkspaceID: m.workspaceID, ID: m.run})
	}
	return nil
}

// fixHeads recomputes the heads of the lanes that may have another one.
func (r *router) fixHeads(ctx context.Context) error {
	var agents []xid.ID
	for agent, touched := range r.touched {
		if touched {
			agents = append(agents, agent)
		}
	}
	return r.fixHeadsOf(ctx, agents)
}
