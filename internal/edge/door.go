package edge

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// door is a listener that takes connections off the kernel's queue at once, so that a flood does not fill it and shut everybody out. It passes on
// those that have asked something: one with a token that was good before at once, those of strangers one by one, as there is room.
type door struct {
	net.Listener
	strangers *Strangers
	begin     sync.Once
	once      sync.Once
	closed    chan struct{}
	known     chan *strangerConn // have a token that was good before
	line      chan *strangerConn // of strangers who wait to be let in
	failed    chan error         // why no more come; capacity 1
}

const (
	firstLook      = 8 << 10               // bytes that are read of a new connection at once
	temporaryPause = 50 * time.Millisecond // that no connection is taken after one could not be
)

// Listener passes on what l accepts, within the bounds.
func (s *Strangers) Listener(l net.Listener) net.Listener {
	return &door{
		Listener: l, strangers: s, closed: make(chan struct{}), failed: make(chan error, 1),
		known: make(chan *strangerConn), line: make(chan *strangerConn, s.limits.Line),
	}
}

// Accept takes the next connection, once there is room for it.
func (d *door) Accept() (net.Conn, error) {
	d.begin.Do(func() { go d.take() })
	for {
		line, later := d.line, (<-chan time.Time)(nil)
		if wait := d.strangers.full(); wait > 0 {
			line, later = nil, time.After(wait)
		}
		select {
		case c := <-d.known:
			return d.letIn(c), nil
		case c := <-line:
			d.strangers.next()
			return d.letIn(c), nil
		case <-later: // look again
		case err := <-d.failed:
			d.failed <- err // for who asks again
			return nil, err
		case <-d.closed:
			return nil, net.ErrClosed
		}
	}
}

func (d *door) letIn(c *strangerConn) net.Conn {
	closeAll(d.strangers.enter(c))
	return c
}

// take takes connections until the listener fails or is closed.
func (d *door) take() {
	buffer := make([]byte, firstLook)
	for {
		conn, err := d.Listener.Accept()
		if passing, ok := errors.AsType[net.Error](err); ok && passing.Timeout() || isTemporary(err) {
			select {
			case <-time.After(temporaryPause): // as http.Server does: too many files are open, say
				continue
			case <-d.closed:
				return
			}
		}
		if err != nil {
			d.failed <- err
			return
		}
		d.receive(conn, buffer)
	}
}

// isTemporary says whether later connections may be taken though this one could not.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// receive looks at what a new connection has brought. One whose other end has gone is dropped at once; one that has not asked anything yet waits
// in the lobby until it does.
func (d *door) receive(conn net.Conn, buffer []byte) {
	n, gone := look(conn, buffer)
	if gone {
		_ = conn.Close() // nobody is left to tell
		return
	}
	c := &strangerConn{Conn: conn, strangers: d.strangers, door: d, read: bytes.Clone(buffer[:n])}
	if isAsk(c.read, 0) {
		d.pass(c)
		return
	}
	closeAll(d.strangers.enterLobby(c))
	select {
	case <-d.closed:
		_ = c.Close() // nobody lets it in any more
	default:
		go d.hear(c)
	}
}

// hear reads what a connection in the lobby sends until it has asked something, or has had its time.
func (d *door) hear(c *strangerConn) {
	asked := c.Conn.SetReadDeadline(time.Now().Add(headerTime)) == nil && d.readAsk(c)
	if !asked || !d.strangers.leaveLobby(c) {
		_ = c.Close() // whoever it was went away, was too slow, or has been closed for another
		return
	}
	_ = c.Conn.SetReadDeadline(time.Time{}) // a connection that has ended is told by its next use
	d.pass(c)
}

// readAsk reads until the connection has asked something; false: it ends before.
func (d *door) readAsk(c *strangerConn) bool {
	for {
		before := len(c.read)
		c.read = grown(c.read)
		n, err := c.Conn.Read(c.read[before:cap(c.read)])
		c.read = c.read[:before+n]
		closeAll(d.strangers.holdInLobby(c, cap(c.read)))
		if isAsk(c.read, before) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// grown makes room for more; who sends little costs little.
func grown(b []byte) []byte {
	const least = 512
	if cap(b)-len(b) >= least/2 {
		return b
	}
	return append(make([]byte, 0, max(least, 2*cap(b))), b...)
}

// pass hands a connection that has asked something to Accept. When too many strangers wait already, one more is turned away: who has a token that
// was good before does not wait among them.
func (d *door) pass(c *strangerConn) {
	if d.strangers.knows(tokenIn(c.read)) {
		select {
		case d.known <- c:
		case <-d.closed:
			_ = c.Close() // nobody lets it in any more
		}
		return
	}
	select {
	case d.line <- c:
	default:
		_ = c.Close() // it may come again
		return
	}
	select {
	case <-d.closed:
		d.turnAway()
	default:
	}
}

// Close ends a wait for room, too, and the connections that wait or have asked nothing yet.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	defer d.turnAway()
	err := d.Listener.Close()
	closeAll(d.strangers.inLobby(d))
	return err
}

// turnAway closes the connections that wait.
func (d *door) turnAway() {
	for {
		select {
		case c := <-d.line:
			_ = c.Close() // closed already is as good
		default:
			return
		}
	}
}
