package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// costWalk is how far back the sweeps of this process have come in the counted hours; zero: they begin with the newest.
type costWalk struct {
	mu   sync.Mutex
	hour time.Time
}

func (w *costWalk) at() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hour
}

// differingCosts are the workspaces whose sums between $1 and $2 are not what the rows below them add up to.
func differingCosts(want, got string) string {
	return `
WITH want AS (` + want + `),
got AS (` + got + `)
SELECT DISTINCT workspace_id
FROM ((TABLE want EXCEPT TABLE got) UNION ALL (TABLE got EXCEPT TABLE want)) differing`
}

var (
	differingHours = differingCosts(guard.CostHours, guard.CostTallies(`NOT t.day`))
	differingDays  = differingCosts(guard.CostDay, guard.CostTallies(`t.day`)+` AND $2::timestamptz IS NOT NULL`)
)

// suspectCosts finds workspaces whose sums of an hour, or of its day, are not what their entries add up to. A sweep looks at one
// hour in which there are costs, the next one at the one before; the oldest is followed by the newest.
func (s *Records) suspectCosts(ctx context.Context) ([]xid.ID, error) {
	walk := &s.costs
	walk.mu.Lock()
	defer walk.mu.Unlock()
	const query = `
-- $1 the hour that was looked at last, or NULL
SELECT m.until, (
    SELECT date_trunc('hour', max(before.at), 'UTC')
    FROM workspaces w
    CROSS JOIN LATERAL (
      SELECT greatest(
        (
          SELECT max(e.created_at)
          FROM cost_entries e
          WHERE e.workspace_id = w.id AND e.created_at < least($1::timestamptz, m.until)),
        (
          SELECT max(t.begins)
          FROM cost_tallies t
          WHERE t.workspace_id = w.id AND t.kind = 'DAY' AND NOT t.day
            AND t.begins < least($1::timestamptz, m.until))) AS at) before)
FROM cost_tally_mark m`
	var last, hour *time.Time
	var until time.Time
	if !walk.hour.IsZero() {
		last = &walk.hour
	}
	if err := pgtx.QueryRow(ctx, s.db, []any{&until, &hour}, query, last); err != nil {
		return nil, err
	}
	walk.hour = time.Time{}
	if hour == nil {
		return nil, nil
	}
	walk.hour = hour.UTC()
	return differing(ctx, s.db, walk.hour, until)
}

// differing looks at an hour, and at its day when that is whole.
func differing(ctx context.Context, q pgtx.Querier, hour, until time.Time) ([]xid.ID, error) {
	found, err := pgtx.Collect(ctx, q, pgtx.ScanOne[xid.ID], differingHours, hour, hour.Add(domain.CostHour))
	day := hour.Truncate(domain.CostDay)
	if err != nil || len(found) > 0 || day.Add(domain.CostDay).After(until) {
		return found, err
	}
	return pgtx.Collect(ctx, q, pgtx.ScanOne[xid.ID], differingDays, day, day.Add(domain.CostDay))
}

// repairCosts adds up the costs of a workspace again, of the day of an hour, unless somebody has by now.
func (t *tx) repairCosts(ctx context.Context, workspaceID xid.ID, hour time.Time) (done Repairs, err error) {
	until, err := pgtx.QueryOne[time.Time](ctx, t, `SELECT until FROM cost_tally_mark FOR UPDATE`) // nobody counts meanwhile
	if err != nil {
		return done, err
	}
	suspects, err := differing(ctx, t, hour, until)
	if err != nil || !slices.Contains(suspects, workspaceID) {
		return done, err
	}
	day := hour.Truncate(domain.CostDay)
	end := day.Add(domain.CostDay)
	const forget = `
DELETE FROM cost_tallies
WHERE workspace_id = $1 AND kind IN ('AGENT', 'PROJECT', 'DAY') AND begins >= $2 AND begins < $3`
	if _, err := pgtx.Exec(ctx, t, forget, workspaceID, day, end); err != nil {
		return done, err
	}
	counted := until.UTC()
	if counted.After(end) {
		counted = end
	}
	if _, err := pgtx.Exec(ctx, t, `INSERT INTO cost_tallies (`+costTallyColumns+`) SELECT * FROM (`+guard.CostHours+`) h WHERE workspace_id = $3`, day, counted, workspaceID); err != nil {
		return done, err
	}
	if counted.Equal(end) {
		_, err = pgtx.Exec(ctx, t, `INSERT INTO cost_tallies (`+costTallyColumns+`) SELECT * FROM (`+guard.CostDay+`) d WHERE workspace_id = $2`, day, workspaceID)
	}
	return Repairs{Costs: 1}, err
}
