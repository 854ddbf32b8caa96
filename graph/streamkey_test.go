package graph

import (
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Texts are shared between those who would be sent the same, and between nobody else.
func TestWhoSharesTheTextOfAnItem(t *testing.T) {
	t.Parallel()
	const query = `subscription A($run: ID!, $after: StreamCursor, $n: Int) { runUpdated(runId: $run, after: $after) { ...f } } fragment f on Run { wakeupRequests(first: $n) { totalCount } }`
	read := []domain.TokenScope{domain.TokenScopeRead}
	one, two := xid.New("wsp"), xid.New("wsp")
	type asked struct {
		query     string
		variables map[string]any
		caller    auth.Principal
	}
	token := func(workspace xid.ID, scopes ...domain.TokenScope) auth.Principal {
		return auth.Principal{Kind: auth.KindToken, TokenID: xid.New("tok"), WorkspaceID: workspace, Scopes: scopes}
	}
	key := func(a asked) [32]byte {
		doc, err := parser.ParseQuery(&ast.Source{Input: a.query})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range doc.Operations { // as validation does
			for _, s := range op.SelectionSet {
				for _, below := range s.(*ast.Field).SelectionSet {
					if spread, ok := below.(*ast.FragmentSpread); ok {
						spread.Definition = doc.Fragments.ForName(spread.Name)
					}
				}
			}
		}
		return keyOf(auth.WithPrincipal(t.Context(), a.caller), &graphql.OperationContext{RawQuery: a.query, OperationName: "A", Operation: doc.Operations[0], Variables: a.variables})
	}
	mine := asked{query, map[string]any{"run": "run_1", "after": "c1", "n": 3}, token(one, read...)}
	for _, c := range []struct {
		name   string
		other  asked
		shares bool
	}{
		{"another token of the workspace with the same scopes", asked{query, mine.variables, token(one, read...)}, true},
		{"who goes on from another cursor", asked{query, map[string]any{"run": "run_1", "after": "c2", "n": 3}, mine.caller}, true},
		{"a variable of the selections with another value", asked{query, map[string]any{"run": "run_1", "after": "c1", "n": 4}, mine.caller}, false},
		{"a token of another workspace", asked{query, mine.variables, token(two, read...)}, false},
		{"a token of the instance", asked{query, mine.variables, token("", read...)}, false},
		{"a token with other scopes", asked{query, mine.variables, token(one, domain.TokenScopeAdmin)}, false},
		{"the token of a run", asked{query, mine.variables, auth.Principal{Kind: auth.KindRun, WorkspaceID: one, RunID: xid.New("run")}}, false},
		{"the owner of a server without tokens", asked{query, mine.variables, auth.Local()}, false},
		{"another document", asked{query + " ", mine.variables, mine.caller}, false},
	} {
		if got := key(mine) == key(c.other); got != c.shares {
			t.Errorf("%s: shares is %t", c.name, got)
		}
	}
}
