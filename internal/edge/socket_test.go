package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
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
		"a subscription that @skip empties":  {"subscription{ticks(n:1)@skip(if:true)}", CodeBadInput},
		"one that @include empties":          {"subscription($on:Boolean=false){...on Subscription@include(if:$on){ticks(n:1)}}", CodeBadInput},
		"two names for one stream":           {"subscription{a:ticks(n:1) b:ticks(n:1)}", CodeBadInput},
		"two names through a fragment":       {"subscription{a:ticks(n:1) ...f} fragment f on Subscription{b:ticks(n:1)}", CodeBadInput},
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

// A proxy in front judges members by their names, and so does the server.
func TestMembersOfMessagesMatchExactly(t *testing.T) {
	f := newFixture(t, Options{})
	ts := f.listen(t)
	for _, text := range []string{`{"Type":"connection_init"}`, `null`, `{"type":5}`} {
		p := dial(t, ts, nil)
		p.say(text)
		if c := p.end(); c.Code != closeInvalidMessage {
			t.Errorf("%s: closed with %d", text, c.Code)
		}
	}
	p := open(t, ts)
	p.say(`{"id":"1","type":"subscribe","payload":{"Query":"{hello}"}}`)
	if c := p.end(); c.Code != closeInvalidMessage {
		t.Errorf("closed with %d", c.Code)
	}
}
