package store

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// fire fires the routine of a trigger by hand and starts its run.
func (w *world) fire(trigger xid.ID) (Claimed, *Launch) {
	w.Helper()
	routine := one[xid.ID](w, `SELECT routine_id FROM routine_triggers WHERE id = $1`, trigger)
	_, _, err := w.FireRoutine(w.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
	w.ok(err)
	claimed := w.claimOne()
	launch := w.launch(claimed)
	if launch == nil {
		w.Fatal("the run was settled at its start")
	}
	return claimed, launch
}

const summaryHeading = "# What you noted at the end of earlier runs"

func (w *world) summary() string {
	w.Helper()
	return one[string](w, `SELECT coalesce(max(content), '') FROM continuation_summaries`)
}

func TestARoutineCarriesOnFromFireToFire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("watcher")
	trigger, other := w.routine(agentID, nil), w.routine(agentID, nil)
	w.sql(`UPDATE tasks SET state = 'DONE'`)
	blocked := w.bareTask(agentID)
	w.sql(`UPDATE tasks SET state = 'BLOCKED', title = 'Deploy it' WHERE id = $1`, blocked)
	for i := range 6 {
		blocker := w.bareTask(agentID)
		w.sql(`UPDATE tasks SET title = $2, assignee_id = NULL, state = CASE WHEN $3 THEN 'DONE' ELSE state END WHERE id = $1`, blocker, fmt.Sprint("Part ", i), i == 1)
		w.sql(`INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) VALUES ($1, $2, $3, $4)`, xid.New("blk"), w.workspace, blocked, blocker)
	}

	first, launch := w.fire(trigger)
	if strings.Contains(launch.Prompt, summaryHeading) {
		t.Error("the first fire remembers something")
	}
	w.ok(w.Finish(t.Context(), first.Attempt, Success{Summary: "Saw two pull requests.", SessionID: "s",
		Result: map[string]any{"summary": "Saw two pull requests.", "next_action": "Ask Ben about the second."}}))
	text := w.summary()
	for _, want := range []string{"## Active focus\nSaw two pull requests.", "- Deploy it (tsk_", "): needs Part 0, Part 2, Part 3 and 2 more, since ", ": Saw two pull requests.", "## Next action\nAsk Ben about the second."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if by := one[xid.ID](w, `SELECT updated_by_run_id FROM continuation_summaries WHERE agent_id = $1 AND scope = 'routine:' || (SELECT routine_id FROM runs WHERE id = $2)`, agentID, first.RunID); by != first.RunID {
		t.Errorf("written by %s", by)
	}

	second, launch := w.fire(trigger)
	if !strings.HasPrefix(launch.Prompt, summaryHeading+"\n\n## Active focus\nSaw two pull requests.") {
		t.Errorf("C108: the next fire is told\n%s", launch.Prompt)
	}
	if injected := one[string](w, `SELECT summary_injected FROM run_contents WHERE run_id = $1`, second.RunID); injected == "" || !strings.HasPrefix(strings.TrimSpace(text), injected) {
		t.Errorf("injected is %q", injected)
	}
	w.ok(w.Fail(t.Context(), second.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "no", Permanent: true}))
	if w.summary() != text {
		t.Error("a failed run changed the summary: the last good one wins")
	}

	third, _ := w.fire(trigger)
	w.sql(`UPDATE tasks SET state = 'DONE'`)
	w.ok(w.Finish(t.Context(), third.Attempt, Success{}))
	if text := w.summary(); !strings.Contains(text, "Investigate the previous run failure") || !strings.Contains(text, "Saw two pull requests.") || strings.Count(text, "## Active focus") != 1 {
		t.Errorf("after a failure and a run that said nothing:\n%s", text)
	}

	foreign, launch := w.fire(other)
	if strings.Contains(launch.Prompt, summaryHeading) {
		t.Error("another routine of the agent was told this one's summary (SPEC S13)")
	}
	w.finish(foreign)
	w.sound()
}

func TestOnlyTheBeginningOfASummaryIsInjected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("watcher")
	trigger := w.routine(agentID, nil)
	first, _ := w.fire(trigger)
	w.finish(first)
	w.sql(`UPDATE continuation_summaries SET content = repeat('é', 2000)`)
	second, _ := w.fire(trigger)
	if injected := one[string](w, `SELECT summary_injected FROM run_contents WHERE run_id = $1`, second.RunID); utf8.RuneCountInString(injected) != 1500 {
		t.Errorf("C108: %d characters", utf8.RuneCountInString(injected))
	}
}

func TestASummaryThatCannotBeWrittenFailsNoRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("watcher"), nil)
	first, _ := w.fire(trigger)
	w.finish(first)
	before := w.summary()
	w.sql(`ALTER TABLE continuation_summaries ADD CONSTRAINT broken CHECK (content = '') NOT VALID`)
	second, _ := w.fire(trigger)
	w.ok(w.Finish(t.Context(), second.Attempt, Success{Summary: "new", Result: map[string]any{"summary": "new"}}))
	w.wantRun(second.RunID, domain.RunStatusFinished, "")
	if w.summary() != before {
		t.Error("the former summary is gone")
	}
	w.sound()
}

func TestOtherRunsKeepNoSummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("worker")
	w.wake(agentID)
	claimed := w.claimOne()
	w.start(claimed)
	w.finish(claimed)
	onTask, _ := w.wakeOn(agentID, w.bareTask(agentID))
	w.finish(onTask)
	if n := one[int](w, `SELECT count(*) FROM continuation_summaries`); n != 0 {
		t.Errorf("%d summaries", n)
	}
}

// Runs that end together leave the summary that they would have left one after the other.
func TestRunsThatEndTogetherRememberAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	results := []map[string]any{{"summary": "Saw a pull request.", "next_action": "Ask Ben."}, nil, {"summary": "Saw nothing."}, nil}
	var texts []string
	for _, together := range []bool{false, true} {
		w := newWorld(t)
		batch := w.firesToEnd(len(results))
		for i, x := range batch {
			x.success.Result = results[i]
		}
		if together {
			w.ok(errors.Join(w.transitTogether(t.Context(), batch)...))
		} else {
			for _, x := range batch {
				w.ok(w.transit(t.Context(), x))
			}
		}
		texts = append(texts, withoutInstants(w.summary()))
		w.sound()
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], "## Active focus\nSaw nothing.") {
		t.Errorf("one after the other:\n%s\ntogether:\n%s", texts[0], texts[1])
	}
}

// withoutInstants leaves out when runs ended, and what is counted while others have not.
func withoutInstants(text string) string {
	return regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][0-9:.]*Z?`).ReplaceAllString(text, "then")
}

// A summary that cannot be written is left out alone: those of the runs that end with it are written.
func TestASummaryThatCannotBeWrittenSpoilsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`ALTER TABLE continuation_summaries ADD CONSTRAINT broken CHECK (content NOT LIKE '%poison%')`)
	good, bad := w.firesToEnd(2), w.firesToEnd(2)
	bad[1].success.Result = map[string]any{"summary": "poison"}
	w.ok(errors.Join(w.transitTogether(t.Context(), append(good, bad...))...))
	for _, x := range append(good, bad...) {
		w.wantRun(x.RunID, domain.RunStatusFinished, "")
	}
	w.wantFiresEnded(good)
	if by := one[xid.ID](w, `SELECT updated_by_run_id FROM continuation_summaries WHERE agent_id = (SELECT agent_id FROM runs WHERE id = $1)`, bad[0].RunID); by != bad[0].RunID {
		t.Errorf("the summary of the others was written by %s, want %s", by, bad[0].RunID)
	}
	w.sound()
}
