package edge

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Strangers bounds what callers who have not proved who they are can make a process hold and do: connections, and answers. Anybody who reaches a
// listener can open connections and send requests, a process of the agents' account among them; neither memory, nor the database, nor the
// processors may be theirs for the asking. A caller whose token was accepted is none from then on, on that connection: strangers never displace it.
type Strangers struct {
	limits StrangerLimits
	pace   chan struct{} // a place for each answer of the last moment

	mu     sync.Mutex
	conns  list.List      // of *strangerConn, oldest first
	proved map[string]int // connections of each caller
}

// StrangerLimits bounds strangers. Zero means the default in parentheses.
type StrangerLimits struct {
	Connections int           // held open; the oldest is closed for a new one (1,000)
	Life        time.Duration // that a connection has at least, to send its request; when all are younger, new ones wait (250 ms)
	Answers     int           // to strangers within Moment; further ones wait their turn (256)
	Moment      time.Duration // (256 ms)
	PerCaller   int           // connections that one caller may take out of the reach of strangers (256)
}

// NewStrangers makes the bounds of a process, for all of its listeners together.
func NewStrangers(l StrangerLimits) *Strangers {
	l = StrangerLimits{
		Connections: cmp.Or(l.Connections, 1000),
		Life:        cmp.Or(l.Life, 250*time.Millisecond),
		Answers:     cmp.Or(l.Answers, 256),
		Moment:      cmp.Or(l.Moment, 256*time.Millisecond),
		PerCaller:   cmp.Or(l.PerCaller, 256),
	}
	return &Strangers{limits: l, pace: make(chan struct{}, l.Answers), proved: map[string]int{}}
}

// Listener passes on what l accepts, within the bounds.
func (s *Strangers) Listener(l net.Listener) net.Listener {
	return &strangerListener{Listener: l, strangers: s, closed: make(chan struct{}), waiting: make(chan net.Conn, waitingMost), failed: make(chan error, 1)}
}

// Wait returns when a stranger may be answered, or with ctx. Callers wait in the order in which they came; who goes away leaves the queue.
func (s *Strangers) Wait(ctx context.Context) {
	if s == nil {
		return
	}
	select {
	case s.pace <- struct{}{}:
		time.AfterFunc(s.limits.Moment, func() { <-s.pace })
	case <-ctx.Done():
	}
}

// Handler answers strangers at the pace that they share.
func (s *Strangers) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Wait(r.Context())
		next.ServeHTTP(w, r)
	})
}

type strangerKey struct{}

// ConnContext is the hook of http.Server that lets Proved find the connection of a request.
func (s *Strangers) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, strangerKey{}, c)
}

// Proved takes note that the caller on the connection of ctx has shown who it is; caller is the same text for the same one.
func Proved(ctx context.Context, caller string) {
	if c, ok := ctx.Value(strangerKey{}).(*strangerConn); ok {
		c.strangers.prove(c, caller)
	}
}

// Proved is the function of that name, for who has no other way to it.
func (s *Strangers) Proved(ctx context.Context, caller string) { Proved(ctx, caller) }

func (s *Strangers) prove(c *strangerConn, caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place == nil || s.proved[caller] >= s.limits.PerCaller {
		return
	}
	s.conns.Remove(c.place)
	c.place, c.caller = nil, caller
	s.proved[caller]++
}

// enter takes in a new connection, and gives back the one to close for it.
func (s *Strangers) enter(c *strangerConn) (oldest *strangerConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.place = s.conns.PushBack(c)
	if s.conns.Len() > s.limits.Connections {
		return s.conns.Front().Value.(*strangerConn)
	}
	return nil
}

func (s *Strangers) leave(c *strangerConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place != nil {
		s.conns.Remove(c.place)
		c.place = nil
		return
	}
	if s.proved[c.caller]--; s.proved[c.caller] <= 0 {
		delete(s.proved, c.caller)
	}
}

// full is how long it takes until a new connection would displace none that is younger than Life.
func (s *Strangers) full() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns.Len() < s.limits.Connections {
		return 0
	}
	return s.limits.Life - time.Since(s.conns.Front().Value.(*strangerConn).born)
}

// Close closes the connections of all strangers. What they have sent has led to nothing yet.
func (s *Strangers) Close() {
	s.mu.Lock()
	var open []*strangerConn
	for e := s.conns.Front(); e != nil; e = e.Next() {
		open = append(open, e.Value.(*strangerConn))
	}
	s.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // closed already is as good
	}
}

// Count is how many connections of strangers are open.
func (s *Strangers) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns.Len()
}

// strangerListener takes connections off the kernel's queue at once, so that a flood does not fill it and shut everybody out, and lets them in one
// by one.
type strangerListener struct {
	net.Listener
	strangers *Strangers
	begin     sync.Once
	once      sync.Once
	closed    chan struct{}
	waiting   chan net.Conn // not let in yet
	failed    chan error    // why no more come; capacity 1
}

// waitingMost is how many connections wait to be let in.
const waitingMost = 1000

// Accept takes the next connection, once there is room for it.
func (l *strangerListener) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.take() })
	for wait := l.strangers.full(); wait > 0; wait = l.strangers.full() {
		select {
		case <-time.After(wait):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	select {
	case conn := <-l.waiting:
		return l.letIn(conn), nil
	case err := <-l.failed:
		l.failed <- err // for who asks again
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *strangerListener) letIn(conn net.Conn) net.Conn {
	c := &strangerConn{Conn: conn, strangers: l.strangers, born: time.Now()}
	if oldest := l.strangers.enter(c); oldest != nil {
		_ = oldest.Close() // closed already is as good
	}
	return c
}

// take takes connections until the listener fails or is closed. One whose other end has gone is dropped at once.
func (l *strangerListener) take() {
	for {
		conn, err := l.Listener.Accept()
		if passing, ok := errors.AsType[net.Error](err); ok && passing.Timeout() || isTemporary(err) {
			select {
			case <-time.After(temporaryPause): // as http.Server does: too many files are open, say
				continue
			case <-l.closed:
				return
			}
		}
		if err != nil {
			l.failed <- err
			return
		}
		if isGone(conn) {
			_ = conn.Close() // nobody is left to tell
			continue
		}
		l.wait(conn)
	}
}

// temporaryPause is how long no connection is taken after one could not be.
const temporaryPause = 50 * time.Millisecond

// isTemporary says whether later connections may be taken though this one could not.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// wait keeps a connection until it is let in. When there are too many, the next ones stay in the kernel's queue: to drop one would be to drop the
// owner's as well.
func (l *strangerListener) wait(conn net.Conn) {
	select {
	case l.waiting <- conn:
	case <-l.closed:
		_ = conn.Close() // nobody lets it in any more
		return
	}
	select {
	case <-l.closed:
		l.turnAway()
	default:
	}
}

// Close ends a wait for room, too, and the connections that wait.
func (l *strangerListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	defer l.turnAway()
	return l.Listener.Close()
}

// turnAway closes the connections that wait.
func (l *strangerListener) turnAway() {
	for {
		select {
		case conn := <-l.waiting:
			_ = conn.Close() // closed already is as good
		default:
			return
		}
	}
}

// strangerConn is a connection that leaves the count with its end.
type strangerConn struct {
	net.Conn
	strangers *Strangers
	born      time.Time
	once      sync.Once

	place  *list.Element // among the strangers; nil: it is none, or was closed
	caller string        // who it is once it is no stranger
}

// Close closes the connection.
func (c *strangerConn) Close() error {
	c.once.Do(func() { c.strangers.leave(c) })
	return c.Conn.Close()
}
