package graph_test

import (
	"strings"
	"testing"
)

type tokenAnswer struct {
	APIToken     *struct{ ID, Prefix string }
	Token        *string
	TokenMessage *string
	Replayed     bool
}

func (w *world) createToken(input map[string]any) (tokenAnswer, string) {
	w.t.Helper()
	all := map[string]any{"workspaceId": w.workspace, "name": "ci", "scopes": []string{"READ"}}
	for k, v := range input {
		all[k] = v
	}
	var out struct{ CreateApiToken tokenAnswer }
	problems := w.mutate("createApiToken", "apiToken { id prefix } token tokenMessage replayed", all, &out)
	return out.CreateApiToken, problems
}

// A call for a token that is made again makes no second one. Its value is in the first answer alone, and the second says so.
func TestATokenIsMadeOnceForAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, problems := w.createToken(map[string]any{"idempotencyKey": "k"})
	if problems != "" || first.Token == nil || !strings.HasPrefix(*first.Token, "rse_") || first.Replayed || first.TokenMessage != nil {
		t.Fatalf("%s, %+v", problems, first)
	}
	again, problems := w.createToken(map[string]any{"idempotencyKey": "k"})
	if problems != "" || again.APIToken == nil || again.APIToken.ID != first.APIToken.ID || again.Token != nil || !again.Replayed {
		t.Errorf("%s, %+v", problems, again)
	}
	if m := again.TokenMessage; m == nil || !strings.Contains(*m, "revokeApiToken") || !strings.Contains(*m, "new key") {
		t.Errorf("the replay does not say what to do: %+v", again)
	}
	for name, input := range map[string]map[string]any{
		"another name": {"name": "cd"}, "more scopes": {"scopes": []string{"READ", "ADMIN"}}, "an end": {"expiresAt": "2999-01-01T00:00:00Z"},
	} {
		input["idempotencyKey"] = "k"
		if got, problems := w.createToken(input); problems != "IDEMPOTENCY_KEY_REUSED input.idempotencyKey" || got.Token != nil || got.APIToken != nil {
			t.Errorf("%s by the same key: %q, %+v", name, problems, got)
		}
	}
	if got, problems := w.createToken(map[string]any{"idempotencyKey": ""}); problems != "INVALID input.idempotencyKey" || got.Token != nil {
		t.Errorf("an empty key: %q", problems)
	}
	instance, problems := w.createToken(map[string]any{"workspaceId": nil, "idempotencyKey": "k"})
	if problems != "" || instance.Token == nil || instance.Replayed {
		t.Errorf("the same key for a token of the instance: %q, %+v", problems, instance)
	}
	if n := w.one(`SELECT count(*) FROM api_tokens`); n != "2" {
		t.Errorf("%s tokens", n)
	}
	if kept := w.one(`SELECT string_agg(k::text, '') FROM mutation_keys k`); strings.Contains(kept, *first.Token) {
		t.Errorf("the value is kept: %s", kept)
	}
	if other, _ := w.createToken(nil); other.Token == nil || other.Replayed {
		t.Errorf("without a key: %+v", other)
	}
}

// acquireRun says whether it lends an attempt once more.
func TestAcquireRunSaysThatItIsAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.pullAgent())
	acquire := func(key any) (lease, replayed bool) {
		t.Helper()
		var out struct {
			AcquireRun struct {
				Lease    *struct{ Attempt int }
				Replayed bool
			}
		}
		if e := w.mutate("acquireRun", "lease { attempt } replayed", map[string]any{"workspaceId": w.workspace, "queue": "gpu", "idempotencyKey": key}, &out); e != "" {
			t.Fatal(e)
		}
		return out.AcquireRun.Lease != nil, out.AcquireRun.Replayed
	}
	if lease, replayed := acquire("call"); !lease || replayed {
		t.Errorf("first: %t, %t", lease, replayed)
	}
	if lease, replayed := acquire("call"); !lease || !replayed {
		t.Errorf("again: %t, %t", lease, replayed)
	}
	if lease, replayed := acquire("other"); lease || replayed {
		t.Errorf("another call: %t, %t", lease, replayed)
	}
}
