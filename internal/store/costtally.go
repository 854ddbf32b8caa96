package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
)

const costTallyColumns = `workspace_id, kind, subject, day, begins, since, cost_usd, input_tokens, output_tokens, runs`

// TallyCosts adds up the costs of hours to which no entry can be added any more, so that sums of a month read a few numbers
// instead of all entries (decision 29). more says that another call finds more to count. While another process counts, it does
// nothing.
func (s *Records) TallyCosts(ctx context.Context) (more bool, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		facts, found, err := t.costFacts(ctx)
		if err != nil || !found {
			return err
		}
		plan := domain.PlanCostTally(facts)
		more = plan.More
		return t.tallyCosts(ctx, plan)
	})
	return more, pgtx.Wrap("add up costs", err)
}

// costFacts locks the mark; false: another process has it. The instant is that of the statement, which is before its snapshot,
// so that transactions without a number then read the clock later.
func (t *tx) costFacts(ctx context.Context) (f domain.CostFacts, found bool, err error) {
	const query = `
SELECT m.until, m.seen, m.horizon,
  statement_timestamp(),
  ` + guard.OldestWriter + `,
  pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
  (
    SELECT min(first.at)
    FROM workspaces w
    CROSS JOIN LATERAL (
      SELECT min(e.created_at) AS at FROM cost_entries e WHERE e.workspace_id = w.id AND e.created_at >= m.until) first)
FROM cost_tally_mark m
FOR UPDATE OF m SKIP LOCKED`
	m := &f.Mark
	err = pgtx.QueryRow(ctx, t, []any{&m.Until, &m.Seen, &m.Horizon, &f.Now, &f.Oldest, &f.Next, &f.First}, query)
	if pgtx.NoRows(err) {
		return f, false, nil
	}
	m.Until, m.Seen, f.Now = m.Until.UTC(), m.Seen.UTC(), f.Now.UTC()
	return f, err == nil, err
}

// tallyCosts does what a plan says.
func (t *tx) tallyCosts(ctx context.Context, p domain.CostPlan) error {
	if !p.Change {
		return nil
	}
	if p.From.Before(p.To) {
		if _, err := pgtx.Exec(ctx, t, `INSERT INTO cost_tallies (`+costTallyColumns+`)`+guard.CostHours, p.From, p.To); err != nil {
			return fmt.Errorf("add up hours: %w", err)
		}
	}
	if p.Day != nil {
		if _, err := pgtx.Exec(ctx, t, `INSERT INTO cost_tallies (`+costTallyColumns+`)`+guard.CostDay, *p.Day); err != nil {
			return fmt.Errorf("add up a day: %w", err)
		}
	}
	return pgtx.ExecOne(ctx, t, `UPDATE cost_tally_mark SET until = $1, seen = $2, horizon = $3`, p.Mark.Until, p.Mark.Seen, p.Mark.Horizon)
}
