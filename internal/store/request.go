package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// newRequest is a wakeup request to insert, QUEUED and unrouted (SPEC S3.2) unless it is sent by a transaction that routes.
// Key "" means none.
type newRequest struct {
	id                                                    xid.ID // "": insertRequest makes one
	workspaceID, agentID, taskID, routineID, routineRunID xid.ID
	causationID                                           xid.ID
	scope                                                 string
	source                                                domain.WakeupSource
	basis                                                 *domain.WakeBasis
	class                                                 domain.WakeClass
	personWaiting                                         bool
	fingerprint                                           *string
	reason                                                string
	payload                                               domain.Payload
	key                                                   string
	hops                                                  int
	webhook                                               bool // a delivery asked for it
	recovered                                             bool // by the recovery sweep

	// What send needs and finds.
	asked   *entry // of the feed, about the request; nil: none
	earlier xid.ID // the request that had the key before; it is sent no second time
	runID   xid.ID // "": unrouted
	merged  bool   // into that run, which it did not make
}

// unattended says that neither a person nor a schedule asked for the request.
func (r *newRequest) unattended() bool { return domain.Unattended(r.hops, r.webhook) }

// insertRequest writes a request, or finds the one with the same key. A duplicate is not an error (SPEC S3.3).
func (t *tx) insertRequest(ctx context.Context, r newRequest) (id xid.ID, duplicate bool, err error) {
	payload, err := json.Marshal(r.payload)
	if err != nil {
		return "", false, fmt.Errorf("encode %s payload: %w", r.source, err)
	}
	const query = `
INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, routine_id, routine_run_id, causation_id, scope, source, basis,
  wake_class, person_waiting, fingerprint, reason, payload, status, recovered, resends, hops, retry_count, idempotency_key,
  unattended)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 'QUEUED', $16, 0, $17, 0, NULLIF($18, ''), $19)
ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id, requested_at`
	var at time.Time
	err = pgtx.QueryRow(ctx, t, []any{&id, &at}, query, xid.New("wkp"), r.workspaceID, r.agentID, r.taskID, r.routineID, r.routineRunID, r.causationID, r.scope, r.source,
		r.basis, r.class, r.personWaiting, r.fingerprint, r.reason, payload, r.recovered, r.hops, r.key, r.unattended())
	if errors.Is(err, sql.ErrNoRows) {
		id, err = pgtx.QueryOne[xid.ID](ctx, t, `
SELECT id FROM wakeup_requests WHERE workspace_id = $1 AND idempotency_key = $2`, r.workspaceID, r.key)
		if err != nil {
			return "", false, fmt.Errorf("find the request that has the key: %w", err)
		}
		return id, true, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("insert wakeup request: %w", err)
	}
	if r.taskID != "" {
		if _, err := pgtx.Exec(ctx, t, reopenFires, pgtx.IDs([]xid.ID{r.taskID})); err != nil {
			return "", false, fmt.Errorf("open the fire of the task again: %w", err)
		}
	}
	t.tellSent(id, at, r)
	return id, false, nil
}

// tellSent notes what follows from a request that was written, once it has committed.
func (t *tx) tellSent(id xid.ID, at time.Time, r newRequest) {
	t.sent = append(t.sent, id)
	t.traceWakeup(id, at, r)
	t.Count(func(c *metrics.Counters) { c.WakeupCreated(r.workspaceID, r.source) })
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: r.workspaceID, ID: r.agentID})
}

// requestRow is a stored request as the router and the prompt need it; the router leaves the payload out.
type requestRow struct {
	id, workspaceID, taskID, routineID, routineRunID, causationID xid.ID
	scope                                                         string
	source                                                        domain.WakeupSource
	basis                                                         *domain.WakeBasis
	class                                                         domain.WakeClass
	personWaiting                                                 bool
	fingerprint                                                   *string
	reason                                                        string
	payload                                                       json.RawMessage
	status                                                        domain.WakeupStatus
	hops, resends, retryCount                                     int
	unattended                                                    bool
	requestedAt                                                   time.Time
	deliveredAt                                                   *time.Time
}

// requestColumns are the columns of a requestRow. A payload may have 256 KiB and a run thousands of requests, so each
// reader says which payloads it needs, as an SQL expression.
func requestColumns(payload string) string {
	return `id, workspace_id, task_id, routine_id, routine_run_id, causation_id, scope, source, basis, wake_class,
  person_waiting, fingerprint, reason, ` + payload + `, status, hops, resends, retry_count, unattended, requested_at, delivered_at`
}

// scanRequest reads the columns of a requestRow, and what the query has after them.
func scanRequest(rows *sql.Rows, more ...any) (r requestRow, err error) {
	err = rows.Scan(append([]any{&r.id, &r.workspaceID, &r.taskID, &r.routineID, &r.routineRunID, &r.causationID, &r.scope, &r.source, &r.basis, &r.class,
		&r.personWaiting, &r.fingerprint, &r.reason, &r.payload, &r.status, &r.hops, &r.resends, &r.retryCount, &r.unattended, &r.requestedAt, &r.deliveredAt}, more...)...)
	return r, err
}
