package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/pgtest"
)

// What is no cursor is found out by a library, deep within the schema: the caller reads our words for it.
func TestWhatIsNoCursorIsExplained(t *testing.T) {
	db, _ := pgtest.NewURL(t)
	s := NewTokens(&Database{DB: db, log: quiet()}).store
	if err := fillDemo(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	g := &gatekeeper{tokens: s, open: true, sockets: &liveSockets{}}
	o := newOutage(nil, quiet())
	api := edge.New(graph.NewSchema(graph.Resolver{Store: s, Reader: s.Reader(), Log: quiet()}), edge.Options{Authenticate: g.authenticate, Refused: refused, PresentError: o.presentError, Log: quiet()})
	for _, cursor := range []string{`"nonsense"`, `""`, `"gqFp"`, `["a"]`, `{a: 1}`, `true`, `7`} {
		r := httptest.NewRequest(http.MethodPost, graphqlPath, strings.NewReader(
			`{"query":"{ workspace(slug: \"demo\") { agents(first: 2, after: `+strings.ReplaceAll(cursor, `"`, `\"`)+`) { totalCount } } }"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		text := w.Body.String()
		if !strings.Contains(text, edge.CodeBadInput) || !strings.Contains(text, "send ") {
			t.Errorf("%s: %s", cursor, text)
		}
		for _, word := range []string{"msgpack", "interface", "int64", "bool", "EOF"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: %s", cursor, text)
			}
		}
	}
	if o.away.Load() {
		t.Error("what a caller sent is taken for an outage of the database")
	}
}

// A field of an input that needs a scope is refused while arguments are read, and yet as what it is.
func TestAFieldThatNeedsAScopeIsForbidden(t *testing.T) {
	db, _ := pgtest.NewURL(t)
	s := NewTokens(&Database{DB: db, log: quiet()}).store
	operate := func(ctx context.Context, _ edge.Credentials) (context.Context, error) {
		return auth.WithPrincipal(ctx, auth.Principal{Kind: auth.KindToken, Scopes: []domain.TokenScope{domain.TokenScopeOperate}}), nil
	}
	api := edge.New(graph.NewSchema(graph.Resolver{Store: s, Reader: s.Reader(), Log: quiet()}),
		edge.Options{Authenticate: operate, Refused: refused, PresentError: newOutage(nil, quiet()).presentError, Log: quiet()})
	r := httptest.NewRequest(http.MethodPost, graphqlPath, strings.NewReader(
		`{"query":"mutation { createTask(input: {workspaceId: \"wsp_01m8nt6xejfn5s0s7s1a5bjkwb\", title: \"x\", executor: {echo: {}}}) { task { id } } }"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	if want := `"extensions":{"code":"FORBIDDEN","field":["input","executor"],"scopes":["ADMIN"]}`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("%s, want %s", w.Body, want)
	}
}

func TestAnOperationCanAskWhatItCosts(t *testing.T) {
	db, _ := pgtest.NewURL(t)
	s := NewTokens(&Database{DB: db, log: quiet()}).store
	g := &gatekeeper{tokens: s, open: true, sockets: &liveSockets{}}
	api := edge.New(graph.NewSchema(graph.Resolver{Store: s, Reader: s.Reader(), OperationCost: operationCost, Log: quiet()}),
		edge.Options{Authenticate: g.authenticate, Log: quiet()})
	for query, want := range map[string]string{
		`{ operationCost { cost maxCost } }`:                                                      `{"cost":1,"maxCost":5000}`,
		`{ operationCost { cost maxCost } workspaces(first: 50) { edges { node { id name } } } }`: `{"cost":161,"maxCost":5000}`,
	} {
		r := httptest.NewRequest(http.MethodPost, graphqlPath, strings.NewReader(`{"query":"`+query+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if text := w.Body.String(); !strings.Contains(text, `"operationCost":`+want) {
			t.Errorf("%s: %s, want %s", query, text, want)
		}
	}
}
