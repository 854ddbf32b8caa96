package modeltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// togetherAny lets all live attempts go a step further in one transaction: those that have not started start, and of the
// others some end, fail, obey a cancel or are handed back. The model does the same one after the other, in this order, each in the
// order of the runs.
func (q *sequence) togetherAny(ctx context.Context) (bool, error) {
	live := q.live()
	slices.SortFunc(live, func(a, b attempt) int { return cmp.Compare(a.RunID, b.RunID) })
	var starts, ends, failures, cancels, backs []attempt
	for _, a := range live {
		switch dice := q.rand.IntN(9); {
		case !a.run.Started && dice < 7:
			starts = append(starts, a)
		case a.run.Started && dice < 4:
			ends = append(ends, a)
		case dice == 4:
			failures = append(failures, a)
		case a.run.CancelAsked:
			cancels = append(cancels, a)
		case dice == 5 || !a.run.Started:
			backs = append(backs, a)
		}
	}
	if len(starts)+len(ends)+len(failures)+len(cancels)+len(backs) < 2 {
		return false, nil
	}
	want := map[xid.ID]bool{}
	for _, a := range starts {
		q.note("together: start %s", a)
		want[a.RunID] = q.model.Start(a.run)
	}
	launched := map[xid.ID]bool{}
	var lock sync.Mutex
	var do []func() error
	for _, a := range starts {
		do = append(do, func() error {
			launch, err := q.Start(ctx, a.Attempt)
			lock.Lock()
			defer lock.Unlock()
			launched[a.RunID] = launch != nil
			return err
		})
	}
	for _, a := range ends {
		q.note("together: finish %s", a)
		q.model.Finish(a.run)
		do = append(do, func() error { return q.Finish(ctx, a.Attempt, store.Success{Summary: "done"}) })
	}
	for _, a := range failures {
		f := store.Failure{Code: domain.RunErrorCodeCrash, Message: "random", Permanent: q.rand.IntN(4) == 0}
		q.note("together: fail %s: %+v", a, f)
		q.model.Fail(a.run, f.Permanent, false)
		do = append(do, func() error { return q.Fail(ctx, a.Attempt, f) })
	}
	for _, a := range cancels {
		q.note("together: obey the cancel of %s", a)
		q.model.Cancelled(a.run)
		do = append(do, func() error { return q.Cancelled(ctx, a.Attempt, store.Unfinished{}) })
	}
	for _, a := range backs {
		q.note("together: hand back %s", a)
		q.model.HandBack(a.run)
		do = append(do, func() error { return q.HandBack(ctx, a.Attempt, store.Unfinished{}) })
	}
	if err := q.together(do); err != nil {
		return true, err
	}
	for run, is := range launched {
		if is != want[run] {
			return true, fmt.Errorf("%s launched: %t, the model: %t", run, is, want[run])
		}
	}
	return true, nil
}

// together makes calls whose transitions share one transaction.
func (w *place) together(do []func() error) error { return atOnce(w.GatherTransitions, do) }

// atOnce makes calls of which a store shall gather all.
func atOnce(gather func(int), do []func() error) error {
	gather(len(do))
	problems := make([]error, len(do))
	var wg sync.WaitGroup
	for i, f := range do {
		wg.Go(func() { problems[i] = f() })
	}
	wg.Wait()
	return errors.Join(problems...)
}

// TestBatchesOfEverySizeKeepTheLaws lets as many runs be claimed, record their sessions and end in one transaction as a store
// lets share it, while others are woken and routed, and checks what must hold after each.
func TestBatchesOfEverySizeKeepTheLaws(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, 4)
			p.Store = p.withBatches(size)
			r := rand.New(rand.NewPCG(seed(t), uint64(size)))
			s := settings{}
			for range 4 {
				s.agents = append(s.agents, agentSettings{capacity: max(1, size/4)})
			}
			w, err := newPlace(t.Context(), p, s)
			if err != nil {
				t.Fatal(err)
			}
			for round := range 6 {
				if err := w.round(t.Context(), r, round, size); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		})
	}
}

// round wakes as many runs as fit into a batch, in scopes of their own and in shared ones, and lets them live and end together.
func (w *place) round(ctx context.Context, r *rand.Rand, round, size int) error {
	for i := range 2 * size {
		if err := w.ask(ctx, request{agent: r.IntN(len(w.agents)), scope: fmt.Sprintf("task:%d", r.IntN(size)), event: true, person: i%5 == 0}); err != nil {
			return err
		}
	}
	if _, err := w.Route(ctx, w.agents...); err != nil {
		return err
	}
	var live []store.Claimed
	for {
		claimed, err := w.Claim(ctx, owner, size, lease)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(claimed, func(c store.Claimed) bool { return c.Launch == nil }) {
			return errors.New("a run was claimed and not started")
		}
		if err := w.lawful(ctx, laws); err != nil {
			return err
		}
		if live = append(live, claimed...); len(claimed) == 0 {
			break
		}
	}
	steps := []func(a store.Attempt) error{
		func(a store.Attempt) error { return w.RecordSession(ctx, a, fmt.Sprint("session ", round)) },
	}
	endings := []func(a store.Attempt) error{
		func(a store.Attempt) error { return w.Finish(ctx, a, store.Success{Summary: "done"}) },
		func(a store.Attempt) error {
			return w.Fail(ctx, a, store.Failure{Code: domain.RunErrorCodeCrash, Message: "it broke", Permanent: a.Number > 1})
		},
		func(a store.Attempt) error { return w.HandBack(ctx, a, store.Unfinished{}) },
		func(a store.Attempt) error { return w.Cancelled(ctx, a, store.Unfinished{}) },
	}
	ways := map[store.Attempt]func(a store.Attempt) error{}
	for _, c := range live {
		ways[c.Attempt] = endings[[]int{0, 0, 0, 1, 2, 3}[r.IntN(6)]]
	}
	steps = append(steps, func(a store.Attempt) error { return ways[a](a) })
	for i, step := range steps {
		gather := []func(int){w.GatherSessions, w.GatherTransitions}[i]
		for some := range slices.Chunk(live, size) {
			var do []func() error
			for _, c := range some {
				do = append(do, func() error { return step(c.Attempt) })
			}
			if err := atOnce(gather, do); err != nil {
				return err
			}
			if err := w.lawful(ctx, laws); err != nil {
				return err
			}
		}
	}
	return nil
}
