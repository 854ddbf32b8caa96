package event

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/xid"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(pgtest.Watcher), goleak.IgnoreAnyFunction(pgtest.LeftWatcher),
		goleak.Cleanup(func(code int) {
			if err := pgtest.Leave(); err != nil {
				fmt.Fprintln(os.Stderr, "leave the test server:", err)
				code = max(code, 1)
			}
			os.Exit(code)
		}))
}

// postbox stands in for the database as the hub notifies it.
type postbox struct {
	mu       sync.Mutex
	payloads []string
	tries    int
	err      error
}

func (p *postbox) notify(_ context.Context, payload string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.err == nil {
		p.payloads = append(p.payloads, payload)
	}
	return p.err
}

func (p *postbox) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *postbox) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.payloads
	p.payloads = nil
	return taken
}

// sender runs the sending half of a hub in a bubble of fake time.
func sender(t *testing.T) (h *Hub, box *postbox, log *bytes.Buffer, stop func()) {
	log = &bytes.Buffer{}
	box = &postbox{}
	h = New(HubOptions{Log: slog.New(slog.NewTextHandler(log, nil))})
	h.notify = box.notify
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.send(ctx) }()
	return h, box, log, func() { cancel(); <-done }
}

func TestABurstIsOneNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box, _, stop := sender(t)
		defer stop()
		for range 1000 {
			h.Publish(Event{Kind: Queue, ID: xid.New("agt")}, Event{Kind: Run, ID: "run_1"})
		}
		time.Sleep(h.options.Debounce)
		synctest.Wait()
		if got := box.take(); len(got) != 1 || got[0] != h.self.String()+";queue;run=run_1" {
			t.Errorf("notifications: %q", got)
		}
		time.Sleep(time.Hour)
		if got := box.take(); len(got) != 0 {
			t.Errorf("notifications without an event: %q", got)
		}
	})
}

func TestASteadyStreamIsAtMostOneNotificationPerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box, _, stop := sender(t)
		defer stop()
		for range 1000 {
			h.Publish(Event{Kind: Queue})
			time.Sleep(time.Millisecond)
		}
		if n := len(box.take()); n < 50 || n > 100 {
			t.Errorf("%d notifications in a second, want 50 to 100", n)
		}
	})
}

func TestWhatIsPendingAtStopIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box, _, stop := sender(t)
		h.Publish(Event{Kind: Queue})
		stop()
		if got := box.take(); len(got) != 1 {
			t.Errorf("notifications: %q", got)
		}
	})
}

func TestAnOutageLosesNothingAndIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box, log, stop := sender(t)
		box.fail(errors.New("connection refused"))
		h.Publish(Event{Kind: Run, ID: "run_1"})
		time.Sleep(time.Minute)
		h.Publish(Event{Kind: Run, ID: "run_2"})
		time.Sleep(time.Minute)
		synctest.Wait()
		if box.tries < 50 || box.tries > 70 {
			t.Errorf("%d tries in two minutes", box.tries)
		}
		box.fail(nil)
		time.Sleep(h.options.Retry)
		synctest.Wait()
		if got := box.take(); len(got) != 1 || !strings.HasSuffix(got[0], ";run=run_1,run_2") {
			t.Errorf("notifications after the outage: %q", got)
		}
		stop()
		if n := strings.Count(log.String(), "\n"); n != 2 || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("want one line for the loss and one for the return, got:\n%s", log)
		}
	})
}

func TestPublishNeverBlocksAndStaysSmallDuringAnOutage(t *testing.T) {
	h := New(HubOptions{}) // never started
	for range 100_000 {
		h.Publish(Event{Kind: Run, ID: xid.New("run")})
	}
	if !h.pending.all || len(h.pending.set) != 0 {
		t.Errorf("%d signals are pending, want one that says everything", len(h.pending.set))
	}
}
