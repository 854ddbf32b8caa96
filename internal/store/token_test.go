package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
)

// S10.1: that the use of a token cannot be noted keeps nobody out; it is logged, once, with the token's id.
func TestATokenIsGoodThoughItsUseCannotBeNoted(t *testing.T) {
	w := newWorld(t)
	var text bytes.Buffer
	w.Store = New(w.db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.NewTextHandler(&text, nil))})
	id := must(w, first(w.CreateToken(t.Context(), NewToken{WorkspaceID: w.workspace, Name: "ci", Digest: "digest", Scopes: []domain.TokenScope{domain.TokenScopeRead}})), nil)
	uses := func() int {
		return one[int](w, `SELECT count(*) FROM api_tokens WHERE last_used_at > clock_timestamp() - interval '1 minute'`)
	}
	w.refuse("UPDATE", "api_tokens", `true`)
	for range 2 {
		if token := must(w, first(w.TokenByDigest(t.Context(), "digest")), nil); token == nil || token.ID != id {
			t.Fatalf("the token is %+v", token)
		}
		w.TokenUsed(t.Context(), id)
	}
	if strings.Count(text.String(), "level=WARN") != 1 || !strings.Contains(text.String(), string(id)) || uses() != 0 {
		t.Errorf("log:\n%s", text.String())
	}
	w.sql(`DROP FUNCTION refuse() CASCADE`)
	must(w, first(w.TokenByDigest(t.Context(), "digest")), nil)
	if uses() != 0 {
		t.Error("a look alone is noted as a use")
	}
	holder := must(w, first(w.db.Begin()), nil)
	must(w, first(holder.Exec(`SELECT 1 FROM api_tokens FOR UPDATE`)), nil)
	w.TokenUsed(t.Context(), id) // it does not wait
	w.ok(holder.Rollback())
	if w.TokenUsed(t.Context(), id); uses() != 1 {
		t.Error("the use is not noted")
	}
}
