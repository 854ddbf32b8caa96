package graph

import (
	"context"
	"strings"
	"sync"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/auth"
	rounds "rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of reading runs for several requests.
const (
	pointsMost   = 100              // runs in one statement
	pointsLimit  = 15 * time.Second // for one statement, as long as a query may take
	pointsShapes = 100              // sets of columns, each of a workspace, that are remembered
)

// points reads single runs for all requests that ask at the same time: one statement for those that see the same and show the same
// columns. A request that comes alone is answered at once, and what it gets was read after it asked.
type points struct {
	reader *ent.Client

	mu sync.Mutex
	of map[pointShape]*rounds.Lookup[*ent.Run]
}

// pointShape is what requests have in common that may share a statement.
type pointShape struct {
	instance    bool   // every workspace is seen
	workspaceID xid.ID // the only one that is seen, otherwise
	columns     string // "": all
}

// find reads one run with the columns; none: all of them. Nil: there is no such run for the caller, who is no agent: what an agent
// sees is a matter of its own.
func (p *points) find(ctx context.Context, caller auth.Principal, id xid.ID, columns []string) (*ent.Run, error) {
	x, found, err := p.lookup(caller, columns).Find(ctx, string(id))
	if err != nil || !found {
		return nil, err
	}
	own := *x // others may be given the same row
	if l, ok := ctx.Value(loadersKey{}).(*loaders); ok && l.expects {
		l.expect([]*ent.Run{&own})
	}
	return &own, nil
}

func (p *points) lookup(caller auth.Principal, columns []string) *rounds.Lookup[*ent.Run] {
	shape := pointShape{columns: strings.Join(columns, " "), instance: caller.IsInstance()}
	if !shape.instance {
		shape.workspaceID = caller.WorkspaceID
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.of[shape]
	if l == nil {
		if p.of == nil || len(p.of) >= pointsShapes { // those in use are soon there again
			p.of = map[pointShape]*rounds.Lookup[*ent.Run]{}
		}
		l = rounds.New(pointsMost, pointsLimit, func(ctx context.Context, ids []string) (map[string]*ent.Run, error) {
			return p.read(ctx, shape, columns, ids)
		})
		p.of[shape] = l
	}
	return l
}

// read reads runs as a caller who sees what the shape says.
func (p *points) read(ctx context.Context, shape pointShape, columns, ids []string) (map[string]*ent.Run, error) {
	caller := auth.Principal{WorkspaceID: shape.workspaceID}
	if shape.instance {
		caller = auth.Local()
	}
	q := p.reader.Run.Query().Where(reads.RunIDs(ids))
	if len(columns) > 0 {
		q.Select(columns...)
	}
	rows, err := q.All(auth.WithPrincipal(ctx, caller))
	if err != nil {
		return nil, err
	}
	found := make(map[string]*ent.Run, len(rows))
	for _, x := range rows {
		found[string(x.ID)] = x
	}
	return found, nil
}
