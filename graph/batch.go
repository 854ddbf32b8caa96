package graph

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vikstrous/dataloadgen"

	"rouse.dev/rouse/internal/xid"
)

// siblings are ids whose values are read together, however late one of them is asked for.
type siblings struct{ ids []xid.ID }

// batch collects the ids that one level of a response asks for and reads them in one statement. Ids that are expected
// together are read together at the first question for one of them; others wait a millisecond for each other. An id without
// a row, or of another workspace, gives the zero value. Each id is read once.
type batch[T any] struct {
	what  string
	read  func(context.Context, []xid.ID) (map[xid.ID]T, error)
	once  sync.Once
	inner *dataloadgen.Loader[*siblings, map[xid.ID]T] // made when it is first asked: most responses ask few of all batches
	mu    sync.Mutex
	of    map[xid.ID]*siblings
}

// newBatch makes a batch of a read that says what it reads.
func newBatch[T any](what string, read func(context.Context, []xid.ID) (map[xid.ID]T, error)) *batch[T] {
	return &batch[T]{what: what, read: read}
}

// loader is what waits for ids and hands out what was read.
func (b *batch[T]) loader() *dataloadgen.Loader[*siblings, map[xid.ID]T] {
	b.once.Do(func() { b.inner = loaderOf(b.what, b.read) })
	return b.inner
}

func loaderOf[T any](what string, read func(context.Context, []xid.ID) (map[xid.ID]T, error)) *dataloadgen.Loader[*siblings, map[xid.ID]T] {
	return dataloadgen.NewLoader(func(ctx context.Context, groups []*siblings) ([]map[xid.ID]T, []error) {
		var ids []xid.ID
		for _, g := range groups {
			ids = append(ids, g.ids...)
		}
		found, err := read(ctx, ids)
		if err != nil {
			return nil, []error{fmt.Errorf("load %s: %w", what, err)}
		}
		out := make([]map[xid.ID]T, len(groups))
		for i := range groups {
			out[i] = found
		}
		return out, nil
	}, dataloadgen.WithWait(time.Millisecond), dataloadgen.WithBatchCapacity(500))
}

// expect says that these ids were read together, as the rows of a page are, so that the next levels ask for all of
// them. It does no harm when nothing is read: ids that nobody asks for stay unread.
func (b *batch[T]) expect(ids ...xid.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	group := &siblings{}
	for _, id := range ids {
		if id != "" && b.of[id] == nil {
			b.note(id, group)
			group.ids = append(group.ids, id)
		}
	}
}

// Load gives the value of one id.
func (b *batch[T]) Load(ctx context.Context, id xid.ID) (T, error) {
	found, err := b.loader().Load(ctx, b.siblingsOf(id))
	return found[id], err
}

// LoadAll gives the values of several ids, in their order.
func (b *batch[T]) LoadAll(ctx context.Context, ids []xid.ID) ([]T, error) {
	b.expect(ids...)
	thunks := make([]func() (map[xid.ID]T, error), len(ids))
	for i, id := range ids {
		thunks[i] = b.loader().LoadThunk(ctx, b.siblingsOf(id))
	}
	out := make([]T, len(ids))
	for i, id := range ids {
		found, err := thunks[i]()
		if err != nil {
			return nil, err
		}
		out[i] = found[id]
	}
	return out, nil
}

func (b *batch[T]) siblingsOf(id xid.ID) *siblings {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[id] == nil {
		b.note(id, &siblings{ids: []xid.ID{id}})
	}
	return b.of[id]
}

// note says which group an id is read with. b.mu is held.
func (b *batch[T]) note(id xid.ID, group *siblings) {
	if b.of == nil {
		b.of = map[xid.ID]*siblings{}
	}
	b.of[id] = group
}
