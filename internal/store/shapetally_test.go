package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"rouse.dev/rouse/internal/liveness"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// The verdict's numbers as they are read from every run of the window.
const (
	everyShape = `
SELECT status::text, coalesce(outcome, ''), coalesce(end_reason::text, ''), session_id IS NOT NULL, coalesce(requested_at >= $3, false), count(*) FROM runs
WHERE workspace_id = $1 AND finished_at IS NOT NULL AND finished_at >= $2 GROUP BY 1, 2, 3, 4, 5`
	everySilent = `
SELECT id, 'SILENT_SUCCESS', finished_at, count(*) OVER () FROM runs
WHERE workspace_id = $1 AND status = 'FINISHED' AND outcome = 'processed' AND session_id IS NULL AND finished_at >= $2 AND requested_at >= $3
ORDER BY finished_at DESC, id DESC LIMIT $4`
)

// rowsOf reads rows as texts, sorted unless their order counts.
func (w *world) rowsOf(query string, ordered bool, args ...any) (out []string) {
	w.Helper()
	out, err := pgtx.Collect(w.Context(), w.db, func(rows *sql.Rows) (string, error) {
		columns, err := rows.Columns()
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err == nil {
			err = rows.Scan(values...)
		}
		text := ""
		for _, v := range values {
			text += fmt.Sprintf("%v|", *v.(*any))
		}
		return text, err
	}, query, args...)
	w.ok(err)
	if !ordered {
		slices.Sort(out)
	}
	return out
}

// sameNumbers compares the numbers that are read by counts of minutes with those read from every run.
func (w *world) sameNumbers(workspace xid.ID, window time.Time, activated any) {
	w.Helper()
	args := []any{workspace, window, activated}
	if got, want := w.rowsOf(reads.ShapesQuery, false, args...), w.rowsOf(everyShape, false, args...); !reflect.DeepEqual(got, want) {
		w.Fatalf("shapes are %v, want %v", got, want)
	}
	args = append(args, liveness.Cap)
	if got, want := w.rowsOf(reads.SilentQuery, true, args...), w.rowsOf(everySilent, true, args...); !reflect.DeepEqual(got, want) {
		w.Fatalf("silent runs are %v, want %v", got, want)
	}
}

// Over histories that are made up, whatever is counted already, the counted numbers are those of every run. Runs end
// while it is counted, some in transactions that commit late.
func TestCountedNumbersAreThoseOfEveryRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test repeats by its seed
			w := newWorld(t)
			other := w.on(t)
			other.workspace = must(w, first(w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Other"})), nil).ID
			worlds := []*world{w, other}
			agents := []xid.ID{w.agent("worker"), other.agent("worker")}
			end := func(tx interface {
				ExecContext(context.Context, string, ...any) (sql.Result, error)
			}, ago time.Duration) {
				i := r.IntN(2)
				kinds := [][3]any{{"FINISHED", "processed", nil}, {"FINISHED", "processed", nil}, {"FINISHED", "skipped", "IDLE_SKIPPED"}, {"FAILED", nil, "RETRIES_EXHAUSTED"},
					{"FAILED", nil, nil}, {"CANCELLED", nil, "CANCELLED_BY_USER"}, {"CANCELLED", nil, "TASK_DONE"}}
				kind := kinds[r.IntN(len(kinds))]
				session := any(nil)
				if r.IntN(2) == 0 {
					session = "session"
				}
				_, err := tx.ExecContext(t.Context(), `INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, end_reason, session_id, requested_at, claimed_at, finished_at)
VALUES ($1, $2, $3, 'cau', 'taskless', 'USER', 'EVENT', $4, $5, $6, $7, clock_timestamp() - make_interval(secs => $8), clock_timestamp(), clock_timestamp() - make_interval(secs => $9))`,
					xid.New("run"), worlds[i].workspace, agents[i], kind[0], kind[1], kind[2], session, (ago + time.Duration(r.IntN(7200))*time.Second).Seconds(), ago.Seconds())
				w.ok(err)
			}
			w.activeSince(time.Duration(r.IntN(30)) * time.Hour)
			check := func() {
				t.Helper()
				var activated any = "infinity"
				var at *time.Time
				w.ok(w.db.QueryRowContext(w.Context(), `SELECT max(value::timestamptz) FROM instance_facts WHERE name = 'activation'`).Scan(&at))
				if at != nil {
					activated = *at
				}
				now := w.now()
				windows := []time.Time{now.Add(-liveness.Window), now.Add(-liveness.Window).Truncate(time.Minute), now.Add(-time.Duration(r.IntN(86_400_000)) * time.Millisecond)}
				for _, x := range worlds {
					x.on(t).sameNumbers(x.workspace, windows[r.IntN(len(windows))], activated)
				}
			}
			ago := func() time.Duration { return time.Duration(r.IntN(26*3600*1000)) * time.Millisecond }
			for range 60 {
				end(w.db, ago())
			}
			late, err := w.db.BeginTx(t.Context(), nil) // its run ended long ago, as far as its column says
			w.ok(err)
			end(late, 3*time.Hour)
			for step := range 40 {
				check()
				if r.IntN(3) > 0 {
					_, err := w.TallyShapes(t.Context())
					w.ok(err)
				} else {
					end(w.db, 0)
				}
				switch {
				case step == 6:
					if until := w.tallied(); until.After(w.now().Add(-3 * time.Hour)) {
						t.Errorf("minutes up to %v are counted beside a transaction that ends a run before", until)
					}
					w.ok(late.Commit())
				case step == 30 && seed%3 == 0:
					w.activeSince(time.Duration(r.IntN(30)) * time.Hour)
				case step == 35 && seed%3 == 1:
					w.sql(`DELETE FROM instance_facts WHERE name = 'activation'`)
				}
			}
			check()
			if until := w.tallied(); seed%3 == 2 && until.Before(w.now().Add(-liveness.Window+3*time.Hour)) {
				t.Errorf("only minutes up to %v are counted", until)
			}

		})
	}
}

func (w *world) tallied() (until time.Time) {
	w.Helper()
	w.ok(w.db.QueryRowContext(w.Context(), `SELECT until FROM shape_tally_mark`).Scan(&until))
	return until
}

func (w *world) now() (now time.Time) {
	w.Helper()
	w.ok(w.db.QueryRowContext(w.Context(), `SELECT clock_timestamp()`).Scan(&now))
	return now
}

// What the verdict reads does not grow with the runs of its day, once they are counted.
func TestTheVerdictReadsFewRunsOfABusyDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.activeSince(48 * time.Hour)
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, session_id, requested_at, claimed_at, finished_at)
SELECT 'run_' || lpad(n::text, 26, '0'), $1, $2, 'cau', 'taskless', 'USER', 'EVENT', 'FINISHED', 'processed', CASE WHEN n % 2 = 0 THEN 'session' END, at, at, at
FROM (SELECT n, clock_timestamp() - n * interval '3 seconds' - interval '10 minutes' AS at FROM generate_series(1, 27000) n) x`, w.workspace, agent)
	w.sql(`ANALYZE runs`)
	read := func() (pages int) {
		t.Helper()
		for _, query := range []string{reads.ShapesQuery, reads.SilentQuery} {
			args := []any{w.workspace, w.now().Add(-liveness.Window), w.now().Add(-48 * time.Hour)}
			w.ok(w.db.QueryRowContext(w.Context(), `SELECT value::timestamptz FROM instance_facts WHERE name = 'activation'`).Scan(&args[2]))
			if query == reads.SilentQuery {
				args = append(args, liveness.Cap)
			}
			_, n, err := w.explainKept(statement{query: query, args: args}, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `)
			w.ok(err)
			pages += n
		}
		return pages
	}
	before := read()
	for range 40 {
		more, err := w.TallyShapes(t.Context())
		w.ok(err)
		if !more && w.tallied().After(w.now().Add(-10*time.Minute)) {
			break
		}
	}
	if after := read(); after > 300 || before < 8*after {
		t.Errorf("the verdict of a day with 27,000 runs reads %d pages, and %d before they were counted", after, before)
	}
}

// BenchmarkVerdict reads the verdict of a day with 250,000 runs, before and after they are counted.
func BenchmarkVerdict(b *testing.B) {
	w := newWorldOn(b, pgtest.New(b))
	agent := w.agent("worker")
	w.activeSince(48 * time.Hour)
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, session_id, requested_at, claimed_at, finished_at)
SELECT 'run_' || lpad(n::text, 26, '0'), $1, $2, 'cau', 'taskless', 'USER', 'EVENT', 'FINISHED', 'processed', CASE WHEN n % 100 > 0 THEN 'session' END, at, at, at
FROM (SELECT n, clock_timestamp() - n * interval '0.34 seconds' - interval '1 minute' AS at FROM generate_series(1, 250000) n) x`, w.workspace, agent)
	w.sql(`ANALYZE runs`)
	read := func() (ms float64) {
		_, err := w.Liveness(b.Context(), w.workspace)
		w.ok(err)
		began := time.Now()
		for range 5 {
			_, err := w.Liveness(b.Context(), w.workspace)
			w.ok(err)
		}
		return float64(time.Since(began).Microseconds()) / 5000
	}
	for b.Loop() {
		b.ReportMetric(read(), "uncounted-ms")
		for w.tallied().Before(w.now().Add(-3 * time.Minute)) {
			_, err := w.TallyShapes(b.Context())
			w.ok(err)
		}
		b.ReportMetric(read(), "counted-ms")
		b.ReportMetric(0, "ns/op")
	}
}
