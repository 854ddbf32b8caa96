package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen serves f on loopback. On the way out it shuts the sockets down, which waits for every goroutine of them, and looks for streams left behind.
func (f *fixture) listen(t *testing.T) *httptest.Server {
	t.Helper()
	ts := httptest.NewServer(f)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		ts.Close()
		waitFor(t, "streams to end", func() bool { return f.graph.Live.Load() == 0 })
	})
	return ts
}

// waitFor polls a counter of another goroutine.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick, timeout := time.NewTicker(time.Millisecond), time.After(15*time.Second)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// peer is the client's end of a socket.
type peer struct {
	t testing.TB
	*websocket.Conn
}

func dial(t testing.TB, ts *httptest.Server, o *websocket.DialOptions) peer {
	t.Helper()
	if o == nil {
		o = &websocket.DialOptions{}
	}
	if o.Subprotocols == nil {
		o.Subprotocols = []string{subprotocol}
	}
	c, resp, err := websocket.Dial(t.Context(), ts.URL, o)
	if err != nil {
		t.Fatalf("dial: %v %v", err, resp)
	}
	c.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return peer{t, c}
}

// open dials and waits for the acknowledgement.
func open(t testing.TB, ts *httptest.Server) peer {
	t.Helper()
	p := dial(t, ts, nil)
	p.say(`{"type":"connection_init"}`)
	p.hear("connection_ack")
	return p
}

func (p peer) say(text string) {
	p.t.Helper()
	if err := p.Write(p.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		p.t.Fatalf("say %s: %v", text, err)
	}
}

func (p peer) subscribe(id, query string) {
	p.t.Helper()
	p.say(fmt.Sprintf(`{"id":%q,"type":"subscribe","payload":{"query":%q}}`, id, query))
}

func (p peer) read() (message, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 15*time.Second)
	defer cancel()
	var m message
	_, data, err := p.Read(ctx)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// hear reads the next message, which must have this type.
func (p peer) hear(kind string) message {
	p.t.Helper()
	m, err := p.read()
	if err != nil || m.Type != kind {
		p.t.Fatalf("heard %s %s %v, want %s", m.Type, m.Payload, err, kind)
	}
	return m
}

// end reads on until the socket is closed, and returns the close frame.
func (p peer) end() websocket.CloseError {
	p.t.Helper()
	for {
		_, err := p.read()
		if err == nil {
			continue
		}
		c, ok := errors.AsType[websocket.CloseError](err)
		if !ok {
			p.t.Fatalf("no close frame: %v", err)
		}
		return c
	}
}

const init1, endless = `{"type":"connection_init"}`, `{"id":"1","type":"subscribe","payload":{"query":"subscription{ticks(n:0)}"}}`

func TestCloseCodes(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{InitTimeout: 300 * time.Millisecond, MessageBytes: 2048}})
	ts := f.listen(t)
	tests := []struct {
		name  string
		say   []string
		code  websocket.StatusCode
		about string
	}{
		{"silence", nil, 4408, "timeout"},
		{"pings only", []string{`{"type":"ping"}`}, 4408, "timeout"},
		{"no JSON", []string{`nonsense`}, 4400, "JSON"},
		{"no object", []string{`[]`}, 4400, "JSON"},
		{"no type", []string{`{}`}, 4400, "type"},
		{"an unknown type", []string{`{"type":"start"}`}, 4400, "type"},
		{"a type only servers send", []string{init1, `{"type":"next","id":"1"}`}, 4400, "type"},
		{"subscribe before the acknowledgement", []string{endless}, 4401, "connection_init"},
		{"a second initialisation", []string{init1, init1}, 4429, "Too many"},
		{"an initialisation that is no object", []string{`{"type":"connection_init","payload":[1]}`}, 4400, "payload"},
		{"an id twice", []string{init1, endless, endless}, 4409, "already exists"},
		{"no id", []string{init1, `{"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "id"},
		{"a number as id", []string{init1, `{"id":1,"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "Invalid"},
		{"a long id", []string{init1, `{"id":"` + strings.Repeat("x", 129) + `","type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "128"},
		{"no payload", []string{init1, `{"id":"1","type":"subscribe"}`}, 4400, "payload"},
		{"no query", []string{init1, `{"id":"1","type":"subscribe","payload":{}}`}, 4400, "query"},
		{"variables that are no object", []string{init1, `{"id":"1","type":"subscribe","payload":{"query":"{hello}","variables":[]}}`}, 4400, "payload"},
		{"a message that is too long", []string{init1, `{"type":"ping","payload":{"x":"` + strings.Repeat("x", 2048) + `"}}`}, websocket.StatusMessageTooBig, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := dial(t, ts, nil)
			for _, m := range tt.say {
				p.say(m)
			}
			if c := p.end(); c.Code != tt.code || !strings.Contains(c.Reason, tt.about) {
				t.Errorf("closed with %d %q, want %d", c.Code, c.Reason, tt.code)
			}
		})
	}
	t.Run("a binary message", func(t *testing.T) {
		p := dial(t, ts, nil)
		if err := p.Write(t.Context(), websocket.MessageBinary, []byte(init1)); err != nil {
			t.Fatal(err)
		}
		if c := p.end(); c.Code != 4400 {
			t.Errorf("closed with %d", c.Code)
		}
	})
	for _, proto := range []string{"graphql-ws", "soap"} {
		t.Run("the subprotocol "+proto, func(t *testing.T) {
			p := dial(t, ts, &websocket.DialOptions{Subprotocols: []string{proto}})
			if c := p.end(); c.Code != 4406 {
				t.Errorf("closed with %d", c.Code)
			}
		})
	}
}

func TestOperationsOnASocket(t *testing.T) {
	f := newFixture(t, Options{})
	p := open(t, f.listen(t))
	p.say(`{"type":"ping","payload":{"a":1}}`)
	p.hear("pong")
	p.say(`{"type":"pong"}`)
	p.say(`{"type":"complete","id":"never seen"}`)

	p.subscribe("q", "{hello}")
	if m := p.hear("next"); m.ID != "q" || string(m.Payload) != `{"data":{"hello":"world"}}` {
		t.Errorf("got %s", m.Payload)
	}
	p.hear("complete")
	p.subscribe("q", "mutation{touch(id:7)}") // the id is free again
	if m := p.hear("next"); string(m.Payload) != `{"data":{"touch":"7"}}` {
		t.Errorf("got %s", m.Payload)
	}
	p.hear("complete")

	p.subscribe("s", "subscription{ticks(n:2)}")
	p.hear("next")
	if m := p.hear("next"); m.ID != "s" || string(m.Payload) != `{"data":{"ticks":"tick"}}` {
		t.Errorf("got %s", m.Payload)
	}
	p.hear("complete")

	for name, tt := range map[string]struct{ query, code string }{
		"a parse error":                      {"{", CodeParseFailed},
		"a validation error":                 {"{nope}", CodeValidationFailed},
		"a limit":                            {"{" + strings.Repeat("hello ", 21) + "}", CodeLimitExceeded},
		"a page size":                        {"{items(first:0){first}}", CodeBadInput},
		"a subscription that does not start": {"subscription{broken}", CodeInternal},
		"a subscription that panics":         {"subscription{exploding}", CodeInternal},
	} {
		p.subscribe("e", tt.query)
		m := p.hear("error")
		var errs []struct {
			Message    string
			Extensions struct{ Code string }
		}
		if err := json.Unmarshal(m.Payload, &errs); err != nil || len(errs) == 0 || errs[0].Extensions.Code != tt.code || m.ID != "e" {
			t.Errorf("%s: %s %v", name, m.Payload, err)
		}
		if strings.Contains(string(m.Payload), "secret") || strings.Contains(string(m.Payload), "pq:") {
			t.Errorf("%s: the cause leaked: %s", name, m.Payload)
		}
	}
	p.subscribe("f", `{fail(with:"other")}`)
	if m := p.hear("next"); !strings.Contains(string(m.Payload), CodeInternal) || !strings.Contains(string(m.Payload), "req_") {
		t.Errorf("got %s", m.Payload)
	}
	p.hear("complete")
}

func TestAStreamCanEndWithAnError(t *testing.T) {
	f := newFixture(t, Options{})
	p := open(t, f.listen(t))
	p.subscribe("1", "subscription{lagging}")
	p.hear("next")
	if m := p.hear("error"); !strings.Contains(string(m.Payload), `"resumeAfter":"c7"`) || !strings.Contains(string(m.Payload), "SUBSCRIPTION_LAGGED") {
		t.Errorf("got %s", m.Payload)
	}
	p.subscribe("1", "{hello}") // the id is free, the socket open
	p.hear("next")
	EndSubscription(t.Context(), io.EOF) // outside a subscription it does nothing
}

func TestCompletingAStreamFreesItsIDAndItsGoroutine(t *testing.T) {
	f := newFixture(t, Options{})
	p := open(t, f.listen(t))
	for range 50 {
		p.say(endless)
		p.say(`{"id":"1","type":"complete"}`)
	}
	p.subscribe("last", "{hello}")
	for m, err := p.read(); m.ID != "last"; m, err = p.read() {
		if err != nil || m.Type != "next" {
			t.Fatalf("heard %s %v of a completed stream", m.Type, err)
		}
	}
	waitFor(t, "streams to end", func() bool { return f.graph.Live.Load() == 0 })
}

func TestASocketHasALimitOfOperations(t *testing.T) {
	f := newFixture(t, Options{})
	p := open(t, f.listen(t))
	for i := range 100 {
		p.subscribe(fmt.Sprint(i), "subscription{ticks(n:0)}")
	}
	p.subscribe("one too many", "subscription{ticks(n:0)}")
	for m, err := p.read(); ; m, err = p.read() {
		if err != nil {
			t.Fatal(err)
		}
		if m.Type == "error" {
			if m.ID != "one too many" || !strings.Contains(string(m.Payload), CodeLimitExceeded) {
				t.Errorf("%s: %s", m.ID, m.Payload)
			}
			break
		}
	}
	if n := f.graph.Live.Load(); n > 100 {
		t.Errorf("%d streams", n)
	}
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
	if n := f.sockets.count(); n != 0 || f.graph.Live.Load() != 0 {
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
	start := time.Now()
	waitFor(t, "the cut socket to end", func() bool { return f.sockets.count() == 0 })
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the cut took %v", took)
	}
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
	waitFor(t, "the socket to end", func() bool { return f.sockets.count() == 0 })
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
	f := newFixture(t, Options{Authenticate: r.authenticate})
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
		"a header that is not Bearer":          {nil, `{"type":"connection_init","payload":{"Authorization":"good"}}`, 4403},
		"a server that cannot check the token": {nil, `{"type":"connection_init","payload":{"token":"broken"}}`, websocket.StatusTryAgainLater},
	} {
		p := dial(t, ts, tt.options)
		p.say(tt.init)
		if tt.code == 0 {
			p.hear("connection_ack")
		} else if c := p.end(); c.Code != tt.code || strings.Contains(c.Reason, "pq:") {
			t.Errorf("%s: closed with %d %q", name, c.Code, c.Reason)
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
	waitFor(t, "the socket and its streams to end", func() bool { return f.graph.Live.Load() == 0 && f.sockets.count() == 0 })
}

func TestAPeerThatDoesNotAnswerPingsIsCutOff(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{PingInterval: 20 * time.Millisecond, WriteTimeout: 100 * time.Millisecond}})
	ts := f.listen(t)
	open(t, ts) // does not read, so does not answer
	waitFor(t, "the socket to end", func() bool { return f.sockets.count() == 0 })
	pings := make(chan struct{}, 100)
	answering := dial(t, ts, &websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { pings <- struct{}{}; return true }})
	answering.say(init1)
	answering.hear("connection_ack")
	go func() {
		for range 10 { // twice as long as a deaf peer lives
			<-pings
		}
		_ = answering.Close(websocket.StatusNormalClosure, "")
	}()
	if _, err := answering.read(); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("a peer that answers was cut off: %v", err)
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
				p.subscribe(fmt.Sprint(j), "subscription{ticks(n:20)}")
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
	waitFor(t, "sockets to end", func() bool { return f.sockets.count() == 0 && f.graph.Live.Load() == 0 })
}
