package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// porch is a listener whose connections are pipes.
type porch struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *porch) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *porch) Close() error   { p.once.Do(func() { close(p.conns) }); return nil }
func (p *porch) Addr() net.Addr { return &net.TCPAddr{} }

const someRequest = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// come opens a connection and says something on it; the result is the visitor's end.
func (p *porch) come(t *testing.T, text string) (visitor net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { _ = there.Close() })
	p.conns <- here
	if text != "" {
		go func() { _, _ = there.Write([]byte(text)) }() // fails when it is turned away, which the tests look for
	}
	return there
}

// visit comes to a listener and is let in.
func (p *porch) visit(t *testing.T, l net.Listener) (accepted net.Conn, visitor net.Conn) {
	t.Helper()
	come := make(chan net.Conn, 1)
	go func() { come <- p.come(t, someRequest) }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, <-come
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
		s, p := NewStrangers(StrangerLimits{Connections: 3, Life: time.Nanosecond}), &porch{conns: make(chan net.Conn)}
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
		s, p := NewStrangers(StrangerLimits{Connections: 2, Life: time.Second}), &porch{conns: make(chan net.Conn)}
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
		synctest.Wait()
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

// Strangers who have asked something wait in a line; it has an end, and who has a token that was good before does not stand in it.
func TestStrangersWaitInALineThatHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := NewStrangers(StrangerLimits{Connections: 1, Life: time.Hour, Line: 3}), &porch{conns: make(chan net.Conn)}
		s.Know(func(token string) bool { return token == "good" })
		l := s.Listener(p)
		_, first := p.visit(t, l)
		accepted := make(chan net.Conn, 1)
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				accepted <- c
			}
			close(accepted)
		}()
		var visitors []net.Conn
		for range 4 {
			visitors = append(visitors, p.come(t, someRequest))
			synctest.Wait()
		}
		for i, c := range visitors {
			if closed := isClosed(t, c); closed != (i == 3) {
				t.Errorf("stranger %d in the line: closed %t", i, closed)
			}
		}
		bad := p.come(t, "GET / HTTP/1.1\r\nAuthorization: Bearer bad\r\n\r\n")
		synctest.Wait()
		if len(accepted) != 0 || !isClosed(t, bad) {
			t.Error("somebody was let in")
		}
		p.come(t, "GET / HTTP/1.1\r\nauthorization: bearer good\r\n\r\n")
		c := <-accepted
		if text, err := io.ReadAll(io.LimitReader(c, 20)); err != nil || string(text) != "GET / HTTP/1.1\r\nauth" {
			t.Errorf("%q, %v", text, err)
		}
		Proved(s.ConnContext(t.Context(), c), "good")
		if !isClosed(t, first) {
			t.Error("nobody made room")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for later := range accepted { // the first of the line may have been let in, as there was room
			_ = later.Close()
		}
		synctest.Wait()
		if !isClosed(t, visitors[1]) || !isClosed(t, visitors[2]) {
			t.Error("who waits is kept after the end")
		}
		_ = c.Close()
	})
}

// Who has asked nothing yet costs little, keeps nobody from being let in, and has its time.
func TestWhoHasAskedNothingWaitsInTheLobby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := NewStrangers(StrangerLimits{Lobby: 3}), &porch{conns: make(chan net.Conn)}
		l := s.Listener(p)
		_, owners := p.visit(t, l)
		var visitors []net.Conn
		for _, text := range []string{"", "", "GET / HTTP/1.1\r\nX: ", "GET / HTTP/1.1\r\nX: "} {
			visitors = append(visitors, p.come(t, text))
			synctest.Wait()
		}
		p.visit(t, l) // comes through the lobby, too, as nobody can look into a pipe
		for i, c := range visitors {
			if closed := isClosed(t, c); closed != (i < 2) {
				t.Errorf("visitor %d: closed %t", i, closed)
			}
		}
		if n := s.Count(); n != 2 {
			t.Errorf("%d were let in, want the two who asked", n)
		}
		go func() { _, _ = visitors[2].Write([]byte("y\r\n\r\n")) }()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		text := make([]byte, 100)
		n, err := c.Read(text)
		if err != nil || string(text[:n]) != "GET / HTTP/1.1\r\nX: y\r\n\r\n" {
			t.Errorf("%q, %v", text[:n], err)
		}
		time.Sleep(headerTime - time.Second)
		if isClosed(t, visitors[3]) {
			t.Error("a slow header is cut before its time")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !isClosed(t, visitors[3]) || isClosed(t, owners) {
			t.Error("a header that never ends has its time, and others theirs")
		}
		last := p.come(t, "GET")
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !isClosed(t, last) {
			t.Error("who has asked nothing is kept after the end")
		}
	})
}

// Strangers are let in no faster than they are answered; a token passes them by so often a second, and then stands in line as they do.
func TestNewConnectionsHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := NewStrangers(StrangerLimits{Answers: 2, Moment: 2 * time.Second, NewPerToken: 1}), &porch{conns: make(chan net.Conn)}
		s.Know(func(token string) bool { return token != "" })
		l := s.Listener(p)
		defer l.Close()
		began := time.Now()
		var at []string
		for _, token := range []string{"", "", "", "a", "b", "a"} {
			go p.come(t, "GET / HTTP/1.1\r\nAuthorization: Bearer "+token+"\r\n\r\n")
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			at = append(at, time.Since(began).String())
		}
		if got := strings.Join(at, " "); got != "0s 0s 1s 1s 1s 2s" {
			t.Error(got)
		}
	})
}

// Long headers cost no more than all connections together may.
func TestHeadersInTheLobbyTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 64 << 10
		s, p := NewStrangers(StrangerLimits{LobbyBytes: most}), &porch{conns: make(chan net.Conn)}
		l := s.Listener(p)
		go func() { _, _ = l.Accept() }()
		long := "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 10<<10)
		var visitors []net.Conn
		for range 20 {
			visitors = append(visitors, p.come(t, long))
			synctest.Wait()
		}
		if !isClosed(t, visitors[0]) || isClosed(t, visitors[19]) {
			t.Error("the oldest is not closed for the memory of others")
		}
		if s.lobby.bytes > most || s.lobby.Len() < 2 {
			t.Errorf("%d connections hold %d bytes", s.lobby.Len(), s.lobby.bytes)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s.lobby.bytes != 0 || s.lobby.Len() != 0 {
			t.Errorf("left: %d bytes", s.lobby.bytes)
		}
	})
}

// A caller whose token is not good any more is a stranger again.
func TestWhatACallerProvedIsTakenBackWithItsToken(t *testing.T) {
	s, p := NewStrangers(StrangerLimits{}), &porch{conns: make(chan net.Conn)}
	l := s.Listener(p)
	defer l.Close()
	c, _ := p.visit(t, l)
	ctx := s.ConnContext(t.Context(), c)
	Proved(ctx, "agent")
	doubted(ctx, "somebody else")
	if s.Count() != 0 {
		t.Error("another's token is doubted, and not the caller's")
	}
	doubted(ctx, "agent")
	doubted(ctx, "agent")
	if s.Count() != 1 || len(s.proved) != 0 {
		t.Errorf("%d strangers, %v", s.Count(), s.proved)
	}
	_ = c.Close()
	if s.Count() != 0 || len(s.proved) != 0 {
		t.Errorf("left: %d strangers, %v", s.Count(), s.proved)
	}
}

// callers is how many have proved themselves on a connection that is open.
func callers(s *Strangers) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.proved)
}

// Whoever has a token cannot take all connections there are: those beyond its share are a stranger's.
func TestACallerProtectsOnlySoManyConnections(t *testing.T) {
	s, p := NewStrangers(StrangerLimits{PerCaller: 2}), &porch{conns: make(chan net.Conn)}
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

// Whoever waits for its turn with a body unread ends with its connection: http.Server would not notice.
func TestWhatWaitsEndsWithItsConnection(t *testing.T) {
	strangers := NewStrangers(StrangerLimits{Connections: 1, Life: time.Nanosecond, Answers: 2, Moment: time.Hour})
	waits, ended := make(chan struct{}, 2), make(chan error, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		waits <- struct{}{}
		strangers.Wait(r.Context())
		ended <- r.Context().Err()
	}))
	server.Config.ConnContext = strangers.ConnContext
	server.Listener = strangers.Listener(server.Listener)
	server.Start()
	defer server.Close()
	for range cap(strangers.pace) { // all turns there are
		strangers.pace <- struct{}{}
	}
	for range 2 {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-waits
	}
	if err := <-ended; err == nil {
		t.Error("a connection was closed for another, and what it asked for had its turn")
	}
	strangers.Close()
	if err := <-ended; err == nil {
		t.Error("a connection was closed, and what it asked for had its turn")
	}
}

// The holder of a run's token that has ended may report, at the pace and with the share of a stranger.
func TestAnEndedTokenIsAStrangers(t *testing.T) {
	strangers := NewStrangers(StrangerLimits{})
	f := newFixture(t, Options{Authenticate: tokens, Strangers: strangers})
	server := httptest.NewUnstartedServer(f)
	server.Config.ConnContext = strangers.ConnContext
	server.Listener = strangers.Listener(server.Listener)
	server.Start()
	defer server.Close()
	for i, token := range []string{"good", "ended", "bad"} {
		r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(`{"query":"{hello}"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := server.Client().Do(r) // the last two on one connection
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := len(strangers.pace); got != i {
			t.Errorf("%s: %d answers at the strangers' pace, want %d", token, got, i)
		}
		if token == "good" {
			server.Client().CloseIdleConnections()
			waitFor(t, "the connection to end", func() bool { return strangers.Count() == 0 && callers(strangers) == 0 })
		} else if strangers.Count() != 1 {
			t.Errorf("%s: %d strangers", token, strangers.Count())
		}
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
	visitor, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer visitor.Close()
	if _, err := io.WriteString(visitor, someRequest); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.RemoteAddr().String() != visitor.LocalAddr().String() {
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
