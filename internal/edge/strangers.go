package edge

import (
	"cmp"
	"context"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// Strangers bounds what callers who have not proved who they are can make a process hold and do: connections, and answers. Anybody who reaches a
// listener can open connections and send requests, a process of the agents' account among them; neither memory, nor the database, nor the
// processors may be theirs for the asking. A caller whose token was accepted is none from then on, on that connection: strangers never displace it.
type Strangers struct {
	limits StrangerLimits
	pace   chan struct{} // a place for each answer of the last moment
	known  func(token string) bool

	mu     sync.Mutex
	lobby  crowd              // have not asked anything yet
	conns  crowd              // were let in
	proved map[string]int     // connections of each caller
	came   map[string]*bucket // new connections by token
	let    bucket             // connections let in from the line
}

// StrangerLimits bounds strangers. Zero means the default in parentheses.
type StrangerLimits struct {
	Lobby       int           // connections on which no whole header has come; the oldest is closed for a new one (2,000)
	LobbyBytes  int           // of all headers that are not whole; the oldest connection is closed for more (8 MiB)
	Line        int           // connections with a request that wait to be let in; further ones are closed (500)
	Connections int           // that were let in; the oldest is closed for a new one (1,000)
	Life        time.Duration // that one has at least, once it was let in; when all are younger, new ones wait (250 ms)
	Answers     int           // to strangers within Moment; further ones wait their turn (256)
	Moment      time.Duration // (256 ms)
	PerCaller   int           // connections that one caller may take out of the reach of strangers (256)
	NewPerToken int           // new connections a second that pass by strangers for their token; further ones stand in line (100)
}

// NewStrangers makes the bounds of a process, for all of its listeners together.
func NewStrangers(l StrangerLimits) *Strangers {
	l = StrangerLimits{
		Lobby:       cmp.Or(l.Lobby, 2000),
		LobbyBytes:  cmp.Or(l.LobbyBytes, 8<<20),
		Line:        cmp.Or(l.Line, 500),
		Connections: cmp.Or(l.Connections, 1000),
		Life:        cmp.Or(l.Life, 250*time.Millisecond),
		Answers:     cmp.Or(l.Answers, 256),
		Moment:      cmp.Or(l.Moment, 256*time.Millisecond),
		PerCaller:   cmp.Or(l.PerCaller, 256),
		NewPerToken: cmp.Or(l.NewPerToken, 100),
	}
	return &Strangers{limits: l, pace: make(chan struct{}, l.Answers), proved: map[string]int{}}
}

// Know takes what tells whether a token was good when it was last looked up. A new connection with such a token waits for no stranger; it proves
// nothing yet. Call it before the first Accept.
func (s *Strangers) Know(known func(token string) bool) { s.known = known }

// knows says whether who comes with a token may pass by the strangers.
func (s *Strangers) knows(token string) bool {
	if token == "" || s.known == nil || !s.known(token) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proved[token] < s.limits.PerCaller && s.arrives(token)
}

// arrives says whether the token comes within its rate. s.mu is held.
func (s *Strangers) arrives(token string) bool {
	b := s.came[token]
	if b == nil {
		if s.came == nil || len(s.came) >= arrivalsKept { // those in use are soon counted again
			s.came = map[string]*bucket{}
		}
		b = &bucket{}
		s.came[token] = b
	}
	return b.take(time.Now(), s.limits.NewPerToken, time.Second/time.Duration(s.limits.NewPerToken)) == 0
}

// arrivalsKept is of how many tokens it is remembered how often they come.
const arrivalsKept = 10_000

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

// ConnContext is the hook of http.Server that lets Proved find the connection of a request, and ends its context with the connection.
func (s *Strangers) ConnContext(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*strangerConn); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		s.follow(c, cancel)
	}
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
	if c.among != &s.conns || s.proved[caller] >= s.limits.PerCaller {
		return
	}
	s.conns.remove(c)
	c.proved, c.caller = true, caller
	s.proved[caller]++
}

// doubted takes back what a caller has proved on the connection of ctx: its token is not good any more.
func doubted(ctx context.Context, caller string) {
	if c, ok := ctx.Value(strangerKey{}).(*strangerConn); ok {
		closeAll(c.strangers.doubt(c, caller))
	}
}

func (s *Strangers) doubt(c *strangerConn, caller string) []*strangerConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.proved || c.caller != caller {
		return nil
	}
	s.release(c)
	c.born = time.Now()
	return s.conns.join(c, s.limits.Connections, math.MaxInt)
}

// release takes a connection out of those that its caller keeps from strangers.
func (s *Strangers) release(c *strangerConn) {
	if s.proved[c.caller]--; s.proved[c.caller] <= 0 {
		delete(s.proved, c.caller)
	}
	c.proved, c.caller = false, ""
}

// Close closes the connections of all strangers. What they have sent has led to nothing yet.
func (s *Strangers) Close() {
	s.mu.Lock()
	var open []*strangerConn
	for _, a := range []*crowd{&s.lobby, &s.conns} {
		for e := a.Front(); e != nil; e = e.Next() {
			open = append(open, e.Value.(*strangerConn))
		}
	}
	s.mu.Unlock()
	closeAll(open)
}

// Count is how many connections of strangers were let in and are open.
func (s *Strangers) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns.Len()
}
