package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// IsEmpty says whether the database has no workspace yet.
func (s *Records) IsEmpty(ctx context.Context) (bool, error) {
	empty, err := pgtx.QueryOne[bool](ctx, s.db, `SELECT NOT EXISTS (SELECT 1 FROM workspaces)`)
	if err != nil {
		return false, fmt.Errorf("look for workspaces: %w", err)
	}
	return empty, nil
}

// CountFromZero tells the counters of the oldest workspaces, as many as are counted apart, so that an alarm finds their
// series before anything happens in them. Every boot calls it.
func (s *Records) CountFromZero(ctx context.Context) error {
	known, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (id xid.ID, err error) { return id, rows.Scan(&id) },
		`SELECT id FROM workspaces ORDER BY id LIMIT $1`, metrics.MaxWorkspaces)
	if err != nil {
		return fmt.Errorf("list the workspaces to count for: %w", err)
	}
	s.counters.Know(known...)
	return nil
}

// Activate writes the activation instant, unless an earlier boot did, and remembers it. Every boot calls it.
func (s *Records) Activate(ctx context.Context) error {
	const write = `
INSERT INTO instance_facts (id, name, value)
VALUES ($1, $2, clock_timestamp()::text)
ON CONFLICT (name) DO NOTHING`
	if _, err := pgtx.Exec(ctx, s.db, write, xid.New("fct"), guard.FactActivation); err != nil {
		return fmt.Errorf("write the activation instant: %w", err)
	}
	at, err := pgtx.QueryOne[time.Time](ctx, s.db, `SELECT value::timestamptz FROM instance_facts WHERE name = $1`, guard.FactActivation)
	if err != nil {
		return fmt.Errorf("read the activation instant: %w", err)
	}
	s.activated.Store(&at)
	return nil
}

// ActivatedAt is the instant from which terminal shapes are recorded; nil before Activate.
func (s *Records) ActivatedAt() *time.Time { return s.activated.Load() }

// factSealingKey names the id of the key that seals this database's secrets.
const factSealingKey = "sealing_key"

// BindSealingKey notes which key seals secrets in this database, by its id, unless a key is noted already. It returns the
// id that is noted: another one than keyID means that values sealed before could not be opened. With replace the note is
// changed to keyID, for a key that was lost.
func (s *Records) BindSealingKey(ctx context.Context, keyID string, replace bool) (string, error) {
	const query = `
INSERT INTO instance_facts (id, name, value) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET value = CASE WHEN $4 THEN excluded.value ELSE instance_facts.value END
RETURNING value`
	bound, err := pgtx.QueryOne[string](ctx, s.db, query, xid.New("fct"), factSealingKey, keyID, replace)
	if err != nil {
		return "", fmt.Errorf("note the key that seals secrets: %w", err)
	}
	return bound, nil
}

// SealingKey is the id of the key that seals secrets in this database; "" before the first boot noted one.
func (s *Records) SealingKey(ctx context.Context) (string, error) {
	bound, err := pgtx.QueryOne[string](ctx, s.db, `SELECT value FROM instance_facts WHERE name = $1`, factSealingKey)
	if err != nil && !pgtx.NoRows(err) {
		return "", fmt.Errorf("read which key seals secrets: %w", err)
	}
	return bound, nil
}

// Uptime is how long the database server has been up, by its own clock.
func (s *Records) Uptime(ctx context.Context) (time.Duration, error) {
	seconds, err := pgtx.QueryOne[float64](ctx, s.db, `SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8`)
	if err != nil {
		return 0, fmt.Errorf("read the database's uptime: %w", err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// Now is the instant by the database's clock. That clock decides what is due, late or expired, and which period a thing
// belongs to, so the API shows such things by it, too.
func (s *Records) Now(ctx context.Context) (time.Time, error) {
	now, err := pgtx.QueryOne[time.Time](ctx, s.db, `SELECT clock_timestamp()`)
	return now.UTC(), pgtx.Wrap("read the database's clock", err)
}
