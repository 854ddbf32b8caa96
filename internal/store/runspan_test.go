package store

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"rouse.dev/rouse/internal/metrics"
)

// logged is the lines of the log so far, by message; of several with one message the last.
func logged(t *testing.T, text *bytes.Buffer) map[string]map[string]any {
	t.Helper()
	lines := map[string]map[string]any{}
	for d := json.NewDecoder(bytes.NewReader(text.Bytes())); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines[line["msg"].(string)] = line
	}
	return lines
}

func TestTheLogTellsOfEachRunUnderOneSetOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var text bytes.Buffer
	w.Store = New(w.db, Options{Events: w.events, Counters: metrics.New(), Jitter: func() float64 { return 0 },
		Log: slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	agent := w.agent("worker")
	launched := w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.finish(c)
	run := w.run(w.runOf(launched))
	keys := map[string]any{"run_id": string(run.id), "agent_id": string(agent), "workspace_id": string(w.workspace), "causation_id": string(run.causationID)}
	want := func(message string, more map[string]any) {
		t.Helper()
		line := logged(t, &text)[message]
		for _, of := range []map[string]any{keys, more} {
			for key, value := range of {
				if line[key] != value {
					t.Errorf("%q says %s=%v, want %v: %v", message, key, line[key], value, line)
				}
			}
		}
	}
	want("run started", map[string]any{"level": "INFO", "attempt": 1.0, "source": "user"})
	want("attempt ended", map[string]any{"level": "DEBUG", "attempt": 1.0})
	want("run ended", map[string]any{"level": "INFO", "attempt": 1.0, "status": "finished", "outcome": "processed"})

	w.pause(agent)
	held := w.request(agent, func(*newRequest) {})
	w.route(agent)
	w.claim(1)
	run = w.run(w.runOf(held))
	keys["run_id"], keys["causation_id"] = string(run.id), string(run.causationID)
	want("run ended", map[string]any{"reason": one[string](w, `SELECT lower(end_reason::text) FROM runs WHERE id = $1`, run.id)})
	want("wakeup_agent_inactive", map[string]any{"level": "INFO", "wakeup_id": string(held), "reason": "agent_inactive"})
	keys = map[string]any{"wakeup_id": string(held), "workspace_id": string(w.workspace), "agent_id": string(agent), "causation_id": string(run.causationID)}
	want("wakeup requested", map[string]any{"level": "DEBUG"})
	w.resume(agent)
	want("wakeup_resent", map[string]any{"level": "INFO"})
}
