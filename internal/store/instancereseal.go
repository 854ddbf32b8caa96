package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Resealer makes a sealed text that another key opens, for the same place.
type Resealer func(sealed, place string) (string, error)

// Resealed is what became of the sealed values of a database. Left are those that the resealer refused, at most 100 of them, by what
// they belong to and their name; they stay as they were.
type Resealed struct {
	Values, Refused int
	Left            []string
}

// maxLeft bounds the refused values that are named.
const maxLeft = 100

// sealedSpecs are the columns with executors, and resealPage is how many rows are read at once.
var sealedSpecs = []struct{ table, column string }{
	{"agents", "executor"}, {"tasks", "executor"}, {"projects", "executor"}, {"workspaces", "default_executor"},
}

const resealPage = 200

// ErrSealedElsewhere says that another key than the one named seals the database's secrets.
var ErrSealedElsewhere = errors.New("another key seals this database's secrets")

// Reseal seals all values of the database with another key, and notes that one: all or none, in one transaction. from
// and to are the ids of the keys. No server may work during that time, because it would go on sealing with the former
// key.
func (s *Records) Reseal(ctx context.Context, from, to string, reseal Resealer) (done Resealed, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		done = Resealed{}
		n, err := pgtx.Exec(ctx, t, `UPDATE instance_facts SET value = $3 WHERE name = $1 AND value = $2`, factSealingKey, from, to)
		if err != nil {
			return fmt.Errorf("note the new key: %w", err)
		}
		if n == 0 {
			return ErrSealedElsewhere
		}
		r := &resealing{tx: t, reseal: reseal, done: &done}
		for _, of := range sealedSpecs {
			if err := r.specs(ctx, of.table, of.column); err != nil {
				return fmt.Errorf("seal the secrets of %s: %w", of.table, err)
			}
		}
		if err := r.triggers(ctx); err != nil {
			return fmt.Errorf("seal the secrets of triggers: %w", err)
		}
		if err := r.channels(ctx); err != nil {
			return fmt.Errorf("seal the secrets of notification channels: %w", err)
		}
		if err := r.leases(ctx); err != nil {
			return fmt.Errorf("seal what live attempts were launched with: %w", err)
		}
		if err := r.formers(ctx, "run_secrets", "run_id", "sets"); err != nil {
			return fmt.Errorf("seal what former attempts were launched with: %w", err)
		}
		return pgtx.Wrap("seal what sessions know", r.formers(ctx, "task_sessions", "id", "secrets"))
	})
	return done, err
}

// resealing is one call of Reseal.
type resealing struct {
	*tx
	reseal Resealer
	done   *Resealed
}

// text seals one text again; one that is refused is returned as it is.
func (r *resealing) text(sealed, place, what string) string {
	fresh, err := r.reseal(sealed, place)
	if err != nil {
		if r.done.Refused++; len(r.done.Left) < maxLeft {
			r.done.Left = append(r.done.Left, what)
		}
		return sealed
	}
	r.done.Values++
	return fresh
}

func (r *resealing) values(holder xid.ID, values []domain.SealedValue) {
	for i, v := range values {
		if !v.Secret() {
			continue
		}
		values[i].Sealed = r.text(v.Sealed, domain.SealPlace(holder, v.Name), fmt.Sprintf("%s of %s", v.Name, holder))
	}
}

func (r *resealing) spec(holder xid.ID, spec *domain.ExecutorSpec) {
	switch {
	case spec.Command != nil:
		r.values(holder, spec.Command.Environment)
	case spec.ACP != nil:
		r.values(holder, spec.ACP.Environment)
	case spec.Pull != nil && spec.Pull.Command != nil:
		r.values(holder, spec.Pull.Command.Environment)
	case spec.HTTP != nil:
		r.values(holder, spec.HTTP.Headers)
		if spec.HTTP.Secret != "" {
			spec.HTTP.Secret = r.text(spec.HTTP.Secret, domain.SealPlace(holder, domain.HTTPSecretName), fmt.Sprintf("%s of %s", domain.HTTPSecretName, holder))
		}
	}
}

// sealedRow is a row with a JSON column of sealed values.
type sealedRow struct {
	id   xid.ID
	text []byte
}

func (r *resealing) specs(ctx context.Context, table, column string) error {
	query := `
SELECT id, ` + column + `
FROM ` + table + `
WHERE id > $1 AND ` + column + `::text LIKE '%"s1.%'
ORDER BY id
LIMIT $2
FOR NO KEY UPDATE`
	return r.pages(ctx, query, func(row sealedRow) error {
		var spec domain.ExecutorSpec
		if err := json.Unmarshal(row.text, &spec); err != nil {
			return fmt.Errorf("read the executor of %s: %w", row.id, err)
		}
		r.spec(row.id, &spec)
		return r.write(ctx, `UPDATE `+table+` SET `+column+` = $2 WHERE id = $1`, row.id, spec)
	})
}

func (r *resealing) channels(ctx context.Context) error {
	const query = `
SELECT id, target
FROM notification_channels
WHERE id > $1 AND target::text LIKE '%"s1.%'
ORDER BY id
LIMIT $2
FOR NO KEY UPDATE`
	return r.pages(ctx, query, func(row sealedRow) error {
		var target domain.NotificationTarget
		if err := json.Unmarshal(row.text, &target); err != nil {
			return fmt.Errorf("read the target of %s: %w", row.id, err)
		}
		target.EachSecret(func(name string, sealed *string) {
			*sealed = r.text(*sealed, domain.SealPlace(row.id, name), fmt.Sprintf("%s of %s", name, row.id))
		})
		return r.write(ctx, `UPDATE notification_channels SET target = $2 WHERE id = $1`, row.id, target)
	})
}

func (r *resealing) leases(ctx context.Context) error {
	const query = `
SELECT run_id, secrets
FROM attempt_leases
WHERE run_id > $1 AND secrets IS NOT NULL
ORDER BY run_id
LIMIT $2
FOR NO KEY UPDATE`
	return r.pages(ctx, query, func(row sealedRow) error {
		var set domain.SealedSet
		if err := json.Unmarshal(row.text, &set); err != nil {
			return fmt.Errorf("read the secrets of run %s: %w", row.id, err)
		}
		r.values(set.Holder, set.Values)
		return r.write(ctx, `UPDATE attempt_leases SET secrets = $2 WHERE run_id = $1`, row.id, set)
	})
}

// formers seals sets again that are in a column of a table, whose rows key names.
func (r *resealing) formers(ctx context.Context, table, key, column string) error {
	query := `
SELECT ` + key + `, ` + column + `
FROM ` + table + `
WHERE ` + key + ` > $1 AND ` + column + ` IS NOT NULL
ORDER BY ` + key + `
LIMIT $2
FOR NO KEY UPDATE`
	return r.pages(ctx, query, func(row sealedRow) error {
		var sets []domain.SealedSet
		if err := json.Unmarshal(row.text, &sets); err != nil {
			return fmt.Errorf("read the former secrets of %s: %w", row.id, err)
		}
		for _, set := range sets {
			r.values(set.Holder, set.Values)
		}
		return r.write(ctx, `UPDATE `+table+` SET `+column+` = $2 WHERE `+key+` = $1`, row.id, sets)
	})
}

func (r *resealing) write(ctx context.Context, query string, id xid.ID, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode what %s holds: %w", id, err)
	}
	return pgtx.ExecOne(ctx, r.tx, query, id, text)
}

// pages calls f with each row of a query, page by page. $1 is the id to go on behind, $2 how many.
func (r *resealing) pages(ctx context.Context, query string, f func(sealedRow) error) error {
	for after := xid.ID(" "); ; {
		rows, err := pgtx.Collect(ctx, r.tx, func(rows *sql.Rows) (row sealedRow, err error) { return row, rows.Scan(&row.id, &row.text) }, query, after, resealPage)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := f(row); err != nil {
				return err
			}
			after = row.id
		}
		if len(rows) < resealPage {
			return nil
		}
	}
}

func (r *resealing) triggers(ctx context.Context) error {
	const query = `
SELECT id, jsonb_build_array(coalesce(secret_sealed, ''), coalesce(previous_secret_sealed, ''))
FROM routine_triggers
WHERE id > $1 AND (secret_sealed IS NOT NULL OR previous_secret_sealed IS NOT NULL)
ORDER BY id
LIMIT $2
FOR NO KEY UPDATE`
	return r.pages(ctx, query, func(row sealedRow) error {
		var sealed [2]string
		if err := json.Unmarshal(row.text, &sealed); err != nil {
			return fmt.Errorf("read the secrets of trigger %s: %w", row.id, err)
		}
		for i, text := range sealed {
			if text != "" {
				sealed[i] = r.text(text, SecretPlace(row.id), fmt.Sprintf("the secret of trigger %s", row.id))
			}
		}
		const write = `
UPDATE routine_triggers
SET secret_sealed = NULLIF($2, ''), previous_secret_sealed = NULLIF($3, '')
WHERE id = $1`
		return pgtx.ExecOne(ctx, r.tx, write, row.id, sealed[0], sealed[1])
	})
}
