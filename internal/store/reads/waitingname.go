package reads

import (
	"context"
	"database/sql"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// WaitingNow is Waiting in view of whether a scheduler runs that makes a next pass at all.
func (s *Reads) WaitingNow(ctx context.Context, runIDs, requestIDs []xid.ID) (map[xid.ID]domain.Waiting, error) {
	out, signs, err := s.waiting(ctx, runIDs, requestIDs)
	for id, w := range out {
		out[id] = w.Under(signs)
	}
	return out, err
}

func (s *Reads) waiting(ctx context.Context, runIDs, requestIDs []xid.ID) (out map[xid.ID]domain.Waiting, signs domain.SchedulerSigns, err error) {
	err = s.AtOneMoment(ctx, func(q pgtx.Querier) error {
		f := waitFacts{q: q, lanes: map[xid.ID]*waitLane{}, places: map[xid.ID]*int{}, held: map[xid.ID]time.Time{}}
		out, err = f.answer(ctx, runIDs, requestIDs)
		signs = f.signs
		return err
	})
	return out, signs, pgtx.Wrap("read why runs wait", err)
}

// maxCeilingRuns bounds the runs that are named as those which fill a workspace.
const maxCeilingRuns = 50

// nameLive names the live runs of the workspaces whose ceiling holds a run up, those that were claimed first before others.
func (f *waitFacts) nameLive(ctx context.Context, out map[xid.ID]domain.Waiting) error {
	full := map[xid.ID]bool{}
	for _, run := range f.asked {
		if out[xid.ID(run.ID)].Hold == domain.QueueHoldWorkspaceCeiling {
			full[run.workspaceID] = true
		}
	}
	if len(full) == 0 {
		return nil
	}
	const query = `
SELECT w.id, r.id FROM unnest($1::text[]) AS w (id) CROSS JOIN LATERAL (
  SELECT r.id FROM agent_lanes l JOIN runs r ON r.agent_id = l.agent_id AND r.status = 'CLAIMED'
  WHERE l.workspace_id = w.id AND l.running > 0 ORDER BY r.claimed_at, r.id LIMIT $2) r`
	live := map[xid.ID][]string{}
	_, err := pgtx.Collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var workspace xid.ID
		var run string
		err := rows.Scan(&workspace, &run)
		live[workspace] = append(live[workspace], run)
		return struct{}{}, err
	}, query, pgtx.IDs(pgtx.Keys(full)), maxCeilingRuns)
	for _, run := range f.asked {
		if w := out[xid.ID(run.ID)]; w.Hold == domain.QueueHoldWorkspaceCeiling {
			w.BlockedBy = live[run.workspaceID]
			out[xid.ID(run.ID)] = w
		}
	}
	return pgtx.Wrap("read what fills the workspaces", err)
}

// nameBlockers names the open blockers of what waits for them.
func (f *waitFacts) nameBlockers(ctx context.Context, out map[xid.ID]domain.Waiting) error {
	var blocked []xid.ID
	for id, w := range out {
		if w.Hold == domain.QueueHoldTaskBlocked {
			blocked = append(blocked, id)
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	query := `
SELECT r.id, x.id FROM runs r JOIN task_blockers b ON b.task_id = r.task_id JOIN tasks x ON x.id = b.blocker_id
WHERE r.id = ANY($1) AND ` + guard.TaskOpen("x") + ` ORDER BY x.id`
	_, err := pgtx.Collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var run xid.ID
		var blocker string
		err := rows.Scan(&run, &blocker)
		w := out[run]
		w.BlockedBy = append(w.BlockedBy, blocker)
		out[run] = w
		return struct{}{}, err
	}, query, pgtx.IDs(blocked))
	return pgtx.Wrap("read the blockers", err)
}

// checkedOut answers for requests that were skipped because another run holds their task.
func (f *waitFacts) checkedOut(ctx context.Context, requestIDs []xid.ID, out map[xid.ID]domain.Waiting) error {
	if len(requestIDs) == 0 {
		return nil
	}
	const query = `
SELECT q.id, coalesce(t.checkout_run_id, '') FROM wakeup_requests q JOIN tasks t ON t.id = q.task_id
WHERE q.id = ANY($1) AND q.status = 'SKIPPED' AND q.end_reason = 'CHECKOUT_HELD'`
	_, err := pgtx.Collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var request xid.ID
		var holder string
		err := rows.Scan(&request, &holder)
		w := domain.Waiting{Hold: domain.QueueHoldTaskCheckedOut}
		if holder != "" {
			w.BlockedBy = []string{holder}
		}
		out[request] = w
		return struct{}{}, err
	}, query, pgtx.IDs(requestIDs))
	return pgtx.Wrap("read who holds the tasks", err)
}
