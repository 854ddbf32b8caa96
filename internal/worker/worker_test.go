package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
)

func TestARunWhoseSessionWasGoneTellsWhatItsAgentWasToldInstead(t *testing.T) {
	for name, c := range map[string]struct {
		resumed, ended string
		fresh          bool
	}{
		"resumed":              {"s-1", "s-1", false},
		"gone":                 {"s-1", "s-2", true},
		"named anew":           {"s-1", "s-2", false},
		"fresh from the start": {"", "s-2", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			s.launch.ResumeSessionID = c.resumed
			if c.resumed != "" {
				s.launch.FullPrompt = "everything"
			}
			var got executor.Request
			p := newPool(s, agent(func(_ context.Context, req executor.Request, _ executor.Sink) (executor.Result, error) {
				got = req
				return executor.Result{Launched: true, SessionID: c.ended, Resumable: true, Fresh: c.fresh}, nil
			}), 1)
			claimed := s.claim()
			p.Process(t.Context(), claimed)
			<-p.Freed()
			drain(t, p)
			if got.ResumeSessionID != c.resumed || got.FullPrompt != s.launch.FullPrompt {
				t.Errorf("the executor was asked to resume %q with %q", got.ResumeSessionID, got.FullPrompt)
			}
			if r := s.rows[claimed.Attempt]; r.success.Fresh != c.fresh || !r.success.Resumable {
				t.Errorf("told %+v", r.success)
			}
		})
	}
}

func TestHowARunEnds(t *testing.T) {
	tests := []struct {
		name  string
		agent agent
		want  func(row) error
	}{
		{"success stores result, summary, session and usage", func(_ context.Context, _ executor.Request, sink executor.Sink) (executor.Result, error) {
			err := sink.Session("ses_1")
			return executor.Result{Launched: true, Object: map[string]any{"summary": "done"}, SessionID: "ses_1", SessionError: err,
				Usage: &executor.Usage{InputTokens: 3, OutputTokens: 4, CostUSD: "0.01"}}, nil
		}, func(r row) error {
			if r.ended != "FINISHED" || r.success.Summary != "done" || r.success.SessionID != "ses_1" || r.session != "ses_1" || r.success.Usage.OutputTokens != 4 {
				return fmt.Errorf("%+v", r)
			}
			return nil
		}},
		{"a non-zero exit fails the attempt with the executor's words", func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
			return executor.Result{Launched: true, SessionID: "ses_1"}, &executor.Failure{Code: domain.RunErrorCodeCrash, Message: "exited with code 3"}
		}, func(r row) error {
			if r.ended != "FAILED" || r.failure.Code != domain.RunErrorCodeCrash || r.failure.Message != "exited with code 3" || r.failure.Permanent {
				return fmt.Errorf("%+v", r)
			}
			return nil
		}},
		{"an error that the agent reports keeps its result", func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
			return executor.Result{Launched: true, Object: map[string]any{"error": "red", "actions": []any{}}}, &executor.Failure{Code: domain.RunErrorCodeOther, Message: "the agent reported an error: red"}
		}, func(r row) error {
			if r.ended != "FAILED" || r.failure.Result["error"] != "red" || r.failure.Result["actions"] == nil {
				return fmt.Errorf("%+v", r)
			}
			return nil
		}},
		{"a permanent failure stays permanent", func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
			return executor.Result{}, &executor.Failure{Code: domain.RunErrorCodeLaunch, Permanent: true, Message: "no program"}
		}, func(r row) error {
			if r.ended != "FAILED" || !r.failure.Permanent {
				return fmt.Errorf("%+v", r)
			}
			return nil
		}},
		{"a session whose recording failed is not stored at the end either", func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
			return executor.Result{Launched: true, SessionID: "ses_2", SessionError: errors.New("no")}, nil
		}, func(r row) error {
			if r.ended != "FINISHED" || r.success.SessionID != "" {
				return fmt.Errorf("%+v", r)
			}
			return nil
		}},
		{"a panic fails this attempt", func(context.Context, executor.Request, executor.Sink) (executor.Result, error) { panic("boom") }, func(r row) error {
			if r.ended != "FAILED" || strings.Contains(r.failure.Message, "boom") {
				return fmt.Errorf("%+v", r)
			}
			return nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeStore()
			p := newPool(s, tt.agent, 1)
			c := s.claim()
			p.Process(t.Context(), c)
			<-s.ends
			drain(t, p)
			if err := tt.want(s.row(c.Attempt)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAPanicLeavesTheOtherRunsAlone(t *testing.T) {
	s := newFakeStore()
	go1 := make(chan struct{})
	p := newPool(s, agent(func(_ context.Context, req executor.Request, _ executor.Sink) (executor.Result, error) {
		if req.Attempt == 2 {
			panic("boom")
		}
		<-go1
		return executor.Result{}, nil
	}), 2)
	good := s.claim()
	p.Process(t.Context(), good)
	bad := s.claim()
	s.set(func(s *fakeStore) { bad.Number = 2; s.rows[bad.Attempt] = &row{} })
	p.Process(t.Context(), bad)
	if a := <-s.ends; a != bad.Attempt {
		t.Errorf("%v ended first", a)
	}
	close(go1)
	<-s.ends
	drain(t, p)
	if s.row(good.Attempt).ended != "FINISHED" || s.row(bad.Attempt).ended != "FAILED" {
		t.Errorf("good %s, bad %s", s.row(good.Attempt).ended, s.row(bad.Attempt).ended)
	}
}

func TestTheAgentGetsItsEnvironmentAndItsSecretsAreMasked(t *testing.T) {
	s := newFakeStore()
	s.launch.TaskID, s.launch.ResumeSessionID = "tsk_1", "ses_0"
	s.launch.Executor = domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: []string{"x"}, Environment: []domain.SealedValue{{Name: "KEY", Sealed: "abc"}, {Name: "NODE_ENV", Plain: new("production")}}}}
	s.launch.Former = []domain.SealedSet{{Holder: "prj_1", Values: []domain.SealedValue{{Name: "KEY", Sealed: "former"}}}}
	var got executor.Request
	p := newPool(s, agent(func(_ context.Context, req executor.Request, _ executor.Sink) (executor.Result, error) {
		got = req
		return executor.Result{}, nil
	}), 1)
	c := s.claim()
	p.Process(t.Context(), c)
	<-s.ends
	drain(t, p)
	if said := got.Mask("it was plain of prj_1/KEY former, it is plain of agt_1/KEY abc"); said != "it was ***, it is ***" {
		t.Errorf("with the value of an earlier attempt: %q", said)
	}
	want := map[string]string{
		"KEY": "plain of agt_1/KEY abc", "NODE_ENV": "production", "ROUSE_API_URL": "http://127.0.0.1:1/graphql", "ROUSE_RUN_TOKEN": runToken.Reveal(),
		"ROUSE_RUN_ID": c.RunID.String(), "ROUSE_AGENT_ID": "agt_1", "ROUSE_WORKSPACE_ID": "wsp_1", "ROUSE_TASK_ID": "tsk_1",
		"ROUSE_WAKE_REASON": "USER", "ROUSE_WAKE_PAYLOAD_JSON": `{"user_id":"u"}`, "ROUSE_RESUME_SESSION_ID": "ses_0",
	}
	for _, v := range got.Environment {
		if want[v.Name] != v.Value {
			t.Errorf("%s is %q, want %q", v.Name, v.Value, want[v.Name])
		}
		delete(want, v.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if domain.MinMaskLength != secret.MinMaskLength {
		t.Errorf("values are advised to have %d bytes, and masked from %d on", domain.MinMaskLength, secret.MinMaskLength)
	}
	if text := got.Mask("token " + runToken.Reveal() + ", key plain of agt_1/KEY abc, deployed to production."); text != "token ***, key ***, deployed to production." {
		t.Errorf("masked: %q", text)
	}
	if got.Prompt != "work" || got.ResumeSessionID != "ses_0" {
		t.Errorf("request: %+v", got)
	}
}

func TestASecretThatCannotBeOpenedFailsForGood(t *testing.T) {
	s := newFakeStore()
	s.launch.Executor = domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: []string{"x"}, Environment: []domain.SealedValue{{Name: "KEY"}}}}
	p := newPool(s, agent(nil), 1)
	c := s.claim()
	p.Process(t.Context(), c)
	<-s.ends
	drain(t, p)
	if r := s.row(c.Attempt); !r.failure.Permanent || !strings.Contains(r.failure.Message, "KEY") {
		t.Errorf("%+v", r)
	}
}

func TestARunThatIsSettledOrFencedAtStartIsNotLaunched(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*fakeStore, store.Attempt)
		want   string
	}{
		{"settled by the store", func(s *fakeStore, _ store.Attempt) { s.settled = true }, "CANCELLED"},
		{"a cancel came before the start", func(s *fakeStore, a store.Attempt) { s.rows[a].cancel = true }, "CANCELLED"},
		{"another attempt owns the run", func(s *fakeStore, a store.Attempt) { s.rows[a].lost = true }, ""},
		{"the store cannot prepare it", func(s *fakeStore, _ store.Attempt) { s.fail["Start"] = errors.New("decode payload") }, "FAILED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeStore()
			p := newPool(s, agent(func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
				t.Error("it was launched")
				return executor.Result{}, nil
			}), 1)
			c := s.claim()
			s.set(func(s *fakeStore) { tt.change(s, c.Attempt) })
			p.Process(t.Context(), c)
			<-p.Freed()
			drain(t, p)
			if got := s.row(c.Attempt).ended; got != tt.want {
				t.Errorf("ended %q, want %q", got, tt.want)
			}
		})
	}
}

// S7.7: a run comes started from its claim; whether somebody cancelled it since is asked once before its launch.
func TestARunThatWasStartedByItsClaimIsLaunchedUnlessItIsCancelled(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(*fakeStore, store.Attempt)
		launches int
		want     string
	}{
		{"nothing has happened since", func(*fakeStore, store.Attempt) {}, 1, "FINISHED"},
		{"a cancel came after the claim", func(s *fakeStore, a store.Attempt) { s.rows[a].cancel = true }, 0, "CANCELLED"},
		{"nobody can say whether one came", func(s *fakeStore, _ store.Attempt) { s.fail["CancelRequested"] = errors.New("no answer") }, 1, "FINISHED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeStore()
			launches := 0
			p := newPool(s, agent(func(_ context.Context, r executor.Request, _ executor.Sink) (executor.Result, error) {
				launches++
				if r.Prompt != s.launch.Prompt {
					t.Errorf("the prompt is %q", r.Prompt)
				}
				return executor.Result{Launched: true}, nil
			}), 1)
			c := s.claimStarted()
			s.set(func(s *fakeStore) { tt.change(s, c.Attempt) })
			p.Process(t.Context(), c)
			<-p.Freed()
			drain(t, p)
			if got := s.row(c.Attempt).ended; got != tt.want || launches != tt.launches || s.called()["Start"] != 0 {
				t.Errorf("ended %q after %d launches and %d starts, want %q after %d launches", got, launches, s.called()["Start"], tt.want, tt.launches)
			}
		})
	}
}

func TestAnAttemptThatWasEndedTellsWhatItBroughtBack(t *testing.T) {
	for name, c := range map[string]struct {
		why   *executor.Stop
		ended string
	}{
		"cancelled":   {stopCancel(), "CANCELLED"},
		"handed back": {stopHandBack(), "INTERRUPTED"},
	} {
		t.Run(name, func(t *testing.T) {
			s, began := newFakeStore(), make(chan struct{})
			p := newPool(s, agent(func(ctx context.Context, _ executor.Request, _ executor.Sink) (executor.Result, error) {
				close(began)
				<-ctx.Done()
				return executor.Result{Launched: true, SessionID: "s-1", Resumable: true, Usage: &executor.Usage{InputTokens: 3}, Object: map[string]any{"error": "x"}},
					&executor.Failure{Message: "ended", Cause: context.Cause(ctx)}
			}), 1)
			claimed := s.claim()
			p.Process(t.Context(), claimed)
			<-began
			for _, a := range p.attempts() {
				a.stop(c.why)
			}
			<-s.ends
			drain(t, p)
			r := s.row(claimed.Attempt)
			u := r.unfinished
			if u.Usage == nil {
				t.Fatalf("%s without usage: %+v", r.ended, u)
			}
			type end struct {
				how, session string
				resumable    bool
				tokens       int64
				err          any
			}
			if got, want := (end{r.ended, u.SessionID, u.Resumable, u.Usage.InputTokens, u.Result["error"]}), (end{c.ended, "s-1", true, 3, "x"}); got != want {
				t.Errorf("ended as %+v, want %+v", got, want)
			}
		})
	}
}

func TestALateReportChangesNothing(t *testing.T) {
	s := newFakeStore()
	c := s.claim()
	p := newPool(s, agent(func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
		s.change(c.Attempt, func(r *row) { r.lost = true })
		return executor.Result{}, nil
	}), 1)
	p.Process(t.Context(), c)
	<-p.Freed()
	drain(t, p)
	if r := s.row(c.Attempt); r.ended != "" || s.called()["Finish"] != 1 {
		t.Errorf("%+v, %v", r, s.called())
	}
}

func TestAResultThatCannotBeStoredFailsTheAttempt(t *testing.T) {
	s := newFakeStore()
	s.fail["Finish"] = errors.New("invalid input syntax for type json")
	p := newPool(s, agent(func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
		return executor.Result{}, nil
	}), 1)
	c := s.claim()
	p.Process(t.Context(), c)
	<-s.ends
	drain(t, p)
	if s.row(c.Attempt).ended != "FAILED" {
		t.Errorf("%+v", s.row(c.Attempt))
	}
}

// What an attempt that is over at once brings along is stored with its end; or by itself, when the end cannot be stored with it.
func TestWhatIsOverAtOnceIsStoredWithItsEnd(t *testing.T) {
	for name, x := range map[string]struct {
		fail    func(ok store.Success) error
		session string // that the end says
		calls   map[string]int
	}{
		"all of it in one call": {session: "ses_1", calls: map[string]int{"Finish": 1}},
		"by itself when the end cannot be stored with it": {
			fail: func(ok store.Success) error {
				if len(ok.Lines) > 0 || ok.Named {
					return errors.New("invalid byte sequence")
				}
				return nil
			},
			session: "ses_1", calls: map[string]int{"Finish": 2, "AppendLog": 1, "RecordSession": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			s.launch.Executor.Echo.Delay, s.refuse = 0, x.fail
			p := newPool(s, agent(func(_ context.Context, _ executor.Request, sink executor.Sink) (executor.Result, error) {
				sink.Line(domain.LogStreamStdout, "one")
				sink.Line(domain.LogStreamStdout, "two")
				return executor.Result{Launched: true, SessionID: "ses_1", SessionUntold: true}, nil
			}), 1)
			c := s.claimStarted()
			p.Process(t.Context(), c)
			<-s.ends
			drain(t, p)
			r := s.row(c.Attempt)
			if r.ended != "FINISHED" || r.session != "ses_1" || r.success.SessionID != x.session || len(r.lines) != 2 || r.lines[1].Seq != 2 || !maps.Equal(s.called(), x.calls) {
				t.Errorf("%+v, %v", r, s.called())
			}
		})
	}
}

func TestACancelEndsALiveRunAtOnceThroughItsSignal(t *testing.T) {
	s := newFakeStore()
	began := make(chan struct{}, 1)
	p := newPool(s, untilStopped(began), 1)
	c := s.claim()
	p.Process(t.Context(), c)
	<-began
	s.change(c.Attempt, func(r *row) { r.cancel = true })
	<-s.ends
	drain(t, p)
	if r := s.row(c.Attempt); r.ended != "CANCELLED" || r.beats != 0 {
		t.Errorf("%+v", r)
	}
}

func TestARunThatItsServiceAcceptedIsLeftToIt(t *testing.T) {
	for name, gone := range map[string]bool{"which reports later": false, "which has reported already": true} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			s.launch.Executor = domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: "http://x/", Secret: "sealed:1", Headers: []domain.SealedValue{{Name: "Key", Sealed: "sealed:2"}}}}
			c := s.claim()
			p := newPool(s, agent(func(_ context.Context, req executor.Request, _ executor.Sink) (executor.Result, error) {
				if req.Secret != "plain of agt_1/signing secret sealed:1" || len(req.Headers) != 1 || req.Headers[0].Value != "plain of agt_1/Key sealed:2" {
					t.Errorf("secret %q, headers %v", req.Secret, req.Headers)
				}
				if gone {
					s.change(c.Attempt, func(r *row) { r.ended = "FINISHED" })
				}
				return executor.Result{Launched: true, Fresh: true, Accepted: &executor.Accepted{Left: time.Minute, Time: time.Hour, Grace: time.Second}}, nil
			}), 1)
			p.Process(t.Context(), c)
			<-p.Freed()
			drain(t, p) // which has nothing to wait for
			if calls := s.called(); calls["Finish"]+calls["Fail"]+calls["Cancelled"]+calls["HandBack"] != 0 || calls["Accept"] != 1 {
				t.Errorf("calls %v", calls)
			}
			want := store.Acceptance{Fresh: true, Left: time.Minute, Timeout: time.Hour, Grace: time.Second}
			if r := s.row(c.Attempt); !gone && (r.ended != "ACCEPTED" || r.accepted != want) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestACancelIsFoundByTheHeartbeatWhenItsSignalIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		began := make(chan struct{}, 1)
		p := newPool(s, untilStopped(began), 1)
		c := s.claim()
		p.Process(t.Context(), c)
		<-began
		s.set(func(s *fakeStore) { s.rows[c.Attempt].cancel = true })
		asked := time.Now()
		<-s.ends
		if took := time.Since(asked); took > 8*time.Second {
			t.Errorf("took %v", took)
		}
		drain(t, p)
	})
}

func TestALostLeaseEndsTheGroupAtOnceAndIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		began, grace := make(chan struct{}, 1), time.Duration(-1)
		p := newPool(s, agent(func(ctx context.Context, req executor.Request, sink executor.Sink) (executor.Result, error) {
			result, err := untilStopped(began)(ctx, req, sink)
			if stop, ok := errors.AsType[*executor.Stop](err); ok {
				grace = stop.Grace
			}
			return result, err
		}), 1)
		c := s.claim()
		p.Process(t.Context(), c)
		<-began
		s.set(func(s *fakeStore) { s.rows[c.Attempt].lost = true })
		<-p.Freed()
		drain(t, p)
		if grace != 0 || s.row(c.Attempt).ended != "" || s.called()["HandBack"]+s.called()["Fail"] != 0 {
			t.Errorf("grace %v, calls %v", grace, s.called())
		}
	})
}

// SPEC S11: an outage is told once, and so is its end, whether renewals are refused at once or not answered.
func TestAnOutageIsToldOnceHoweverLongItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		began := make(chan struct{}, 1)
		text := &strings.Builder{}
		p := New(Options{Store: s, Executor: untilStopped(began), Secrets: sealed{}, Watcher: s, Slots: 1, Lease: 30 * time.Second, APIURL: "http://127.0.0.1:1/graphql",
			Log: slog.New(slog.NewTextHandler(text, nil))})
		c := s.claim()
		p.Process(t.Context(), c)
		<-began
		s.set(func(s *fakeStore) { s.away = true })
		away := false
		for range 5 {
			away = p.beat(t.Context(), away)
		}
		s.set(func(s *fakeStore) { s.away = false })
		for range 2 {
			away = p.beat(t.Context(), away)
		}
		s.set(func(s *fakeStore) { s.rows[c.Attempt].cancel = true })
		<-s.ends
		drain(t, p)
		if strings.Count(text.String(), "could not be renewed") != 1 || strings.Count(text.String(), "are renewed again") != 1 || away {
			t.Errorf("log:\n%s", text)
		}
	})
}

func TestAnOwnerThatCannotRenewEndsItsGroupBeforeTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		began, stopped := make(chan struct{}, 1), make(chan time.Time, 1)
		p := newPool(s, agent(func(ctx context.Context, req executor.Request, sink executor.Sink) (executor.Result, error) {
			result, err := untilStopped(began)(ctx, req, sink)
			stopped <- time.Now()
			return result, err
		}), 1)
		c := s.claim()
		p.Process(t.Context(), c)
		<-began
		time.Sleep(60 * time.Second) // renewed 8 times
		if n := s.row(c.Attempt).beats; n < 7 {
			t.Fatalf("%d renewals in a minute", n)
		}
		s.set(func(s *fakeStore) { s.away = true })
		away := time.Now()
		at := <-stopped
		if d := at.Sub(away); d < 7*time.Second || d > 26*time.Second {
			t.Errorf("the group was ended %v after the database went away; the lease is 30s", d)
		}
		s.set(func(s *fakeStore) { s.away = false })
		<-s.ends
		drain(t, p)
		if got := s.row(c.Attempt).ended; got != "INTERRUPTED" {
			t.Errorf("it ended %q", got)
		}
	})
}

func TestALaunchThatCannotBeRecordedInTimeIsHandedBackAndNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		p := newPool(s, agent(func(ctx context.Context, req executor.Request, sink executor.Sink) (executor.Result, error) {
			s.set(func(s *fakeStore) { s.away = true })
			return untilStopped(nil)(ctx, req, sink)
		}), 1)
		c := s.claim()
		p.Process(t.Context(), c)
		time.Sleep(time.Minute)
		s.set(func(s *fakeStore) { s.away = false })
		<-s.ends
		drain(t, p)
		if got := s.row(c.Attempt).ended; got != "INTERRUPTED" {
			t.Errorf("it ended %q", got)
		}
	})
}

func TestAReportWaitsForTheDatabaseToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		p := newPool(s, agent(func(_ context.Context, _ executor.Request, sink executor.Sink) (executor.Result, error) {
			s.set(func(s *fakeStore) { s.away = true })
			sink.Line(domain.LogStreamStdout, "a last line")
			return executor.Result{Object: map[string]any{"summary": "done"}}, nil
		}), 1)
		c := s.claim()
		p.Process(t.Context(), c)
		time.Sleep(10 * time.Minute)
		s.set(func(s *fakeStore) { s.away = false })
		<-s.ends
		drain(t, p)
		if r := s.row(c.Attempt); r.ended != "FINISHED" || len(r.lines) != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Run("waits for live runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			p := newPool(s, agent(func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
				time.Sleep(time.Minute)
				return executor.Result{}, nil
			}), 1)
			c := s.claim()
			p.Process(t.Context(), c)
			drain(t, p)
			if s.row(c.Attempt).ended != "FINISHED" {
				t.Errorf("%+v", s.row(c.Attempt))
			}
		})
	})
	t.Run("hands live runs back when the time is up", func(t *testing.T) {
		s := newFakeStore()
		began := make(chan struct{}, 2)
		p := newPool(s, untilStopped(began), 2)
		one, two := s.claim(), s.claim()
		p.Process(t.Context(), one)
		p.Process(t.Context(), two)
		<-began
		<-began
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Drain(ctx); err != nil {
			t.Error(err)
		}
		if s.row(one.Attempt).ended != "INTERRUPTED" || s.row(two.Attempt).ended != "INTERRUPTED" {
			t.Errorf("%+v %+v", s.row(one.Attempt), s.row(two.Attempt))
		}
	})
	t.Run("gives up reports when the database stays away, and says so", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			began := make(chan struct{}, 1)
			p := newPool(s, untilStopped(began), 1)
			p.Process(t.Context(), s.claim())
			<-began
			s.set(func(s *fakeStore) { s.away = true })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			asked := time.Now()
			if err := p.Drain(ctx); err == nil {
				t.Error("want an error")
			}
			if took := time.Since(asked); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("a run claimed as the drain begins is handed back unstarted", func(t *testing.T) {
		s := newFakeStore()
		began := make(chan struct{}, 1)
		p := newPool(s, untilStopped(began), 2)
		p.Process(t.Context(), s.claim())
		<-began
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Drain(ctx) }()
		for p.Free() > 0 {
			time.Sleep(time.Millisecond)
		}
		late := s.claim()
		p.Process(t.Context(), late)
		if a := <-s.ends; a != late.Attempt {
			t.Errorf("%v ended first", a)
		}
		cancel()
		if err := <-done; err != nil || s.row(late.Attempt).ended != "INTERRUPTED" {
			t.Errorf("%v, %+v", err, s.row(late.Attempt))
		}
		if s.called()["Start"] != 1 {
			t.Errorf("it was started")
		}
	})
}

func TestAnAgentThatIsEndedTogetherWithItsServerIsHandedBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		exit   int
		closes bool
		want   string
	}{
		{"the signal of a service manager met both", 143, true, "INTERRUPTED"},
		{"somebody ended the agent alone", 143, false, "FAILED"},
		{"it crashed as the server ended", 1, true, "FAILED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				p := newPool(s, agent(func(context.Context, executor.Request, executor.Sink) (executor.Result, error) {
					return executor.Result{Launched: true, ExitCode: tt.exit}, &executor.Failure{Code: domain.RunErrorCodeCrash, Message: "it ended"}
				}), 1)
				c := s.claim()
				p.Process(t.Context(), c)
				synctest.Wait() // the agent is the first to hear of it
				if tt.closes {
					p.TakeNoMore()
				}
				<-s.ends
				drain(t, p)
				if got := s.row(c.Attempt).ended; got != tt.want {
					t.Errorf("it ended %q", got)
				}
			})
		})
	}
}

func TestAThousandRunsLeaveNothingBehind(t *testing.T) {
	s := newFakeStore()
	const slots, runs = 16, 1000
	p := newPool(s, agent(func(_ context.Context, _ executor.Request, sink executor.Sink) (executor.Result, error) {
		for i := range 3 {
			sink.Line(domain.LogStreamStdout, fmt.Sprint("line ", i))
		}
		return executor.Result{Launched: true}, nil
	}), slots)
	for started := 0; started < runs; {
		for free := p.Free(); free > 0 && started < runs; free-- {
			p.Process(t.Context(), s.claim())
			started++
		}
		if started < runs {
			<-p.Freed()
		}
	}
	drain(t, p)
	for a, r := range s.rows {
		if r.ended != "FINISHED" || len(r.lines) != 3 {
			t.Fatalf("%v: %+v", a, r)
		}
	}
}
