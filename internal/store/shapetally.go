package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/liveness"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
)

// TallyShapes counts the ended runs of minutes to which no run can be added any more, so that the verdict adds up a few
// numbers instead of reading all runs of a day (SPEC S10.2, decision 26). more says that another call finds more to
// count. While another process counts, it does nothing.
func (s *Records) TallyShapes(ctx context.Context) (more bool, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		facts, found, err := t.tallyFacts(ctx)
		if err != nil || !found {
			return err
		}
		plan := liveness.PlanTally(facts)
		more = plan.More
		return t.tally(ctx, plan)
	})
	return more, pgtx.Wrap("count ended runs", err)
}

// tallyFacts locks the mark; false: another process has it. The instant is that of the statement, which is before its
// snapshot, so that transactions without a number then read the clock later.
func (t *tx) tallyFacts(ctx context.Context) (f liveness.TallyFacts, found bool, err error) {
	const query = `
SELECT m.since, m.until, m.seen, m.horizon, m.activated,
  statement_timestamp(),
  ` + guard.OldestWriter + `,
  pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
  (SELECT value::timestamptz FROM instance_facts WHERE name = $1),
  EXISTS (
    SELECT 1 FROM workspaces w
    WHERE EXISTS (SELECT 1 FROM runs r WHERE r.workspace_id = w.id AND r.finished_at >= m.until))
FROM shape_tally_mark m
FOR UPDATE OF m SKIP LOCKED`
	m := &f.Mark
	err = pgtx.QueryRow(ctx, t, []any{&m.Since, &m.Until, &m.Seen, &m.Horizon, &m.Activated, &f.Now, &f.Oldest, &f.Next, &f.Activated, &f.Ended}, query, guard.FactActivation)
	if pgtx.NoRows(err) {
		return f, false, nil
	}
	m.Since, m.Until, m.Seen, f.Now = m.Since.UTC(), m.Until.UTC(), m.Seen.UTC(), f.Now.UTC()
	return f, err == nil, err
}

// tally does what a plan says.
func (t *tx) tally(ctx context.Context, p liveness.TallyPlan) error {
	if !p.Change {
		return nil
	}
	if _, err := pgtx.Exec(ctx, t, `DELETE FROM shape_tallies WHERE $2 OR minute < $1`, p.Forget, p.Reset); err != nil {
		return fmt.Errorf("forget old counts: %w", err)
	}
	if p.From.Before(p.To) {
		const count = `
INSERT INTO shape_tallies (workspace_id, minute, status, outcome, end_reason, session, active, n)
SELECT w.id, e.*
FROM workspaces w CROSS JOIN LATERAL (
  SELECT date_trunc('minute', finished_at, 'UTC'), ` + guard.ShapeColumns + `,
    coalesce(requested_at >= $3, false), count(*)
  FROM runs
  WHERE workspace_id = w.id
    AND finished_at >= $1
    AND finished_at < $2
  GROUP BY 1, 2, 3, 4, 5, 6) e
ORDER BY 1, 2 -- so that the verdict finds the minutes of a workspace side by side`
		if _, err := pgtx.Exec(ctx, t, count, p.From, p.To, p.Mark.Activated); err != nil {
			return fmt.Errorf("count: %w", err)
		}
	}
	m := p.Mark
	const note = `UPDATE shape_tally_mark SET since = $1, until = $2, seen = $3, horizon = $4, activated = $5`
	return pgtx.ExecOne(ctx, t, note, m.Since, m.Until, m.Seen, m.Horizon, m.Activated)
}
