package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// send writes requests with their entries of the feed. A request whose key there is already is not written (SPEC S3.3). A transaction
// that routes writes those whose agents' lanes it holds with their runs (SPEC S3.2), behind what these agents have unrouted. The
// agents of all others are in t.toRoute.
func (t *tx) send(ctx context.Context, requests []*newRequest) error {
	fresh, err := t.withoutKnown(ctx, requests)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var asked []entry
	for _, q := range fresh {
		if q.asked != nil {
			asked = append(asked, *q.asked)
		}
	}
	if err := t.noteAll(ctx, asked); err != nil {
		return err
	}
	r := t.router()
	if err := r.decideFresh(ctx, fresh); err != nil {
		return err
	}
	if err := t.writeRequests(ctx, fresh); err != nil {
		return err
	}
	return r.write(ctx)
}

// withoutKnown leaves out the requests whose keys others have, also earlier ones of the list, and says in them which those are.
func (t *tx) withoutKnown(ctx context.Context, requests []*newRequest) ([]*newRequest, error) {
	type keyed struct {
		workspaceID xid.ID
		key         string
	}
	owners := map[keyed]xid.ID{}
	var workspaces []xid.ID
	var keys []string
	for _, q := range requests {
		if q.key != "" {
			workspaces, keys = append(workspaces, q.workspaceID), append(keys, q.key)
		}
	}
	if len(keys) > 0 {
		const query = `
SELECT q.workspace_id, q.idempotency_key, q.id
FROM unnest($1::text[], $2::text[]) AS n (workspace, key)
CROSS JOIN LATERAL (
  SELECT workspace_id, idempotency_key, id
  FROM wakeup_requests
  WHERE workspace_id = n.workspace AND idempotency_key = n.key
  LIMIT 1) AS q`
		_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
			var k keyed
			var id xid.ID
			err = rows.Scan(&k.workspaceID, &k.key, &id)
			owners[k] = id
			return struct{}{}, err
		}, query, pgtx.IDs(workspaces), pgtx.TextArray(keys))
		if err != nil {
			return nil, fmt.Errorf("find the requests that have the keys: %w", err)
		}
	}
	var fresh []*newRequest
	for _, q := range requests {
		k := keyed{q.workspaceID, q.key}
		if q.earlier = owners[k]; q.earlier != "" {
			continue
		}
		if q.key != "" {
			owners[k] = q.id
		}
		fresh = append(fresh, q)
	}
	return fresh, nil
}

// decideFresh decides about requests that are not written yet, behind those that their agents have unrouted. Those that it leaves
// to the dispatcher stay without a run: of lanes that others hold, of long queues, and those that no run is to be made for.
func (r *router) decideFresh(ctx context.Context, fresh []*newRequest) error {
	if r.Now.IsZero() {
		if err := r.ReadClock(ctx); err != nil {
			return err
		}
	}
	if r.routes {
		if err := r.decideBehind(ctx, fresh); err != nil {
			return err
		}
	}
	for _, q := range fresh {
		if q.runID == "" {
			r.toRoute = append(r.toRoute, q.agentID)
		}
	}
	return nil
}

func (r *router) decideBehind(ctx context.Context, fresh []*newRequest) error {
	var held []xid.ID
	for _, q := range fresh {
		if _, ok := r.locked[q.agentID]; ok && domain.HopLimit(q.hops) == "" {
			held = append(held, q.agentID)
		}
	}
	held = pgtx.Distinct(held)
	if len(held) == 0 {
		return nil
	}
	windows, err := r.readWindows(ctx, held)
	if err != nil {
		return err
	}
	requests, err := r.unrouted(ctx, held)
	if err != nil || len(requests) == routeBatch {
		return err
	}
	for _, q := range fresh {
		if window, ok := windows[q.agentID]; ok && domain.HopLimit(q.hops) == "" {
			requests = append(requests, q.unrouted(window, r.Now))
		}
	}
	return r.decide(ctx, requests)
}

// readWindows reads the coalescing windows of the workspaces of agents, without those that were deleted.
func (r *router) readWindows(ctx context.Context, agents []xid.ID) (map[xid.ID]time.Duration, error) {
	const query = `
SELECT a.id, w.coalescing_window_ms
FROM agents a
JOIN workspaces w ON w.id = a.workspace_id
WHERE a.id = ANY($1) AND a.deleted_at IS NULL`
	windows := map[xid.ID]time.Duration{}
	_, err := pgtx.Collect(ctx, r, func(rows *sql.Rows) (_ struct{}, err error) {
		var id xid.ID
		var ms int64
		err = rows.Scan(&id, &ms)
		windows[id] = time.Duration(ms) * time.Millisecond
		return struct{}{}, err
	}, query, pgtx.IDs(agents))
	return windows, pgtx.Wrap("read the windows of agents", err)
}

// unrouted is the request as the router sees one that is stored.
func (q *newRequest) unrouted(window time.Duration, now time.Time) unroutedRequest {
	return unroutedRequest{fresh: q, agentID: q.agentID, window: window, requestRow: requestRow{id: q.id, workspaceID: q.workspaceID, taskID: q.taskID,
		routineID: q.routineID, routineRunID: q.routineRunID, causationID: q.causationID, scope: q.scope, source: q.source, basis: q.basis, class: q.class,
		personWaiting: q.personWaiting, fingerprint: q.fingerprint, reason: q.reason, status: domain.WakeupStatusQueued, hops: q.hops, requestedAt: now}}
}

// requestRecord is a request as the statement that writes it reads it.
type requestRecord struct {
	ID          xid.ID              `json:"id"`
	Workspace   xid.ID              `json:"workspace"`
	Agent       xid.ID              `json:"agent"`
	Task        xid.ID              `json:"task,omitempty"`
	Routine     xid.ID              `json:"routine,omitempty"`
	Fire        xid.ID              `json:"fire,omitempty"`
	Causation   xid.ID              `json:"causation"`
	Scope       string              `json:"scope"`
	Source      domain.WakeupSource `json:"source"`
	Basis       *domain.WakeBasis   `json:"basis"`
	Class       domain.WakeClass    `json:"class"`
	Person      bool                `json:"person"`
	Fingerprint *string             `json:"fingerprint"`
	Reason      string              `json:"reason"`
	Payload     domain.Payload      `json:"payload"`
	Status      domain.WakeupStatus `json:"status"`
	Run         xid.ID              `json:"run,omitempty"`
	Recovered   bool                `json:"recovered"`
	Hops        int                 `json:"hops"`
	Key         string              `json:"key,omitempty"`
}

func (q *newRequest) record() requestRecord {
	status := domain.WakeupStatusQueued
	if q.merged {
		status = domain.WakeupStatusCoalesced
	}
	return requestRecord{q.id, q.workspaceID, q.agentID, q.taskID, q.routineID, q.routineRunID, q.causationID, q.scope, q.source, q.basis, q.class, q.personWaiting,
		q.fingerprint, q.reason, q.payload, status, q.runID, q.recovered, q.hops, q.key}
}

// writeRequests inserts requests as they were decided. When one's key was taken since withoutKnown, the transaction is begun again.
func (t *tx) writeRequests(ctx context.Context, requests []*newRequest) error {
	records := make([]requestRecord, len(requests))
	var tasks []xid.ID
	for i, q := range requests {
		if records[i] = q.record(); q.taskID != "" {
			tasks = append(tasks, q.taskID)
		}
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode requests: %w", err)
	}
	const query = `
-- $1 the requests as JSON, $2 now
INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, routine_id, routine_run_id, causation_id, scope,
  source, basis, wake_class, person_waiting, fingerprint, reason, payload, status, run_id, recovered, resends,
  hops, retry_count, idempotency_key, requested_at)
SELECT id, workspace, agent, task, routine, fire, causation, scope, source, basis, class, person, fingerprint,
  reason, payload, status, run, recovered, 0, hops, 0, key, $2
FROM json_to_recordset($1) AS n (id text, workspace text, agent text, task text, routine text, fire text,
    causation text, scope text, source text, basis text, class text, person boolean, fingerprint text,
    reason text, payload jsonb, status text, run text, recovered boolean, hops int, key text)
ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING`
	n, err := pgtx.Exec(ctx, t, query, encoded, t.Now)
	if err == nil && int(n) != len(requests) {
		err = pgtx.ErrChanged
	}
	if err == nil && len(tasks) > 0 {
		_, err = pgtx.Exec(ctx, t, reopenFires, pgtx.IDs(pgtx.Distinct(tasks)))
	}
	if err != nil {
		return fmt.Errorf("insert wakeup requests: %w", err)
	}
	for _, q := range requests {
		t.tellSent(q.id, t.Now, *q)
	}
	return nil
}

// sentUnrouted says whether requests of the agent were sent that the dispatcher has to route.
func (t *tx) sentUnrouted(agentID xid.ID) bool { return slices.Contains(t.toRoute, agentID) }
