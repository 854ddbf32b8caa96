package graph

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/topic"
)

// stream is one subscription at work. gqlgen takes items from a channel; a stream puts one in when gqlgen is about to
// take it. So a watcher is one goroutine, which waits at its topic, and is not asked at all for an item that another
// watcher has written.
type stream struct {
	key topic.Key
	// next waits for an item, and gives what puts it in. Its error is io.EOF at the proper end.
	next func(context.Context) (shared *topic.Shared, put func() error, err error)
}

// unlike keeps a subscription from sharing texts with those that do not have the same difference.
func (s *stream) unlike(difference string) {
	s.key = sha256.Sum256(append(s.key[:], difference...))
}

type streamKey struct{}

// withStream lets the resolver of a subscription say where its items come from.
func withStream(ctx context.Context, s *stream) context.Context {
	return context.WithValue(ctx, streamKey{}, s)
}

// item is what a watcher is given: a value, and what others wrote of it.
type item[T any] struct {
	value  func() (T, error)
	shared *topic.Shared
}

// follow makes the channel that gqlgen wants, and lets the items come from next.
func follow[T any](ctx context.Context, next func(context.Context) (item[T], error)) <-chan T {
	out := make(chan T, 1)
	s := ctx.Value(streamKey{}).(*stream)
	s.next = func(ctx context.Context) (*topic.Shared, func() error, error) {
		it, err := next(ctx)
		return it.shared, func() error {
			value, err := it.value()
			if err == nil {
				out <- value
			}
			return err
		}, err
	}
	return out
}

// respond gives the next response of a subscription, nil at its end. write is gqlgen's, for an item that was put in.
func (r *Resolver) respond(ctx context.Context, s *stream, write graphql.ResponseHandler) *graphql.Response {
	if s.next == nil { // refused before it began
		return write(ctx)
	}
	shared, put, err := s.next(ctx)
	if err != nil {
		return r.endStream(ctx, err)
	}
	var own *graphql.Response
	text, wrote := shared.Text(ctx, s.key, func() []byte {
		own, err = written(ctx, put, write)
		return sharable(ctx, own)
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case text != nil:
		return &graphql.Response{Data: text}
	case !wrote:
		own, err = written(ctx, put, write)
	}
	if err != nil {
		return r.endStream(ctx, err)
	}
	return own
}

// written writes an item for one watcher.
func written(ctx context.Context, put func() error, write graphql.ResponseHandler) (*graphql.Response, error) {
	if err := put(); err != nil {
		return nil, err
	}
	return write(ctx), nil
}

// sharable is the text of a response that is as good for others. One with errors is its watcher's own.
func sharable(ctx context.Context, own *graphql.Response) []byte {
	if own == nil || len(own.Errors) > 0 || len(graphql.GetErrors(ctx)) > 0 || ctx.Err() != nil {
		return nil
	}
	return bytes.Clone(own.Data) // gqlgen writes the next one into the same memory
}

// endStream ends a subscription, and tells the edge why when that is not its proper end.
func (r *Resolver) endStream(ctx context.Context, err error) *graphql.Response {
	if ctx.Err() == nil && !errors.Is(err, io.EOF) {
		r.EndStream(ctx, err)
	}
	return nil
}

// followLog follows a log topic; show makes of an entry what the API shows, and cursor writes a place.
func followLog[P topic.Place[P], R, T any](ctx context.Context, f *topic.Follower[P, R], patience time.Duration, show func(*topic.Entry[P, R]) (T, error), cursor func(P) string) <-chan T {
	return follow(ctx, func(ctx context.Context) (item[T], error) {
		e, err := f.Next(ctx)
		if lagged, ok := errors.AsType[*topic.LaggedError[P]](err); ok {
			return item[T]{}, laggedAt(cursor(lagged.At), patience)
		}
		if err != nil {
			return item[T]{}, err
		}
		return item[T]{func() (T, error) { return show(e) }, &e.Shared}, nil
	})
}

func laggedAt(cursor string, patience time.Duration) error {
	return &Error{
		Code:       CodeSubscriptionLagged,
		Message:    fmt.Sprintf("the reader did not take an event for %s, so the stream was ended; subscribe again with after: resumeAfter", patience),
		Extensions: map[string]any{"resumeAfter": cursor},
	}
}

// followState follows a state topic.
func followState[T any](ctx context.Context, f *topic.StateFollower[T]) <-chan *T {
	return follow(ctx, func(ctx context.Context) (item[*T], error) {
		r, err := f.Next(ctx)
		if err != nil {
			return item[*T]{}, err
		}
		return item[*T]{func() (*T, error) { return r.State, nil }, &r.Shared}, nil
	})
}

// told says whether an error is meant for watchers, and ends their stream.
func told(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// eventOf shows an event that ends at a position.
func eventOf(e reads.RunEvent, at position) (*model.RunEvent, error) {
	data, err := objectOrEmpty(e.Data)
	if err != nil {
		return nil, fmt.Errorf("read data of event %d of run %s: %w", e.Seq, at.run, err)
	}
	out := &model.RunEvent{Cursor: at.cursor(), Kind: e.Kind, Data: data, OccurredAt: e.OccurredAt}
	if e.Attempt != 0 {
		out.Attempt = &e.Attempt
	}
	return out, nil
}

func lineOf(l reads.LogRow, at position) *model.RunLogLine {
	return &model.RunLogLine{Cursor: at.cursor(), Stream: l.Stream, Text: l.Text, At: l.At}
}
