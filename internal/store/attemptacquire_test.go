package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
)

// pulled makes an agent whose runs workers of a queue execute.
func pulled(queue string) func(*CreateAgent) {
	return func(in *CreateAgent) {
		in.Executor = &domain.ExecutorSpec{Pull: &domain.PullSpec{Queue: queue, Lease: time.Minute}}
	}
}

func (w *world) acquire(queue string, agents ...xid.ID) *Lease {
	w.Helper()
	lease, err := w.Acquire(w.Context(), Acquire{WorkspaceID: w.workspace, Queue: queue, Agents: agents})
	return must(w, lease, err)
}

// acquireOne is acquire where there must be a run.
func (w *world) acquireOne(queue string) *Lease {
	w.Helper()
	lease := w.acquire(queue)
	if lease == nil {
		w.Fatal("the queue offers nothing")
	}
	return lease
}

// offered has the claim offer the only due run, and returns it.
func (w *world) offered(request xid.ID) xid.ID {
	w.Helper()
	if claimed := w.claim(10); len(claimed) != 0 {
		w.Fatalf("a run of a queue was given to this process: %+v", claimed)
	}
	return w.runOf(request)
}

// expire lets the lease of a live attempt run out.
func (w *world) expire(run xid.ID) {
	w.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second' WHERE run_id = $1`, run)
}

func TestARunOfAQueueIsOfferedAndTakenByAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("gpu", pulled("gpu"))
	request := w.wake(agentID)
	run := w.offered(request)
	if got := one[domain.RunAttemptStatus](w, `SELECT status FROM run_attempts WHERE run_id = $1`, run); got != domain.RunAttemptStatusOffered {
		t.Errorf("the attempt is %s", got)
	}
	if left := one[float64](w, `SELECT extract(epoch FROM lease_until - clock_timestamp()) FROM attempt_leases WHERE run_id = $1 AND owner IS NULL`, run); left < 590 || left > 600 {
		t.Errorf("the offer stands for %v s", left)
	}
	if !w.events.has(event.Offer, w.workspace) {
		t.Error("workers were not told")
	}
	w.wantRequest(request, domain.WakeupStatusClaimed)
	w.sound()
	if w.acquire("other") != nil || w.acquire("gpu", "agt_other") != nil {
		t.Error("a worker of another queue, or for other agents, was given the run")
	}
	lease := w.acquireOne("gpu")
	if lease.RunID != run || lease.Number != 1 || lease.Prompt == "" || !strings.HasPrefix(lease.Token.Reveal(), "rsl_") || lease.RunToken.IsZero() {
		t.Errorf("lease %+v", lease)
	}
	if w.run(run).startedAt == nil {
		t.Error("it is not started")
	}
	if w.acquire("gpu") != nil {
		t.Error("a run was given away twice")
	}
	w.sound()
	attempt := must2(w)(w.LeasedAttempt(t.Context(), run, 1, lease.Token.Digest().String()))
	w.ok(w.RecordSession(t.Context(), attempt, "s-1"))
	w.ok(w.Finish(t.Context(), attempt, Success{Summary: "done", SessionID: "s-1"}))
	w.wantRun(run, domain.RunStatusFinished, "")
	w.wantRequest(request, domain.WakeupStatusFinished)
	w.sound()
	if _, err := w.LeasedAttempt(t.Context(), run, 1, lease.Token.Digest().String()); !errors.Is(err, ErrFenced) {
		t.Errorf("a report after the end: %v", err)
	}
}

func must2(w *world) func(Attempt, error) Attempt {
	return func(a Attempt, err error) Attempt { w.Helper(); return must(w, a, err) }
}

func TestAWorkersCallOffersWhatIsDueByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	local, remote := w.agent("local"), w.agent("remote", pulled("default"))
	w.wake(local)
	request := w.wake(remote) // this process takes no runs: nobody claims
	lease := w.acquireOne("default")
	if lease.RunID != w.runOf(request) {
		t.Errorf("got %s", lease.RunID)
	}
	if w.acquire("default") != nil {
		t.Error("a run that rouse executes itself was given to a worker")
	}
	w.sound()
	if got := w.claimOne(); got.AgentID != local {
		t.Errorf("claimed a run of %s", got.AgentID)
	}
}

func TestTheQueueIsThatOfTaskAgentProjectWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bare := w.agent("bare", func(in *CreateAgent) { in.Executor = nil })
	_, _, err := w.UpdateSettings(t.Context(), UpdateSettings{WorkspaceID: w.workspace,
		DefaultExecutor: domain.Change[domain.ExecutorSpec]{Set: true, Value: &domain.ExecutorSpec{Pull: &domain.PullSpec{Queue: "house", Lease: time.Minute}}}})
	w.ok(err)
	w.wake(bare)
	w.wake(w.agent("own", pulled("own")))
	w.claim(10)
	for _, queue := range []string{"house", "own"} {
		if lease := w.acquireOne(queue); lease.Executor.Pull.Queue != queue {
			t.Errorf("%s: got %+v", queue, lease.Executor.Pull)
		}
	}
	w.sound()
}

func TestAnOfferThatNobodyTakesWaitsForAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("gpu", pulled("gpu"))
	request := w.wake(agentID)
	run := w.offered(request)
	offer := Attempt{RunID: run, Number: 1}
	if done, err := w.Withdraw(t.Context(), offer); done || err != nil {
		t.Errorf("an offer that still stands was taken back (%v)", err)
	}
	w.expire(run)
	leases, err := w.Leases(t.Context(), w.owner.ID, w.owner.Host)
	if len(leases) != 1 || leases[0].Owner != "" {
		t.Errorf("the sweep sees %+v, %v", leases, err)
	}
	var text bytes.Buffer
	w.log = slog.New(slog.NewJSONHandler(&text, nil))
	if done, err := w.Withdraw(t.Context(), offer); !done || err != nil {
		t.Fatalf("not taken back: %v", err)
	}
	if line := logged(t, &text)["no worker took a run; it waits until one asks for its queue"]; line["queue"] != "gpu" || line["run_id"] != string(run) {
		t.Errorf("the log says %v", line)
	}
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonNoWorker)
	w.wantRequest(request, domain.WakeupStatusQueued)
	if row := w.run(run); row.abandonments != 0 || row.retryCount != 0 {
		t.Errorf("it counts as %d abandonments, %d failures", row.abandonments, row.retryCount)
	}
	waits, err := w.Waiting(t.Context(), []xid.ID{run}, nil)
	if w.ok(err); waits[run].Hold != domain.QueueHoldNoWorker {
		t.Errorf("it waits for %s", waits[run].Hold)
	}
	w.sound()
	if len(w.claim(10)) != 0 || w.run(run).status != domain.RunStatusQueued {
		t.Error("it is due though no worker asked")
	}
	if w.acquire("other") != nil {
		t.Error("another queue got it")
	}
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonNoWorker)
	lease := w.acquireOne("gpu")
	if lease.RunID != run || lease.Number != 2 {
		t.Errorf("got %s attempt %d", lease.RunID, lease.Number)
	}
	w.sound()
}

func TestANewExecutorFreesWhatWaitsForAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("gpu", pulled("gpu"))
	run := w.offered(w.wake(agentID))
	w.expire(run)
	must(w, true, func() error { _, err := w.Withdraw(t.Context(), Attempt{RunID: run, Number: 1}); return err }())
	w.ok(errOf(w.UpdateAgent(t.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agentID,
		Executor: domain.Change[domain.ExecutorSpec]{Set: true, Value: &domain.ExecutorSpec{Echo: &domain.EchoSpec{}}}})))
	if got := w.claimOne(); got.RunID != run || got.Number != 2 {
		t.Errorf("claimed %+v", got)
	}
	w.sound()
}

func TestAnExecutorChangedSinceTheOfferIsOfferedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("gpu", pulled("gpu"))
	run := w.offered(w.wake(agentID))
	w.sql(`UPDATE agents SET executor = '{"echo": {}}' WHERE id = $1`, agentID)
	if lease := w.acquire("gpu"); lease != nil {
		t.Errorf("a worker got %+v", lease)
	}
	w.sound()
	if got := w.claimOne(); got.RunID != run {
		t.Errorf("claimed %+v", got)
	}
}

func TestACancelOfAnOfferedRunEndsItAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := w.wake(w.agent("gpu", pulled("gpu")))
	run := w.offered(request)
	w.ok(w.CancelRun(t.Context(), w.workspace, run, "not now"))
	w.wantRun(run, domain.RunStatusCancelled, "")
	w.wantRequest(request, domain.WakeupStatusCancelled)
	if w.acquire("gpu") != nil {
		t.Error("a worker got it all the same")
	}
	w.sound()
}

func TestOffersOfAnAgentThatIsPausedOrDeletedAreNotStarted(t *testing.T) {
	t.Parallel()
	t.Run("paused", func(t *testing.T) {
		w := newWorld(t)
		agentID := w.agent("gpu", pulled("gpu"))
		run := w.offered(w.wake(agentID))
		w.ok(w.PauseAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: agentID}))
		if w.acquire("gpu") != nil {
			t.Error("a worker got a run of a paused agent (C219)")
		}
		w.wantRun(run, domain.RunStatusFinished, "")
		w.sound()
	})
	t.Run("deleted", func(t *testing.T) {
		w := newWorld(t)
		agentID := w.agent("gpu", pulled("gpu"))
		run := w.offered(w.wake(agentID))
		w.ok(w.DeleteAgent(t.Context(), w.workspace, agentID))
		w.wantRun(run, domain.RunStatusCancelled, "")
		w.sound()
	})
}

func TestEachOfferGoesToOneWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const runs, workers = 12, 6
	for i := range runs {
		w.wake(w.agent(fmt.Sprint("a", i), pulled("default")))
	}
	got := make(chan xid.ID, 2*runs)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				lease, err := w.Acquire(w.background(), Acquire{WorkspaceID: w.workspace, Queue: "default"})
				if err != nil {
					t.Error(err)
				}
				if lease == nil {
					return
				}
				got <- lease.RunID
			}
		})
	}
	all.Wait()
	close(got)
	seen := map[xid.ID]int{}
	for run := range got {
		if seen[run]++; seen[run] > 1 {
			t.Errorf("%s was given away twice", run)
		}
	}
	if len(seen) != runs {
		t.Errorf("%d runs of %d were given away", len(seen), runs)
	}
	w.sound()
}

func TestAWorkersReportsAreFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	first := w.acquireOne("gpu")
	attempt := must2(w)(w.LeasedAttempt(t.Context(), run, 1, first.Token.Digest().String()))
	state, err := w.Renew(t.Context(), attempt)
	if w.ok(err); time.Until(state.LeaseUntil) < 50*time.Second || state.CancelRequested {
		t.Errorf("renewed until %s", state.LeaseUntil)
	}
	w.ok(w.CancelRun(t.Context(), w.workspace, run, ""))
	if state, err = w.Renew(t.Context(), attempt); err != nil || !state.CancelRequested {
		t.Errorf("the worker is not told of the cancel: %v", err)
	}
	w.sql(`UPDATE runs SET cancel_requested_at = NULL`)
	w.expire(run)
	if done, err := w.Abandon(t.Context(), attempt, false); !done || err != nil {
		t.Fatalf("the lost worker's run was not rescued: %v", err)
	}
	w.waited(run)
	second := w.acquireOne("gpu")
	if second.Number != 2 || second.Token == first.Token {
		t.Errorf("second lease %+v", second)
	}
	for name, report := range map[string]func() error{
		"renew": func() error { _, err := w.Renew(t.Context(), attempt); return err },
		"lines": func() error {
			_, err := w.AppendReported(t.Context(), attempt, 1, []LogLine{{Text: "late", Stream: domain.LogStreamStdout}})
			return err
		},
		"progress": func() error { return w.Progress(t.Context(), attempt, nil) },
		"session":  func() error { return w.RecordSession(t.Context(), attempt, "late") },
		"success":  func() error { return w.Finish(t.Context(), attempt, Success{Summary: "late"}) },
		"failure":  func() error { return w.Fail(t.Context(), attempt, Failure{Message: "late"}) },
		"by number": func() error {
			_, err := w.LeasedAttempt(t.Context(), run, 2, first.Token.Digest().String())
			return err
		},
		"by run token": func() error {
			_, err := w.LeasedAttempt(t.Context(), run, 2, second.RunToken.Digest().String())
			return err
		},
	} {
		if err := report(); !errors.Is(err, ErrFenced) {
			t.Errorf("%s of a lost attempt: %v", name, err)
		}
	}
	w.sound()
}

func TestReportedLinesAreStoredOnceAndBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	lease := w.acquireOne("gpu")
	line := func(text string) LogLine { return LogLine{Text: text, Stream: domain.LogStreamStdout, At: time.Now()} }
	send := func(first int64, lines ...LogLine) int64 {
		t.Helper()
		newest, err := w.AppendReported(t.Context(), lease.Attempt, first, lines)
		return must(w, newest, err)
	}
	if got := send(1, line("one"), line("two")); got != 2 {
		t.Errorf("newest is %d", got)
	}
	if got := send(2, line("another two"), line("three")); got != 3 {
		t.Errorf("newest is %d", got)
	}
	if text := one[string](w, `SELECT string_agg(text, ',' ORDER BY seq) FROM run_log_lines WHERE run_id = $1`, run); text != "one,two,three" {
		t.Errorf("stored %q", text)
	}
	w.sql(`UPDATE attempt_leases SET log_bytes = $1`, domain.MaxRunBytes/2-2)
	if got := send(4, line("no room"), line("nor here")); got != 4 {
		t.Errorf("newest is %d", got)
	}
	if got := send(6, line("x")); got != 4 {
		t.Errorf("newest is %d after the cut", got)
	}
	if text := one[string](w, `SELECT text FROM run_log_lines WHERE run_id = $1 AND seq = 4`, run); text != domain.AttemptLog(0, 0).CutMark() {
		t.Errorf("the mark is %q", text)
	}
}

// SPEC S7.6: lines that are sent again, near the bound too, count once: they neither end the output nor hide its mark.
func TestLinesThatAreSentAgainNearTheBoundCountOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	lease := w.acquireOne("gpu")
	lines := func(n int) (all []LogLine) {
		for range n {
			all = append(all, LogLine{Text: strings.Repeat("x", 8000), Stream: domain.LogStreamStdout, At: time.Now()})
		}
		return all
	}
	send := func(first int64, n int, want int64) {
		t.Helper()
		if newest, err := w.AppendReported(t.Context(), lease.Attempt, first, lines(n)); err != nil || newest != want {
			t.Errorf("%d lines from %d: newest is %d, want %d, %v", n, first, newest, want, err)
		}
	}
	room := (domain.MaxRunBytes / 2) / 8000 // lines
	for first := 1; first <= 1000; first += 100 {
		send(int64(first), 100, int64(first)+99)
	}
	send(901, 100, 1000) // there is room for 48 more: what is stored is not counted against it
	if got := one[int64](w, `SELECT log_bytes FROM attempt_leases`); got != 8_000_000 {
		t.Errorf("%d bytes are counted", got)
	}
	send(991, 20, 1010)
	send(961, 100, int64(room)+1) // the mark is in the place of the first line that has no room
	if text := one[string](w, `SELECT text FROM run_log_lines WHERE run_id = $1 AND seq = $2`, run, room+1); text != domain.AttemptLog(0, 0).CutMark() {
		t.Errorf("the mark is %.40q", text)
	}
	send(1, 100, int64(room)+1)
	if n := one[int](w, `SELECT count(*) FROM run_log_lines WHERE run_id = $1`, run); n != room+1 {
		t.Errorf("%d lines are stored, want %d and the mark", n, room)
	}
}

// TestALaterAttemptKeepsHalfOfWhatItsRunHasLeft is SPEC S7.6: output is bounded per run, whatever the number of attempts.
func TestALaterAttemptKeepsHalfOfWhatItsRunHasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	lease := w.acquireOne("gpu")
	if lease.Log != domain.AttemptLog(0, 0) {
		t.Errorf("the first attempt may keep %+v", lease.Log)
	}
	w.sql(`INSERT INTO run_log_pieces (workspace_id, run_id, attempt, first_seq, last_seq, bytes, streams, texts, micros) SELECT $1, $2, 1, min(i), max(i), 4 * count(*), array_agg('STDOUT'::log_stream), array_agg('xxxx'::text), array_agg(0) FROM generate_series(1, 20000) i GROUP BY (i - 1) / 250`, w.workspace, run)
	w.ok(w.HandBack(t.Context(), lease.Attempt, Unfinished{}))
	lease = w.acquireOne("gpu")
	want := domain.AttemptLog(20_000, 80_000)
	if lease.Number != 2 || lease.Log != want || want.Lines != 10_000 {
		t.Errorf("attempt %d may keep %+v, want %+v", lease.Number, lease.Log, want)
	}
	newest, err := w.AppendReported(t.Context(), lease.Attempt, 10_000, []LogLine{{Text: "last", Stream: domain.LogStreamStdout, At: time.Now()}, {Text: "more", Stream: domain.LogStreamStdout, At: time.Now()}})
	if w.ok(err); newest != 10_001 {
		t.Errorf("newest is %d", newest)
	}
	if text := one[string](w, `SELECT text FROM run_log_lines WHERE run_id = $1 AND attempt = 2 AND seq = 10001`, run); text != want.CutMark() {
		t.Errorf("the mark is %q", text)
	}
}

// withKey is an executor of the queue gpu whose commands are given a sealed value.
func withKey(sealed string) domain.ExecutorSpec {
	return domain.ExecutorSpec{Pull: &domain.PullSpec{Queue: "gpu", Lease: time.Minute, Command: &domain.CommandSpec{Argv: []string{"x"},
		Environment: []domain.SealedValue{{Name: "KEY", Sealed: sealed}}}}}
}

// secretsOf are the sealed values that are hidden in what a run says.
func (w *world) secretsOf(run, holder xid.ID) string {
	w.Helper()
	sets, err := w.SecretsOf(w.Context(), run)
	w.ok(err)
	var values []string
	for _, set := range sets {
		for _, v := range set.Values {
			values = append(values, v.Sealed)
		}
		if set.Holder != holder {
			w.Errorf("bound to %s", set.Holder)
		}
	}
	slices.Sort(values)
	return strings.Join(slices.Compact(values), " ")
}

func TestWhatAnAttemptWasLaunchedWithIsKnownWhenItsExecutorIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("gpu", func(in *CreateAgent) { in.Executor = new(withKey("v1")) })
	run := w.offered(w.wake(agentID))
	change := func(sealed string) {
		w.ok(errOf(w.UpdateAgent(t.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agentID, Executor: domain.To(withKey(sealed))})))
	}
	take := func() *Lease {
		lease, err := w.Acquire(t.Context(), Acquire{WorkspaceID: w.workspace, Queue: "gpu", Key: "call"})
		return must(w, lease, err)
	}
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"before a launch", func() {}, "v1"},
		{"launched", func() { take() }, "v1"},
		{"replaced while it runs", func() { change("v2") }, "v1 v2"},
		{"replaced twice", func() { change("v3") }, "v1 v3"},
		{"lent again to the call whose answer was lost", func() { take() }, "v1 v3"},
		{"replaced after that", func() { change("v4") }, "v1 v3 v4"},
		{"ended, to be tried again", func() {
			w.ok(w.Fail(t.Context(), w.leaseOf(run), Failure{Code: domain.RunErrorCodeCrash, Message: "no"}))
		}, "v1 v3 v4"},
		{"replaced between the attempts", func() { change("v5") }, "v1 v3 v5"},
		{"launched anew", func() { w.unpark(run); take() }, "v1 v3 v5"},
		{"ended for good", func() {
			w.ok(w.Fail(t.Context(), w.leaseOf(run), Failure{Code: domain.RunErrorCodeCrash, Message: "no", Permanent: true}))
		}, "v5"},
	}
	for _, step := range steps {
		step.do()
		if got := w.secretsOf(run, agentID); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

func TestWhatARunOfThisProcessIsLaunchedWithIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("service", func(in *CreateAgent) {
		in.Executor = &domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: "https://agents.example.com", Headers: []domain.SealedValue{{Name: "Authorization", Sealed: "h1"}}, Secret: "s1"}}
	})
	w.wake(agentID)
	a := w.claimOne()
	launch := w.launch(a)
	if launch == nil {
		t.Fatal("not launched")
	}
	w.ok(errOf(w.UpdateAgent(t.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agentID, Executor: domain.To(domain.ExecutorSpec{Echo: &domain.EchoSpec{}})})))
	if got := w.secretsOf(a.RunID, agentID); got != "h1 s1" {
		t.Errorf("%q", got)
	}
	w.ok(w.Finish(t.Context(), a.Attempt, Success{}))
	if got := w.secretsOf(a.RunID, agentID); got != "" {
		t.Errorf("after its end: %q", got)
	}
	w.sound()
}

func TestACallWhoseAnswerWasLostGetsTheSameAttemptAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("gpu", pulled("gpu"), func(in *CreateAgent) { in.MaxConcurrentSessions = 2 })
	w.wakeOnly(agentID, w.task("One"))
	ask := func(key string) *Lease {
		t.Helper()
		lease, err := w.Acquire(t.Context(), Acquire{WorkspaceID: w.workspace, Queue: "gpu", Key: key})
		return must(w, lease, err)
	}
	first := ask("call 1")
	again := ask("call 1")
	if first == nil || again == nil {
		t.Fatalf("first %+v, then %+v", first, again)
	}
	type given struct {
		run    xid.ID
		number int
		prompt string
	}
	if a, b := (given{first.RunID, first.Number, first.Prompt}), (given{again.RunID, again.Number, again.Prompt}); a != b || a.prompt == "" {
		t.Fatalf("first %+v, then %+v", a, b)
	}
	if again.Token.Reveal() == first.Token.Reveal() || again.RunToken.Reveal() == first.RunToken.Reveal() || string(again.WakePayload) != string(first.WakePayload) {
		t.Errorf("its tokens are the former ones, or its wake is not: %+v", again)
	}
	digest := func(l *Lease) string { return l.Token.Digest().String() }
	if _, err := w.LeasedAttempt(t.Context(), first.RunID, 1, digest(first)); !errors.Is(err, ErrFenced) {
		t.Errorf("the former token: %v", err)
	}
	if ask("call 2") != nil || ask("") != nil {
		t.Error("another call was given the run, too")
	}
	w.sound()
	attempt := must2(w)(w.LeasedAttempt(t.Context(), first.RunID, 1, digest(again)))
	if n := one[int](w, `SELECT count(*) FROM run_attempts WHERE token_digest = $1`, again.RunToken.Digest().String()); n != 1 {
		t.Error("the new run token is not known")
	}
	if _, err := w.Renew(t.Context(), attempt); err != nil {
		t.Fatal(err)
	}
	if ask("call 1") != nil {
		t.Error("a run whose worker lives was given away again")
	}
	w.ok(w.Finish(t.Context(), attempt, Success{SessionID: "s-1"}))
	if n := one[int](w, `SELECT abandonments FROM runs WHERE id = $1`, first.RunID); n != 0 {
		t.Errorf("%d abandonments", n)
	}
	w.sound()
}

// A call that is made again after its lease has ended hears so, and takes nothing: before the sweep has been there, and after it,
// while the run is due again and another one is.
func TestACallThatIsRepeatedAfterItsLeaseHasEndedTakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	in := Acquire{WorkspaceID: w.workspace, Queue: "gpu", Key: "call"}
	lease, err := w.Acquire(t.Context(), in)
	if must(w, lease, err).RunID != run {
		t.Fatalf("took %+v", lease)
	}
	refused := func(when string) {
		t.Helper()
		again, err := w.Acquire(t.Context(), in)
		w.refused(err, domain.UserErrorCodeStaleLease)
		if again != nil || !strings.Contains(fmt.Sprint(err), string(run)) {
			t.Errorf("%s: %+v, %v", when, again, err)
		}
	}
	w.expire(run)
	refused("before the sweep")
	if done, err := w.Abandon(t.Context(), w.leaseOf(run), false); !done || err != nil {
		t.Fatalf("not abandoned: %v", err)
	}
	w.unpark(run)
	w.offered(w.wake(w.agent("other", pulled("gpu"))))
	refused("after the sweep")
	refused("once more")
	w.sound()
	other := in
	other.Queue = "cpu"
	if lease, err := w.Acquire(t.Context(), other); lease != nil || err != nil {
		t.Errorf("the key on another queue: %+v, %v", lease, err)
	}
	in.Key = "next call"
	if lease, err := w.Acquire(t.Context(), in); must(w, lease, err) == nil {
		t.Error("a new key takes nothing")
	}
	in.Key = "call"
	w.sql(`UPDATE mutation_keys SET created_at = created_at - interval '25 hours'`)
	if lease, err := w.Acquire(t.Context(), in); must(w, lease, err) == nil {
		t.Error("after a day the key is not free again")
	}
	w.sound()
}

// The end of a lease whose worker was heard is no news to it: its key is not kept.
func TestACallWhoseWorkerWasHeardIsNotRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	lease, err := w.Acquire(t.Context(), Acquire{WorkspaceID: w.workspace, Queue: "gpu", Key: "call"})
	taken := must(w, lease, err)
	attempt := must2(w)(w.LeasedAttempt(t.Context(), run, 1, taken.Token.Digest().String()))
	_, err = w.Renew(t.Context(), attempt)
	w.ok(err)
	w.expire(run)
	if done, err := w.Abandon(t.Context(), attempt, false); !done || err != nil {
		t.Fatalf("not abandoned: %v", err)
	}
	if n := one[int](w, `SELECT count(*) FROM mutation_keys`); n != 0 {
		t.Errorf("%d keys are kept", n)
	}
}

func TestACallIsNotRepeatedForARunThatMustNotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world, run xid.ID)
		want   domain.RunStatus
	}{
		"it was cancelled": {func(w *world, run xid.ID) { w.ok(w.CancelRun(w.Context(), w.workspace, run, "")) }, domain.RunStatusCancelled},
		"its executor is another one now": {func(w *world, _ xid.ID) {
			w.sql(`UPDATE agents SET executor = '{"echo": {}}'`)
		}, domain.RunStatusQueued},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.wake(w.agent("gpu", pulled("gpu")))
			in := Acquire{WorkspaceID: w.workspace, Queue: "gpu", Key: "call"}
			lease, err := w.Acquire(t.Context(), in)
			first := must(w, lease, err)
			c.change(w, first.RunID)
			again, err := w.Acquire(t.Context(), in)
			if w.ok(err); again != nil {
				t.Errorf("got %+v", again)
			}
			if got := w.run(first.RunID).status; got != c.want {
				t.Errorf("the run is %s, want %s", got, c.want)
			}
			w.sound()
		})
	}
}

func TestAWorkersCallForARunThatResumesIsRepeatedWithBothPrompts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("gpu", pulled("gpu"))
	task := w.task("Task")
	w.wakeOnly(agentID, task)
	first := w.acquireOne("gpu")
	attempt := must2(w)(w.LeasedAttempt(t.Context(), first.RunID, 1, first.Token.Digest().String()))
	w.ok(w.Finish(t.Context(), attempt, Success{SessionID: "s-1", Resumable: true}))
	w.wakeOnly(agentID, task)
	in := Acquire{WorkspaceID: w.workspace, Queue: "gpu", Key: "call"}
	lease, err := w.Acquire(t.Context(), in)
	second := must(w, lease, err)
	lease, err = w.Acquire(t.Context(), in)
	again := must(w, lease, err)
	if again.ResumeSessionID != "s-1" || again.FullPrompt != second.FullPrompt || again.Prompt != second.Prompt || !strings.Contains(again.FullPrompt, "# Who you are") {
		t.Errorf("got %+v", again)
	}
	attempt = must2(w)(w.LeasedAttempt(t.Context(), again.RunID, 1, again.Token.Digest().String()))
	w.ok(w.Fail(t.Context(), attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "no", Fresh: true}))
	if stored := one[string](w, `SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, again.RunID); stored != again.FullPrompt {
		t.Errorf("stored is %q", stored)
	}
}

func TestAProcessWithoutAFreeSlotOffersWhatWorkersWaitFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	local, here, elsewhere := w.agent("local"), w.agent("here", pulled("here")), w.agent("elsewhere", pulled("elsewhere"))
	leave := w.AwaitOffers(w.workspace, "here")
	facts := func(queue string) domain.WorkerFacts {
		f, err := w.Workers(t.Context(), w.workspace, queue, true)
		return must(w, f, err)
	}
	if !*facts("here").Waits || *facts("elsewhere").Waits || facts("here").AtWork != 0 {
		t.Errorf("known of the workers are %+v, %+v", facts("here"), facts("elsewhere"))
	}
	w.ok(w.OfferToWaiters(t.Context()))
	for _, agentID := range []xid.ID{local, here, elsewhere} {
		w.wake(agentID)
	}
	w.ok(w.OfferToWaiters(t.Context()))
	if got := one[string](w, `SELECT string_agg(agent_id, ' ') FROM attempt_leases`); got != string(here) || !w.events.has(event.Offer, w.workspace) {
		t.Errorf("offered are runs of %s", got)
	}
	leave()
	leave()
	w.acquireOne("here")
	if f := facts("here"); *f.Waits || f.AtWork != 1 {
		t.Errorf("with one at work: %+v", f)
	}
	w.AwaitOffers(w.workspace, "elsewhere")()
	w.ok(w.OfferToWaiters(t.Context()))
	if n := one[int](w, `SELECT count(*) FROM attempt_leases`); n != 1 {
		t.Errorf("%d runs are offered: nobody waits any more", n)
	}
	w.sound()
}

func TestCallsWithOneKeyAtTheSameMomentTakeOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 4 {
		w.wake(w.agent(fmt.Sprint("puller ", i), pulled("q")))
	}
	w.claim(10)
	runs := make([]xid.ID, 8)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			lease, err := w.Acquire(w.background(), Acquire{WorkspaceID: w.workspace, Queue: "q", Key: "one"})
			if err != nil || lease == nil {
				t.Errorf("%v, %v", lease, err)
				return
			}
			runs[i] = lease.RunID
		})
	}
	all.Wait()
	if slices.Sort(runs); runs[0] != runs[len(runs)-1] {
		t.Errorf("calls with one key took %v", slices.Compact(runs))
	}
}

// TestARenewalPassesOverALeaseThatIsBeingEnded: waiting for it would be a deadlock with an end of several runs.
func TestARenewalPassesOverALeaseThatIsBeingEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.agent("one"))
	w.wake(w.agent("two"))
	claimed := w.claim(2)
	ending, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = ending.ExecContext(t.Context(), `DELETE FROM attempt_leases WHERE run_id = $1`, claimed[0].RunID)
	w.ok(err)
	beat := func() []AttemptState {
		t.Helper()
		return must(w, first(w.Heartbeat(t.Context(), []Attempt{claimed[0].Attempt, claimed[1].Attempt}, lease)), nil)
	}
	for _, s := range beat() {
		if s.Lost || s.Busy != (s.Attempt == claimed[0].Attempt) {
			t.Errorf("during the end: %+v", s)
		}
	}
	w.ok(ending.Commit())
	for _, s := range beat() {
		if s.Busy || s.Lost != (s.Attempt == claimed[0].Attempt) {
			t.Errorf("after the end: %+v", s)
		}
	}
}

// TestACallThatWaitsForLanesHoldsNoneThatComesLater: in the order of their heads it deadlocked with whatever locks several
// lanes in the order of their agents.
func TestACallThatWaitsForLanesHoldsNoneThatComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agents := []xid.ID{w.agent("one", pulled("q")), w.agent("two", pulled("q"))}
	slices.Sort(agents)
	low, high := agents[0], agents[1]
	oldest := w.wake(high)
	w.wake(low)
	release := w.lockedLane(low)
	leases := make(chan *Lease, 1)
	go func() {
		lease, err := w.Acquire(w.background(), Acquire{WorkspaceID: w.workspace, Queue: "q"})
		if err != nil {
			t.Error(err)
		}
		leases <- lease
	}()
	w.until("the call waits for the lane", func() bool {
		return w.waitForLocks() > 0
	})
	w.sql(`SELECT 1 FROM agent_lanes WHERE agent_id = $1 FOR NO KEY UPDATE NOWAIT`, high)
	release()
	if lease := <-leases; lease == nil || lease.RunID != w.runOf(oldest) {
		t.Errorf("got %+v, want the oldest run", lease)
	}
	w.sound()
}
