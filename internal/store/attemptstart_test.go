package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// A run may serve thousands of requests with 256 KiB each: only those that are shown may be read (SPEC S7.3).
func TestAStartReadsThePayloadsThatItShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("busy")
	const all = shownWakes + 10
	for i := range all {
		w.request(agent, func(r *newRequest) {
			r.source, r.payload = domain.WakeupSourceUser, &domain.UserPayload{UserID: fmt.Sprintf("user-%d", i), Context: map[string]any{"mark": fmt.Sprintf("<%d>", i)}}
		})
	}
	w.route(agent)
	launch := w.start(w.claimOne())
	if !strings.Contains(string(launch.WakePayload), "user-0") {
		t.Errorf("the command gets %s, want the first request's payload", launch.WakePayload)
	}
	if !strings.Contains(launch.Prompt, "oldest 10 of them: 10 USER") {
		t.Errorf("the prompt does not count the requests it leaves out:\n%.500s", launch.Prompt)
	}
	var raw []byte
	if err := w.db.QueryRow(`SELECT context_snapshot FROM run_contents WHERE run_id = $1`, launch.RunID).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	var snapshot struct {
		Count          int
		WakeupRequests []struct{ Payload domain.UserPayload }
	}
	if err := json.Unmarshal(raw, &snapshot); err != nil {
		t.Fatal(err)
	}
	if snapshot.Count != all || len(snapshot.WakeupRequests) != shownWakes {
		t.Fatalf("the snapshot has %d of %d requests", len(snapshot.WakeupRequests), snapshot.Count)
	}
	for i, q := range snapshot.WakeupRequests {
		if want := fmt.Sprintf("user-%d", i+all-shownWakes); q.Payload.UserID != want || !strings.Contains(launch.Prompt, want+" ") {
			t.Errorf("place %d has %q, want %q, in snapshot and prompt", i, q.Payload.UserID, want)
		}
	}
}
