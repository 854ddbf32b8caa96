package testgraph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// Resolver answers every field.
type Resolver struct {
	// Live counts the subscriptions whose source has not ended.
	Live atomic.Int64
	// Calls counts resolver calls of Query.heavy and Mutation.touch.
	Calls atomic.Int64
	// Fail answers Query.fail, and the errors of Failing.value and Subscription.broken.
	Fail func(with string) error
	// EndStream ends Subscription.lagging; it stands for what a resolver calls to end a stream with an error.
	EndStream func(ctx context.Context, err error)
}

func (r *Resolver) Query() QueryResolver               { return query{r} }
func (r *Resolver) Mutation() MutationResolver         { return mutation{r} }
func (r *Resolver) Subscription() SubscriptionResolver { return subscription{r} }
func (r *Resolver) Item() ItemResolver                 { return item{} }
func (r *Resolver) Failing() FailingResolver           { return failing{r} }

type (
	query        struct{ *Resolver }
	mutation     struct{ *Resolver }
	subscription struct{ *Resolver }
	item         struct{}
	failing      struct{ *Resolver }
)

// page echoes the sizes the resolver was given.
func page(prefix string, first, last *int) *ItemConnection {
	n := 0
	if first != nil {
		n = *first
	} else if last != nil {
		n = *last
	}
	c := &ItemConnection{TotalCount: 1000, First: first, Last: last}
	for i := range n {
		c.Edges = append(c.Edges, &ItemEdge{Node: &Item{ID: fmt.Sprint(prefix, i), Name: "item"}, Cursor: fmt.Sprint(i)})
	}
	return c
}

func (query) Hello(context.Context) (string, error)  { return "world", nil }
func (query) Maybe(context.Context) (*string, error) { return nil, nil }
func (query) Node(_ context.Context, id string) (*Item, error) {
	return &Item{ID: id, Name: "item"}, nil
}

func (query) Echo(_ context.Context, n *int, s *string, f *float64, list [][]int, at *Instant) (string, error) {
	return fmt.Sprint(n != nil, s != nil, f != nil, len(list), at != nil), nil
}
func (query) Pick(context.Context, Pick) (string, error)     { return "picked", nil }
func (query) Picks(context.Context, []*Pick) (string, error) { return "picked", nil }
func (query) Sort(_ context.Context, o *Order) (string, error) {
	return fmt.Sprint(o != nil), nil
}

func (query) Items(_ context.Context, first *int, _ *string, last *int, _ *string) (*ItemConnection, error) {
	return page("", first, last), nil
}

func (query) Events(_ context.Context, first *int, _ *string) (*ItemConnection, error) {
	return page("", first, nil), nil
}

func (query) Forward(_ context.Context, first *int) (*ItemConnection, error) {
	return page("", first, nil), nil
}
func (query) Upcoming(context.Context, int) ([]*Item, error) { return []*Item{}, nil }
func (query) ByIds(_ context.Context, ids []string) ([]*Item, error) {
	return make([]*Item, 0, len(ids)), nil
}

func (q query) Heavy(context.Context) (string, error) {
	q.Calls.Add(1)
	return "done", nil
}
func (query) List(context.Context) ([]*Item, error) { return []*Item{{ID: "1", Name: "item"}}, nil }

func (q query) Fail(_ context.Context, with string) (*string, error) {
	if with == "panic" {
		panic("the secret of the panic")
	}
	return nil, q.Resolver.Fail(with)
}
func (query) Must(context.Context) (string, error) { return "", errors.New("no value for must") }

func (query) Failures(_ context.Context, n int) ([]*Failing, error) {
	out := make([]*Failing, n)
	for i := range out {
		out[i] = &Failing{}
	}
	return out, nil
}

func (query) Slow(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", fmt.Errorf("read rows: %w", ctx.Err())
}

func (f failing) Value(context.Context, *Failing) (*string, error) {
	return nil, errors.New("pq: relation secret_table does not exist")
}

func (m mutation) Touch(_ context.Context, id string) (string, error) {
	m.Calls.Add(1)
	return id, nil
}

func (mutation) Stall(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", errors.New("pq: canceling statement due to user request")
}

func (item) Parent(_ context.Context, i *Item) (*Item, error) { return i, nil }

func (item) Children(_ context.Context, i *Item, first *int, _ *string, last *int, _ *string) (*ItemConnection, error) {
	return page(i.ID+".", first, last), nil
}
func (item) Siblings(_ context.Context, i *Item) ([]*Item, error) { return []*Item{i}, nil }

// Ticks sends n texts of the given size, without end for n = 0.
func (s subscription) Ticks(ctx context.Context, n int, size *int) (<-chan string, error) {
	text := "tick"
	if size != nil {
		text = strings.Repeat("x", *size)
	}
	return s.source(ctx, func(send func(string) bool) {
		for i := 0; (n == 0 || i < n) && send(text); i++ {
		}
	}), nil
}

func (s subscription) Lagging(ctx context.Context) (<-chan string, error) {
	return s.source(ctx, func(send func(string) bool) {
		send("one")
		s.EndStream(ctx, s.Resolver.Fail("lagging"))
	}), nil
}

func (s subscription) Broken(context.Context) (<-chan string, error) {
	return nil, s.Resolver.Fail("broken")
}
func (subscription) Exploding(context.Context) (<-chan string, error) {
	panic("the secret of the panic")
}

func (s subscription) source(ctx context.Context, produce func(send func(string) bool)) <-chan string {
	out := make(chan string)
	s.Live.Add(1)
	go func() {
		defer s.Live.Add(-1)
		defer close(out)
		produce(func(text string) bool {
			select {
			case out <- text:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	return out
}
