package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// porch is a listener whose connections are pipes.
type porch struct {
	come chan net.Conn
	once sync.Once
}

func (p *porch) Accept() (net.Conn, error) {
	if c, ok := <-p.come; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *porch) Close() error   { p.once.Do(func() { close(p.come) }); return nil }
func (p *porch) Addr() net.Addr { return &net.TCPAddr{} }

// visit comes to a listener; the result is the visitor's end.
func (p *porch) visit(t *testing.T, l net.Listener) (accepted net.Conn, visitor net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	go func() { p.come <- here }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = there.Close() })
	return c, there
}

// isClosed looks from the visitor's side.
func isClosed(t *testing.T, visitor net.Conn) bool {
	t.Helper()
	if err := visitor.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return true
	}
	_, err := visitor.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func TestTheOldestStrangerGoesForANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := NewStrangers(StrangerLimits{Connections: 3, Life: time.Nanosecond}), &porch{come: make(chan net.Conn)}
		l := s.Listener(p)
		defer l.Close()
		owner, owners := p.visit(t, l)
		Proved(s.ConnContext(t.Context(), owner), "owner")
		var strangers []net.Conn
		for range 5 {
			time.Sleep(time.Second)
			_, there := p.visit(t, l)
			strangers = append(strangers, there)
		}
		if isClosed(t, owners) {
			t.Error("strangers displaced a caller who had proved itself")
		}
		for i, c := range strangers {
			if closed := isClosed(t, c); closed != (i < 2) {
				t.Errorf("stranger %d: closed %t", i, closed)
			}
		}
		if s.Count() != 3 {
			t.Errorf("%d strangers", s.Count())
		}
		s.Close()
		if s.Count() != 0 || isClosed(t, owners) || !isClosed(t, strangers[4]) {
			t.Error("closing strangers closes them, and nobody else")
		}
	})
}

func TestAStrangerHasTimeToSendItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := NewStrangers(StrangerLimits{Connections: 2, Life: time.Second}), &porch{come: make(chan net.Conn)}
		l := s.Listener(p)
		began := time.Now()
		_, first := p.visit(t, l)
		p.visit(t, l)
		time.Sleep(300 * time.Millisecond)
		if isClosed(t, first) {
			t.Error("closed before anybody else came")
		}
		p.visit(t, l)
		if waited := time.Since(began); waited < time.Second || waited > 1100*time.Millisecond || !isClosed(t, first) {
			t.Errorf("the third came in after %v", waited)
		}
		p.visit(t, l) // takes the place of the second, who is as old
		done := make(chan error)
		go func() { _, err := l.Accept(); done <- err }()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the end of the listener does not end its wait: %v", err)
		}
	})
}

// A flood must not fill the kernel's queue: whoever comes then is not even heard.
func TestConnectionsThatWaitAreTakenAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := NewStrangers(StrangerLimits{Connections: 1, Life: time.Hour}), &porch{come: make(chan net.Conn)}
		l := s.Listener(p)
		_, _ = p.visit(t, l)
		accepted := make(chan error)
		go func() { _, err := l.Accept(); accepted <- err }() // waits for an hour
		var visitors []net.Conn
		for range waitingMost + 1 { // the last one is held, and nobody taken after it
			here, there := net.Pipe()
			p.come <- here
			visitors = append(visitors, there)
		}
		synctest.Wait()
		if isClosed(t, visitors[0]) || isClosed(t, visitors[waitingMost]) {
			t.Error("who waits is turned away")
		}
		select {
		case p.come <- nil:
			t.Error("more wait than may")
		default:
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		synctest.Wait()
		if !isClosed(t, visitors[0]) || !isClosed(t, visitors[waitingMost]) {
			t.Error("who waits is kept after the end")
		}
	})
}

// Whoever has a token cannot take all connections there are: those beyond its share are a stranger's.
func TestACallerProtectsOnlySoManyConnections(t *testing.T) {
	s, p := NewStrangers(StrangerLimits{PerCaller: 2}), &porch{come: make(chan net.Conn)}
	l := s.Listener(p)
	defer l.Close()
	var conns []net.Conn
	for range 3 {
		c, _ := p.visit(t, l)
		Proved(s.ConnContext(t.Context(), c), "agent")
		conns = append(conns, c)
	}
	other, _ := p.visit(t, l)
	Proved(s.ConnContext(t.Context(), other), "owner")
	if s.Count() != 1 {
		t.Errorf("%d strangers, want the third of the same caller", s.Count())
	}
	_ = conns[0].Close()
	Proved(s.ConnContext(t.Context(), conns[2]), "agent")
	if s.Count() != 0 || s.proved["agent"] != 2 {
		t.Errorf("%d strangers, %v", s.Count(), s.proved)
	}
	for _, c := range append(conns, other) {
		_ = c.Close()
	}
	if len(s.proved) != 0 {
		t.Errorf("left: %v", s.proved)
	}
}

func TestStrangersShareAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStrangers(StrangerLimits{Answers: 2, Moment: time.Second})
		began := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		var at []string
		gone, leave := context.WithCancel(t.Context())
		for range 100 { // who goes away takes nobody's turn
			all.Go(func() { s.Wait(gone) })
		}
		synctest.Wait()
		leave()
		all.Wait()
		time.Sleep(time.Second)
		began = time.Now()
		for range 5 {
			all.Go(func() {
				s.Wait(t.Context())
				mu.Lock()
				defer mu.Unlock()
				at = append(at, fmt.Sprint(time.Since(began)))
			})
			synctest.Wait()
		}
		all.Wait()
		if got := strings.Join(at, " "); got != "0s 0s 1s 1s 2s" {
			t.Errorf("answered after %s", got)
		}
		time.Sleep(time.Second)
	})
}

// What a caller sends before its token is accepted is small, and answered at the strangers' pace.
func TestWhatIsKeptOfAStrangersSocket(t *testing.T) {
	f := newFixture(t, Options{Authenticate: tokens})
	ts := f.listen(t)
	p := dial(t, ts, nil)
	p.say(`{"type":"connection_init","payload":{"token":"` + strings.Repeat("x", 20<<10) + `"}}`)
	if _, _, err := p.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "1009") && !strings.Contains(err.Error(), "too big") && !strings.Contains(err.Error(), "StatusMessageTooBig") {
		t.Errorf("%v", err)
	}
	known := dial(t, ts, nil)
	known.say(`{"type":"connection_init","payload":{"token":"good"}}`)
	known.hear("connection_ack")
	known.say(`{"id":"1","type":"subscribe","payload":{"query":"{hello}","extensions":{"x":"` + strings.Repeat("x", 20<<10) + `"}}}`)
	known.hear("next")
}

func TestOneHTTPServerTellsStrangersFromCallers(t *testing.T) {
	strangers := NewStrangers(StrangerLimits{})
	f := newFixture(t, Options{Authenticate: tokens, Strangers: strangers})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewHTTPServer(t.Context(), f, slog.New(slog.DiscardHandler))
	server.ConnContext = strangers.ConnContext
	done := make(chan error, 1)
	go func() { done <- server.Serve(strangers.Listener(l)) }()
	client := &http.Client{Transport: &http.Transport{}}
	for token, want := range map[string]int{"bad": 1, "good": 0} {
		r, err := http.NewRequest(http.MethodPost, "http://"+l.Addr().String(), strings.NewReader(`{"query":"{hello}"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := strangers.Count(); got != want {
			t.Errorf("%s token: %d strangers, want %d", token, got, want)
		}
		client.CloseIdleConnections()
		waitFor(t, "the connection to end", func() bool { return strangers.Count() == 0 })
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func TestAConnectionThatIsGoneIsNotServed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewStrangers(StrangerLimits{}).Listener(inner)
	defer l.Close()
	var gone []string
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		gone = append(gone, c.LocalAddr().String())
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	silent, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.RemoteAddr().String() != silent.LocalAddr().String() {
		t.Errorf("served %s, which is gone (%v)", c.RemoteAddr(), gone)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	server := NewHTTPServer(t.Context(), nil, slog.New(slog.DiscardHandler))
	if server.ReadHeaderTimeout != 5*time.Second || server.IdleTimeout != 2*time.Minute || server.MaxHeaderBytes != 64<<10 {
		t.Errorf("%v %v %d", server.ReadHeaderTimeout, server.IdleTimeout, server.MaxHeaderBytes)
	}
}

func TestComplaintsOfTheHTTPServerAreBounded(t *testing.T) {
	log := &logBuffer{}
	server := NewHTTPServer(t.Context(), nil, slog.New(slog.NewTextHandler(log, nil)))
	for range 1000 {
		server.ErrorLog.Print("http: URL query contains semicolon")
	}
	if n := strings.Count(log.String(), "\n"); n != 10 {
		t.Errorf("%d lines", n)
	}
}
