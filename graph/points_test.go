package graph

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// waits tells when somebody waits for it to end.
type waits struct {
	context.Context
	told sync.Once
	then func()
}

func (c *waits) Done() <-chan struct{} {
	c.told.Do(c.then)
	return c.Context.Done()
}

type nobody struct{}

func (nobody) Publish(...event.Event) {}

// Requests for runs that come while one is read share the next statement. Each sees what its caller may see, and has a row of its own.
func TestRunsThatAreAskedForAtOnceAreReadTogether(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	reader := store.New(db, store.Options{Events: nobody{}, Counters: metrics.New()}).Reader()
	var statements atomic.Int64
	reads := make(chan struct{})
	reader.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
		return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
			if statements.Add(1) == 1 {
				close(reads)
			}
			return next.Query(ctx, q)
		})
	}))
	id := func(n int) xid.ID { return xid.ID(fmt.Sprintf("run_%026d", n)) }
	for n := range 4 {
		const insert = `INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
VALUES ($1, $2, 'agt_1', 'cau_1', $1, 'USER', 'EVENT', 'QUEUED', clock_timestamp())`
		if _, err := db.ExecContext(t.Context(), insert, id(n), []string{"wsp_1", "wsp_2"}[n%2]); err != nil {
			t.Fatal(err)
		}
	}
	holder, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.ExecContext(t.Context(), `LOCK TABLE runs`); err != nil {
		t.Fatal(err)
	}
	p := newSingles(reader).runs
	of := func(workspace xid.ID) auth.Principal {
		return auth.Principal{Kind: auth.KindToken, WorkspaceID: workspace}
	}
	var all sync.WaitGroup
	var got []**ent.Run
	ask := func(caller auth.Principal, run int, columns ...string) {
		to, waited := new(*ent.Run), make(chan struct{})
		got = append(got, to)
		all.Go(func() {
			x, err := p.find(&waits{Context: auth.WithPrincipal(t.Context(), caller), then: func() { close(waited) }}, id(run), columns...)
			if err != nil {
				t.Error(err)
			}
			*to = x
		})
		<-waited
	}
	ask(of("wsp_1"), 0)
	<-reads // as soon as it comes
	for range 10 {
		ask(of("wsp_1"), 0)
		ask(of("wsp_1"), 2)
	}
	ask(of("wsp_1"), 1)              // of the other workspace
	ask(auth.Principal{}, 0)         // nobody
	ask(of("wsp_2"), 1, run.FieldID) // other columns
	ask(auth.Local(), 1)             // everything
	ask(auth.Local(), 9)             // not there
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	rows := map[*ent.Run]bool{}
	for i, x := range got[:21] {
		want := id(0)
		if i > 0 {
			want = id((i - 1) % 2 * 2)
		}
		if *x == nil || (*x).ID != want || (*x).Scope != string(want) || rows[*x] {
			t.Errorf("request %d for %s is given %v, again: %t", i, want, *x, rows[*x])
		}
		rows[*x] = true
	}
	other, none, narrow, everything, gone := *got[21], *got[22], *got[23], *got[24], *got[25]
	if other != nil || none != nil || gone != nil {
		t.Errorf("a run is seen by who may not see it: %v %v %v", other, none, gone)
	}
	if narrow == nil || narrow.ID != id(1) || narrow.Scope != "" || everything == nil || everything.Scope != string(id(1)) {
		t.Errorf("some columns: %v, all: %v", narrow, everything)
	}
	// one alone, one for the twenty and the one of the other workspace, one for nobody, one with other columns; and of those who see all one or two
	if n := statements.Load(); n < 5 || n > 6 {
		t.Errorf("%d statements", n)
	}
	for n := range 3 * pointsShapes {
		p.lookup(of(xid.ID(fmt.Sprint("wsp_", n))), nil)
	}
	if len(p.of) > pointsShapes {
		t.Errorf("%d shapes are remembered", len(p.of))
	}
}
