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

// write writes what the router decided, then the heads of lanes in which a merge changed more than a run that is new, since they must
// see it.
func (r *router) write(ctx context.Context) error {
	if err := r.endOrphans(ctx); err != nil {
		return err
	}
	if err := r.writeNew(ctx); err != nil {
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
	Unattended  bool                 `json:"unattended"`
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
		Source: n.source, Class: n.class, Fingerprint: n.fingerprint, Parked: parked, Until: n.run.ParkedUntil, Retries: n.retryCount, Hops: n.hops, Unattended: n.unattended,
		At: n.run.RequestedAt, Request: n.id, Fire: n.routineRunID, Data: map[string]any{"wakeupRequestId": n.id, "source": n.source, "parked": parked}}
	if n.resends == 0 {
		record.Activity = xid.New("act")
	}
	return record
}

// writeNew inserts what is new: requests with their entries of the feed, runs with their first events and entries. It links the
// requests that were stored before, and lowers the heads of lanes that such a run is older than. A fire that was recorded as
// COALESCED and got a run of its own all the same, since what it was merged into had begun, is open as long as that run: later
// fires find it active (SPEC S4.6). When a request's key was taken since it was looked for, the transaction is begun again.
func (r *router) writeNew(ctx context.Context) error {
	if len(r.runs)+len(r.fresh) == 0 {
		return nil
	}
	n, err := r.encodeNew()
	if err != nil {
		return err
	}
	var made, linked int
	err = pgtx.QueryRow(ctx, r, []any{&made, &linked}, writeNewQuery, n.requests, n.entries, n.runs, r.Now, pgtx.IDs(n.stored), pgtx.IDs(n.fires), pgtx.IDs(n.due))
	switch {
	case err == nil && made != len(r.fresh):
		err = pgtx.ErrChanged
	case err == nil && linked != len(n.stored):
		err = fmt.Errorf("linked %d requests, want %d", linked, len(n.stored))
	}
	if err != nil {
		return fmt.Errorf("insert requests and runs: %w", err)
	}
	for _, n := range r.runs {
		r.Publish(event.Event{Kind: event.Run, WorkspaceID: n.workspaceID, ID: xid.ID(n.run.ID)})
		if n.run.ParkedReason == "" {
			r.Publish(event.Event{Kind: event.Queue, WorkspaceID: n.workspaceID, ID: n.agentID})
		}
	}
	return nil
}

// newRows is what writeNew's statement is given.
type newRows struct {
	requests, entries, runs []byte
	stored, fires, due      []xid.ID // requests, fires of runs, agents of due runs
}

func (r *router) encodeNew() (n newRows, err error) {
	requests, runs := make([]requestRecord, len(r.fresh)), make([]runRecord, len(r.runs))
	var asked []entry
	for i, q := range r.fresh {
		if requests[i] = q.record(); q.asked != nil {
			asked = append(asked, *q.asked)
		}
	}
	n.entries, err = r.encodeEntries(asked) // before those about the runs, whose ids follow
	for i := range r.runs {
		x := &r.runs[i]
		runs[i] = x.record()
		if x.routineRunID != "" {
			n.fires = append(n.fires, x.routineRunID)
		}
		if x.fresh == nil {
			n.stored = append(n.stored, x.id)
		}
		if x.run.ParkedReason == "" {
			n.due = append(n.due, x.agentID)
		}
	}
	var requestsErr, runsErr error
	n.requests, requestsErr = json.Marshal(requests)
	n.runs, runsErr = json.Marshal(runs)
	return n, pgtx.Wrap("encode requests and runs", errors.Join(err, requestsErr, runsErr))
}

var writeNewQuery = `
-- $1 the requests as JSON, $2 their entries as JSON, $3 the runs as JSON, $4 now, $5 the requests that are stored,
-- $6 the fires, $7 the agents of runs that are due
WITH made AS (
  INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, routine_id, routine_run_id, causation_id, scope,
    source, basis, wake_class, person_waiting, fingerprint, reason, payload, status, run_id, recovered, resends,
    hops, unattended, retry_count, idempotency_key, requested_at)
  SELECT id, workspace, agent, task, routine, fire, causation, scope, source, basis, class, person, fingerprint,
    reason, payload, status, run, recovered, 0, hops, unattended, 0, key, $4
  FROM json_to_recordset($1) AS n (id text, workspace text, agent text, task text, routine text, fire text,
      causation text, scope text, source text, basis text, class text, person boolean, fingerprint text,
      reason text, payload jsonb, status text, run text, recovered boolean, hops int, unattended boolean,
      key text)
  ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
  RETURNING id),
asked AS (` + entriesInto("$2", "$4") + `),
n AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($3) AS n (id text, workspace text, agent text, task text, routine text, causation text,
      scope text, source text, class text, fingerprint text, parked text, until timestamptz, retries int,
      hops int, unattended boolean, at timestamptz, request text, fire text, activity text, data jsonb)),
run AS (
  INSERT INTO runs (id, workspace_id, agent_id, task_id, routine_id, causation_id, scope, source, wake_class,
    fingerprint, status, parked_reason, parked_until, due_at, retry_count, hops, unattended, requested_at,
    event_seq)
  SELECT id, workspace, agent, task, routine, causation, scope, source, class, fingerprint, 'QUEUED', parked, until,
    CASE WHEN parked IS NULL THEN $4::timestamptz END, retries, hops, unattended, at, 1
  FROM n),
told AS (` + activityInto + `
  SELECT activity, workspace, '` + string(domain.ActivityCodeWakeupQueued) + `', 'The wakeup was queued.',
    'SYSTEM', 'router', request, agent, task,
    jsonb_strip_nulls(jsonb_build_object('agent', agent, 'task_id', task, 'runId', id, 'source', source)), causation, $4
  FROM n WHERE activity IS NOT NULL),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, data, occurred_at)
  SELECT workspace, id, 1, 'CREATED', data, $4
  FROM n),
linked AS (
  UPDATE wakeup_requests q
  SET run_id = n.id
  FROM n
  WHERE q.id = n.request AND q.id = ANY($5)
  RETURNING q.id),
open AS (
  UPDATE routine_runs f
  SET completed_at = NULL
  FROM n
  WHERE f.id = n.fire AND f.id = ANY($6) AND f.status = 'COALESCED'),
lowered AS (
  UPDATE agent_lanes l
  SET head_at = h.at, head_id = h.id
  FROM (SELECT DISTINCT ON (agent) agent, at, id FROM n WHERE parked IS NULL ORDER BY agent, at, id) AS h
  WHERE l.agent_id = h.agent AND l.agent_id = ANY($7)
    AND (l.head_id IS NULL OR (h.at, h.id) < (l.head_at, l.head_id)))
SELECT (SELECT count(*) FROM made), (SELECT count(*) FROM linked)`

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
	Attended bool   `json:"attended"`
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
		records, runs = append(records, mergeRecord{m.run, len(m.requests), m.promote, m.hops, m.attended}), append(runs, m.run)
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
  SET coalesced_count = coalesced_count + m.requests, hops = greatest(r.hops, m.hops),
    unattended = r.unattended AND NOT m.attended, revision = revision + 1,
    event_seq = event_seq + CASE WHEN m.promote THEN 2 ELSE 1 END,
    wake_class = CASE WHEN m.promote THEN 'EVENT' ELSE wake_class END
  FROM json_to_recordset($1) AS m (run text, requests int, promote boolean, hops int, attended boolean)
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
