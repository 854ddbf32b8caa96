package modeltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/modeltest/model"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

var policies = []domain.ConcurrencyPolicy{domain.ConcurrencyPolicyCoalesceIfActive, domain.ConcurrencyPolicySkipIfActive, domain.ConcurrencyPolicyAlwaysEnqueue}

// randomSettings makes small places: few agents and scopes, so that wakes meet.
func randomSettings(r *rand.Rand) settings {
	s := settings{windowed: r.IntN(3) == 0, ceiling: []int{0, 0, 1, 2, 3}[r.IntN(5)]}
	for range 3 {
		s.agents = append(s.agents, agentSettings{capacity: 1 + r.IntN(3), cools: r.IntN(2) == 0, skipsIdle: r.IntN(4) == 0, noExecutor: r.IntN(12) == 0})
	}
	for range 2 {
		s.routines = append(s.routines, routineSettings{agent: r.IntN(3), policy: policies[r.IntN(3)]})
	}
	return s
}

// TestSequencesAgreeWithTheModel makes one transition after the other, on the program and on the model, and compares all
// rows after each; at the end everything is done and must have ended.
func TestSequencesAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	first := seed(t)
	var next atomic.Uint64
	var wg sync.WaitGroup
	var lock sync.Mutex
	kinds := map[string]int{}
	for range connections {
		p := newProgram(t, 1)
		wg.Go(func() {
			for !t.Failed() {
				n := next.Add(1) - 1
				if n >= uint64(sequences()) {
					return
				}
				q := &sequence{seed: first + n, made: map[string]int{}, moves: moves, rand: rand.New(rand.NewPCG(first+n, 0))}
				if err := q.run(t.Context(), p); err != nil {
					t.Errorf("%s=%d: %v\nafter\n  %s", seedVariable, q.seed, err, strings.Join(q.log, "\n  "))
				}
				lock.Lock()
				for name, n := range q.made {
					kinds[name] += n
				}
				lock.Unlock()
			}
		})
	}
	wg.Wait()
	for _, m := range moves {
		t.Logf("%6d × %s", kinds[m.name], m.name)
		if kinds[m.name] == 0 && !raced { // a few sequences may lack a rare one
			t.Errorf("no sequence made the move %q", m.name)
		}
	}
}

// sequence is one random series of transitions.
type sequence struct {
	*place
	seed     uint64
	rand     *rand.Rand
	model    *model.World
	runs     []xid.ID // by number
	attempts []attempt
	keys     []wakeKey
	made     map[string]int
	log      []string
	moves    []move
	office   *officeDesk // nil: a sequence without tasks
}

// attempt is one that was claimed; those of ended ones are kept to report too late.
type attempt struct {
	store.Attempt
	run *model.Run
}

type wakeKey struct {
	agent int
	key   string
}

// move is a kind of step: weight is how often it is tried, do makes it, and says false when there is nothing it could do.
type move struct {
	name   string
	weight int
	do     func(q *sequence, ctx context.Context) (bool, error)
}

var moves = []move{
	{"ask", 18, (*sequence).askAny},
	{"wake", 6, (*sequence).wakeAny},
	{"wake again", 2, (*sequence).wakeAgain},
	{"fire by hand", 5, (*sequence).fireAnyByHand},
	{"fire by clock", 6, (*sequence).fireAnyByClock},
	{"route", 14, (*sequence).routeAny},
	{"claim", 14, (*sequence).claimAny},
	{"acquire", 8, (*sequence).acquireAny},
	{"withdraw", 8, (*sequence).withdrawAny},
	{"start", 30, (*sequence).startAny},
	{"finish", 16, (*sequence).finishAny},
	{"together", 12, (*sequence).togetherAny},
	{"fail", 8, (*sequence).failAny},
	{"hand back", 3, (*sequence).handBackAny},
	{"lose", 5, (*sequence).loseAny},
	{"report too late", 3, (*sequence).reportLate},
	{"report for another", 3, (*sequence).reportForeign},
	{"cancel", 5, (*sequence).cancelAny},
	{"obey cancel", 8, (*sequence).obeyCancel},
	{"retry", 6, (*sequence).retryAny},
	{"time passes", 16, (*sequence).passAny},
	{"cool down", 8, (*sequence).coolAny},
	{"capacity", 1, (*sequence).resizeAny},
	{"ceiling", 1, (*sequence).liftCeiling},
	{"pause", 1, (*sequence).pauseAny},
	{"resume", 6, (*sequence).resumeAny},
	{"repair", 1, (*sequence).repair},
}

// run makes the steps and the end.
func (q *sequence) run(ctx context.Context, p *program) (err error) {
	s := randomSettings(q.rand)
	for i := range s.agents {
		s.agents[i].pulls = !s.agents[i].noExecutor && q.rand.IntN(4) == 0
	}
	q.note("%+v", s)
	if q.place, err = newPlace(ctx, p, s); err != nil {
		return err
	}
	q.model = modelOf(s)
	for range steps {
		if err := q.step(ctx); err != nil {
			return err
		}
	}
	if err := q.lawful(ctx, laws); err != nil {
		return err
	}
	if err := q.drain(ctx); err != nil {
		return fmt.Errorf("while all that is left is done: %w", err)
	}
	if open := q.model.Open(); len(open) > 0 {
		return fmt.Errorf("the model is not done: %s", strings.Join(open, ", "))
	}
	return errors.Join(q.lawful(ctx, laws), q.lawful(ctx, ends))
}

func modelOf(s settings) *model.World {
	w := &model.World{Windowed: s.windowed, Ceiling: s.ceiling}
	for i, a := range s.agents {
		w.Agents = append(w.Agents, &model.Agent{Capacity: a.capacity, Cools: a.cools, SkipsIdle: a.skipsIdle, NoExecutor: a.noExecutor, Pulls: a.pulls})
		if i > 0 {
			w.Agents[i].Coordinator = w.Agents[0]
		}
	}
	for i, r := range s.routines {
		w.Routines = append(w.Routines, &model.Routine{Agent: w.Agents[r.agent], Policy: string(r.policy), Number: i + 1})
	}
	return w
}

func (q *sequence) note(format string, args ...any) {
	q.log = append(q.log, fmt.Sprintf(format, args...))
}

// step makes one random move that can be made, and compares.
func (q *sequence) step(ctx context.Context) error {
	total := 0
	for _, m := range q.moves {
		total += m.weight
	}
	for {
		k, i := q.rand.IntN(total), 0
		for ; k >= q.moves[i].weight; i++ {
			k -= q.moves[i].weight
		}
		did, err := q.moves[i].do(q, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", q.moves[i].name, err)
		}
		if did {
			q.made[q.moves[i].name]++
			return q.compare(ctx)
		}
	}
}

// compare reads all rows and says where they are not what the model says.
func (q *sequence) compare(ctx context.Context) error {
	got, runs, err := q.state(ctx)
	if err != nil {
		return err
	}
	q.runs = runs
	if d := difference(q.model.State(), got); d != "" {
		return fmt.Errorf("the program and the model differ:%s", d)
	}
	if q.office != nil {
		return q.compareOffice(ctx)
	}
	return nil
}

// drain lets everything that can happen happen, without new causes.
func (q *sequence) drain(ctx context.Context) error {
	q.note("drain")
	q.model.Ceiling = 0
	if err := q.setCeiling(ctx, 0); err != nil {
		return err
	}
	for i := range q.model.Agents {
		if err := q.hold(ctx, i, false); err != nil {
			return err
		}
	}
	for range 200 {
		if len(q.model.Open()) == 0 {
			return nil
		}
		if err := q.drainOnce(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("it does not come to an end: %q wait", q.model.Open())
}

func (q *sequence) drainOnce(ctx context.Context) error {
	for _, a := range q.live() {
		if !a.run.Started {
			if err := q.start(ctx, a); err != nil {
				return err
			}
		}
		if a.run.Live(a.Number) {
			if err := q.finish(ctx, a); err != nil {
				return err
			}
		}
	}
	if err := q.coolAll(ctx); err != nil {
		return err
	}
	for i, agent := range q.model.Agents {
		q.model.Cool(agent)
		if err := q.route(ctx, i); err != nil {
			return err
		}
	}
	if err := q.compare(ctx); err != nil {
		return err
	}
	if err := q.passAll(ctx); err != nil {
		return err
	}
	for _, run := range q.model.Runs {
		q.model.Pass(run)
	}
	if err := q.claim(ctx, 16); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = q.acquire(ctx); err != nil {
			return err
		}
	}
	return q.compare(ctx)
}

// live is the attempts that the model holds to be live, in a fixed order.
func (q *sequence) live() []attempt {
	return slices.DeleteFunc(slices.Clone(q.attempts), func(a attempt) bool { return !a.run.Live(a.Number) })
}

func (q *sequence) dead() []attempt {
	return slices.DeleteFunc(slices.Clone(q.attempts), func(a attempt) bool { return a.run.Live(a.Number) })
}

// pick is one of a list; false when it is empty.
func pick[T any](r *rand.Rand, list []T) (T, bool) {
	if len(list) == 0 {
		var none T
		return none, false
	}
	return list[r.IntN(len(list))], true
}
