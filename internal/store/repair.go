package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
)

// Repairs counts what a repair sweep had to put right. All zero is the normal case: each is a defect to look into.
type Repairs struct{ Heads, Running, Workspaces, Scopes, Leases, Holds, Checkouts, Blocked, Offers int }

// repairLock is the advisory lock that keeps sweeps of several processes apart.
const repairLock = 0x726f757365 // "rouse"

// Repair puts right what should never be wrong (queue rule 6): lanes' heads and counts, workspaces' counts, runs that
// wait for a scope that is free, a blocker that is gone or a queue that is not theirs any more, leases, checkouts and holds of budgets without a live
// run. It does nothing while another process sweeps.
func (s *Store) Repair(ctx context.Context) (Repairs, error) {
	var done Repairs
	suspects, err := s.suspectLanes(ctx)
	if err != nil {
		return done, fmt.Errorf("look for lanes to repair: %w", err)
	}
	for _, agentID := range suspects {
		if err := s.inTx(ctx, func(t *tx) error { return t.repairLane(ctx, agentID, &done) }); err != nil {
			return done, fmt.Errorf("repair lane %s: %w", agentID, err)
		}
	}
	if err := s.inTx(ctx, func(t *tx) error { return t.repairWorkspaces(ctx, &done) }); err != nil {
		return done, fmt.Errorf("repair workspaces: %w", err)
	}
	if err := s.repairCheckouts(ctx, &done); err != nil {
		return done, fmt.Errorf("repair checkouts: %w", err)
	}
	if err := s.repairHolds(ctx, &done); err != nil {
		return done, fmt.Errorf("repair holds: %w", err)
	}
	s.countRepairs(done)
	return done, nil
}

// repairCheckouts frees tasks whose holder is not live, each in its own transaction (C87).
func (s *Store) repairCheckouts(ctx context.Context, done *Repairs) error {
	orphans, err := collect(ctx, s.db, scanOne[xid.ID], orphanCheckoutsQuery)
	if err != nil {
		return err
	}
	for _, id := range orphans {
		err := s.inTx(ctx, func(t *tx) error {
			freed, err := t.reapCheckout(ctx, id)
			if freed {
				done.Checkouts++
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) countRepairs(done Repairs) {
	for what, n := range map[string]int{"head": done.Heads, "running": done.Running, "workspace": done.Workspaces, "scope": done.Scopes,
		"lease": done.Leases, "hold": done.Holds, "checkout": done.Checkouts, "blocked": done.Blocked, "offer": done.Offers} {
		s.counters.Repaired(what, n)
	}
}

// suspectLanes finds lanes that look wrong, without locks: what is really wrong is judged again under the lock.
func (s *Store) suspectLanes(ctx context.Context) ([]xid.ID, error) {
	return collect(ctx, s.db, scanOne[xid.ID], suspectLanesQuery)
}

// One probe for the head of each lane; live runs, leases and runs that wait for a scope are each read once, from indexes
// that hold nothing else, however long the queues are.
var suspectLanesQuery = `
WITH offered AS (
  SELECT o.agent_id FROM workspaces w CROSS JOIN LATERAL (SELECT DISTINCT agent_id FROM runs r WHERE r.workspace_id = w.id AND ` + waitsInVain + `) o),
blocked AS (
  SELECT DISTINCT b.agent_id FROM runs b WHERE ` + wronglyBlocked + `),
live AS (SELECT agent_id, count(*) AS n FROM runs WHERE status = 'CLAIMED' GROUP BY agent_id),
leased AS (SELECT agent_id, count(*) AS n FROM attempt_leases GROUP BY agent_id),
waiting AS (
  SELECT DISTINCT b.agent_id FROM runs b WHERE b.status = 'QUEUED' AND b.parked_reason = 'SCOPE_BUSY'
    AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = b.agent_id AND o.scope = b.scope AND o.status = 'CLAIMED')
    AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.agent_id = b.agent_id AND o.scope = b.scope AND o.status = 'QUEUED' AND o.parked_reason IS NULL))
SELECT l.agent_id FROM agent_lanes l
LEFT JOIN LATERAL (SELECT id FROM runs WHERE agent_id = l.agent_id AND status = 'QUEUED' AND parked_reason IS NULL
                   ORDER BY requested_at, id LIMIT 1) head ON true
LEFT JOIN live ON live.agent_id = l.agent_id
LEFT JOIN leased ON leased.agent_id = l.agent_id
LEFT JOIN waiting ON waiting.agent_id = l.agent_id
LEFT JOIN blocked ON blocked.agent_id = l.agent_id
LEFT JOIN offered ON offered.agent_id = l.agent_id
WHERE offered.agent_id IS NOT NULL OR blocked.agent_id IS NOT NULL OR l.head_id IS DISTINCT FROM head.id OR l.running <> coalesce(live.n, 0) OR l.running <> coalesce(leased.n, 0) OR waiting.agent_id IS NOT NULL
LIMIT 200`

// wronglyBlocked are runs that are parked TASK_BLOCKED although no blocker is open, and nothing is on its way to them.
var wronglyBlocked = `b.status = 'QUEUED' AND b.parked_reason = 'TASK_BLOCKED' AND NOT EXISTS (
    SELECT 1 FROM task_blockers k JOIN tasks x ON x.id = k.blocker_id WHERE k.task_id = b.task_id AND ` + isOpen("x") + `)
  AND NOT EXISTS (SELECT 1 FROM wakeup_requests q WHERE q.agent_id = b.agent_id AND q.scope = b.scope AND q.status = 'QUEUED' AND q.run_id IS NULL)`

func (t *tx) repairLane(ctx context.Context, agentID xid.ID, done *Repairs) error {
	free, err := queryOne[bool](ctx, t, `SELECT pg_try_advisory_xact_lock($1)`, repairLock)
	if err != nil || !free {
		return err
	}
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return err
	}
	if err := t.repairBlocked(ctx, l, done); err != nil {
		return err
	}
	offers, err := t.unpark(ctx, l, waitsInVain)
	if err != nil {
		return err
	}
	done.Offers += offers
	scopes, err := collect(ctx, t, scanOne[string], `SELECT DISTINCT scope FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY'`, agentID)
	if err != nil {
		return err
	}
	before, err := t.busyRuns(ctx, agentID)
	if err != nil {
		return err
	}
	for _, scope := range scopes {
		if err := t.releaseScope(ctx, agentID, scope); err != nil {
			return err
		}
	}
	after, err := t.busyRuns(ctx, agentID)
	if err != nil {
		return err
	}
	done.Scopes += before - after
	if err := t.repairCounts(ctx, l, done); err != nil {
		return err
	}
	return t.fixHead(ctx, l)
}

// repairBlocked makes runs due that wait for blockers which are gone; the claim judges them again.
func (t *tx) repairBlocked(ctx context.Context, l lane, done *Repairs) error {
	type entry struct{ id, scope string }
	runs, err := collect(ctx, t, func(rows *sql.Rows) (e entry, err error) { return e, rows.Scan(&e.id, &e.scope) },
		`SELECT b.id, b.scope FROM runs b WHERE b.agent_id = $1 AND `+wronglyBlocked+` ORDER BY b.requested_at, b.id`, l.agentID)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := execOne(ctx, t, unparkQuery, run.id, l.agentID, run.scope); err != nil {
			return err
		}
		done.Blocked++
	}
	return nil
}

func (t *tx) busyRuns(ctx context.Context, agentID xid.ID) (int, error) {
	return queryOne[int](ctx, t, `SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY'`, agentID)
}

func (t *tx) repairCounts(ctx context.Context, l lane, done *Repairs) error {
	const leases = `
DELETE FROM attempt_leases WHERE agent_id = $1 AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = run_id AND r.status = 'CLAIMED' AND r.attempt = attempt_leases.attempt)`
	n, err := exec(ctx, t, leases, l.agentID)
	if err != nil {
		return err
	}
	done.Leases += int(n)
	const running = `
UPDATE agent_lanes SET running = live.n FROM (SELECT count(*)::int AS n FROM runs WHERE agent_id = $1 AND status = 'CLAIMED') live
WHERE agent_id = $1 AND running <> live.n`
	if n, err = exec(ctx, t, running, l.agentID); err != nil {
		return err
	}
	done.Running += int(n)
	const head = `
SELECT count(*) FROM agent_lanes l WHERE agent_id = $1 AND head_id IS DISTINCT FROM (
  SELECT id FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason IS NULL ORDER BY requested_at, id LIMIT 1)`
	wrong, err := queryOne[int](ctx, t, head, l.agentID)
	done.Heads += wrong
	return err
}

// repairWorkspaces makes each workspace's count the sum of its lanes'. The lanes are locked first, in order, so that no
// claim or finish is between the two.
func (t *tx) repairWorkspaces(ctx context.Context, done *Repairs) error {
	const suspects = `
SELECT w.workspace_id FROM workspace_lanes w
LEFT JOIN (SELECT workspace_id, sum(running) AS n FROM agent_lanes GROUP BY workspace_id) l ON l.workspace_id = w.workspace_id
WHERE w.running <> coalesce(l.n, 0) ORDER BY 1 LIMIT 20`
	workspaces, err := collect(ctx, t, scanOne[xid.ID], suspects)
	if err != nil || len(workspaces) == 0 {
		return err
	}
	if _, err := exec(ctx, t, `SELECT 1 FROM agent_lanes WHERE workspace_id = ANY($1) ORDER BY agent_id FOR NO KEY UPDATE`, ids(workspaces)); err != nil {
		return err
	}
	const fix = `
UPDATE workspace_lanes w SET running = s.n FROM (SELECT workspace_id, sum(running)::int AS n FROM agent_lanes GROUP BY workspace_id) s
WHERE w.workspace_id = s.workspace_id AND w.workspace_id = ANY($1) AND w.running <> s.n`
	n, err := exec(ctx, t, fix, ids(workspaces))
	done.Workspaces += int(n)
	t.publish(event.Event{Kind: event.Queue})
	return err
}

// orphanHold says of a hold that its attempt is not live any more.
const orphanHold = `h.status = 'HELD' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = h.run_id AND r.status = 'CLAIMED' AND r.attempt = h.attempt)`

// repairHolds voids holds of attempts that are not live and makes each budget's reserve the sum of its holds.
func (s *Store) repairHolds(ctx context.Context, done *Repairs) error {
	const suspects = `
SELECT b.id FROM budget_policies b WHERE reserved_usd <> (SELECT coalesce(sum(amount_usd), 0) FROM budget_holds WHERE policy_id = b.id AND status = 'HELD')
  OR EXISTS (SELECT 1 FROM budget_holds h WHERE h.policy_id = b.id AND ` + orphanHold + `) ORDER BY id LIMIT 100`
	policies, err := collect(ctx, s.db, scanOne[xid.ID], suspects)
	if err != nil {
		return err
	}
	for _, id := range policies {
		if err := s.inTx(ctx, func(t *tx) error { return t.repairBudget(ctx, id, done) }); err != nil {
			return fmt.Errorf("budget %s: %w", id, err)
		}
	}
	return nil
}

func (t *tx) repairBudget(ctx context.Context, id xid.ID, done *Repairs) error {
	if _, err := exec(ctx, t, `SELECT 1 FROM budget_policies WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
		return err
	}
	if _, err := exec(ctx, t, `UPDATE budget_holds h SET status = 'VOID' WHERE policy_id = $1 AND `+orphanHold, id); err != nil {
		return err
	}
	const sum = `
UPDATE budget_policies b SET reserved_usd = h.amount
FROM (SELECT coalesce(sum(amount_usd), 0) AS amount FROM budget_holds WHERE policy_id = $1 AND status = 'HELD') h WHERE b.id = $1 AND b.reserved_usd <> h.amount`
	n, err := exec(ctx, t, sum, id)
	done.Holds += int(n)
	return err
}
