package graph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/internal/auth"
	rounds "rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of reading rows for several requests.
const (
	pointsMost   = 100              // rows in one statement
	pointsLimit  = 15 * time.Second // for one statement, as long as a query may take
	pointsShapes = 100              // sets of columns, each of a workspace, that are remembered
)

// singles are rows that requests ask for one by one, by their ids.
type singles struct {
	agents   *points[ent.Agent] // that are not deleted
	fires    *points[ent.RoutineRun]
	requests *points[ent.WakeupRequest]
	routines *points[ent.Routine] // that are not deleted
	runs     *points[ent.Run]
}

func newSingles(db *ent.Client) *singles {
	return &singles{
		agents: newPoints("agents", func(x *ent.Agent) xid.ID { return x.ID }, func(ctx context.Context, ids, columns []string) ([]*ent.Agent, error) {
			q := db.Agent.Query().Where(reads.IDs(ids), agent.DeletedAtIsNil())
			q.Select(columns...)
			return q.All(ctx)
		}),
		fires: newPoints("routine runs", func(x *ent.RoutineRun) xid.ID { return x.ID }, func(ctx context.Context, ids, columns []string) ([]*ent.RoutineRun, error) {
			q := db.RoutineRun.Query().Where(reads.IDs(ids))
			q.Select(columns...)
			return q.All(ctx)
		}),
		requests: newPoints("wakeup requests", func(x *ent.WakeupRequest) xid.ID { return x.ID }, func(ctx context.Context, ids, columns []string) ([]*ent.WakeupRequest, error) {
			q := db.WakeupRequest.Query().Where(reads.IDs(ids))
			q.Select(columns...)
			return q.All(ctx)
		}),
		routines: newPoints("routines", func(x *ent.Routine) xid.ID { return x.ID }, func(ctx context.Context, ids, columns []string) ([]*ent.Routine, error) {
			q := db.Routine.Query().Where(reads.IDs(ids), routine.DeletedAtIsNil())
			q.Select(columns...)
			return q.All(ctx)
		}),
		runs: newPoints("runs", func(x *ent.Run) xid.ID { return x.ID }, func(ctx context.Context, ids, columns []string) ([]*ent.Run, error) {
			q := db.Run.Query().Where(reads.IDs(ids))
			q.Select(columns...)
			return q.All(ctx)
		}),
	}
}

// points reads single rows of a table for all requests that ask at the same time: one statement for those whose callers see the same,
// and that need the same columns. A request that comes alone is answered at once, and what each gets was read after it asked.
type points[T any] struct {
	what string
	id   func(*T) xid.ID
	read func(ctx context.Context, ids, columns []string) ([]*T, error)

	mu sync.Mutex
	of map[pointShape]*rounds.Lookup[*T]
}

// pointShape is what requests have in common that may share a statement.
type pointShape struct {
	instance    bool   // every workspace is seen
	workspaceID xid.ID // the only one that is seen, otherwise
	columns     string // "": all
}

// newPoints makes points of a read as the caller of its context. Without columns it reads all.
func newPoints[T any](what string, id func(*T) xid.ID, read func(ctx context.Context, ids, columns []string) ([]*T, error)) *points[T] {
	return &points[T]{what: what, id: id, read: read}
}

// find reads one row with the columns; none: all of them. Nil: there is no such row for the caller. An agent at work shares with
// nobody, because what it sees is a matter of its own.
func (p *points[T]) find(ctx context.Context, id xid.ID, columns ...string) (row *T, err error) {
	caller, known := auth.FromContext(ctx)
	switch {
	case !known:
		err = reads.ErrNoPrincipal
	case caller.Kind == auth.KindRun:
		var found map[string]*T
		found, err = p.readAs(ctx, caller, []string{string(id)}, columns)
		row = found[string(id)]
	default:
		row, _, err = p.lookup(caller, columns).Find(ctx, string(id))
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", p.what, err)
	}
	if row == nil {
		return nil, nil
	}
	own := *row // others may be given the same one
	if l, ok := ctx.Value(loadersKey{}).(*loaders); ok && l.expects {
		l.expect([]*T{&own})
	}
	return &own, nil
}

// there is a row that was made a moment ago, so that it can only be gone by a fault.
func there[T any](row *T, err error) (*T, error) {
	if err == nil && row == nil {
		err = errors.New("it is gone again")
	}
	return row, err
}

func (p *points[T]) lookup(caller auth.Principal, columns []string) *rounds.Lookup[*T] {
	shape := pointShape{columns: strings.Join(columns, " "), instance: caller.IsInstance()}
	like := auth.Local()
	if !shape.instance {
		shape.workspaceID = caller.WorkspaceID
		like = auth.Principal{WorkspaceID: caller.WorkspaceID}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.of[shape]
	if l == nil {
		if p.of == nil || len(p.of) >= pointsShapes { // those in use are soon there again
			p.of = map[pointShape]*rounds.Lookup[*T]{}
		}
		l = rounds.New(pointsMost, pointsLimit, func(ctx context.Context, ids []string) (map[string]*T, error) {
			return p.readAs(ctx, like, ids, columns)
		})
		p.of[shape] = l
	}
	return l
}

func (p *points[T]) readAs(ctx context.Context, caller auth.Principal, ids, columns []string) (map[string]*T, error) {
	rows, err := p.read(auth.WithPrincipal(ctx, caller), ids, columns)
	found := make(map[string]*T, len(rows))
	for _, x := range rows {
		found[string(p.id(x))] = x
	}
	return found, err
}
