package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runToken is the token of every attempt.
var runToken = func() auth.Token {
	token, err := auth.ParseToken("rsr_" + strings.Repeat("a1", 22))
	if err != nil {
		panic(err)
	}
	return token
}()

// errAway is what a database that is away answers.
var errAway = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

// row is what the fake store knows of an attempt.
type row struct {
	ended      string // "", FINISHED, FAILED, CANCELLED, INTERRUPTED
	success    store.Success
	failure    store.Failure
	unfinished store.Unfinished
	accepted   store.Acceptance
	lines      []store.LogLine
	steps      []map[string]any
	session    string
	group      store.ProcessGroup
	cancel     bool
	lost       bool
	beats      int
}

// fakeStore is a database in memory with the fences of the real one.
type fakeStore struct {
	mu      sync.Mutex
	rows    map[store.Attempt]*row
	launch  store.Launch // what claim gives and Start answers, with the attempt filled in
	settled bool         // Start settles the attempt instead
	away    bool
	calls   map[string]int // calls of each method
	fail    map[string]error
	refuse  func(store.Success) error // what Finish answers to a success; nil: nothing
	watch   map[xid.ID]chan struct{}
	ends    chan store.Attempt
}

func newFakeStore() *fakeStore {
	return &fakeStore{rows: map[store.Attempt]*row{}, calls: map[string]int{}, fail: map[string]error{}, watch: map[xid.ID]chan struct{}{},
		ends: make(chan store.Attempt, 2000), launch: store.Launch{
			WorkspaceID: "wsp_1", AgentID: "agt_1", Prompt: "work", Executor: domain.ExecutorSpec{Echo: &domain.EchoSpec{Delay: time.Hour}}, // which is not waited for: tests bring their own agents

			ExecutorHolder: "agt_1", WakeReason: domain.WakeupSourceUser, WakePayload: []byte(`{"user_id":"u"}`), RunToken: runToken,
		}}
}

func (s *fakeStore) claim() store.Claimed {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := store.Claimed{Attempt: store.Attempt{RunID: xid.New("run"), Number: 1, Owner: "prc_1"}, WorkspaceID: "wsp_1", AgentID: "agt_1"}
	s.rows[c.Attempt] = &row{}
	return c
}

// claimStarted is claim as the store does it: with what the run is launched with.
func (s *fakeStore) claimStarted() store.Claimed {
	c := s.claim()
	l := s.launch
	l.Attempt, c.Launch = c.Attempt, &l
	return c
}

// enter counts the call and finds the row of a live attempt.
func (s *fakeStore) enter(method string, a store.Attempt) (*row, error) {
	s.calls[method]++
	if s.away {
		return nil, errAway
	}
	if err := s.fail[method]; err != nil {
		return nil, err
	}
	r := s.rows[a]
	if r == nil || r.lost || r.ended != "" {
		return nil, store.ErrFenced
	}
	return r, nil
}

func (s *fakeStore) Start(_ context.Context, a store.Attempt) (*store.Launch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.enter("Start", a)
	if err != nil {
		return nil, err
	}
	if s.settled || r.cancel {
		r.ended = "CANCELLED"
		s.ends <- a
		return nil, nil
	}
	l := s.launch
	l.Attempt = a
	return &l, nil
}

func (s *fakeStore) RecordProcess(_ context.Context, a store.Attempt, g store.ProcessGroup) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.enter("RecordProcess", a)
	if err == nil {
		r.group = g
	}
	return err
}

func (s *fakeStore) RecordSession(_ context.Context, a store.Attempt, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.enter("RecordSession", a)
	if err == nil {
		r.session = id
	}
	return err
}

func (s *fakeStore) RecordWorkingCopy(_ context.Context, a store.Attempt, _ domain.WorkingCopy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.enter("RecordWorkingCopy", a)
	return err
}

func (s *fakeStore) SessionNotStored(xid.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["SessionNotStored"]++
}

func (s *fakeStore) AppendLog(_ context.Context, a store.Attempt, lines []store.LogLine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.enter("AppendLog", a)
	if err == nil {
		r.lines = append(r.lines, lines...)
	}
	return err
}

func (s *fakeStore) Progress(_ context.Context, a store.Attempt, steps ...map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.enter("Progress", a)
	if err == nil {
		r.steps = append(r.steps, steps...)
	}
	return err
}

func (s *fakeStore) Heartbeat(_ context.Context, attempts []store.Attempt, _ time.Duration) ([]store.AttemptState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["Heartbeat"]++
	if s.away {
		return nil, errAway
	}
	var out []store.AttemptState
	for _, a := range attempts {
		r := s.rows[a]
		r.beats++
		out = append(out, store.AttemptState{Attempt: a, Lost: r.lost || r.ended != "", CancelRequested: r.cancel})
	}
	return out, nil
}

func (s *fakeStore) CancelRequested(_ context.Context, run xid.ID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, r := range s.rows {
		if a.RunID == run {
			return r.cancel, s.fail["CancelRequested"]
		}
	}
	return false, nil
}

func (s *fakeStore) end(method, status string, a store.Attempt, change func(*row)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.enter(method, a)
	if err != nil {
		return err
	}
	r.ended = status
	change(r)
	s.ends <- a
	return nil
}

func (s *fakeStore) Finish(_ context.Context, a store.Attempt, ok store.Success) error {
	if s.refuse != nil {
		if err := s.refuse(ok); err != nil {
			s.set(func(s *fakeStore) { s.calls["Finish"]++ })
			return err
		}
	}
	return s.end("Finish", "FINISHED", a, func(r *row) {
		r.lines, r.success = append(r.lines, ok.Lines...), ok
		if ok.Named {
			r.session = ok.SessionID
		}
	})
}

func (s *fakeStore) Fail(_ context.Context, a store.Attempt, f store.Failure) error {
	return s.end("Fail", "FAILED", a, func(r *row) { r.failure = f })
}

func (s *fakeStore) Cancelled(_ context.Context, a store.Attempt, u store.Unfinished) error {
	return s.end("Cancelled", "CANCELLED", a, func(r *row) { r.unfinished = u })
}

func (s *fakeStore) HandBack(_ context.Context, a store.Attempt, u store.Unfinished) error {
	return s.end("HandBack", "INTERRUPTED", a, func(r *row) { r.unfinished = u })
}

func (s *fakeStore) Accept(_ context.Context, a store.Attempt, in store.Acceptance) error {
	return s.end("Accept", "ACCEPTED", a, func(r *row) { r.accepted = in })
}

// WatchCancel signals cancels asked through change.
func (s *fakeStore) WatchCancel(ctx context.Context, run xid.ID) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{}, 1)
	s.watch[run] = c
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watch, run)
		close(c)
	})
	return c
}

// change alters a row and signals its watcher.
func (s *fakeStore) change(a store.Attempt, f func(*row)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.rows[a])
	if c := s.watch[a.RunID]; c != nil {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (s *fakeStore) set(f func(*fakeStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *fakeStore) row(a store.Attempt) row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.rows[a]
}

func (s *fakeStore) called() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// agent is an executor made of one function.
type agent func(ctx context.Context, req executor.Request, sink executor.Sink) (executor.Result, error)

func (f agent) Run(ctx context.Context, req executor.Request, sink executor.Sink) (executor.Result, error) {
	return f(ctx, req, sink)
}

// untilStopped is an agent that works until it is ended from outside, and tells when it began.
func untilStopped(began chan<- struct{}) agent {
	return func(ctx context.Context, _ executor.Request, sink executor.Sink) (executor.Result, error) {
		if err := sink.Process(executor.ProcessGroup{PGID: 7}); err != nil {
			return executor.Result{}, &executor.Failure{Code: domain.RunErrorCodeLaunch, Message: "not recorded", Cause: err}
		}
		began <- struct{}{}
		<-ctx.Done()
		return executor.Result{Launched: true}, &executor.Failure{Code: domain.RunErrorCodeOther, Message: "ended", Cause: context.Cause(ctx)}
	}
}

// sealed opens values that begin with "sealed:".
type sealed struct{}

func (sealed) Open(text, boundTo string) (string, error) {
	if text == "" {
		return "", errors.New("not a sealed secret")
	}
	return "plain of " + boundTo + " " + text, nil
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newPool(s *fakeStore, e Executor, slots int) *Pool {
	return New(Options{Store: s, Executor: e, Secrets: sealed{}, Watcher: s, Slots: slots, Lease: 30 * time.Second, APIURL: "http://127.0.0.1:1/graphql", Log: quiet()})
}

// drain ends a pool whose runs have ended.
func drain(t *testing.T, p *Pool) {
	t.Helper()
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if p.Free() != 0 {
		t.Error("a drained pool has free slots")
	}
}
