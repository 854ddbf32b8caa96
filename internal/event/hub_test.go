package event_test

import (
	"bytes"
	"database/sql"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/lifecycle/lifecycletest"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/xid"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// lines is a log that tests read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func options(db *sql.DB, url string, log io.Writer) event.HubOptions {
	return event.HubOptions{URL: url, DB: db, Log: slog.New(slog.NewTextHandler(log, nil)),
		Ping: 50 * time.Millisecond, Patience: 500 * time.Millisecond, Retry: 50 * time.Millisecond}
}

// hub is a started hub that already hears the database: it has told its watchers to look after connecting.
func hub(t *testing.T, o event.HubOptions) *event.Hub {
	t.Helper()
	h := event.New(o)
	looked := h.WatchQueue(t.Context())
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	await(t, looked, "the first connection")
	return h
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no signal within %s: %s", patience, what)
	}
}

func TestEventsReachAnotherProcess(t *testing.T) {
	db, address := pgtest.NewURL(t)
	here, there := hub(t, options(db, address, io.Discard)), hub(t, options(db, address, io.Discard))
	run := xid.New("run")
	queue, one, other := there.WatchQueue(t.Context()), there.WatchRun(t.Context(), run), there.WatchRun(t.Context(), xid.New("run"))

	here.Publish(event.Event{Kind: event.Log, ID: run})
	await(t, one, "a line of the run's log")
	here.Publish(event.Event{Kind: event.Queue, ID: xid.New("agt")})
	await(t, queue, "a wakeup")
	select {
	case <-other:
		t.Error("the watcher of another run was woken")
	default:
	}
}

func TestABurstOfCommitsIsFewNotificationsAndNoneComesBack(t *testing.T) {
	db, address := pgtest.NewURL(t)
	h := hub(t, options(db, address, io.Discard))
	heard := make(chan string, 1000)
	l := pq.NewListener(address, time.Second, time.Second, nil)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close the listener: %v", err)
		}
		for range l.Notify { // closed when the listener is gone
		}
	})
	if err := l.Listen("rouse_event"); err != nil {
		t.Fatal(err)
	}
	run := xid.New("run")
	c := h.WatchRun(t.Context(), run)
	for range 500 {
		h.Publish(event.Event{Kind: event.Run, ID: run})
	}
	await(t, c, "the local signal, at once")
	marker := xid.New("run")
	if _, err := db.ExecContext(t.Context(), "select pg_notify('rouse_event', $1)", "hub_other;run="+marker.String()); err != nil {
		t.Fatal(err)
	}
	h.Publish(event.Event{Kind: event.Run, ID: marker})
	for payload := ""; !strings.Contains(payload, marker.String()) || strings.HasPrefix(payload, "hub_other"); {
		select {
		case n := <-l.Notify:
			payload = n.Extra
			heard <- payload
		case <-time.After(patience):
			t.Fatal("no notification came")
		}
	}
	if n := len(heard); n > 4 {
		t.Errorf("%d notifications for one burst", n)
	}
	select {
	case <-c:
		t.Error("the hub delivered its own notification a second time")
	default:
	}
}

func TestANotificationOfAnotherVersionMeansLook(t *testing.T) {
	db, address := pgtest.NewURL(t)
	h := hub(t, options(db, address, io.Discard))
	c := h.WatchRun(t.Context(), xid.New("run"))
	if _, err := db.ExecContext(t.Context(), "select pg_notify('rouse_event', 'what is this')"); err != nil {
		t.Fatal(err)
	}
	await(t, c, "after an unreadable notification")
}

func TestADroppedListenerComesBackAndEverybodyLooks(t *testing.T) {
	db, address := pgtest.NewURL(t)
	log := &lines{}
	h, other := hub(t, options(db, address, log)), hub(t, options(db, address, io.Discard))
	c := h.WatchRun(t.Context(), xid.New("run"))
	for range 3 {
		if _, err := db.ExecContext(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and query ilike 'listen%' or datname = current_database() and query = ''`); err != nil {
			t.Fatal(err)
		}
		await(t, c, "after the reconnect")
	}
	run := xid.New("run")
	c = h.WatchRun(t.Context(), run)
	other.Publish(event.Event{Kind: event.Run, ID: run})
	await(t, c, "an event after the reconnects")
	if text := log.text(); strings.Count(text, "is lost") == 0 || strings.Count(text, "is back") == 0 {
		t.Errorf("log:\n%s", text)
	}
}

func TestADatabaseThatIsAwayCostsOneLogLineAndTime(t *testing.T) {
	db, address := pgtest.NewURL(t)
	p := newProxy(t, address)
	p.down()
	log := &lines{}
	h := event.New(options(db, p.url, log))
	run := xid.New("run")
	c := h.WatchRun(t.Context(), run)
	if err := h.Start(t.Context()); err != nil {
		t.Fatalf("Start with the database away: %v", err)
	}
	defer h.Stop()
	p.awaitTries(5)
	h.Publish(event.Event{Kind: event.Run, ID: run})
	await(t, c, "a local event while the database is away")

	p.up()
	await(t, c, "the first connection")
	p.down()
	p.awaitTries(5)
	p.up()
	await(t, c, "the connection after the second outage")
	h.Stop()
	if text := log.text(); strings.Count(text, "is lost") != 2 || strings.Count(text, "is back\"\n") != 2 || strings.Count(text, "\n") != 4 {
		t.Errorf("want two losses and two returns, each once, got:\n%s", text)
	}
}

func TestAHalfOpenConnectionIsFound(t *testing.T) {
	db, address := pgtest.NewURL(t)
	p := newProxy(t, address)
	h := hub(t, options(db, p.url, io.Discard))
	c := h.WatchRun(t.Context(), xid.New("run"))
	p.freeze()
	await(t, c, "after the connection without an answer was given up")
}

func TestStopReturnsAlthoughTheDatabaseDoesNotAnswer(t *testing.T) {
	db, address := pgtest.NewURL(t)
	for _, state := range []string{"down", "frozen", "frozen before the first connection"} {
		t.Run(state, func(t *testing.T) {
			p := newProxy(t, address)
			o := options(db, p.url, io.Discard)
			o.Patience, o.Retry = time.Hour, time.Hour // nothing but Stop may end a wait
			if state == "frozen before the first connection" {
				p.freezeNext()
				h := event.New(o)
				if err := h.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				p.awaitTries(1)
				stopsSoon(t, h)
				return
			}
			h := hub(t, o)
			if state == "down" {
				p.down()
				p.awaitTries(1)
			} else {
				p.freeze()
				p.awaitSilence()
			}
			stopsSoon(t, h)
		})
	}
}

func stopsSoon(t *testing.T, h *event.Hub) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); h.Stop() }()
	await(t, done, "Stop")
}

func TestAMalformedURLIsRefusedWithoutRepeatingIt(t *testing.T) {
	h := event.New(event.HubOptions{URL: "postgres://rouse:hunter2@localhost:nonsense/rouse"})
	if err := h.Start(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Start = %v", err)
	}
}

func TestHubSurvivesTheStressTest(t *testing.T) {
	db, address := pgtest.NewURL(t)
	h := event.New(options(db, address, io.Discard))
	var background sync.WaitGroup
	quit := make(chan struct{})
	background.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
				h.Publish(event.Event{Kind: event.Queue}, event.Event{Kind: event.Run, ID: xid.New("run")})
			}
		}
	})
	lifecycletest.Stress(t, h, nil)
	close(quit)
	background.Wait()
}
