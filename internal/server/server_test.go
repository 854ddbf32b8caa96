package server

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

	"go.uber.org/goleak"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/tokenfile"
	"rouse.dev/rouse/internal/xid"
)

func TestMain(m *testing.M) {
	pgtest.Main(m)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// screen is standard output; it tells when the program is ready.
type screen struct {
	mu    sync.Mutex
	text  strings.Builder
	ready chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if strings.Contains(s.text.String(), "Ctrl-C") {
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func settings(t *testing.T, address string) config.Config {
	c := config.Default()
	c.Addr, c.AdminAddr, c.DataDir, c.DatabaseURL, c.Drain = "127.0.0.1:0", "127.0.0.1:0", pgtest.Folder(t), secret.NewString(address), 0
	return c
}

func TestAProcessLeavesNothingBehind(t *testing.T) {
	_, address := pgtest.NewURL(t)
	c := settings(t, address) // one data folder: its key has sealed what is in the database
	before := goleak.IgnoreCurrent()
	for round := range 3 {
		stop, cancel := context.WithCancel(t.Context())
		out := &screen{ready: make(chan struct{})}
		done := make(chan error, 1)
		go func() {
			done <- Run(stop, t.Context(), Options{Config: c, Demo: true, Version: "test", Stdout: out, Log: quiet()})
		}()
		select {
		case <-out.ready:
		case err := <-done:
			t.Fatalf("round %d: %v", round, err)
		}
		visit(t, out.String(), c.DataDir)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

// visit opens what the announcement names, with the token of the data folder.
func visit(t *testing.T, announcement, dataDir string) {
	t.Helper()
	token, err := tokenfile.Read(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(announcement, "agt_") {
		t.Errorf("no command to wake the demo's agent:\n%s", announcement)
	}
	for _, word := range strings.Fields(announcement) {
		if !strings.HasPrefix(word, "http://") || strings.HasSuffix(word, "/graphql") {
			continue
		}
		for _, url := range []string{word, strings.TrimSuffix(strings.TrimSuffix(word, "metrics"), "/") + "/healthz", strings.TrimSuffix(strings.TrimSuffix(word, "metrics"), "/") + "/readyz"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token.Reveal())
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %d", url, resp.StatusCode)
			}
		}
	}
}

func TestAStartThatIsInterruptedIsNoFailure(t *testing.T) {
	_, address := pgtest.NewURL(t)
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(stop, stop, Options{Config: settings(t, address), Stdout: io.Discard, Log: quiet()}); err != nil {
		t.Error(err)
	}
}

func TestAStartThatFailsGivesTheAddressBack(t *testing.T) {
	c := settings(t, "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Addr = probe.Addr().String()
	_ = probe.Close()
	if err := Run(t.Context(), t.Context(), Options{Config: c, Stdout: io.Discard, Log: quiet()}); err == nil || !strings.Contains(err.Error(), "ROUSE_DATABASE_URL") {
		t.Fatalf("%v", err)
	}
	again, err := net.Listen("tcp", c.Addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

func TestAddressesThatCannotBeTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct{ name, address, want string }{
		{"a taken port names what to do", taken.Addr().String(), "another program listens on " + taken.Addr().String()},
		{"an address of another machine", "192.0.2.1:0", "has no address"},
		{"a name that is none", "no-such-host.invalid:0", "--addr"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := take(t.Context(), tt.address, "--addr", "ROUSE_ADDR"); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "--addr") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTheAddressForProgramsOfThisMachine(t *testing.T) {
	for listen, want := range map[string]string{"127.0.0.1:0": "http://127.0.0.1:", "0.0.0.0:0": "http://127.0.0.1:", "[::1]:0": "http://[::1]:", "[::]:0": "http://127.0.0.1:"} {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("%s: %v", listen, err) // a machine without IPv6
			continue
		}
		f := &front{listener: l}
		if got := f.url(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is reached at %s", listen, got)
		}
		if loopback := isLoopback(l.Addr()); loopback == (strings.Contains(listen, "0.0.0.0") || listen == "[::]:0") {
			t.Errorf("%s: loopback %t", listen, loopback)
		}
		_ = l.Close()
	}
}

func TestHealthAndReadiness(t *testing.T) {
	var broken error
	mux := http.NewServeMux()
	addHealth(mux, func(context.Context) error { return broken })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := get("/readyz"); code != 200 || body != "ok\n" {
		t.Errorf("%d %q", code, body)
	}
	broken = errors.New("the database does not answer")
	if code, body := get("/readyz"); code != 503 || !strings.Contains(body, "database") {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("%d", code)
	}
}

// book is what the store knows of tokens.
type book struct {
	mu    sync.Mutex
	known map[string]*store.Token
	runs  map[string]*store.RunToken
	err   error
	used  int // how often the use of a token was noted
}

func (b *book) TokenUsed(context.Context, xid.ID) { b.change(func() { b.used++ }) }

func (b *book) TokenByDigest(_ context.Context, digest string) (*store.Token, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[digest], b.err
}

func (b *book) RunTokenByDigest(_ context.Context, digest string) (*store.RunToken, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[digest], b.err
}

func (b *book) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

var (
	apiToken = "rse_" + strings.Repeat("a1", 22)
	runToken = "rsr_" + strings.Repeat("b2", 22)
)

func newBook() *book {
	return &book{
		known: map[string]*store.Token{digestOf(apiToken): {ID: "tok_1", WorkspaceID: "wsp_1", Scopes: []domain.TokenScope{domain.TokenScopeRead}}},
		runs:  map[string]*store.RunToken{digestOf(runToken): {WorkspaceID: "wsp_1", AgentID: "agt_1", RunID: "run_1", Attempt: 2}},
	}
}

func TestWhoACallerIs(t *testing.T) {
	for _, tt := range []struct {
		name, token string
		open        bool // --auth none
		err         error
		kind        auth.Kind
		code        string // of an error that the caller sees
	}{
		{"without a token where none is asked: the owner", "", true, nil, auth.KindLocal, ""},
		{"without a token: nobody", "", false, nil, "", edge.CodeUnauthenticated},
		{"a token", apiToken, false, nil, auth.KindToken, ""},
		{"a token counts where none is asked, too", apiToken, true, nil, auth.KindToken, ""},
		{"an unknown token is refused where none is asked, too", apiToken + "x", true, nil, "", edge.CodeUnauthenticated},
		{"a run token is its agent", runToken, false, nil, auth.KindRun, ""},
		{"a run token that nobody knows", runToken + "x", false, nil, "", edge.CodeUnauthenticated},
		{"a token of absurd length is not looked up", strings.Repeat("x", longestToken+1), false, errors.New("looked up"), "", edge.CodeUnauthenticated},
		{"the database does not answer", apiToken, false, errors.New("away"), "", "server error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook()
			b.err = tt.err
			g := &gatekeeper{tokens: b, open: tt.open, sockets: &liveSockets{}}
			ctx, err := g.authenticate(t.Context(), edge.Credentials{Token: tt.token})
			if err != nil {
				code := "server error"
				if e, ok := errors.AsType[*edge.Error](err); ok {
					code = e.Code
				}
				if code != tt.code {
					t.Errorf("%s: %v", code, err)
				}
				return
			}
			if p, _ := auth.FromContext(ctx); p.Kind != tt.kind || tt.code != "" {
				t.Errorf("%+v", p)
			}
		})
	}
}

// A run token whose attempt has ended is known, so that its agent hears what happened where it reports; it opens no socket.
func TestARunTokenOutlivesItsAttemptAsOneThatHasEnded(t *testing.T) {
	b := newBook()
	b.runs[digestOf(runToken)].Ended = true
	g := &gatekeeper{tokens: b, sockets: &liveSockets{}}
	ctx, err := g.authenticate(t.Context(), edge.Credentials{Token: runToken})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := auth.FromContext(ctx); !p.Ended || p.AllowsAny(domain.TokenScopeRun) {
		t.Errorf("%+v", p)
	}
	if _, err := g.authenticate(t.Context(), edge.Credentials{Token: runToken, Socket: true}); err == nil {
		t.Error("it opens a socket")
	}
	if g.stillGood(t.Context(), runToken) {
		t.Error("its socket stays open")
	}
}

// SPEC S11: a server that ends hears agents and workers alone.
func TestWhoIsHeardDuringADrain(t *testing.T) {
	b := newBook()
	worker := "rse_" + strings.Repeat("c3", 22)
	b.known[digestOf(worker)] = &store.Token{ID: "tok_2", WorkspaceID: "wsp_1", Scopes: []domain.TokenScope{domain.TokenScopeExecute}}
	ending := false
	g := &gatekeeper{tokens: b, sockets: &liveSockets{}, ending: func() bool { return ending }}
	for name, c := range map[string]struct {
		token, code string
	}{"a person": {apiToken, edge.CodeUnavailable}, "a worker": {worker, ""}, "an agent": {runToken, ""}, "nobody": {"x", edge.CodeUnauthenticated}} {
		for _, ending = range []bool{false, true} {
			want := c.code
			if !ending && want == edge.CodeUnavailable {
				want = ""
			}
			_, err := g.authenticate(t.Context(), edge.Credentials{Token: c.token})
			code := ""
			if e, ok := errors.AsType[*edge.Error](err); ok {
				code = e.Code
			}
			if code != want {
				t.Errorf("%s, ending %v: %v", name, ending, err)
			}
		}
	}
}

func TestSocketsEndWithTheirTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		g := &gatekeeper{tokens: b, sockets: &liveSockets{}}
		base, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); g.sockets.run(base, g.stillGood) }()
		open := func(token string) context.Context {
			ctx, err := g.authenticate(base, edge.Credentials{Token: token, Socket: true})
			if err != nil {
				t.Fatal(err)
			}
			return ctx
		}
		api, run := open(apiToken), open(runToken)
		time.Sleep(time.Minute)
		b.change(func() { b.err = errors.New("away") })
		time.Sleep(time.Minute)
		if api.Err() != nil || run.Err() != nil {
			t.Error("a socket was closed while its token is good, or because the database is away")
		}
		b.change(func() {
			if b.used != 1 {
				t.Errorf("the use of a token was noted %d times, want once: open sockets are no use", b.used)
			}
		})
		b.change(func() { b.err = nil; delete(b.runs, digestOf(runToken)) })
		time.Sleep(recheckBeat + time.Millisecond)
		if run.Err() == nil || api.Err() != nil {
			t.Errorf("run %v, api %v", run.Err(), api.Err())
		}
		soon := time.Now().Add(time.Second)
		b.change(func() { // a row of its own: the one before may be being read
			expiring := *b.known[digestOf(apiToken)]
			expiring.ExpiresAt = &soon
			b.known[digestOf(apiToken)] = &expiring
		})
		expiring := open(apiToken)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if !errors.Is(context.Cause(expiring), errTokenEnded) {
			t.Errorf("an expired token's socket: %v", context.Cause(expiring))
		}
		stop()
		<-done
		synctest.Wait()
		if n := len(g.sockets.byToken()); n != 0 {
			t.Errorf("%d sockets are remembered", n)
		}
	})
}

func TestTheDemoIsMadeOnceAndWorks(t *testing.T) {
	db, _ := pgtest.NewURL(t)
	tokens := NewTokens(&Database{DB: db, log: quiet()})
	if err := fillDemo(t.Context(), tokens.store); err != nil {
		t.Fatal(err)
	}
	id, err := demoAgentID(t.Context(), tokens.store.Reader())
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	due, err := tokens.store.ArmTriggers(t.Context())
	if err != nil || due != 0 {
		t.Errorf("the demo's trigger was not armed as it was made: %d, %v", due, err)
	}
	s := &Server{front: &front{listener: fakeListener{}}, files: files{dir: "/srv/my data"}}
	if command := s.curl(id); !strings.Contains(command, fmt.Sprintf(`agentId: \"%s\"`, id)) || !strings.Contains(command, " '/srv/my data/token' |") {
		t.Error(command)
	}
}

// fakeListener has an address only.
type fakeListener struct{ net.Listener }

func (fakeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }
