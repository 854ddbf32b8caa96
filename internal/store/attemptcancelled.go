package store

import (
	"context"

	"rouse.dev/rouse/internal/store/pgtx"
)

// Cancelled ends a live attempt whose owner obeyed the cancel. ErrFenced when it is not the live one any more.
func (s *Attempts) Cancelled(ctx context.Context, a Attempt, u Unfinished) error {
	return pgtx.Wrap("end a cancelled run", s.transit(ctx, &transition{Attempt: a, kind: toCancel, unfinished: u}))
}
