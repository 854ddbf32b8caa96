package graph_test

import (
	"encoding/json"
	"slices"
	"testing"
)

// follow gives what a run's stream sends after a cursor until it ends, and the cursors of it.
func (w *world) stream(run, after string, logs bool) (items, cursors []string) {
	w.t.Helper()
	var cursor any
	if after != "" {
		cursor = after
	}
	next := w.Subscribe(w.t.Context(), `subscription($r: ID!, $c: StreamCursor, $l: Boolean!) { runEvents(runId: $r, after: $c, includeLogs: $l) {
		... on RunEvent { cursor kind } ... on RunLogLine { cursor text } } }`, map[string]any{"r": run, "c": cursor, "l": logs})
	for {
		data, errs := next()
		if len(errs) > 0 {
			w.t.Fatal(errs)
		}
		if data == nil {
			return items, cursors
		}
		var out struct {
			RunEvents struct{ Cursor, Kind, Text string }
		}
		w.ok(json.Unmarshal(data, &out))
		items, cursors = append(items, out.RunEvents.Kind+out.RunEvents.Text), append(cursors, out.RunEvents.Cursor)
	}
}

// Whoever has read the log, or the events, goes on from any line or event with exactly what follows it in the stream of both.
func TestALineOfTheLogResumesTheStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.agent("Ada"))
	w.start()
	w.sql(`DELETE FROM run_events WHERE run_id = $1`, run)
	w.sql(`DELETE FROM run_log_pieces WHERE run_id = $1`, run)
	// Letters are events and digits lines; those at one instant, and those whose clock went back, among them.
	for i, at := range []int{10, 20, 20, 35, 30, 50, 60} {
		w.sql(`INSERT INTO run_events (seq, kind, data, occurred_at, workspace_id, run_id) VALUES ($1, 'PROGRESS', '{}', timestamptz '2026-01-01 00:00Z' + make_interval(secs => $2), $3, $4)`, i+1, at, w.workspace, run)
	}
	w.sql(`
INSERT INTO run_log_pieces (attempt, first_seq, last_seq, bytes, streams, texts, micros, workspace_id, run_id)
SELECT attempt, min(seq), max(seq), 2, array_agg('STDOUT'::log_stream), array_agg(n::text ORDER BY n), array_agg(1767225600000000 + 1000000 * at ORDER BY n), $1, $2
FROM (SELECT n - 1 AS n, at::bigint, 1 + (n - 1) / 6 AS attempt, 1 + (n - 1) % 6 AS seq FROM unnest('{5, 10, 15, 20, 25, 22, 40, 38, 40, 55, 70, 65}'::int[]) WITH ORDINALITY AS l (at, n)) l
GROUP BY attempt, (seq - 1) / 2 -- pieces of two lines`, w.workspace, run)
	w.sql(`UPDATE runs SET status = 'FINISHED', finished_at = clock_timestamp(), event_seq = 7 WHERE id = $1`, run)
	all, cursors := w.stream(run, "", true)
	if len(all) != 19 {
		t.Fatalf("the stream has %v", all)
	}
	var listed struct {
		Run struct {
			Logs struct {
				Edges []struct {
					Cursor string
					Node   struct{ Text, Cursor string }
				}
			}
			Events struct {
				Edges []struct {
					Cursor string
					Node   struct{ Cursor string }
				}
			}
		}
	}
	w.Do(t.Context(), `query($r: ID!) { run(id: $r) { logs { edges { cursor node { text cursor } } } events { edges { cursor node { cursor } } } } }`, map[string]any{"r": run}, &listed)
	lines, events := 0, 0
	for i := range all {
		if got, _ := w.stream(run, cursors[i], true); !slices.Equal(got, all[i+1:]) {
			t.Errorf("after %d of the stream: %v, want %v", i, got, all[i+1:])
		}
		from := ""
		if all[i] == "PROGRESS" {
			from = listed.Run.Events.Edges[events].Node.Cursor
			events++
		} else {
			edge := listed.Run.Logs.Edges[lines]
			if from = edge.Node.Cursor; edge.Node.Text != all[i] || edge.Cursor != from {
				t.Fatalf("line %d of the log is %+v, of the stream %s", lines, edge, all[i])
			}
			lines++
		}
		if got, _ := w.stream(run, from, true); !slices.Equal(got, all[i+1:]) {
			t.Errorf("after %s, item %d, as the list has it: %v, want %v", all[i], i, got, all[i+1:])
		}
		rest := slices.DeleteFunc(slices.Clone(all[i+1:]), func(item string) bool { return item != "PROGRESS" })
		if got, _ := w.stream(run, from, false); !slices.Equal(got, rest) {
			t.Errorf("after %s, item %d, without lines: %v, want %v", all[i], i, got, rest)
		}
	}
	// A cursor of either list, and of the stream, begins a page of both.
	for i, edge := range listed.Run.Logs.Edges {
		var page struct {
			Run struct {
				Logs struct {
					Edges []struct{ Node struct{ Text string } }
				}
			}
		}
		w.Do(t.Context(), `query($r: ID!, $c: Cursor) { run(id: $r) { logs(after: $c) { edges { node { text } } } events(after: $c) { edges { cursor } } } }`, map[string]any{"r": run, "c": edge.Cursor}, &page)
		if len(page.Run.Logs.Edges) != 11-i {
			t.Errorf("after line %d come %d", i, len(page.Run.Logs.Edges))
		}
	}
}
