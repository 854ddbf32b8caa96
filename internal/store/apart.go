package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/xid"
)

// apart does something for many at once. When that fails it does it for each half, and so on: what is at fault fails alone
// and keeps no other. It returns the errors as blame words them for those they are about. A lost connection or an ended
// context fails everything, and nothing more is tried.
func apart[T any](ctx context.Context, all []T, do func([]T) error, blame func([]T, error) error) []error {
	if len(all) == 0 {
		return nil
	}
	err := do(all)
	if err == nil {
		return nil
	}
	if len(all) == 1 || ctx.Err() != nil || isConnectionError(err) {
		return []error{blame(all, err)}
	}
	half := len(all) / 2
	return append(apart(ctx, all[:half], do, blame), apart(ctx, all[half:], do, blame)...)
}

// appendError appends an error that is one.
func appendError(list []error, err error) []error {
	if err == nil {
		return list
	}
	return append(list, err)
}

// named is how an error names records: the first one, and how many more there are.
func named(kind string, list []xid.ID) string {
	if len(list) == 1 {
		return kind + " " + string(list[0])
	}
	return fmt.Sprintf("%s %s and %d more", kind, list[0], len(list)-1)
}

// once leaves out what a list holds again.
func once[T comparable](list []T) []T {
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

// remaining is a list less what another one holds.
func remaining[T comparable](list, gone []T) []T {
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
