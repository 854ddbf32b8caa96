package event

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/lifecycle"
	"rouse.dev/rouse/internal/xid"
)

// channel is the one that all processes on a database notify.
const channel = "rouse_event"

// HubOptions says where a Hub listens and sends. A zero duration means its default, in parentheses.
type HubOptions struct {
	URL      string        // of the database, for the connection that listens
	DB       *sql.DB       // pool that notifications are sent through
	Log      *slog.Logger  // nil: slog.Default()
	Debounce time.Duration // how long signals are gathered before one notification is sent (10 ms)
	Ping     time.Duration // how often the listening connection is tried, so that a half-open one is found (10 s)
	Patience time.Duration // how long the database may take over a ping, a connection or a notification (5 s)
	Retry    time.Duration // pause between tries while the database is away (doubling from 100 ms up to this, 2 s)
}

// Hub tells the parts of this process, and other processes on the same database, to look again. It is a hint, not a
// queue. A signal may be repeated, and is lost while the database is away. So watchers also poll, and all of them are
// signalled once the connection is back (SPEC S8.6).
type Hub struct {
	options HubOptions
	log     *slog.Logger
	self    xid.ID // sender of our own notifications
	life    lifecycle.Lifecycle
	notify  func(ctx context.Context, payload string) error

	watchers watchers

	mu      sync.Mutex
	pending signals
	ready   chan struct{} // capacity 1: there is something pending
}

// New makes a hub. It delivers within the process at once, and between processes from Start on.
func New(o HubOptions) *Hub {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	setDefault(&o.Debounce, 10*time.Millisecond)
	setDefault(&o.Ping, 10*time.Second)
	setDefault(&o.Patience, 5*time.Second)
	setDefault(&o.Retry, 2*time.Second)
	h := &Hub{options: o, log: o.Log, self: xid.New("hub"), ready: make(chan struct{}, 1)}
	h.notify = h.notifyDatabase
	return h
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Start begins to listen and to send. It does not wait for the database, which may be away; its error is about the form
// of the URL alone.
func (h *Hub) Start(ctx context.Context) error {
	config, err := pq.NewConfig(h.options.URL)
	if err != nil {
		return errors.New("the database URL (ROUSE_DATABASE_URL) is malformed; " + // the driver's error would repeat it
			"it must look like postgres://user:password@host:5432/database?sslmode=disable")
	}
	h.life.Start(ctx, func(ctx context.Context) { h.run(ctx, maxPause(h.options.Retry, config.ConnectTimeout)) })
	return nil
}

// maxPause keeps the pause between connections well below the connect_timeout of the URL, if it sets one: the driver
// counts the pause as part of connecting.
func maxPause(retry, connectTimeout time.Duration) time.Duration {
	if connectTimeout > 0 {
		return min(retry, connectTimeout/2)
	}
	return retry
}

func (h *Hub) run(ctx context.Context, maxPause time.Duration) {
	var both sync.WaitGroup
	both.Go(func() { h.listen(ctx, maxPause) })
	both.Go(func() { h.send(ctx) })
	both.Wait()
}

// Stop sends what is still pending, ends both connections and waits until nothing of the hub runs. Watches stay open
// until their contexts end.
func (h *Hub) Stop() { h.life.Stop() }

// Publish tells the watchers of this process at once, and gathers the events for the others. It never blocks. Call it
// after the commit.
func (h *Hub) Publish(events ...Event) {
	if len(events) == 0 {
		return
	}
	var local signals
	local.add(events...)
	h.watchers.tell(local)
	h.gather(local)
}

func (h *Hub) gather(s signals) {
	h.mu.Lock()
	h.pending.merge(s)
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// WatchRun is woken when the run, its events or its log changed. Signals that come before the watcher looked are one;
// the channel is closed when ctx ends. Watch first, then read the rows, so that nothing falls between.
func (h *Hub) WatchRun(ctx context.Context, id xid.ID) <-chan struct{} {
	return h.watchers.watch(ctx, topic{id: id})
}

// WatchCancel is woken when somebody asked that the live run be ended, with the promises of WatchRun. What else happens to the run, such
// as each line of its output, wakes it not.
func (h *Hub) WatchCancel(ctx context.Context, id xid.ID) <-chan struct{} {
	return h.watchers.watch(ctx, topic{id: id, cancels: true})
}

// WatchActivity is woken when the feed of the workspace has a new entry, with the promises of WatchRun.
func (h *Hub) WatchActivity(ctx context.Context, workspaceID xid.ID) <-chan struct{} {
	return h.watchers.watch(ctx, topic{id: workspaceID})
}

// WatchOffers is woken when the workspace offers a run to workers, with the promises of WatchRun.
func (h *Hub) WatchOffers(ctx context.Context, workspaceID xid.ID) <-chan struct{} {
	return h.watchers.watch(ctx, topic{id: workspaceID, offers: true})
}

// WatchQueue is woken when something may be routed or claimed, with the promises of WatchRun.
func (h *Hub) WatchQueue(ctx context.Context) <-chan struct{} {
	return h.watchers.watch(ctx, topic{})
}
