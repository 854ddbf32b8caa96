package store

import (
	"errors"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

func TestAnIdempotencyKeyIsMeasuredInCharacters(t *testing.T) {
	w := newWorld(t)
	in := Wake{WorkspaceID: w.workspace, AgentID: w.agent("a"), UserID: "ann", Idempotency: Idempotency{Key: strings.Repeat("é", 255), InputDigest: "x"}}
	first, err := w.Wake(t.Context(), in)
	w.ok(err)
	again, err := w.Wake(t.Context(), in)
	w.ok(err)
	if first.Replayed || !again.Replayed || again.ID != first.ID {
		t.Errorf("255 characters of two bytes: got %+v, then %+v", first, again)
	}
	in.Key += "é"
	var refused *domain.UserError
	if _, err := w.Wake(t.Context(), in); !errors.As(err, &refused) {
		t.Errorf("256 characters: got %v, want a refusal", err)
	}
}
