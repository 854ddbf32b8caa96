package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of what one transaction does of an agent's backlog, and one call of SettleBacklog.
const (
	backlogRuns     = 250  // queued runs that are ended, or ended requests that are looked at
	backlogRequests = 1000 // requests of those runs, unless the first one has more
	backlogLanes    = 4    // agents of one call
)

// SettleBacklog goes on with what is too much for one transaction: it ends without a launch what held agents have
// queued (SPEC S6.2) and all that deleted ones have, and sends again what the hold of resumed ones dropped (SPEC S6.3).
// One call takes a bounded step of a few agents, in turn; while there is more, it tells the dispatchers to look again.
// An agent that fails, or whose lane somebody holds, does not stop the others.
func (s *Queue) SettleBacklog(ctx context.Context) error {
	agents, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], backlogLanesQuery, string(s.turn.last()), backlogLanes+1)
	if err != nil {
		return fmt.Errorf("list agents with a backlog: %w", err)
	}
	more := len(agents) > backlogLanes
	agents = agents[:min(len(agents), backlogLanes)]
	_, err = pgtx.Each(ctx, agents, func(agentID xid.ID) error {
		s.turn.set(agentID)
		return s.inTx(ctx, func(t *tx) error { return t.stepBacklog(ctx, agentID, more) })
	}, pgtx.Blaming("end or send again what is queued of agent"))
	return err
}

// Those that come after the last one served come first.
const backlogLanesQuery = `
(SELECT agent_id FROM agent_lanes WHERE ` + guard.LaneBacklog + ` AND agent_id > $1 ORDER BY agent_id LIMIT $2)
UNION ALL
(SELECT agent_id FROM agent_lanes WHERE ` + guard.LaneBacklog + ` AND agent_id <= $1 ORDER BY agent_id LIMIT $2)
LIMIT $2`

// turn is the agent whose backlog this process served last.
type turn struct {
	mu    sync.Mutex
	agent xid.ID
}

func (t *turn) last() xid.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agent
}

func (t *turn) set(agentID xid.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.agent = agentID
}

// stepBacklog does one step for an agent, unless somebody holds its lane. others says that more agents wait for theirs.
func (t *tx) stepBacklog(ctx context.Context, agentID xid.ID, others bool) error {
	lanes, err := t.lockLanes(ctx, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id = $1 FOR NO KEY UPDATE SKIP LOCKED`, agentID)
	if err != nil || len(lanes) == 0 {
		return pgtx.Wrap("lock lane", err)
	}
	l := lanes[0]
	if others {
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	}
	var deleted bool
	var from resendFrom
	const query = `
SELECT a.deleted_at IS NOT NULL, l.resend_from, l.resend_after
FROM agents a
JOIN agent_lanes l ON l.agent_id = a.id
WHERE a.id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&deleted, &from.at, &from.id}, query, agentID); err != nil {
		return fmt.Errorf("read how far the agent's backlog is: %w", err)
	}
	switch {
	case deleted:
		return t.clearDeleted(ctx, l, system("agents"))
	case l.held():
		return t.settleHeld(ctx, l)
	case from.at != nil:
		return t.resendOn(ctx, l, from)
	}
	return nil
}

// settleHeld ends the oldest due runs of a held agent, as the claim would one by one. Their scopes fall free, and what
// waited for them is due and ends next.
func (t *tx) settleHeld(ctx context.Context, l lane) error {
	runs, _, err := t.someQueued(ctx, l, `r.parked_reason IS NULL`, `ORDER BY r.requested_at, r.id`)
	if err != nil {
		return err
	}
	ends, byEnd := []domain.Settlement{}, map[domain.Settlement][]runRow{}
	for _, run := range runs {
		a := domain.Admit(domain.AdmitFacts{AgentStatus: l.status, WakeClass: run.class, CancelRequested: run.cancelRequestedAt != nil})
		if len(byEnd[*a.Settle]) == 0 {
			ends = append(ends, *a.Settle)
		}
		byEnd[*a.Settle] = append(byEnd[*a.Settle], run)
	}
	for _, end := range ends {
		if err := t.settleAll(ctx, byEnd[end], end); err != nil {
			return err
		}
	}
	return t.fixHead(ctx, l)
}

// someQueued locks queued runs of a locked lane, as many as one step ends; more says that there may be others.
func (t *tx) someQueued(ctx context.Context, l lane, which, order string) (runs []runRow, more bool, err error) {
	query := `
WITH few AS MATERIALIZED (
  SELECT r.id
  FROM runs r
  WHERE r.agent_id = $1 AND r.status = 'QUEUED' AND ` + which + ` ` + order + `
  LIMIT $2)
SELECT ` + runColumns + `, r.coalesced_count + 1
FROM few
JOIN runs r ON r.id = few.id
WHERE r.status = 'QUEUED' ` + order + `
FOR NO KEY UPDATE OF r`
	found, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (q queuedRun, err error) {
		q.runRow, err = scanRunAnd(rows, &q.requests)
		return q, err
	}, query, l.agentID, backlogRuns)
	if err != nil {
		return nil, false, fmt.Errorf("lock queued runs: %w", err)
	}
	requests := 0
	for _, q := range found {
		if requests += q.requests; requests > backlogRequests && len(runs) > 0 {
			return runs, true, nil
		}
		runs = append(runs, q.runRow)
	}
	return runs, len(runs) == backlogRuns, nil
}

// queuedRun is a queued run with the number of its requests.
type queuedRun struct {
	runRow
	requests int
}

// resendFrom is how far a resume has come in the requests that its agent's hold dropped: past the request with that end
// and that id. It is nil when the resume is through.
type resendFrom struct {
	at *time.Time
	id string
}
