package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// SchedulerRuns notes that a scheduler of this database runs, by the database's clock. One that finds a sign as young as
// itself leaves it, so that many processes write no more than one.
func (s *Records) SchedulerRuns(ctx context.Context) error {
	const query = `
INSERT INTO instance_facts (id, name, value) VALUES ($1, $2, clock_timestamp()::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE instance_facts.value::timestamptz < excluded.value::timestamptz - make_interval(secs => $3)`
	_, err := pgtx.Exec(ctx, s.db, query, xid.New("fct"), guard.FactScheduler, domain.SchedulerBeat.Seconds()/2)
	return pgtx.Wrap("note that the scheduler runs", err)
}
