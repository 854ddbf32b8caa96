package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// callers are who may come to a served world, by their tokens; and how to end one's token.
type callers map[string]auth.Principal

// serve puts a world behind the edge and on a socket, as the program does.
func (w *world) serve(known callers, tokens context.Context) *httptest.Server {
	w.t.Helper()
	refused := func(err error) *edge.Error {
		if e, ok := errors.AsType[*graph.Error](err); ok {
			return &edge.Error{Code: e.Code, Message: e.Message, Extensions: e.Extensions}
		}
		return nil
	}
	api := edge.New(w.schema, edge.Options{Refused: refused, Authenticate: func(ctx context.Context, c edge.Credentials) (context.Context, error) {
		caller, ok := known[c.Token]
		if !ok {
			return nil, &edge.Error{Code: edge.CodeUnauthenticated, Message: "who is that"}
		}
		ctx, end := context.WithCancel(auth.WithPrincipal(ctx, caller))
		context.AfterFunc(tokens, end)
		return ctx, nil
	}})
	ts := httptest.NewServer(api)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := api.Shutdown(ctx); err != nil {
			w.t.Error(err)
		}
		ts.Close()
	})
	return ts
}

// watcher is a socket with subscriptions.
type watcher struct {
	t    *testing.T
	conn *websocket.Conn
}

func (w *world) watcher(ts *httptest.Server, token string) watcher {
	w.t.Helper()
	conn, _, err := websocket.Dial(w.t.Context(), ts.URL, &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	w.ok(err)
	w.t.Cleanup(func() { _ = conn.CloseNow() })
	out := watcher{w.t, conn}
	out.say(map[string]any{"type": "connection_init", "payload": map[string]any{"token": token}})
	if m := out.hear(); m.Type != "connection_ack" {
		w.t.Fatalf("heard %+v", m)
	}
	return out
}

func (x watcher) say(m any) {
	x.t.Helper()
	text, err := json.Marshal(m)
	if err == nil {
		err = x.conn.Write(x.t.Context(), websocket.MessageText, text)
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x watcher) subscribe(id, query string, variables map[string]any) {
	x.t.Helper()
	x.say(map[string]any{"type": "subscribe", "id": id, "payload": map[string]any{"query": query, "variables": variables}})
}

type heard struct {
	ID, Type string
	Payload  json.RawMessage
	closed   websocket.StatusCode // of the socket
}

// hear reads the next message; it is not for the goroutine of the test alone, so it does not end the test.
func (x watcher) hear() (m heard) {
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	_, data, err := x.conn.Read(ctx)
	if err != nil {
		m.closed = websocket.CloseStatus(err)
		return m
	}
	if err := json.Unmarshal(data, &m); err != nil {
		x.t.Errorf("%s: %v", data, err)
	}
	return m
}

// step stores an event of a run and signals it.
func (w *world) step(run string) {
	w.t.Helper()
	w.sql(`WITH r AS (UPDATE runs SET event_seq = event_seq + 1, revision = revision + 1 WHERE id = $1 RETURNING event_seq)
INSERT INTO run_events (seq, kind, attempt, data, workspace_id, run_id) SELECT event_seq, 'PROGRESS', 1, '{}', $2, $1 FROM r`, run, w.workspace)
	w.hub.Publish(event.Event{Kind: event.Run, WorkspaceID: xid.ID(w.workspace), ID: xid.ID(run)})
}

// Rows are read once for all who watch a run: 200 take no more statements than one. Each is sent each event once, in order.
func TestManyWatchersOfARunShareItsReads(t *testing.T) {
	t.Parallel()
	const steps = 10
	watch := func(sockets, each int) (statements int64) {
		w := newCountedWorld(t)
		run := w.wake(w.agent("Ada"))
		ts := w.serve(callers{"owner": auth.Local()}, t.Context())
		var all, heardAll sync.WaitGroup
		next := make(chan struct{}, sockets*each)
		for range sockets {
			x := w.watcher(ts, "owner")
			for i := range each {
				query := `subscription($r: ID!) { runEvents(runId: $r) { ... on RunEvent { cursor kind } } }`
				if i%2 == 1 {
					query = `subscription($r: ID!) { runUpdated(runId: $r) { revision agent { name } } }`
				}
				x.subscribe(fmt.Sprint(i), query, map[string]any{"r": run})
			}
			all.Go(func() {
				last := map[string]string{}
				for range each * (steps + 1) {
					m := x.hear()
					if m.Type != "next" || last[m.ID] == string(m.Payload) {
						t.Errorf("heard %s %s of %s after %s", m.Type, m.Payload, m.ID, last[m.ID])
						return
					}
					last[m.ID] = string(m.Payload)
					next <- struct{}{}
				}
			})
		}
		heardAll.Go(func() {
			for n := range steps + 1 {
				for range sockets * each {
					<-next
				}
				if n == 0 {
					statements = w.n.Load()
				}
				if n < steps {
					w.step(run)
				}
			}
		})
		all.Wait()
		heardAll.Wait()
		return w.n.Load() - statements
	}
	few, many := watch(1, 2), watch(4, 50)
	// A step is a statement of its own, and agents' names are read once for those who write the same text.
	if few > 5*steps || many > few+5 {
		t.Errorf("%d steps took %d statements with one watcher of each kind, and %d with 100", steps, few, many)
	}
}

// What one watcher wrote is sent to others only where they see the same.
func TestWatchersWithOtherRightsAreSentTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	token, err := w.store.CreateToken(t.Context(), store.NewToken{Name: "the owner's", Prefix: "rse_", Digest: "digest", Scopes: []domain.TokenScope{domain.TokenScopeAdmin}})
	w.ok(err)
	owner := auth.Principal{Kind: auth.KindToken, TokenID: token, Scopes: []domain.TokenScope{domain.TokenScopeAdmin}}
	reader := auth.Principal{Kind: auth.KindToken, TokenID: "tok_2", WorkspaceID: xid.ID(w.workspace), Scopes: []domain.TokenScope{domain.TokenScopeRead}}
	other := auth.Principal{Kind: auth.KindToken, TokenID: "tok_3", WorkspaceID: xid.ID(w.makeWorkspace("Other")), Scopes: []domain.TokenScope{domain.TokenScopeRead}}
	ts := w.serve(callers{"owner": owner, "reader": reader, "other": other}, t.Context())
	const query = `subscription($w: ID!, $c: StreamCursor) { workspaceActivity(workspaceId: $w, after: $c, filter: {code: [AGENT_PAUSED]}) { actor { ... on UserActor { userId name } } } }`
	variables := map[string]any{"w": w.workspace, "c": w.eventCursor()}
	watchers := map[string]watcher{}
	for _, name := range []string{"owner", "reader", "other"} {
		watchers[name] = w.watcher(ts, name)
		watchers[name].subscribe("1", query, variables)
	}
	if m := watchers["other"].hear(); m.Type != "error" || !strings.Contains(string(m.Payload), "NOT_FOUND") {
		t.Errorf("a token of another workspace hears %s %s", m.Type, m.Payload)
	}
	w.ok(w.store.PauseAgent(auth.WithPrincipal(t.Context(), owner), store.HoldAgent{WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent)}))
	for name, want := range map[string]string{"owner": `"the owner's"`, "reader": "null"} {
		m := watchers[name].hear()
		if text := string(m.Payload); !strings.Contains(text, `"name":`+want) || !strings.Contains(text, string(token)) {
			t.Errorf("%s hears %s, want the name %s", name, text, want)
		}
	}
}

// Watchers of one run whose token ends are cut off with 4403, and the run is not read for them any more.
func TestTheEndOfATokenEndsItsStreams(t *testing.T) {
	t.Parallel()
	w := newCountedWorld(t)
	run := w.wake(w.agent("Ada"))
	tokens, revoke := context.WithCancel(t.Context())
	ts := w.serve(callers{"reader": {Kind: auth.KindToken, TokenID: "tok_2", WorkspaceID: xid.ID(w.workspace), Scopes: []domain.TokenScope{domain.TokenScopeRead}}}, tokens)
	x := w.watcher(ts, "reader")
	x.subscribe("1", `subscription($r: ID!) { runEvents(runId: $r) { ... on RunEvent { kind } } }`, map[string]any{"r": run})
	for m := x.hear(); !strings.Contains(string(m.Payload), "CREATED"); m = x.hear() {
		if m.Type != "next" {
			t.Fatalf("heard %+v", m)
		}
	}
	revoke()
	if m := x.hear(); m.closed != 4403 {
		t.Errorf("heard %+v, want the close code 4403", m)
	}
}

// Who comes late, or again with a cursor, is sent what is stored from there on, then what comes, like those who stayed.
func TestLateWatchersCatchUpAndThenShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.agent("Ada"))
	ts := w.serve(callers{"owner": auth.Local()}, t.Context())
	const query = `subscription($r: ID!, $c: StreamCursor) { runEvents(runId: $r, after: $c, includeLogs: true) { ... on RunEvent { cursor } } }`
	take := func(x watcher, n int) (cursors []string) {
		t.Helper()
		for range n {
			var out struct {
				Data struct{ RunEvents struct{ Cursor string } }
			}
			m := x.hear()
			if err := json.Unmarshal(m.Payload, &out); err != nil || m.Type != "next" {
				t.Fatalf("heard %+v, %v", m, err)
			}
			cursors = append(cursors, out.Data.RunEvents.Cursor)
		}
		return cursors
	}
	first := w.watcher(ts, "owner")
	first.subscribe("1", query, map[string]any{"r": run})
	all := take(first, 1)
	for range 300 { // more than is kept for all
		w.step(run)
		all = append(all, take(first, 1)...)
	}
	for _, from := range []int{0, 1, 100, 250, 300} {
		variables := map[string]any{"r": run}
		if from > 0 {
			variables["c"] = all[from-1]
		}
		late := w.watcher(ts, "owner")
		late.subscribe("1", query, variables)
		if got := take(late, len(all)-from); !slices.Equal(got, all[from:]) {
			t.Errorf("from %d came %d items that differ", from, len(got))
		}
		w.step(run)
		live := take(first, 1)
		if got := take(late, 1); got[0] != live[0] {
			t.Errorf("live came %s to the late one, and %s to the other", got[0], live[0])
		}
		all = append(all, live...)
	}
}
