package pgtx

import (
	"context"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/xid"
)

// Bisect does something for many at once. When that fails, it bisects: it does it for each half, and so on. What is at
// fault then fails alone, and everything else is done. It returns the errors as blame words them for those they are
// about. A lost connection or an ended context fails everything, and nothing more is tried.
func Bisect[T any](ctx context.Context, all []T, do func([]T) error, blame func([]T, error) error) []error {
	if len(all) == 0 {
		return nil
	}
	err := do(all)
	if err == nil {
		return nil
	}
	if len(all) == 1 || EndsAll(ctx, err) {
		return []error{blame(all, err)}
	}
	half := len(all) / 2
	failed := Bisect(ctx, all[:half], do, blame)
	if EndsAll(ctx, errors.Join(failed...)) {
		return failed
	}
	return append(failed, Bisect(ctx, all[half:], do, blame)...)
}

// Together does calls of a batch at once, and bisects a batch that fails. do says what came of each, or why all failed. It
// returns what came of each in the end.
func Together[T any](ctx context.Context, batch []T, do func([]T) ([]error, error)) []error {
	results, places := make([]error, len(batch)), make([]int, len(batch))
	for i := range batch {
		places[i] = i
	}
	Bisect(ctx, places, func(some []int) error {
		part := make([]T, len(some))
		for i, place := range some {
			part[i] = batch[place]
		}
		each, err := do(part)
		for i, place := range some {
			if results[place] = err; err == nil {
				results[place] = each[i]
			}
		}
		return err
	}, func(_ []int, err error) error { return err })
	return results
}

// Each does something for one after the other, and goes on past those that fail. It returns those, and their errors joined
// as blame words them. A lost connection or an ended context ends it at once.
func Each[T any](ctx context.Context, all []T, do func(T) error, blame func(T, error) error) (failed []T, err error) {
	var problems []error
	for _, one := range all {
		err := do(one)
		if err == nil {
			continue
		}
		failed, problems = append(failed, one), append(problems, blame(one, err))
		if EndsAll(ctx, err) {
			break
		}
	}
	return failed, errors.Join(problems...)
}

// EndsAll says of an error that nothing else would succeed either: the connection is lost, or the context has ended.
func EndsAll(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || postgres.Away(err))
}

// Blaming words what went wrong with one record of many.
func Blaming(what string) func(xid.ID, error) error {
	return func(id xid.ID, err error) error { return fmt.Errorf("%s %s: %w", what, id, err) }
}

// AppendError appends an error that is one.
func AppendError(list []error, err error) []error {
	if err == nil {
		return list
	}
	return append(list, err)
}

// Named is how an error names records: the first one, and how many more there are.
func Named(kind string, list []xid.ID) string {
	if len(list) == 1 {
		return kind + " " + string(list[0])
	}
	return fmt.Sprintf("%s %s and %d more", kind, list[0], len(list)-1)
}

// Distinct leaves out what a list holds again.
func Distinct[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	var kept []T
	for _, v := range list {
		if !seen[v] {
			seen[v] = true
			kept = append(kept, v)
		}
	}
	return kept
}

// Remaining is a list less what another one holds.
func Remaining[T comparable](list, gone []T) []T {
	left := make(map[T]bool, len(gone))
	for _, v := range gone {
		left[v] = true
	}
	var kept []T
	for _, v := range list {
		if !left[v] {
			kept = append(kept, v)
		}
	}
	return kept
}
