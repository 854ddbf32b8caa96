package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// send writes requests with their entries of the feed. A request whose key there is already is not written (SPEC S3.3). A transaction
// that routes writes those whose agents' lanes it holds with their runs (SPEC S3.2), behind what these agents have unrouted. The
// agents of all others are in t.toRoute.
func (t *tx) send(ctx context.Context, requests []*newRequest) error {
	return t.sendTo(ctx, requests, nil)
}

// sendTo is send for a caller who knows the agents; nil: they are to be read.
func (t *tx) sendTo(ctx context.Context, requests []*newRequest, agents map[xid.ID]recipient) error {
	fresh, err := t.withoutKnown(ctx, requests)
	if err != nil || len(fresh) == 0 {
		return err
	}
	r := t.router()
	r.fresh, r.agents = fresh, agents
	if err := r.decideFresh(ctx, fresh); err != nil {
		return err
	}
	if err := r.write(ctx); err != nil {
		return err
	}
	return t.sentAll(ctx, fresh)
}

// sentAll does what follows from requests that were written.
func (t *tx) sentAll(ctx context.Context, requests []*newRequest) error {
	var tasks []xid.ID
	for _, q := range requests {
		t.tellSent(q.id, t.Now, *q)
		if q.taskID != "" {
			tasks = append(tasks, q.taskID)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	_, err := pgtx.Exec(ctx, t, reopenFires, pgtx.IDs(pgtx.Distinct(tasks)))
	return pgtx.Wrap("open the fires of tasks again", err)
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
		if _, ok := r.locked[q.agentID]; ok {
			held = append(held, q.agentID)
		}
	}
	held = pgtx.Distinct(held)
	if len(held) == 0 {
		return nil
	}
	if r.agents == nil {
		var err error
		if r.agents, err = r.readRecipients(ctx, held, 1); err != nil {
			return err
		}
	}
	requests, err := r.unrouted(ctx, slices.DeleteFunc(held, func(id xid.ID) bool { return !r.agents[id].behind }))
	if err != nil || len(requests) == routeBatch {
		return err
	}
	for _, q := range fresh {
		_, locked := r.locked[q.agentID]
		if to, there := r.agents[q.agentID]; locked && there && domain.HopLimit(q.hops, to.maxHops) == "" {
			requests = append(requests, q.unrouted(to, r.Now))
		}
	}
	return r.decide(ctx, requests)
}

// recipient is what a transaction that sends requests knows of an agent that was not deleted.
type recipient struct {
	workspaceID xid.ID
	window      time.Duration // of its workspace, for merging
	maxHops     int           // of its workspace, for chains
	queued      int           // its queued runs, up to a bound
	live        bool          // it has a claimed run
	behind      bool          // it has unrouted requests, behind which others come
}

// idle says that no run of the agent is there that a request could be merged into, or wait for.
func (p recipient) idle() bool { return p.queued == 0 && !p.live }

// readRecipients reads agents, and how many runs they have queued, up to a bound. Those that were deleted are left out.
func (t *tx) readRecipients(ctx context.Context, agents []xid.ID, bound int) (map[xid.ID]recipient, error) {
	found := map[xid.ID]recipient{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var id xid.ID
		var ms int64
		var p recipient
		err = rows.Scan(&id, &p.workspaceID, &ms, &p.maxHops, &p.queued, &p.live, &p.behind)
		p.window = time.Duration(ms) * time.Millisecond
		found[id] = p
		return struct{}{}, err
	}, recipientsQuery, pgtx.IDs(agents), bound)
	return found, pgtx.Wrap("read agents that are woken", err)
}

// recipientsQuery probes an index for each agent. EXISTS would let the planner read all live runs and all unrouted requests of
// all agents at once, where few of them were there when the tables were analysed.
const recipientsQuery = `
SELECT a.id, a.workspace_id, w.coalescing_window_ms, w.max_hops, (
    SELECT count(*)
    FROM (SELECT 1 FROM runs WHERE agent_id = a.id AND status = 'QUEUED' LIMIT $2) AS queued),
  (SELECT count(*) > 0 FROM (SELECT 1 FROM runs WHERE agent_id = a.id AND status = 'CLAIMED' LIMIT 1) AS live),
  (SELECT count(*) > 0 FROM (SELECT 1 FROM wakeup_requests WHERE agent_id = a.id AND ` + guard.Unrouted + ` LIMIT 1) AS behind)
FROM agents a
JOIN workspaces w ON w.id = a.workspace_id
WHERE a.id = ANY($1) AND a.deleted_at IS NULL`

// unrouted is the request as the router sees one that is stored.
func (q *newRequest) unrouted(to recipient, now time.Time) unroutedRequest {
	return unroutedRequest{fresh: q, agentID: q.agentID, window: to.window, maxHops: to.maxHops, requestRow: requestRow{id: q.id, workspaceID: q.workspaceID, taskID: q.taskID,
		routineID: q.routineID, routineRunID: q.routineRunID, causationID: q.causationID, scope: q.scope, source: q.source, basis: q.basis, class: q.class,
		personWaiting: q.personWaiting, fingerprint: q.fingerprint, reason: q.reason, status: domain.WakeupStatusQueued, hops: q.hops, unattended: q.unattended(), requestedAt: now}}
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
	Unattended  bool                `json:"unattended"`
	Key         string              `json:"key,omitempty"`
}

func (q *newRequest) record() requestRecord {
	status := domain.WakeupStatusQueued
	if q.merged {
		status = domain.WakeupStatusCoalesced
	}
	return requestRecord{q.id, q.workspaceID, q.agentID, q.taskID, q.routineID, q.routineRunID, q.causationID, q.scope, q.source, q.basis, q.class, q.personWaiting,
		q.fingerprint, q.reason, q.payload, status, q.runID, q.recovered, q.hops, q.unattended(), q.key}
}

// sentUnrouted says whether requests of the agent were sent that the dispatcher has to route.
func (t *tx) sentUnrouted(agentID xid.ID) bool { return slices.Contains(t.toRoute, agentID) }
