package modeltest

import (
	"context"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/modeltest/model"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

var (
	scopes   = []string{"taskless", "task:1", "task:2"}
	variants = []string{"", "wash"} // values of a fire, so two fingerprints
	hopsOf   = []int{0, 0, 0, 0, 0, 25, 26}
	owner    = store.Owner{ID: xid.New("prc"), Host: "here", BootID: "boot", PID: 1, Started: 1}
)

func (q *sequence) askAny(ctx context.Context) (bool, error) {
	r := request{agent: q.rand.IntN(len(q.agents)), scope: scopes[q.rand.IntN(len(scopes))], event: q.rand.IntN(4) > 0, hops: hopsOf[q.rand.IntN(len(hopsOf))]}
	r.person = r.event && q.rand.IntN(4) == 0
	q.note("ask %+v", r)
	q.model.Ask(&model.Request{Agent: q.model.Agents[r.agent], Scope: r.scope, Event: r.event, Person: r.person, Hops: r.hops})
	return true, q.ask(ctx, r)
}

func (q *sequence) wakeAny(ctx context.Context) (bool, error) {
	k := wakeKey{q.rand.IntN(len(q.agents)), fmt.Sprint("key ", len(q.keys))}
	q.keys = append(q.keys, k)
	q.note("wake agent %d with %s", k.agent+1, k.key)
	q.model.Wake(&model.Request{Agent: q.model.Agents[k.agent], Source: "USER", Scope: "taskless", Event: true, Person: true})
	return true, q.wake(ctx, k.agent, k.key)
}

// wakeAgain repeats a wake with its key: nothing happens.
func (q *sequence) wakeAgain(ctx context.Context) (bool, error) {
	k, ok := pick(q.rand, q.keys)
	if !ok {
		return false, nil
	}
	q.note("wake agent %d again with %s", k.agent+1, k.key)
	return true, q.wake(ctx, k.agent, k.key)
}

func (q *sequence) fireAnyByHand(ctx context.Context) (bool, error) {
	i, what := q.rand.IntN(len(q.routines)), variants[q.rand.IntN(len(variants))]
	q.note("fire routine %d by hand, %q", i+1, what)
	q.model.FireRoutine(q.model.Routines[i], true, what)
	return true, q.fireByHand(ctx, i, what)
}

func (q *sequence) fireAnyByClock(ctx context.Context) (bool, error) {
	i := q.rand.IntN(len(q.routines))
	q.note("fire routine %d by the clock", i+1)
	q.model.FireRoutine(q.model.Routines[i], false, "")
	return true, q.fireByClock(ctx, i)
}

func (q *sequence) routeAny(ctx context.Context) (bool, error) {
	return true, q.route(ctx, q.rand.IntN(len(q.agents)))
}

func (q *sequence) route(ctx context.Context, agent int) error {
	q.note("route agent %d", agent+1)
	q.model.Route(q.model.Agents[agent])
	_, err := q.Route(ctx, q.agents[agent])
	return err
}

func (q *sequence) claimAny(ctx context.Context) (bool, error) {
	return true, q.claim(ctx, 1+q.rand.IntN(4))
}

// claim compares what was taken, and in which order.
func (q *sequence) claim(ctx context.Context, most int) error {
	q.note("claim %d", most)
	want := q.model.Claim(most)
	got, err := q.Claim(ctx, owner, most, lease)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("claimed %d runs, the model %d", len(got), len(want))
	}
	if err := q.nameRuns(ctx); err != nil {
		return err
	}
	for i, c := range got {
		if c.RunID != q.id(want[i]) || c.Number != want[i].Attempt {
			return fmt.Errorf("place %d of the claim has attempt %d of %s, want attempt %d of %s", i+1, c.Number, c.RunID, want[i].Attempt, q.id(want[i]))
		}
		if (c.Launch != nil) != want[i].Started {
			return fmt.Errorf("%s came started: %t, the model: %t", c.RunID, c.Launch != nil, want[i].Started)
		}
		q.attempts = append(q.attempts, attempt{c.Attempt, want[i]})
	}
	return nil
}

func (q *sequence) acquireAny(ctx context.Context) (bool, error) {
	_, err := q.acquire(ctx)
	return true, err
}

// nameRuns reads the ids of the model's runs, unless all are known.
func (q *sequence) nameRuns(ctx context.Context) (err error) {
	if len(q.runs) != len(q.model.Runs) {
		_, q.runs, err = q.state(ctx)
	}
	return err
}

// acquire compares what a worker is given; false when it is nothing.
func (q *sequence) acquire(ctx context.Context) (bool, error) {
	q.note("acquire")
	want := q.model.Acquire()
	got, err := q.Acquire(ctx, store.Acquire{WorkspaceID: q.workspace, Queue: queue})
	if err != nil {
		return false, err
	}
	if err := q.nameRuns(ctx); err != nil {
		return false, err
	}
	switch {
	case got == nil && want == nil:
		return false, nil
	case got == nil || want == nil || got.RunID != q.id(want) || got.Number != want.Attempt:
		return false, fmt.Errorf("the worker got %+v, want %+v of %s", got, want, q.id(want))
	}
	q.attempts = append(q.attempts, attempt{got.Attempt, want})
	return true, nil
}

// withdrawAny tries to take back an offer, in vain, then lets its time run out.
func (q *sequence) withdrawAny(ctx context.Context) (bool, error) {
	run, ok := pick(q.rand, q.model.Offers())
	if !ok {
		return false, nil
	}
	offer := store.Attempt{RunID: q.id(run), Number: run.Attempt}
	q.note("withdraw %s", offer.RunID)
	if taken, err := q.Withdraw(ctx, offer); taken || err != nil {
		return true, fmt.Errorf("an offer that still stood was taken back: %t, %w", taken, err)
	}
	if err := q.expire(ctx, offer); err != nil {
		return true, err
	}
	q.model.Withdraw(run)
	taken, err := q.Withdraw(ctx, offer)
	if err == nil && !taken {
		err = errors.New("the offer was not taken back")
	}
	return true, err
}

// id is the program's name of a run.
func (q *sequence) id(run *model.Run) xid.ID {
	for i, r := range q.model.Runs {
		if r == run && i < len(q.runs) {
			return q.runs[i]
		}
	}
	return ""
}

// anyLive picks a live attempt, started or not.
func (q *sequence) anyLive(started bool) (attempt, bool) {
	var list []attempt
	for _, a := range q.live() {
		if a.run.Started == started {
			list = append(list, a)
		}
	}
	return pick(q.rand, list)
}

func (q *sequence) startAny(ctx context.Context) (bool, error) {
	a, ok := q.anyLive(false)
	if !ok {
		return false, nil
	}
	return true, q.start(ctx, a)
}

func (q *sequence) start(ctx context.Context, a attempt) error {
	q.note("start %s", a)
	want := q.model.Start(a.run)
	launch, err := q.Start(ctx, a.Attempt)
	if err == nil && (launch != nil) != want {
		err = fmt.Errorf("launched: %t, the model: %t", launch != nil, want)
	}
	return err
}

func (q *sequence) finishAny(ctx context.Context) (bool, error) {
	a, ok := q.anyLive(true)
	if !ok {
		return false, nil
	}
	return true, q.finish(ctx, a)
}

func (q *sequence) finish(ctx context.Context, a attempt) error {
	q.note("finish %s", a)
	q.model.Finish(a.run)
	return q.Finish(ctx, a.Attempt, store.Success{Summary: "done"})
}

func (q *sequence) failAny(ctx context.Context) (bool, error) {
	a, ok := pick(q.rand, q.live())
	if !ok {
		return false, nil
	}
	f := store.Failure{Code: domain.RunErrorCodeCrash, Message: "random", Permanent: q.rand.IntN(6) == 0}
	limited := q.rand.IntN(4) == 0
	if limited {
		f.Words = "rate limit, try again in 20 minutes"
	}
	if q.office != nil && a.run.Started {
		f.Usage = q.price(a.run)
	}
	q.note("fail %s: %+v", a, f)
	q.model.Fail(a.run, f.Permanent, limited)
	return true, q.Fail(ctx, a.Attempt, f)
}

func (q *sequence) handBackAny(ctx context.Context) (bool, error) {
	a, ok := pick(q.rand, q.live())
	if !ok {
		return false, nil
	}
	q.note("hand back %s", a)
	q.model.HandBack(a.run)
	return true, q.HandBack(ctx, a.Attempt, store.Unfinished{})
}

// loseAny tries to take a live attempt's lease, in vain, then lets it run out or its owner die.
func (q *sequence) loseAny(ctx context.Context) (bool, error) {
	a, ok := pick(q.rand, q.live())
	if !ok {
		return false, nil
	}
	dead := q.rand.IntN(2) == 0
	q.note("lose %s, owner dead: %t", a, dead)
	if !dead {
		if taken, err := q.Abandon(ctx, a.Attempt, false); taken || err != nil {
			return true, fmt.Errorf("a lease that had not run out was taken: %t, %w", taken, err)
		}
		if err := q.expire(ctx, a.Attempt); err != nil {
			return true, err
		}
	}
	q.model.Abandon(a.run)
	taken, err := q.Abandon(ctx, a.Attempt, dead)
	if err == nil && !taken {
		err = errors.New("the lost attempt was not taken")
	}
	return true, err
}

// reportLate lets the owner of an attempt that is over report: nothing changes, and it is told.
func (q *sequence) reportLate(ctx context.Context) (bool, error) {
	a, ok := pick(q.rand, q.dead())
	if !ok {
		return false, nil
	}
	q.note("%s reports too late", a)
	return true, q.fenced(ctx, a.Attempt)
}

// reportForeign lets another process report on a live attempt: nothing changes either.
func (q *sequence) reportForeign(ctx context.Context) (bool, error) {
	a, ok := pick(q.rand, q.live())
	if !ok {
		return false, nil
	}
	q.note("another process reports on %s", a)
	a.Owner = xid.New("prc")
	return true, q.fenced(ctx, a.Attempt)
}

// fenced makes a random report, which must be refused.
func (q *sequence) fenced(ctx context.Context, a store.Attempt) (err error) {
	kind := q.rand.IntN(8)
	switch kind {
	case 0:
		_, err = q.Start(ctx, a)
	case 1:
		err = q.Finish(ctx, a, store.Success{})
	case 2:
		err = q.Fail(ctx, a, store.Failure{Code: domain.RunErrorCodeCrash, Message: "late"})
	case 3:
		err = q.Cancelled(ctx, a, store.Unfinished{})
	case 4:
		err = q.HandBack(ctx, a, store.Unfinished{})
	case 5:
		err = q.RecordSession(ctx, a, "late")
	case 6:
		taken, problem := q.Abandon(ctx, a, true)
		if err = store.ErrFenced; taken || problem != nil {
			return fmt.Errorf("it was abandoned: %t, %w", taken, problem)
		}
	case 7:
		states, problem := q.Heartbeat(ctx, []store.Attempt{a}, lease)
		if err = store.ErrFenced; problem != nil || len(states) != 1 || !states[0].Lost {
			return fmt.Errorf("it was not told that it lost its lease: %+v, %w", states, problem)
		}
	}
	if !errors.Is(err, store.ErrFenced) {
		return fmt.Errorf("report %d gave %v, want ErrFenced", kind, err) //nolint:errorlint // it may be nil
	}
	return nil
}

func (q *sequence) cancelAny(ctx context.Context) (bool, error) {
	run, ok := pick(q.rand, q.model.Runs)
	if live, some := pick(q.rand, q.live()); some && q.rand.IntN(2) == 0 {
		run = live.run
	}
	if !ok {
		return false, nil
	}
	q.note("cancel %s", q.id(run))
	want := q.model.Cancel(run)
	_, err := q.CancelRun(ctx, q.workspace, q.id(run), "")
	if want {
		return true, err
	}
	if allowed(err) != nil || err == nil {
		return true, fmt.Errorf("the cancel of a run that has ended gave %w", err)
	}
	return true, nil
}

// retryAny lets a person want a run to be tried now; what the rule refuses changes nothing.
func (q *sequence) retryAny(ctx context.Context) (bool, error) {
	run, ok := pick(q.rand, q.model.Runs)
	if !ok {
		return false, nil
	}
	q.note("retry %s", q.id(run))
	want := q.model.Retry(run)
	_, err := q.RetryRun(ctx, store.RetryRun{WorkspaceID: q.workspace, RunID: q.id(run)})
	if want {
		return true, err
	}
	if allowed(err) != nil || err == nil {
		return true, fmt.Errorf("a retry that is to be refused gave %w", err)
	}
	return true, nil
}

func (q *sequence) obeyCancel(ctx context.Context) (bool, error) {
	for _, a := range q.live() {
		if a.run.CancelAsked {
			q.note("obey the cancel of %s", a)
			q.model.Cancelled(a.run)
			return true, q.Cancelled(ctx, a.Attempt, store.Unfinished{})
		}
	}
	return false, nil
}

// passAny lets the time pass that one parked run waits for.
func (q *sequence) passAny(ctx context.Context) (bool, error) {
	var parked []*model.Run
	for _, run := range q.model.Runs {
		if run.Status == "QUEUED" && run.Until > 0 && !run.Over {
			parked = append(parked, run)
		}
	}
	run, ok := pick(q.rand, parked)
	if !ok {
		return false, nil
	}
	q.note("time passes for %s", q.id(run))
	q.model.Pass(run)
	return true, q.pass(ctx, q.id(run))
}

func (q *sequence) coolAny(ctx context.Context) (bool, error) {
	i := q.rand.IntN(len(q.agents))
	if !q.model.Agents[i].Cooling {
		return false, nil
	}
	q.note("agent %d has cooled down", i+1)
	q.model.Cool(q.model.Agents[i])
	return true, q.cool(ctx, i)
}

func (q *sequence) resizeAny(ctx context.Context) (bool, error) {
	i, n := q.rand.IntN(len(q.agents)), 1+q.rand.IntN(3)
	q.note("agent %d has %d sessions", i+1, n)
	q.model.Agents[i].Capacity = n
	return true, q.setCapacity(ctx, i, n)
}

func (q *sequence) liftCeiling(ctx context.Context) (bool, error) {
	n := q.rand.IntN(4)
	q.note("the ceiling is %d", n)
	q.model.Ceiling = n
	return true, q.setCeiling(ctx, n)
}

func (q *sequence) pauseAny(ctx context.Context) (bool, error) {
	return true, q.hold(ctx, q.rand.IntN(len(q.agents)), true)
}

func (q *sequence) resumeAny(ctx context.Context) (bool, error) {
	i := q.rand.IntN(len(q.agents))
	if !q.model.Agents[i].Paused && q.rand.IntN(10) > 0 {
		return false, nil
	}
	return true, q.hold(ctx, i, false)
}

func (q *sequence) hold(ctx context.Context, agent int, paused bool) error {
	q.note("agent %d is paused: %t", agent+1, paused)
	if paused {
		q.model.Pause(q.model.Agents[agent])
	} else {
		q.model.Resume(q.model.Agents[agent])
	}
	return q.setPaused(ctx, agent, paused)
}

// repair finds nothing to put right.
func (q *sequence) repair(ctx context.Context) (bool, error) {
	q.note("repair")
	done, err := q.Repair(ctx)
	if err == nil && done != (store.Repairs{}) {
		err = fmt.Errorf("there was something to repair: %+v", done)
	}
	return true, err
}

func (a attempt) String() string { return fmt.Sprintf("attempt %d of %s", a.Number, a.RunID) }
