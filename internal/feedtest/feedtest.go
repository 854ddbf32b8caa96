// Package feedtest compares, at the end of a test, all that the test wrote into the feed with what its readers are told of it.
package feedtest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
)

// patience bounds the look at a test's feed.
const patience = time.Minute

// Watch lets a test fail when an entry of its database's feed lacks a detail that its code always has, or has one that is not
// listed (domain.ActivityDetailsOf): so every test of an act is also one of what the feed says of it. Rows that tests insert by
// hand are by a component without a name, or named test.
func Watch(t testing.TB, db *sql.DB) {
	if _, benchmark := t.(*testing.B); benchmark {
		return
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := compare(ctx, t, db); err != nil {
			t.Errorf("look at the feed that the test wrote: %v", err)
		}
	})
}

func compare(ctx context.Context, t testing.TB, db *sql.DB) error {
	const query = `
SELECT code, members, min(id), count(*) FROM (
  SELECT id, code, ARRAY(SELECT jsonb_object_keys(data) ORDER BY 1) AS members FROM activities WHERE NOT (actor_kind = 'SYSTEM' AND actor IN ('', 'test'))) AS a
GROUP BY code, members`
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var code domain.ActivityCode
		var members []string
		var id string
		var n int
		if err := rows.Scan(&code, pq.Array(&members), &id, &n); err != nil {
			return err
		}
		for _, problem := range domain.ActivityDetailsOf(code).Differ(members) {
			t.Errorf("%d entries %s of the feed, such as %s, have the details %v: %s (internal/domain/activity.go lists them)", n, code, id, members, problem)
		}
	}
	return rows.Err()
}
