package store

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// factScheduler names when a scheduler last gave a sign of life.
const factScheduler = "scheduler_seen"

// SchedulerRuns notes that a scheduler of this database runs, by the database's clock. One that finds a sign as young as
// itself leaves it, so that many processes write no more than one.
func (s *Store) SchedulerRuns(ctx context.Context) error {
	const query = `
INSERT INTO instance_facts (id, name, value) VALUES ($1, $2, clock_timestamp()::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE instance_facts.value::timestamptz < excluded.value::timestamptz - make_interval(secs => $3)`
	_, err := exec(ctx, s.db, query, xid.New("fct"), factScheduler, domain.SchedulerBeat.Seconds()/2)
	return wrap("note that the scheduler runs", err)
}

// SchedulerSigns reads when a scheduler of this database last gave a sign of life.
func (s *Store) SchedulerSigns(ctx context.Context) (signs domain.SchedulerSigns, err error) {
	var last *time.Time
	const query = `SELECT (SELECT value::timestamptz FROM instance_facts WHERE name = $1), clock_timestamp()`
	if err := queryRow(ctx, s.reads, []any{&last, &signs.Now}, query, factScheduler); err != nil {
		return signs, fmt.Errorf("read when a scheduler was last seen: %w", err)
	}
	signs.Last = orZero(last)
	return signs, nil
}
