package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
)

// S10.1: that the use of a token cannot be noted keeps nobody out; it is logged, once, with the token's id.
func TestATokenIsGoodThoughItsUseCannotBeNoted(t *testing.T) {
	t.Parallel()
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

// Who made or ended a token, and what it may do, is in the workspace's feed once, and in the log also for tokens of the instance;
// neither has the token, or what it is found by.
func TestTokensAreToldWithoutTheirSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var text bytes.Buffer
	w.Store = New(w.db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.NewTextHandler(&text, nil))})
	owner := auth.WithPrincipal(t.Context(), auth.Principal{Kind: auth.KindToken, TokenID: "tok_owner"})
	made := NewToken{WorkspaceID: w.workspace, Name: "ci", Prefix: "rse_abcd", Digest: "secret-digest", Scopes: []domain.TokenScope{domain.TokenScopeRead}}
	id := must(w, first(w.CreateToken(owner, made)), nil)
	if again := must(w, first(w.CreateToken(owner, made)), nil); again != id {
		t.Errorf("given again it is %s", again)
	}
	w.ok(w.RevokeToken(owner, w.workspace, id))
	w.ok(w.RevokeToken(owner, w.workspace, id))
	told := one[string](w, `SELECT string_agg(concat_ws(' ', code, actor_kind, actor, subject_id, data->>'tokenId', data->>'name', data->>'prefix', data->>'scopes'), '; ' ORDER BY id) FROM activities WHERE code::text LIKE 'TOKEN%'`)
	about := " USER tok_owner " + string(id) + " " + string(id) + ` ci rse_abcd ["READ"]`
	if told != "TOKEN_CREATED"+about+"; TOKEN_REVOKED"+about {
		t.Errorf("the feed tells %s", told)
	}
	instance := must(w, first(w.CreateToken(owner, NewToken{Name: "all", Digest: "other-digest", Scopes: made.Scopes})), nil)
	w.ok(w.RevokeTokensBefore(owner, "tok_next", "all", ""))
	if n := one[int](w, `SELECT count(*) FROM activities WHERE code::text LIKE 'TOKEN%'`); n != 2 {
		t.Errorf("the feed has %d entries about tokens, also of the instance", n)
	}
	log := text.String()
	for _, line := range []string{"msg=token_created token_id=" + string(instance), "msg=token_revoked token_id=" + string(instance)} {
		if strings.Count(log, line) != 1 || !strings.Contains(log, "actor_kind=user actor=tok_owner") {
			t.Errorf("%s is not there once in\n%s", line, log)
		}
	}
	if everything := log + one[string](w, `SELECT string_agg(a::text, ' ') FROM activities a`); strings.Contains(everything, "digest") {
		t.Errorf("the digest is told:\n%s", everything)
	}
}
