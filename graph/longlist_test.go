package graph_test

import (
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/xid"
)

// TestTheFirstPageOfALongListCostsWhatItShows is C231: the first 50 of 100,000 runs touch hardly more pages than the first
// 50 of 1,000. How long it takes is logged, and in docs/performance.md.
func TestTheFirstPageOfALongListCostsWhatItShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.db.SetMaxOpenConns(1) // whose numbers can be flushed
	agent := w.agent("Ada")
	w.sql(`ALTER TABLE runs SET (autovacuum_enabled = false)`)
	fill := func(from, to int) {
		t.Helper()
		w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, requested_at, finished_at)
SELECT 'run_' || lpad(i::text, 8, '0'), $1, $2, 'cau', 'task:' || i, 'SELF', 'EVENT', 'FINISHED', 'processed', '2026-01-01Z'::timestamptz + i * interval '1 second', '2026-02-01Z'
FROM generate_series($3::int, $4::int) i`, w.workspace, agent, from, to)
	}
	once := func() (pages int, took time.Duration) {
		t.Helper()
		began, before := time.Now(), w.pages()
		var out struct {
			Workspace struct {
				Runs struct {
					Edges []struct{ Node struct{ ID string } }
				}
			}
		}
		w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { runs(first: 50) { edges { node { id status requestedAt agent { name } } } pageInfo { hasNextPage endCursor } } } }`, map[string]any{"id": w.workspace}, &out)
		if n := len(out.Workspace.Runs.Edges); n != 50 {
			t.Fatalf("%d runs were listed", n)
		}
		return w.pages() - before, time.Since(began)
	}
	list := func() (pages int, took time.Duration) { // what the server does in the background is counted, too: the least of some
		pages, took = once()
		for range 4 {
			p, d := once()
			pages, took = min(pages, p), min(took, d)
		}
		return pages, took
	}
	// The middle of the list is no dearer than its beginning, forwards or backwards.
	middle := func() (pages int) {
		t.Helper()
		at := func(n int) string {
			var id string
			var requested time.Time
			w.ok(w.db.QueryRow(`SELECT id, requested_at FROM runs ORDER BY requested_at, id OFFSET $1 LIMIT 1`, n).Scan(&id, &requested))
			var text strings.Builder
			ent.Cursor{ID: xid.ID(id), Value: requested}.MarshalGQL(&text)
			return text.String()
		}
		var n int
		w.ok(w.db.QueryRow(`SELECT count(*) FROM runs`).Scan(&n))
		low, high := at(n/3), at(2*n/3)
		for _, args := range []string{"last: 50", "first: 50, after: " + high, "last: 50, before: " + low, "first: 50, before: " + low, "last: 50, after: " + high, "first: 50, after: " + high + ", before: " + low} {
			least := 1 << 30
			for range 5 {
				before := w.pages()
				w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { runs(`+args+`) { edges { node { id } } pageInfo { hasNextPage hasPreviousPage } } } }`, map[string]any{"id": w.workspace}, &struct{}{})
				least = min(least, w.pages()-before)
			}
			pages = max(pages, least)
		}
		return pages
	}
	fill(1, 1000)
	list() // plans are made once
	short, _ := list()
	shortMiddle := middle()
	fill(1001, 100_000)
	long, took := list()
	longMiddle := middle()
	if longMiddle > 2*shortMiddle+20 || shortMiddle == 0 {
		t.Errorf("50 runs from the middle of 100,000 touch %d pages, of 1,000 runs %d", longMiddle, shortMiddle)
	}
	t.Logf("C231 pages: %d at 1,000 runs, %d at 100,000, in %v", short, long, took)
	if short == 0 {
		t.Error("C231 the pages were not counted")
	}
	if long > 2*short+20 {
		t.Errorf("C231 the first 50 of 100,000 runs touch %d pages, of 1,000 runs %d", long, short)
	}
}

// pages is how many pages the database's statements have touched so far.
func (w *world) pages() (n int) {
	w.t.Helper()
	w.sql(`SELECT pg_stat_force_next_flush()`)
	if err := w.db.QueryRowContext(w.t.Context(), `SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}
