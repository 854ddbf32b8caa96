package graph_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/xid"
)

// played is what became of a routine in a situation, in words.
type played struct {
	Status, SkipReason string
	MissedTicks        int
	Task               *struct{ ID string }
	WakeupRequest      *struct {
		Status string
		Run    *struct{ ID string }
	}
}

// situations are what a routine can meet. Each makes it happen to a routine that is due every minute, and says how it is
// called in the table; before is how many fires it made beforehand, which the cell leaves out.
var situations = []struct {
	name   string
	before int
	happen func(w *world, r shownRoutine)
}{
	{"one slot is due, nothing is active", 0, func(w *world, r shownRoutine) { w.down(r.Triggers[0].ID, 0) }},
	{"one slot is due, an earlier fire waits", 1, func(w *world, r shownRoutine) { w.byHand(r); w.down(r.Triggers[0].ID, 0) }},
	{"one slot is due, an earlier fire is at work", 1, func(w *world, r shownRoutine) { w.byHand(r); w.startAll(); w.down(r.Triggers[0].ID, 0) }},
	{"one slot is due, an earlier fire is done", 1, func(w *world, r shownRoutine) { w.byHand(r); w.endAll(r); w.down(r.Triggers[0].ID, 0) }},
	{"10 minutes down (11 slots), cap 25", 0, func(w *world, r shownRoutine) { w.down(r.Triggers[0].ID, 10*time.Minute) }},
	{"10 minutes down (11 slots), an earlier fire waits", 1, func(w *world, r shownRoutine) { w.byHand(r); w.down(r.Triggers[0].ID, 10*time.Minute) }},
	{"100 minutes down (101 slots), cap 5", 0, func(w *world, r shownRoutine) {
		w.sql(`UPDATE routines SET catch_up_max = 5 WHERE id = $1`, r.ID)
		w.down(r.Triggers[0].ID, 100*time.Minute)
	}},
	{"10 minutes down, paused meanwhile", 0, func(w *world, r shownRoutine) {
		w.down(r.Triggers[0].ID, 10*time.Minute)
		w.must("pauseRoutine", "routine { id }", map[string]any{"routineId": r.ID})
	}},
	{"10 minutes down, its agent deleted", 0, func(w *world, r shownRoutine) {
		w.down(r.Triggers[0].ID, 10*time.Minute)
		w.sql(`UPDATE agents SET deleted_at = clock_timestamp() WHERE id = (SELECT assignee_id FROM routines WHERE id = $1)`, r.ID)
	}},
}

func (w *world) must(mutation, fields string, input map[string]any) {
	w.t.Helper()
	if e := w.mutate(mutation, fields, input, nil); e != "" {
		w.t.Fatalf("%s: %s", mutation, e)
	}
}

func (w *world) byHand(r shownRoutine) {
	w.t.Helper()
	w.must("fireRoutine", "routineRun { id }", map[string]any{"routineId": r.ID})
}

// startAll starts the one due run.
func (w *world) startAll() { w.t.Helper(); w.start() }

// endAll ends the fire's work: the run, and of a heavy routine its task.
func (w *world) endAll(r shownRoutine) {
	w.t.Helper()
	a := w.start()
	w.ok(w.store.RecordSession(w.t.Context(), a, "session"))
	w.sql(`UPDATE tasks SET state = 'DONE' WHERE id IN (SELECT task_id FROM routine_runs WHERE routine_id = $1)`, r.ID)
	w.sql(`UPDATE routine_runs SET status = 'DONE', completed_at = clock_timestamp() WHERE routine_id = $1`, r.ID)
	w.sql(`UPDATE runs SET status = 'FINISHED', finished_at = clock_timestamp() WHERE id = $1`, a.RunID)
}

// cell plays a situation for a routine of its own and describes its fires. It plays it again when the minute changed under
// it, since a slot more is due then.
func (w *world) cell(policy, catchUp string, heavy bool, happen func(*world, shownRoutine), before int) string {
	w.t.Helper()
	for {
		w.sql(`UPDATE routine_triggers SET enabled = false`)
		w.sql(`UPDATE runs SET status = 'CANCELLED', finished_at = clock_timestamp(), parked_reason = NULL, parked_until = NULL WHERE finished_at IS NULL`)
		w.sql(`DELETE FROM attempt_leases`)
		w.sql(`UPDATE agent_lanes SET running = 0, head_at = NULL, head_id = NULL`)
		w.sql(`UPDATE workspace_lanes SET running = 0`)
		agent := w.createAgent(string(xid.New("a")), map[string]any{"skipIdleWakeups": false, "executor": map[string]any{"echo": map[string]any{}}}).CreateAgent.Agent.ID
		more := map[string]any{"concurrencyPolicy": policy, "catchUpPolicy": catchUp, "description": "Look around.", "triggers": []any{scheduled("* * * * *", "UTC")}}
		if heavy {
			more["taskTemplate"] = map[string]any{"title": "Review of {{datetime}}"}
		}
		r := w.routine(agent, more)
		began := w.minute()
		happen(w, r)
		w.tick()
		if w.minute() != began {
			continue
		}
		return w.describe(r, before)
	}
}

func (w *world) minute() (minute string) {
	w.t.Helper()
	w.ok(w.db.QueryRow(`SELECT date_trunc('minute', clock_timestamp())::text`).Scan(&minute))
	return minute
}

// describe counts the fires by disposition, and the runs and tasks that serve them; before leaves out the earliest.
func (w *world) describe(r shownRoutine, before int) string {
	w.t.Helper()
	var out struct {
		Routine struct {
			Runs struct{ Edges []struct{ Node played } }
		}
	}
	w.Do(w.t.Context(), `query($id: ID!) { routine(id: $id) { runs(first: 100) { edges { node { status skipReason missedTicks task { id }
		wakeupRequest { status run { id } } } } } } }`, map[string]any{"id": r.ID}, &out)
	edges := out.Routine.Runs.Edges // newest first
	statuses, runs, tasks, missed := map[string]int{}, map[string]bool{}, map[string]bool{}, 0
	for i, e := range edges {
		if e.Node.WakeupRequest != nil && e.Node.WakeupRequest.Run != nil {
			runs[e.Node.WakeupRequest.Run.ID] = true
		}
		if e.Node.Task != nil {
			tasks[e.Node.Task.ID] = true
		}
		missed += e.Node.MissedTicks
		if i < len(edges)-before {
			statuses[e.Node.Status]++
		}
	}
	if len(edges) == before {
		return "nothing"
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		parts = append(parts, fmt.Sprint(statuses[status], " ", status))
	}
	text := strings.Join(parts, ", ")
	if len(tasks) > 0 {
		text += fmt.Sprintf("; tasks: %d", len(tasks))
	}
	text += fmt.Sprintf("; runs: %d", len(runs))
	if missed > 0 {
		text += fmt.Sprintf("; %d missed", missed)
	}
	return text
}

// Every cell of concurrency policy × catch-up policy × situation is played through the API; docs/routines.md shows what came
// of it. The document is the expectation: `go test ./graph -run Cell -update` writes it anew, to be read before it is kept.
// SPEC S4.4, S4.5, S4.6: every cell of policy, catch-up and situation.
func TestEveryCellOfPolicyCatchUpAndSituationIsAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	const document, begin, end = "../docs/routines.md", "<!-- table: written by go test ./graph -run Cell -update -->\n", "<!-- end of table -->\n"
	w := newWorld(t)
	var table strings.Builder
	for _, heavy := range []bool{false, true} {
		fmt.Fprintf(&table, "\n### %s routines\n", map[bool]string{false: "Lightweight", true: "Heavy"}[heavy])
		for _, catchUp := range []string{"ENQUEUE_MISSED_WITH_CAP", "SKIP_MISSED"} {
			policies := []string{"COALESCE_IF_ACTIVE", "SKIP_IF_ACTIVE", "ALWAYS_ENQUEUE"}
			fmt.Fprintf(&table, "\n%s:\n\n| situation | %s |\n|---|---|---|---|\n", catchUp, strings.Join(policies, " | "))
			for _, s := range situations {
				var cells []string
				for _, policy := range policies {
					cells = append(cells, w.cell(policy, catchUp, heavy, s.happen, s.before))
				}
				fmt.Fprintf(&table, "| %s | %s |\n", s.name, strings.Join(cells, " | "))
			}
		}
	}
	text, err := os.ReadFile(document)
	w.ok(err)
	head, rest, ok := strings.Cut(string(text), begin)
	was, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/routines.md has no place for the table")
	}
	if was == table.String()+"\n" {
		return
	}
	if updateDocuments() {
		w.ok(os.WriteFile(document, []byte(head+begin+table.String()+"\n"+end+tail), 0o644))
		return
	}
	t.Errorf("docs/routines.md says:\n%s\nand what happens is:\n%s", was, table.String())
}

// updateDocuments is the -update flag, which belongs to the package's other tests.
func updateDocuments() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}
