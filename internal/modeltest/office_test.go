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

// officeDesk is what a sequence about tasks and money knows besides: records in the order of the model's numbers.
type officeDesk struct {
	board    xid.ID // a workflow that the loop leaves alone
	projects []xid.ID
	tasks    []xid.ID
	budgets  []xid.ID // those that are not deleted
}

// officeMoves are the steps of a sequence about tasks and money: the queue's own, and what people and runs do to tasks.
var officeMoves = append([]move{
	{"fire by hand", 2, (*sequence).fireAnyByHand},
	{"fire by clock", 3, (*sequence).fireAnyByClock},
	{"wake", 3, (*sequence).wakeAny},
	{"route", 16, (*sequence).routeAny},
	{"claim", 14, (*sequence).claimAny},
	{"start", 40, (*sequence).startAny},
	{"put to work", 26, (*sequence).putToWork},
	{"lose", 3, (*sequence).loseAny},
	{"hand back", 3, (*sequence).handBackAny},
	{"report too late", 2, (*sequence).reportLate},
	{"cancel", 6, (*sequence).cancelAny},
	{"obey cancel", 30, (*sequence).obeyCancel},
	{"retry", 4, (*sequence).retryAny},
	{"time passes", 16, (*sequence).passAny},
	{"cool down", 12, (*sequence).coolAny},
	{"ceiling", 1, (*sequence).liftCeiling},
	{"pause", 2, (*sequence).pauseAny},
	{"resume", 6, (*sequence).resumeAny},
	{"repair", 2, (*sequence).repair},
}, slices.Concat(taskMoves, budgetMoves)...)

// TestOfficeSequencesAgreeWithTheModel does to tasks, participants, blockers, budgets and the runs about them one thing after the
// other, on the program and on the model, several sequences at once, and compares after each step tasks, wakes, runs, what
// each waits for, and money.
func TestOfficeSequencesAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	first := seed(t)
	var next atomic.Uint64
	var wg sync.WaitGroup
	var lock sync.Mutex
	kinds := map[string]int{}
	for range connections {
		p := newProgram(t, 2) // two, so that two may end at one moment
		wg.Go(func() {
			for !t.Failed() {
				n := next.Add(1) - 1
				if n >= uint64(officeSequences()) {
					return
				}
				q := &sequence{seed: first + n, made: map[string]int{}, moves: officeMoves, rand: rand.New(rand.NewPCG(first+n, 0)), office: &officeDesk{}}
				if err := q.runOffice(t.Context(), p); err != nil {
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
	for _, m := range officeMoves {
		t.Logf("%6d × %s", kinds[m.name], m.name)
		if kinds[m.name] == 0 && !raced { // a few sequences may lack a rare one
			t.Errorf("no sequence made the move %q", m.name)
		}
	}
}

func (q *sequence) runOffice(ctx context.Context, p *program) (err error) {
	s := randomSettings(q.rand)
	s.windowed = q.rand.IntN(4) == 0
	q.note("%+v", s)
	if q.place, err = newPlace(ctx, p, s); err != nil {
		return err
	}
	q.model = modelOf(s)
	if err := q.openOffice(ctx); err != nil {
		return err
	}
	for range steps {
		if err := q.step(ctx); err != nil {
			return err
		}
	}
	if err := q.lawful(ctx, officeLaws()); err != nil {
		return err
	}
	if err := q.clearOffice(ctx); err != nil {
		return fmt.Errorf("while nothing is left that could hold it up: %w", err)
	}
	if err := q.drain(ctx); err != nil {
		return fmt.Errorf("while all that is left is done: %w", err)
	}
	return errors.Join(q.lawful(ctx, officeLaws()), q.lawful(ctx, ends))
}

// openOffice makes projects, a board and some tasks.
func (q *sequence) openOffice(ctx context.Context) error {
	for i := range 2 {
		id := xid.New("prj")
		if _, err := q.CreateProject(ctx, store.CreateProject{WorkspaceID: q.workspace, ID: id, Name: fmt.Sprint("project ", i+1)}); err != nil {
			return err
		}
		q.office.projects = append(q.office.projects, id)
	}
	plan := domain.OfficeWorkflow()
	plan.Name, plan.Kind = "Board", domain.WorkflowKindKanban
	for i := range plan.Steps {
		plan.Steps[i].OnEnter = []domain.StepAction{domain.StepActionAutoComplete}
	}
	made, err := q.CreateWorkflow(ctx, store.CreateWorkflow{WorkspaceID: q.workspace, Plan: plan})
	if err != nil {
		return err
	}
	q.office.board = made.ID
	for range 4 {
		if _, err := q.createAny(ctx); err != nil {
			return err
		}
		if err := q.compare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// clearOffice takes away what could hold runs up for ever: blockers and budgets.
func (q *sequence) clearOffice(ctx context.Context) error {
	for len(q.office.budgets) > 0 {
		if err := q.dropBudget(ctx, 0); err != nil {
			return err
		}
		if err := q.compare(ctx); err != nil {
			return err
		}
	}
	for i := range q.model.Tasks {
		if err := q.block(ctx, i, nil); err != nil {
			return err
		}
	}
	return q.compare(ctx)
}

// compareOffice reads tasks, wakes and money, asks why each queued run waits, and says where this is not what the model
// says.
func (q *sequence) compareOffice(ctx context.Context) error {
	got, tasks, budgets, err := q.officeState(ctx)
	if err != nil {
		return err
	}
	q.office.tasks, q.office.budgets = tasks, budgets
	waiting, err := q.Waiting(ctx, q.runs, nil)
	if err != nil {
		return err
	}
	for i, id := range q.runs {
		if w, waits := waiting[id]; waits {
			got = append(got, fmt.Sprintf("run %d waits for %s", i+1, w.Hold))
		}
	}
	if d := difference(q.model.Office(), got); d != "" {
		return fmt.Errorf("the program and the model differ:%s", d)
	}
	return nil
}

// agree checks that the program refused what the model refuses, and did what the model did.
func agree(done bool, err error) error {
	var refused *domain.UserError
	switch {
	case err != nil && !errors.As(err, &refused):
		return err
	case done && err != nil:
		return fmt.Errorf("it was refused: %w", err)
	case !done && err == nil:
		return errors.New("it was not refused")
	}
	return nil
}

// number is the place of a task in the model's list.
func (q *sequence) number(t *model.Task) int {
	for i, x := range q.model.Tasks {
		if x == t {
			return i
		}
	}
	return -1
}
