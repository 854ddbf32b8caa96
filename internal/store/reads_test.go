package store

import (
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// TestNobodyWhoLooksHoldsUpTheQueue: with no connection left for what the API shows, wakes, claims, leases and reports go on.
func TestNobodyWhoLooksHoldsUpTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := sql.OpenDB(faultyConnector{w.db, &faults{}})
	w.ok(gone.Close())
	w.Store = New(w.db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }, Reads: gone})

	local, remote := w.agent("local"), w.agent("remote", pulled("q"))
	w.wake(local)
	w.wake(remote)
	c := w.claim(1)[0]
	w.start(c)
	if states, err := w.Heartbeat(t.Context(), []Attempt{c.Attempt}, lease); err != nil || states[0].Lost {
		t.Errorf("the renewal: %+v, %v", states, err)
	}
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "done"}))
	leased := w.acquireOne("q")
	_, err := w.LeasedAttempt(t.Context(), leased.RunID, leased.Number, leased.Token.Digest().String())
	w.ok(err)
	_, err = w.Repair(t.Context())
	w.ok(err)

	for name, look := range map[string]func() error{
		"rows": func() error {
			_, err := w.Reader().Run.Query().Count(auth.WithPrincipal(t.Context(), auth.Local()))
			return err
		},
		"waiting": func() error { _, err := w.Waiting(t.Context(), []xid.ID{c.RunID}, nil); return err },
		"stats":   func() error { _, err := w.QueueStats(t.Context(), w.workspace); return err },
		"lanes":   func() error { _, err := w.Lanes(t.Context(), []xid.ID{local}); return err },
		"costs": func() error {
			_, err := w.Costs(t.Context(), w.workspace, time.Now().Add(-time.Hour), time.Now(), domain.CostGroupingAgent)
			return err
		},
	} {
		if look() == nil {
			t.Errorf("%s are read on a connection of the queue", name)
		}
	}
}
