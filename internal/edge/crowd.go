package edge

import (
	"container/list"
	"context"
	"math"
	"net"
	"sync"
	"time"
)

// crowd is connections, the oldest first, and what they hold in memory. Its fields are guarded by Strangers.mu.
type crowd struct {
	list.List // of *strangerConn
	bytes     int
}

// strangerConn is a connection that leaves the crowd it is in with its end. What was read of it before it was let in is read again first.
type strangerConn struct {
	net.Conn
	strangers *Strangers
	door      *door
	read      []byte
	once      sync.Once

	// Guarded by Strangers.mu.
	among  *crowd // nil: it waits, has proved itself, or was closed
	place  *list.Element
	holds  int       // bytes, in the lobby
	born   time.Time // when it was let in
	proved bool
	caller string // who has proved itself
	ended  bool
	cancel context.CancelFunc // ends what is done for its requests; nil: nothing is yet
}

// Read reads what was read before, and then the connection.
func (c *strangerConn) Read(p []byte) (int, error) {
	if len(c.read) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.read)
	if c.read = c.read[n:]; len(c.read) == 0 {
		c.read = nil // the memory is free
	}
	return n, nil
}

// Write passes on what is written; what http.Server answers by itself goes as JSON.
func (c *strangerConn) Write(p []byte) (int, error) {
	answer := asJSON(p)
	if answer == nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite says that nothing more comes. http.Server asks for it before it closes a connection that still brings something, so
// that its answer is read.
func (c *strangerConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection.
func (c *strangerConn) Close() error {
	c.once.Do(func() { c.strangers.leave(c)() })
	return c.Conn.Close()
}

func closeAll(conns []*strangerConn) {
	for _, c := range conns {
		_ = c.Close() // closed already is as good
	}
}

// join takes a connection in, and gives back those to close so that the crowd stays within its bounds.
func (a *crowd) join(c *strangerConn, most, mostBytes int) (tooMany []*strangerConn) {
	c.among, c.place = a, a.PushBack(c)
	a.bytes += c.holds
	return a.shrink(most, mostBytes)
}

// shrink takes the oldest out until the crowd is within its bounds.
func (a *crowd) shrink(most, mostBytes int) (tooMany []*strangerConn) {
	for a.Len() > most || a.bytes > mostBytes {
		c := a.Front().Value.(*strangerConn)
		a.remove(c)
		tooMany = append(tooMany, c)
	}
	return tooMany
}

func (a *crowd) remove(c *strangerConn) {
	a.Remove(c.place)
	a.bytes -= c.holds
	c.among, c.place = nil, nil
}

// enter takes in a connection that is let in, and gives back those to close for it.
func (s *Strangers) enter(c *strangerConn) []*strangerConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.born, c.holds = time.Now(), 0 // what it holds from now on, http.Server bounds
	return s.conns.join(c, s.limits.Connections, math.MaxInt)
}

// full is how long it takes until the next of the line may be let in: it displaces none that is younger than Life, and no more are let in than
// are answered.
func (s *Strangers) full() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.let
	wait := next.take(time.Now(), s.limits.Answers, s.limits.Moment/time.Duration(s.limits.Answers))
	if s.conns.Len() < s.limits.Connections {
		return wait
	}
	return max(wait, s.limits.Life-time.Since(s.conns.Front().Value.(*strangerConn).born))
}

// next notes that one of the line is let in.
func (s *Strangers) next() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.let.take(time.Now(), s.limits.Answers, s.limits.Moment/time.Duration(s.limits.Answers))
}

// enterLobby takes in a connection that has asked nothing yet, and gives back those to close for it.
func (s *Strangers) enterLobby(c *strangerConn) []*strangerConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.holds = cap(c.read)
	return s.lobby.join(c, s.limits.Lobby, s.limits.LobbyBytes)
}

// holdInLobby notes how much memory a connection in the lobby takes, and gives back those to close for it.
func (s *Strangers) holdInLobby(c *strangerConn, bytes int) []*strangerConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.among != &s.lobby || c.holds == bytes {
		return nil
	}
	s.lobby.bytes += bytes - c.holds
	c.holds = bytes
	return s.lobby.shrink(s.limits.Lobby, s.limits.LobbyBytes)
}

// leaveLobby says whether the connection was still in it.
func (s *Strangers) leaveLobby(c *strangerConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.among != &s.lobby {
		return false
	}
	s.lobby.remove(c)
	return true
}

// inLobby is the connections that came through a door and have asked nothing yet.
func (s *Strangers) inLobby(d *door) (conns []*strangerConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.lobby.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*strangerConn); c.door == d {
			conns = append(conns, c)
		}
	}
	return conns
}

// follow lets cancel be called when the connection ends. http.Server notices that only once it has read the body of a request: without this, what
// waits for its turn with a body unread would wait on for a connection that was closed for another.
func (s *Strangers) follow(c *strangerConn, cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ended {
		cancel()
	}
	c.cancel = cancel
}

// leave takes out a connection that ends, and gives back what ends its requests.
func (s *Strangers) leave(c *strangerConn) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.among != nil {
		c.among.remove(c)
	}
	if c.proved {
		s.release(c)
	}
	c.ended = true
	if c.cancel == nil {
		return func() {}
	}
	return c.cancel
}
