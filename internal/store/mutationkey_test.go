package store

import (
	"errors"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

func TestAnIdempotencyKeyIsMeasuredInCharacters(t *testing.T) {
	t.Parallel()
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

// A request lives longer than the key of the mutation that made it, and so does what it recognises (SPEC S3.3).
func TestAWakeWithTheKeyOfARequestThatIsThereSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	wake := func() Made {
		t.Helper()
		made, err := w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann", Idempotency: Idempotency{Key: "daily", InputDigest: "d"}})
		w.ok(err)
		return made
	}
	first := wake()
	w.sql(`UPDATE mutation_keys SET created_at = created_at - interval '25 hours'`)
	if again := wake(); again.ID != first.ID || !again.Replayed || first.Replayed {
		t.Errorf("the first wake made %+v, the second %+v", first, again)
	}
}

func TestAnAgentsKeyIsKeptAsItsDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := auth.WithPrincipal(t.Context(), auth.Principal{Kind: auth.KindRun, WorkspaceID: w.workspace, AgentID: "agt_1", TaskID: "tsk_1"})
	in := Wake{WorkspaceID: w.workspace, AgentID: w.agent("a"), UserID: "ann", Idempotency: Idempotency{Key: "hunter2", InputDigest: "x"}}
	first, err := w.Wake(ctx, in)
	w.ok(err)
	again, err := w.Wake(ctx, in)
	w.ok(err)
	if n := one[int](w, `SELECT count(*) FROM mutation_keys WHERE key LIKE '%hunter2%'`); n != 0 || !again.Replayed || again.ID != first.ID {
		t.Errorf("%d keys in clear, then %+v and %+v", n, first, again)
	}
}
