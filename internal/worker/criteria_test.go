package worker

import (
	"context"
	"errors"
	"testing"

	"rouse.dev/rouse/internal/executor"
)

func TestTheSessionOfALaunch(t *testing.T) {
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.7 it is recorded before the launch returns", func(t *testing.T) {
		s := newFakeStore()
		c := s.claim()
		during := ""
		p := newPool(s, agent(func(_ context.Context, _ executor.Request, sink executor.Sink) (executor.Result, error) {
			err := sink.Session("ses_1")
			during = s.row(c.Attempt).session
			return executor.Result{Launched: true, SessionID: "ses_1", SessionError: err}, nil
		}), 1)
		p.Process(t.Context(), c)
		<-s.ends
		drain(t, p)
		if during != "ses_1" {
			t.Errorf("while the agent was at work its session was recorded as %q", during)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.11 a write that fails is tried once, counted, and fails no launch", func(t *testing.T) {
		s := newFakeStore()
		s.fail["RecordSession"] = errors.New("disk full")
		c := s.claim()
		p := newPool(s, agent(func(_ context.Context, _ executor.Request, sink executor.Sink) (executor.Result, error) {
			err := sink.Session("ses_1")
			return executor.Result{Launched: true, SessionID: "ses_1", SessionError: err}, nil
		}), 1)
		p.Process(t.Context(), c)
		<-s.ends
		drain(t, p)
		r, calls := s.row(c.Attempt), s.called()
		if r.ended != "FINISHED" || r.success.SessionID != "" || r.session != "" || calls["RecordSession"] != 1 || calls["SessionNotStored"] != 1 {
			t.Errorf("the attempt is %+v, the calls are %v", r, calls)
		}
	})
}
