package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// openSockets is how many sockets there are.
func openSockets(s *Server) int {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return len(s.sockets.open)
}

func TestShutdown(t *testing.T) {
	f := newFixture(t, Options{})
	ts := f.listen(t)
	var peers []peer
	for range 5 {
		p := open(t, ts)
		p.say(endless)
		p.hear("next")
		peers = append(peers, p)
	}
	done := make(chan error)
	go func() { done <- f.Shutdown(t.Context()) }()
	for _, p := range peers {
		for {
			m, err := p.read()
			if m.Type == "complete" {
				t.Error("a stream was said to be complete")
			}
			if c, ok := errors.AsType[websocket.CloseError](err); ok {
				if c.Code != websocket.StatusServiceRestart || !strings.Contains(c.Reason, "resubscribe") {
					t.Errorf("closed with %d %q", c.Code, c.Reason)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := openSockets(f.Server); n != 0 || f.graph.Live.Load() != 0 {
		t.Errorf("%d sockets and %d streams are left", n, f.graph.Live.Load())
	}
	_, resp, err := websocket.Dial(t.Context(), ts.URL, &websocket.DialOptions{Subprotocols: []string{subprotocol}})
	if err == nil || resp == nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a new socket after shutdown: %v %v", err, resp)
	}
	if r := f.ask(t, "{hello}", nil); r.status != 200 {
		t.Errorf("requests under way are the HTTP server's to end, got %d", r.status)
	}
}

func TestShutdownDoesNotWaitForDeafPeersPastItsContext(t *testing.T) {
	f := newFixture(t, Options{})
	ts := f.listen(t)
	open(t, ts) // never reads again, so never answers the close frame
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := f.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 of them") {
		t.Errorf("got %v", err)
	}
	waitFor(t, "the cut socket to end", func() bool { return openSockets(f.Server) == 0 })
}

func TestTheEndOfTheBaseContextClosesSockets(t *testing.T) {
	f := newFixture(t, Options{})
	base, cancel := context.WithCancel(context.Background())
	ts := httptest.NewUnstartedServer(f)
	ts.Config.BaseContext = func(net.Listener) context.Context { return base }
	ts.Start()
	defer ts.Close()
	p := open(t, ts)
	p.say(endless)
	p.hear("next")
	cancel()
	if c := p.end(); c.Code != websocket.StatusServiceRestart {
		t.Errorf("closed with %d %q", c.Code, c.Reason)
	}
	waitFor(t, "the socket to end", func() bool { return openSockets(f.Server) == 0 })
}

// revocable gives contexts that revoke ends.
type revocable struct {
	mu     sync.Mutex
	cancel []context.CancelFunc
}

func (r *revocable) authenticate(ctx context.Context, c Credentials) (context.Context, error) {
	if _, err := tokens(ctx, c); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = append(r.cancel, cancel)
	return ctx, nil
}

func (r *revocable) revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.cancel {
		cancel()
	}
}

func TestAuthenticationOnSockets(t *testing.T) {
	var r revocable
	f := newFixture(t, Options{Authenticate: r.authenticate, PresentError: translate})
	ts := f.listen(t)
	good := &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer good"}}}
	for name, tt := range map[string]struct {
		options *websocket.DialOptions
		init    string
		code    websocket.StatusCode // 0: acknowledged
	}{
		"a good token":                         {nil, `{"type":"connection_init","payload":{"Authorization":"Bearer good"}}`, 0},
		"a good token by itself":               {nil, `{"type":"connection_init","payload":{"token":"good"}}`, 0},
		"a good token in the upgrade":          {good, `{"type":"connection_init"}`, 0},
		"a bad token over a good upgrade":      {good, `{"type":"connection_init","payload":{"token":"bad"}}`, 4403},
		"no token":                             {nil, `{"type":"connection_init"}`, 4403},
		"a bad token":                          {nil, `{"type":"connection_init","payload":{"token":"bad"}}`, 4403},
		"a token that is no text":              {good, `{"type":"connection_init","payload":{"token":5}}`, 4403},
		"an empty token":                       {good, `{"type":"connection_init","payload":{"Authorization":""}}`, 4403},
		"a header that is not Bearer":          {nil, `{"type":"connection_init","payload":{"Authorization":"good"}}`, 4403},
		"a server that cannot check the token": {nil, `{"type":"connection_init","payload":{"token":"broken"}}`, websocket.StatusTryAgainLater},
		"a server that cannot look it up yet":  {nil, `{"type":"connection_init","payload":{"token":"away"}}`, websocket.StatusTryAgainLater},
	} {
		p := dial(t, ts, tt.options)
		p.say(tt.init)
		if tt.code == 0 {
			p.hear("connection_ack")
		} else if c := p.end(); c.Code != tt.code || strings.Contains(c.Reason, "pq:") {
			t.Errorf("%s: closed with %d %q", name, c.Code, c.Reason)
		} else if tt.code == 4403 && len(c.Reason) <= len("Forbidden: ") {
			t.Errorf("%s: closed without a reason: %q", name, c.Reason)
		}
	}
}

func TestRevocationClosesSockets(t *testing.T) {
	var r revocable
	f := newFixture(t, Options{Authenticate: r.authenticate})
	ts := f.listen(t)
	for range 20 {
		p := dial(t, ts, nil)
		p.say(`{"type":"connection_init","payload":{"token":"good"}}`)
		p.hear("connection_ack")
		p.say(endless)
		p.hear("next")
		r.revoke()
		for {
			m, err := p.read()
			if m.Type == "complete" || m.Type == "error" {
				t.Fatalf("heard %s before the close frame", m.Type)
			}
			if c, ok := errors.AsType[websocket.CloseError](err); ok {
				if c.Code != 4403 || !strings.Contains(c.Reason, "revoked") {
					t.Errorf("closed with %d %q", c.Code, c.Reason)
				}
				break
			}
		}
	}
}

func TestSocketsOfOtherOrigins(t *testing.T) {
	f := newFixture(t, Options{AllowOrigin: func(o string) bool { return o == "https://console.example.com" }})
	ts := f.listen(t)
	for origin, want := range map[string]int{"https://evil.example": 403, "null": 403, "https://console.example.com": 101, ts.URL: 101} {
		c, resp, err := websocket.Dial(t.Context(), ts.URL, &websocket.DialOptions{Subprotocols: []string{subprotocol}, HTTPHeader: http.Header{"Origin": {origin}}})
		if resp == nil || resp.StatusCode != want {
			t.Errorf("%s: %v %v", origin, resp, err)
		}
		if c != nil {
			_ = c.CloseNow()
		}
	}
}

// narrow dials with small buffers, so that a peer that does not read is felt soon.
func narrow() *websocket.DialOptions {
	dialer := net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4096)
		}
		return c, err
	}}
	return &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}}
}

func TestASlowReaderIsCutOff(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{WriteTimeout: 100 * time.Millisecond}})
	ts := f.listen(t)
	p := dial(t, ts, narrow())
	p.say(init1)
	p.hear("connection_ack")
	p.subscribe("1", "subscription{ticks(n:0,size:262144)}")
	p.subscribe("2", "subscription{ticks(n:0,size:262144)}")
	waitFor(t, "the socket and its streams to start", func() bool { return f.graph.Live.Load() == 2 })
	waitFor(t, "the socket and its streams to end", func() bool { return f.graph.Live.Load() == 0 && openSockets(f.Server) == 0 })
}

func TestAPeerThatDoesNotAnswerPingsIsCutOff(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{PingInterval: time.Millisecond, WriteTimeout: 100 * time.Millisecond}})
	ts := f.listen(t)
	open(t, ts) // does not read, so does not answer
	waitFor(t, "the socket to end", func() bool { return openSockets(f.Server) == 0 })
}

// A ping is sent only when the one before was answered, so the third proves that answers count.
func TestAPeerThatAnswersPingsStays(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{PingInterval: time.Millisecond, WriteTimeout: time.Minute}})
	pings := make(chan struct{}, 1)
	p := dial(t, f.listen(t), &websocket.DialOptions{OnPingReceived: func(ctx context.Context, _ []byte) bool {
		select {
		case pings <- struct{}{}:
		case <-ctx.Done():
		}
		return true
	}})
	p.say(init1)
	p.hear("connection_ack")
	ended := make(chan error, 1)
	go func() {
		_, err := p.read()
		ended <- err
	}()
	for range 3 {
		select {
		case <-pings:
		case err := <-ended:
			t.Fatalf("a peer that answers was cut off: %v", err)
		}
	}
}

func TestAHundredSockets(t *testing.T) {
	f := newFixture(t, Options{})
	ts := f.listen(t)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			p := dial(t, ts, nil)
			p.say(init1)
			if m, err := p.read(); err != nil || m.Type != "connection_ack" {
				t.Errorf("socket %d: %s %v", i, m.Type, err)
				return
			}
			for j := range 5 {
				p.subscribe(fmt.Sprint(j), "subscription{ticks(n:5)}")
			}
			for complete := 0; complete < 5; {
				m, err := p.read()
				if err != nil {
					t.Errorf("socket %d: %v", i, err)
					return
				}
				if m.Type == "complete" {
					complete++
				}
			}
			if i%2 == 0 {
				_ = p.Close(websocket.StatusNormalClosure, "")
				return
			}
			p.say(endless)
			_, _ = p.read()
			_ = p.CloseNow() // gone without a word
		})
	}
	wg.Wait()
	waitFor(t, "sockets to end", func() bool { return openSockets(f.Server) == 0 && f.graph.Live.Load() == 0 })
}
