package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Repairs counts what a repair sweep had to put right. All zero is the normal case: each is a defect to look into.
type Repairs struct{ Heads, Running, Workspaces, Scopes, Leases, Holds, Checkouts, Blocked, Offers, Fires, Orphans, Costs int }

// repairLock is the advisory lock that keeps sweeps of several processes apart.
const repairLock = 0x726f757365 // "rouse"

// plus adds what another repair put right.
func (r Repairs) plus(o Repairs) Repairs {
	return Repairs{r.Heads + o.Heads, r.Running + o.Running, r.Workspaces + o.Workspaces, r.Scopes + o.Scopes, r.Leases + o.Leases, r.Holds + o.Holds,
		r.Checkouts + o.Checkouts, r.Blocked + o.Blocked, r.Offers + o.Offers, r.Fires + o.Fires, r.Orphans + o.Orphans, r.Costs + o.Costs}
}

// Repair puts right what should never be wrong (docs/queue.md rule 6): lanes' heads and counts, workspaces' counts,
// runs that wait for a scope that is free, a blocker that is gone or a queue that is not theirs any more, leases,
// checkouts and holds of budgets without a live run, fires of heavy routines whose work has ended, rows of runs that are
// gone, sums of costs that their entries do not add up to. It does nothing while another process sweeps. It goes on with the end of what waits about ended tasks, too, where a process stopped in
// between; that is no repair and is not counted. What cannot be repaired does not stop the rest. The error joins what went wrong, and
// what is returned was put right.
func (s *Records) Repair(ctx context.Context) (Repairs, error) {
	var done Repairs
	var problems []error
	for _, r := range []repair{
		{"lane", s.suspectLanes, (*tx).repairLane},
		{"workspace", s.suspectWorkspaces, (*tx).repairWorkspace},
		{"checkout of task", s.orphanCheckouts, (*tx).repairCheckout},
		{"budget", s.suspectBudgets, (*tx).repairBudget},
		{"fire", s.staleFires, (*tx).repairFire},
		{"rest of run", s.orphanRuns, (*tx).repairOrphan},
		{"sums of costs of workspace", s.suspectCosts, func(t *tx, ctx context.Context, id xid.ID) (Repairs, error) {
			return t.repairCosts(ctx, id, s.costs.at())
		}},
	} {
		some, err := s.repairEach(ctx, r)
		done = done.plus(some)
		if problems = pgtx.AppendError(problems, err); pgtx.EndsAll(ctx, err) {
			break
		}
	}
	s.countRepairs(done)
	if err := errors.Join(problems...); pgtx.EndsAll(ctx, err) {
		return done, err
	}
	return done, errors.Join(pgtx.AppendError(problems, s.settleEnded(ctx))...)
}

// repair is one kind of what is repaired: how what looks wrong is found, without locks, and how one of it is judged again
// under locks and put right.
type repair struct {
	of   string
	find func(context.Context) ([]xid.ID, error)
	mend func(*tx, context.Context, xid.ID) (Repairs, error)
}

// repairEach repairs what looks wrong, each in a transaction of its own.
func (s *Records) repairEach(ctx context.Context, r repair) (total Repairs, err error) {
	suspects, err := r.find(ctx)
	if err != nil {
		return total, fmt.Errorf("look for a %s to repair: %w", r.of, err)
	}
	_, err = pgtx.Each(ctx, suspects, func(id xid.ID) error {
		var done Repairs // of the try that is committed
		err := s.inTx(ctx, func(t *tx) (err error) { done, err = r.mend(t, ctx, id); return err })
		if err == nil {
			total = total.plus(done)
		}
		return err
	}, pgtx.Blaming("repair "+r.of))
	return total, err
}

func (s *Records) countRepairs(done Repairs) {
	for what, n := range map[string]int{"head": done.Heads, "running": done.Running, "workspace": done.Workspaces, "scope": done.Scopes,
		"lease": done.Leases, "hold": done.Holds, "checkout": done.Checkouts, "blocked": done.Blocked, "offer": done.Offers, "fire": done.Fires, "orphan": done.Orphans, "cost": done.Costs} {
		s.counters.Repaired(what, n)
	}
}

// suspectLanes finds lanes that look wrong, without locks: what is really wrong is judged again under the lock.
func (s *Records) suspectLanes(ctx context.Context) ([]xid.ID, error) {
	return pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], suspectLanesQuery)
}

// One probe for the head of each lane; live runs, leases and runs that wait for a scope are each read once, from indexes
// that hold nothing else, however long the queues are.
var suspectLanesQuery = `
WITH offered AS (
  SELECT o.agent_id
  FROM workspaces w
  CROSS JOIN LATERAL (
    SELECT DISTINCT agent_id
    FROM runs r
    WHERE r.workspace_id = w.id AND ` + waitsInVain + `) o),
blocked AS (
  SELECT DISTINCT b.agent_id FROM runs b WHERE ` + wronglyBlocked + `),
-- counted whole, not lane by lane: live runs and leases are few, lanes are many
live AS (SELECT agent_id, count(*) AS n FROM runs WHERE status = 'CLAIMED' GROUP BY agent_id),
leased AS (SELECT agent_id, count(*) AS n FROM attempt_leases GROUP BY agent_id),
-- they wait for a run of their scope that is gone
waiting AS (
  SELECT DISTINCT b.agent_id FROM runs b WHERE b.status = 'QUEUED' AND b.parked_reason = 'SCOPE_BUSY'
    AND NOT EXISTS (
      SELECT 1
      FROM runs o
      WHERE o.agent_id = b.agent_id AND o.scope = b.scope AND o.status = 'CLAIMED')
    AND NOT EXISTS (
      SELECT 1
      FROM runs o
      WHERE o.agent_id = b.agent_id AND o.scope = b.scope AND ` + guard.Due + `))
SELECT l.agent_id FROM agent_lanes l
LEFT JOIN LATERAL (SELECT id FROM (` + guard.Head("l.agent_id") + `) AS oldest) head ON true
LEFT JOIN live ON live.agent_id = l.agent_id
LEFT JOIN leased ON leased.agent_id = l.agent_id
LEFT JOIN waiting ON waiting.agent_id = l.agent_id
LEFT JOIN blocked ON blocked.agent_id = l.agent_id
LEFT JOIN offered ON offered.agent_id = l.agent_id
WHERE offered.agent_id IS NOT NULL
  OR blocked.agent_id IS NOT NULL
  OR l.head_id IS DISTINCT FROM head.id
  OR l.running <> coalesce(live.n, 0)
  OR l.running <> coalesce(leased.n, 0)
  OR waiting.agent_id IS NOT NULL
LIMIT 200`

// wronglyBlocked are runs that are parked TASK_BLOCKED although no blocker is open, and nothing is on its way to them.
var wronglyBlocked = `b.status = 'QUEUED' AND b.parked_reason = 'TASK_BLOCKED' AND NOT EXISTS (
    SELECT 1
    FROM task_blockers k
    JOIN tasks x ON x.id = k.blocker_id
    WHERE k.task_id = b.task_id AND ` + guard.TaskOpen("x") + `)
  AND NOT EXISTS (
    SELECT 1
    FROM wakeup_requests q
    WHERE q.agent_id = b.agent_id AND q.scope = b.scope AND ` + guard.Unrouted + `)`

func (t *tx) repairLane(ctx context.Context, agentID xid.ID) (done Repairs, err error) {
	free, err := pgtx.QueryOne[bool](ctx, t, `SELECT pg_try_advisory_xact_lock($1)`, repairLock)
	if err != nil || !free {
		return done, err
	}
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return done, err
	}
	if done.Blocked, err = t.repairBlocked(ctx, l); err != nil {
		return done, err
	}
	offers, err := t.unpark(ctx, l, waitsInVain)
	if err != nil {
		return done, err
	}
	done.Offers = len(offers)
	if done.Scopes, err = t.repairScopes(ctx, l); err != nil {
		return done, err
	}
	if err := t.repairCounts(ctx, l, &done); err != nil {
		return done, err
	}
	return done, t.fixHead(ctx, l)
}

// repairScopes makes runs due that wait for a scope which is free.
func (t *tx) repairScopes(ctx context.Context, l lane) (int, error) {
	scopes, err := pgtx.Collect(ctx, t, pgtx.ScanOne[string], `SELECT DISTINCT scope FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY'`, l.agentID)
	if err != nil {
		return 0, err
	}
	before, err := t.busyRuns(ctx, l.agentID)
	if err != nil {
		return 0, err
	}
	for _, scope := range scopes {
		if err := t.releaseScope(ctx, l.agentID, scope); err != nil {
			return 0, err
		}
	}
	after, err := t.busyRuns(ctx, l.agentID)
	return before - after, err
}

// repairBlocked makes runs due that wait for blockers which are gone; the claim judges them again.
func (t *tx) repairBlocked(ctx context.Context, l lane) (int, error) {
	type entry struct{ id, scope string }
	runs, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (e entry, err error) { return e, rows.Scan(&e.id, &e.scope) },
		`SELECT b.id, b.scope FROM runs b WHERE b.agent_id = $1 AND `+wronglyBlocked+` ORDER BY b.requested_at, b.id`, l.agentID)
	if err != nil {
		return 0, err
	}
	for _, run := range runs {
		if err := pgtx.ExecOne(ctx, t, unparkQuery, run.id, l.agentID, run.scope); err != nil {
			return 0, err
		}
	}
	return len(runs), nil
}

func (t *tx) busyRuns(ctx context.Context, agentID xid.ID) (int, error) {
	return pgtx.QueryOne[int](ctx, t, `SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY'`, agentID)
}

func (t *tx) repairCounts(ctx context.Context, l lane, done *Repairs) error {
	const leases = `
DELETE FROM attempt_leases
WHERE agent_id = $1
  AND NOT EXISTS (
  SELECT 1
  FROM runs r
  WHERE r.id = run_id AND r.status = 'CLAIMED' AND r.attempt = attempt_leases.attempt)`
	n, err := pgtx.Exec(ctx, t, leases, l.agentID)
	if err != nil {
		return err
	}
	done.Leases += int(n)
	const running = `
UPDATE agent_lanes
SET running = live.n
FROM (SELECT count(*)::int AS n FROM runs WHERE agent_id = $1 AND status = 'CLAIMED') live
WHERE agent_id = $1 AND running <> live.n`
	if n, err = pgtx.Exec(ctx, t, running, l.agentID); err != nil {
		return err
	}
	done.Running += int(n)
	head := `
SELECT count(*) FROM agent_lanes l WHERE agent_id = $1 AND head_id IS DISTINCT FROM (
  SELECT id FROM (` + guard.Head("$1") + `) AS oldest)`
	wrong, err := pgtx.QueryOne[int](ctx, t, head, l.agentID)
	done.Heads += wrong
	return err
}

// suspectWorkspaces finds workspaces whose count looks wrong.
func (s *Records) suspectWorkspaces(ctx context.Context) ([]xid.ID, error) {
	return pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], `
SELECT w.workspace_id FROM workspace_lanes w
LEFT JOIN (
  SELECT workspace_id, sum(running) AS n
  FROM agent_lanes
  GROUP BY workspace_id) l ON l.workspace_id = w.workspace_id
WHERE w.running <> coalesce(l.n, 0) ORDER BY 1 LIMIT 20`)
}

// repairWorkspace makes a workspace's count the sum of its lanes'. The lanes are locked first, in order, so that no claim or
// finish is between the two.
func (t *tx) repairWorkspace(ctx context.Context, id xid.ID) (done Repairs, err error) {
	if _, err := pgtx.Exec(ctx, t, `SELECT 1 FROM agent_lanes WHERE workspace_id = $1 ORDER BY agent_id FOR NO KEY UPDATE`, id); err != nil {
		return done, err
	}
	const fix = `
UPDATE workspace_lanes w
SET running = s.n
FROM (SELECT coalesce(sum(running), 0)::int AS n FROM agent_lanes WHERE workspace_id = $1) s
WHERE w.workspace_id = $1 AND w.running <> s.n`
	n, err := pgtx.Exec(ctx, t, fix, id)
	if n > 0 {
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: id})
	}
	return Repairs{Workspaces: int(n)}, err
}

// repairCheckout frees a task whose holder is not live (C87).
func (t *tx) repairCheckout(ctx context.Context, taskID xid.ID) (done Repairs, err error) {
	freed, err := t.reapCheckout(ctx, taskID)
	if freed {
		done.Checkouts = 1
	}
	return done, err
}

// orphanHold says of a hold that its attempt is not live any more.
const orphanHold = `h.status = 'HELD'
  AND NOT EXISTS (
  SELECT 1
  FROM runs r
  WHERE r.id = h.run_id AND r.status = 'CLAIMED' AND r.attempt = h.attempt)`

// suspectBudgets finds budgets with holds of attempts that are not live, or whose reserve is not the sum of their holds.
func (s *Records) suspectBudgets(ctx context.Context) ([]xid.ID, error) {
	return pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], `
SELECT b.id
FROM budget_policies b
WHERE reserved_usd <> (
  SELECT coalesce(sum(amount_usd), 0)
  FROM budget_holds
  WHERE policy_id = b.id AND status = 'HELD')
  OR EXISTS (SELECT 1 FROM budget_holds h WHERE h.policy_id = b.id AND `+orphanHold+`) ORDER BY id LIMIT 100`)
}

// repairBudget voids holds of attempts that are not live and makes the budget's reserve the sum of its holds.
func (t *tx) repairBudget(ctx context.Context, id xid.ID) (done Repairs, err error) {
	if _, err := pgtx.Exec(ctx, t, `SELECT 1 FROM budget_policies WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
		return done, err
	}
	if _, err := pgtx.Exec(ctx, t, `UPDATE budget_holds h SET status = '`+string(domain.BudgetHoldStatusVoid)+`' WHERE policy_id = $1 AND `+orphanHold, id); err != nil {
		return done, err
	}
	const sum = `
UPDATE budget_policies b SET reserved_usd = h.amount
FROM (
  SELECT coalesce(sum(amount_usd), 0) AS amount
  FROM budget_holds
  WHERE policy_id = $1 AND status = 'HELD') h
WHERE b.id = $1 AND b.reserved_usd <> h.amount`
	n, err := pgtx.Exec(ctx, t, sum, id)
	return Repairs{Holds: int(n)}, err
}
