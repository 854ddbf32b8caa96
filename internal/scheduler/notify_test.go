package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// fakeSender delivers all but one notice, and notes how many it sends at once.
type fakeSender struct {
	mu         sync.Mutex
	refuse     xid.ID
	busy, most int
	gate       chan struct{} // nil: it does not wait
}

func (f *fakeSender) Send(_ context.Context, _ xid.ID, _ domain.NotificationTarget, n domain.Notice) store.Sent {
	f.mu.Lock()
	f.busy++
	f.most = max(f.most, f.busy)
	f.mu.Unlock()
	if f.gate != nil {
		<-f.gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	if n.ID == f.refuse {
		return store.Sent{Status: 500, Detail: "the receiver answered 500"}
	}
	return store.Sent{Delivered: retry.Delivered{OK: true}, Status: 200}
}

func dueNotices(ids ...string) (list []store.DueNotice) {
	for _, id := range ids {
		list = append(list, store.DueNotice{Notice: domain.Notice{ID: xid.ID(id)}, ChannelID: "nch_1", Attempt: 1})
	}
	return list
}

func TestNoticesAreSentUntilNoneIsDue(t *testing.T) {
	t.Parallel()
	f, text := &fakeStore{notices: dueNotices("ntf_1", "ntf_2", "ntf_3")}, &strings.Builder{}
	n := &notifier{store: f, sender: &fakeSender{refuse: "ntf_2"}, log: slog.New(slog.NewTextHandler(text, nil))}
	if again, err := n.runOnce(t.Context(), nil); again != 0 || err != nil {
		t.Errorf("again %v, %v", again, err)
	}
	got := f.take()
	slices.Sort(got)
	if !slices.Equal(got, []string{"sent ntf_1 true", "sent ntf_2 false", "sent ntf_3 true"}) {
		t.Errorf("got %v", got)
	}
	if strings.Count(text.String(), "was not delivered") != 1 || !strings.Contains(text.String(), "notification_id=ntf_2") {
		t.Errorf("the log has %s", text)
	}
}

func TestAPassThatCannotRecordGoesOn(t *testing.T) {
	t.Parallel()
	f := &fakeStore{notices: dueNotices("ntf_1", "ntf_2", "ntf_3"), sweepError: errors.New("full")}
	n := &notifier{store: f, sender: &fakeSender{}, log: slog.New(slog.DiscardHandler)}
	if _, err := n.runOnce(t.Context(), nil); err == nil || strings.Count(err.Error(), "full") != 3 {
		t.Errorf("got %v", err)
	}
	f.away = true
	if _, err := n.runOnce(t.Context(), nil); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
}

func TestAStopLeavesTheRestToTheNextPass(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	close(stopped)
	f := &fakeStore{notices: dueNotices("ntf_1")}
	n := &notifier{store: f, sender: &fakeSender{}, log: slog.New(slog.DiscardHandler)}
	if again, err := n.runOnce(t.Context(), stopped); again == 0 || err != nil || len(f.take()) > 0 {
		t.Errorf("again %v, %v", again, err)
	}
}

func TestFewNoticesAreSentAtOnce(t *testing.T) {
	t.Parallel()
	sender := &fakeSender{gate: make(chan struct{})}
	n := &notifier{store: &fakeStore{}, sender: sender, log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- n.sendAll(t.Context(), dueNotices("1", "2", "3", "4", "5", "6", "7", "8", "9", "10")) }()
	for range 10 {
		sender.gate <- struct{}{}
	}
	if err := <-done; err != nil || sender.most > noticeSenders {
		t.Errorf("%d at once, %v", sender.most, err)
	}
}

// fakeJudge finds every loop dead but that of a workspace that cannot be judged.
type fakeJudge struct{ bad xid.ID }

func (f fakeJudge) Liveness(_ context.Context, workspaceID xid.ID) (*reads.Liveness, error) {
	if workspaceID == f.bad {
		return nil, errAway
	}
	return &reads.Liveness{Verdict: domain.LoopVerdictDead, EvaluatedAt: time.Unix(1, 0)}, nil
}

func TestVerdictsOfWatchedWorkspacesAreTold(t *testing.T) {
	t.Parallel()
	f, woken := &fakeStore{watchers: []xid.ID{"wsp_1", "wsp_bad", "wsp_2"}}, 0
	v := &verdictTeller{store: f, judge: fakeJudge{"wsp_bad"}, wake: func() { woken++ }}
	if _, err := v.runOnce(t.Context(), nil); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "wsp_bad") {
		t.Errorf("got %v", err)
	}
	if got := f.take(); !slices.Equal(got, []string{"verdict wsp_1 DEAD", "verdict wsp_2 DEAD"}) || woken != 2 {
		t.Errorf("got %v, woken %d times", got, woken)
	}
}
