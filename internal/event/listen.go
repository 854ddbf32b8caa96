package event

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/pause"
)

// reconnectPause is the driver's own pause between connections. It cannot be interrupted, so it is short, and the dialer
// does the waiting.
const reconnectPause = 5 * time.Millisecond

// listen tells the watchers of this process what other processes notify, until ctx ends. After each connection all
// watchers are signalled, because notifications may have been missed.
func (h *Hub) listen(ctx context.Context, maxPause time.Duration) {
	state := &outageLog{log: h.log, lost: "the connection for events is lost; changes are found by polling until it is back",
		back: "the connection for events is back"}
	d := &dialer{ctx: ctx, patience: h.options.Patience, maxPause: maxPause}
	l := pq.NewDialListener(d, h.options.URL, reconnectPause, reconnectPause, func(e pq.ListenerEventType, err error) {
		if e == pq.ListenerEventConnected || e == pq.ListenerEventReconnected {
			d.established()
			err = nil
		}
		if ctx.Err() == nil {
			state.set(err)
		}
	})
	var parts sync.WaitGroup
	parts.Go(func() { h.subscribe(ctx, l) })
	parts.Go(func() { h.keepAlive(ctx, l, d) })
	parts.Go(func() { h.receive(l.Notify) })
	<-ctx.Done()
	d.hangUp() // frees whoever waits for the database, so that Close can have the listener's lock
	_ = l.Close()
	parts.Wait()
}

// subscribe asks for the channel, which waits for the first connection. A server that refuses, as a standby does, is
// asked again.
func (h *Hub) subscribe(ctx context.Context, l *pq.Listener) {
	refused := outageLog{log: h.log, lost: "the database refuses to send events; changes are found by polling until it does",
		back: "the database sends events"}
	for {
		err := l.Listen(channel)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		refused.set(err)
		if err == nil {
			h.watchers.tell(signals{all: true})
			return
		}
		if !pause.For(ctx, h.options.Retry) {
			return
		}
	}
}

// receive reads to the end of the channel, also after the listener was closed: it is stuck otherwise.
func (h *Hub) receive(notifications <-chan *pq.Notification) {
	for n := range notifications {
		if n == nil { // reconnected
			h.watchers.tell(signals{all: true})
			continue
		}
		sender, s, err := decode(n.Extra)
		switch {
		case err != nil: // of another version: look at everything rather than miss something
			h.watchers.tell(signals{all: true})
		case sender != h.self:
			h.watchers.tell(s)
		}
	}
}

// keepAlive finds a connection whose other end is gone without a word. A ping without an answer holds the listener's
// lock for as long as the kernel retransmits, so the connection is cut under it.
func (h *Hub) keepAlive(ctx context.Context, l *pq.Listener, d *dialer) {
	for pause.For(ctx, h.options.Ping) {
		cut := time.AfterFunc(h.options.Patience, d.hangUp)
		_ = ping(l) // an error means that there is no connection, which the listener's own callback tells
		cut.Stop()
	}
}

// ping turns the driver's panic, when the server answers an empty query with an error, into an error.
func ping(l *pq.Listener) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("ping: %v", r)
		}
	}()
	return l.Ping()
}

// dialer opens the listener's connections and can cut the one that is open, which the driver cannot do while it waits
// for an answer. It also waits between tries. Once ctx has ended it opens none.
type dialer struct {
	ctx                context.Context
	patience, maxPause time.Duration

	mu    sync.Mutex
	conn  net.Conn
	pause time.Duration // before the next try
}

// Dial is never called by the driver, which prefers DialContext.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout is never called by the driver, which prefers DialContext.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext waits its turn and opens a connection, unless the hub stops.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !pause.For(d.ctx, d.nextPause()) {
		return nil, context.Cause(d.ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.keep(conn)
	return conn, nil
}

// nextPause is zero for the first try after a good connection, then doubles.
func (d *dialer) nextPause() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	pause := d.pause
	d.pause = min(max(2*d.pause, 100*time.Millisecond), d.maxPause)
	return pause
}

// keep remembers the connection. The handshake that follows must not take for ever either.
func (d *dialer) keep(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(d.patience))
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	if d.ctx.Err() != nil {
		d.hangUp()
	}
}

// established ends the limit of the handshake: the connection is good.
func (d *dialer) established() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pause = 0
	if d.conn != nil {
		_ = d.conn.SetDeadline(time.Time{})
	}
}

// hangUp cuts the open connection; the listener makes a new one.
func (d *dialer) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close()
	}
}
