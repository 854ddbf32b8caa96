package reads

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

const waitColumns = `r.id, r.agent_id, r.workspace_id, r.scope, r.status, coalesce(r.parked_reason::text, ''), coalesce(r.parked_until, '0001-01-01Z'),
  r.requested_at, r.wake_class, r.cancel_requested_at IS NOT NULL, r.retry_count > 0, r.unattended, r.task_id`

func scanWaitRun(rows *sql.Rows) (r waitRun, err error) {
	var taskID xid.ID
	err = rows.Scan(&r.ID, &r.agentID, &r.workspaceID, &r.Scope, &r.Status, &r.ParkedReason, &r.ParkedUntil, &r.RequestedAt, &r.class, &r.cancelled,
		&r.retry, &r.Unattended, &taskID)
	r.TaskID = string(taskID)
	return r, err
}

func (f *waitFacts) readAsked(ctx context.Context, runIDs []xid.ID) error {
	var seen *time.Time
	err := pgtx.QueryRow(ctx, f.q, []any{&f.now, &seen}, `SELECT clock_timestamp(), (SELECT value::timestamptz FROM instance_facts WHERE name = $1)`, guard.FactScheduler)
	if err != nil {
		return pgtx.Wrap("read the database's clock", err)
	}
	f.signs = domain.SchedulerSigns{Last: pgtx.OrZero(seen), Now: f.now}
	f.asked, err = pgtx.Collect(ctx, f.q, scanWaitRun, `SELECT `+waitColumns+` FROM runs r WHERE r.id = ANY($1) AND r.status = 'QUEUED'`, pgtx.IDs(runIDs))
	return pgtx.Wrap("read the runs", err)
}

// waitLinesQuery reads the front of each lane's line, what will join it because its parking is over, and its live runs.
const waitLinesQuery = `
SELECT r.* FROM agent_lanes l CROSS JOIN LATERAL (
  (SELECT ` + waitColumns + ` FROM runs r WHERE r.agent_id = l.agent_id AND ` + guard.Due + `
   ORDER BY r.requested_at, r.id LIMIT greatest(l.max_sessions - l.running, 0) + $2)
  UNION ALL
  (
    SELECT ` + waitColumns + `
    FROM runs r
    WHERE r.agent_id = l.agent_id AND r.status = 'QUEUED' AND r.parked_until <= $3
    ORDER BY r.parked_until
    LIMIT $2)
  UNION ALL
  (SELECT ` + waitColumns + ` FROM runs r WHERE r.agent_id = l.agent_id AND r.status = 'CLAIMED')) r
WHERE l.agent_id = ANY($1)`

func (f *waitFacts) readLines(ctx context.Context) error {
	runs, err := pgtx.Collect(ctx, f.q, scanWaitRun, waitLinesQuery, pgtx.IDs(pgtx.Keys(f.lanes)), waitingSettles, f.now)
	if err != nil {
		return pgtx.Wrap("read the lines", err)
	}
	return f.add(ctx, append(slices.Clone(f.asked), runs...))
}

// readScopes reads the rest of the scopes in which a run may fall due or be parked: those asked about, those of a run
// whose parking is over, and those of a run that will be settled.
func (f *waitFacts) readScopes(ctx context.Context) error {
	var agents []xid.ID
	var scopes []string
	for id, l := range f.lanes {
		seen := map[string]bool{}
		for _, run := range l.Runs {
			if !seen[run.Scope] && run.Status == domain.RunStatusQueued && (run.ParkedReason != "" || run.Settles) {
				seen[run.Scope] = true
				agents, scopes = append(agents, id), append(scopes, run.Scope)
			}
		}
	}
	const query = `
SELECT ` + waitColumns + ` FROM unnest($1::text[], $2::text[]) AS s(agent_id, scope)
JOIN runs r ON r.agent_id = s.agent_id AND r.scope = s.scope AND r.status = 'QUEUED'`
	runs, err := pgtx.Collect(ctx, f.q, scanWaitRun, query, pgtx.IDs(agents), pgtx.TextArray(scopes))
	if err != nil {
		return pgtx.Wrap("read the scopes", err)
	}
	return f.add(ctx, runs)
}

// add notes runs of known lanes, each once, and whether the guards would end or park them.
func (f *waitFacts) add(ctx context.Context, runs []waitRun) error {
	guarded, err := f.readGuards(ctx, runs)
	if err != nil {
		return err
	}
	for _, run := range runs {
		l := f.lanes[run.agentID]
		if l == nil || l.known[run.ID] {
			continue
		}
		l.known[run.ID] = true
		guards := l.guards
		guards.WakeClass, guards.CancelRequested = run.class, run.cancelled
		if run.TaskID != "" {
			guarded[xid.ID(run.ID)].Into(&guards, run.retry)
		}
		admission := domain.Admit(guards)
		run.Settles, run.Blocked = admission.Settle != nil, admission.Park != ""
		if run.ParkedUntil.Year() == 1 {
			run.ParkedUntil = time.Time{}
		}
		l.Runs = append(l.Runs, run.PassRun)
	}
	return nil
}

// readGuards reads what the guards look at of those of the queued runs that are about tasks.
func (f *waitFacts) readGuards(ctx context.Context, runs []waitRun) (map[xid.ID]guard.TaskFacts, error) {
	var about []xid.ID
	for _, run := range runs {
		if run.TaskID != "" && run.Status == domain.RunStatusQueued {
			about = append(about, xid.ID(run.ID))
		}
	}
	if len(about) == 0 {
		return nil, nil
	}
	return guard.ReadTaskFacts(ctx, f.q, about)
}
