package store

import (
	"context"
	"encoding/json"
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
		At: n.run.RequestedAt, Request: n.id, Data: map[string]any{"wakeupRequestId": n.id, "source": n.source, "parked": parked}}
	if n.resends == 0 {
		record.Activity = xid.New("act")
	}
	return record
}

// writeRuns inserts the new runs with their first events, links their requests and says so in the feed. A fire that was
// recorded as COALESCED and got a run of its own all the same, since what it was merged into had begun, is open as long as
// that run: later fires find it active (SPEC S4.6).
func (r *router) writeRuns(ctx context.Context) error {
	if len(r.runs) == 0 {
		return nil
	}
	records, requests := make([]runRecord, len(r.runs)), make([]xid.ID, len(r.runs))
	for i := range r.runs {
		records[i], requests[i] = r.runs[i].record(), r.runs[i].id
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode runs: %w", err)
	}
	const query = `
WITH n AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($1) AS n (id text, workspace text, agent text, task text, routine text, causation text,
      scope text, source text, class text, fingerprint text, parked text, until timestamptz, retries int,
      hops int, at timestamptz, request text, activity text, data jsonb)),
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
  RETURNING q.routine_run_id),
open AS (
  UPDATE routine_runs f
  SET completed_at = NULL
  FROM linked
  WHERE f.id = linked.routine_run_id AND f.status = 'COALESCED')
SELECT count(*) FROM linked`
	linked, err := pgtx.QueryOne[int](ctx, r, query, encoded, r.Now, pgtx.IDs(requests))
	if err == nil && linked != len(requests) {
		err = fmt.Errorf("linked %d requests, want %d", linked, len(requests))
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

// writeMerges links merged requests to their runs, raises the runs' counts, promotes them, and tells it in their events and
// in the feed.
func (r *router) writeMerges(ctx context.Context) error {
	if len(r.merges) == 0 {
		return nil
	}
	var records []mergeRecord
	var runs, into, requests []xid.ID
	for _, m := range r.merges {
		records, runs = append(records, mergeRecord{m.run, len(m.requests), m.promote, m.hops}), append(runs, m.run)
		for _, q := range m.requests {
			into, requests = append(into, m.run), append(requests, q)
		}
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode merges: %w", err)
	}
	const query = `
-- $1 merges, $2 requests, $3 the run of each, $4 ids of the entries, $5 runs, $6 now
WITH n AS MATERIALIZED (
  SELECT *
  FROM unnest($2::text[], $3::text[], $4::text[]) AS n (request, run, activity)),
linked AS (
  UPDATE wakeup_requests q
  SET status = 'COALESCED', run_id = n.run
  FROM n
  WHERE q.id = n.request AND q.id = ANY($2)
  RETURNING q.id, q.workspace_id, q.agent_id, q.task_id, q.causation_id, q.run_id, q.source, n.activity),
told AS (` + activityInto + `
  SELECT activity, workspace_id, '` + string(domain.ActivityCodeWakeupCoalesced) + `', 'The wakeup was merged into a run.',
    'SYSTEM', 'router', id, agent_id, task_id,
    jsonb_strip_nulls(jsonb_build_object('agent', agent_id, 'task_id', task_id, 'runId', run_id, 'source', source)),
    causation_id, $6
  FROM linked),
raised AS (
  UPDATE runs r
  SET coalesced_count = coalesced_count + m.requests, hops = greatest(r.hops, m.hops), revision = revision + 1,
    event_seq = event_seq + CASE WHEN m.promote THEN 2 ELSE 1 END,
    wake_class = CASE WHEN m.promote THEN 'EVENT' ELSE wake_class END
  FROM json_to_recordset($1) AS m (run text, requests int, promote boolean, hops int)
  WHERE r.id = m.run AND r.id = ANY($5)
  RETURNING r.id, r.workspace_id, r.event_seq, m.requests, m.promote),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, data, occurred_at)
  SELECT workspace_id, id, event_seq - promote::int, '` + string(domain.RunEventKindCoalesced) + `', jsonb_build_object('requests', requests), $6
  FROM raised
  UNION ALL
  SELECT workspace_id, id, event_seq, '` + string(domain.RunEventKindPromoted) + `', '{}', $6
  FROM raised
  WHERE promote)
SELECT (SELECT count(*) FROM linked), (SELECT count(*) FROM raised)`
	var nLinked, nRaised int
	err = pgtx.QueryRow(ctx, r, []any{&nLinked, &nRaised}, query, encoded, pgtx.IDs(requests), pgtx.IDs(into), pgtx.IDs(newIDs("act", len(requests))), pgtx.IDs(runs), r.Now)
	if err == nil && (nLinked != len(requests) || nRaised != len(runs)) {
		err = fmt.Errorf("linked %d of %d requests to %d of %d runs", nLinked, len(requests), nRaised, len(runs))
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
