package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/webhook"
)

// Whatever path refuses a program, the answer is JSON, and one class of refusal has one status.
func TestEveryRefusalIsJSONWithTheStatusOfItsClass(t *testing.T) {
	db, _ := pgtest.NewURL(t)
	s := store.New(db, store.Options{Log: quiet()})
	c := config.Default()
	c.Addr, c.WebhookAddr = "127.0.0.1:0", ""
	f, err := listen(t.Context(), c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.closeListeners(); err != nil {
			t.Error(err)
		}
	}()
	g := &gatekeeper{tokens: s, sockets: &liveSockets{}}
	f.api = edge.New(graph.NewSchema(graph.Resolver{Store: s, Reader: s.Reader(), Log: quiet()}),
		edge.Options{Authenticate: g.authenticate, Refused: refused, PresentError: newOutage(nil, quiet()).presentError, Log: quiet()})
	hooks := http.NewServeMux()
	hooks.Handle(webhook.Path, webhook.New(s.Routines, nil, nil, quiet()))
	token, worker := createTestToken(t, s, "reads", localScopes), createTestToken(t, s, "works", []domain.TokenScope{domain.TokenScopeExecute})
	served := serveAll(t, f, hooks, &watchers{gatekeeper: g, strangers: f.strangers})
	const fire = "/api/routine-triggers/none/fire"
	long := `{"query":"{ __typename }","variables":{"x":"` + strings.Repeat("x", 300<<10) + `"}}`
	for at, rows := range map[string][]refusedCall{
		"the public listener": {
			{"a path where nothing is", "GET", "/nothing/here", "", "", [2]string{}, 404},
			{"a path of the API where nothing is", "POST", "/graphql/x", "{}", token, [2]string{}, 404},
			{"no token", "POST", "/graphql", `{"query":"{ __typename }"}`, "", [2]string{}, 401},
			{"a token that is none", "POST", "/graphql", `{"query":"{ __typename }"}`, "rse_nonsense", [2]string{}, 401},
			{"another method at the API", "PUT", "/graphql", "{}", token, [2]string{}, 405},
			{"DELETE at the API", "DELETE", "/graphql", "", token, [2]string{}, 405},
			{"a document that does not fit the schema", "GET", "/graphql?query=%7Bx%7D", "", token, [2]string{"Accept", "application/graphql-response+json"}, 400},
			{"a form", "POST", "/graphql", "query=x", token, [2]string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
			{"no type of the body", "POST", "/graphql", "{}", token, [2]string{"Content-Type", ""}, 415},
			{"a body that is packed", "POST", "/graphql", "{}", token, [2]string{"Content-Encoding", "gzip"}, 415},
			{"a body that is too long", "POST", "/graphql", long, token, [2]string{}, 413},
			{"a body that is no JSON", "POST", "/graphql", "{", token, [2]string{}, 400},
			{"members in another case", "POST", "/graphql", `{"Query":"{ __typename }"}`, token, [2]string{}, 400},
			{"a member twice", "POST", "/graphql", `{"query":"{ __typename }","query":"{ x }"}`, token, [2]string{}, 400},
			{"a list of requests", "POST", "/graphql", `[{"query":"{ __typename }"}]`, token, [2]string{}, 400},
			{"an answer of another type", "POST", "/graphql", `{"query":"{ __typename }"}`, token, [2]string{"Accept", "image/png"}, 406},
			{"a subscription without a socket", "POST", "/graphql", `{"query":"subscription { loopLivenessChanged(workspaceId: \"wsp_00000000000000000000000000\") { verdict } }"}`, token, [2]string{}, 400},
			{"a webhook that is none", "POST", fire, "{}", "", [2]string{}, 404},
			{"another method at a webhook", "GET", fire, "", "", [2]string{}, 405},
			{"a packed body at a webhook", "POST", fire, "{}", "", [2]string{"Content-Encoding", "gzip"}, 415},
			{"another method at the health", "POST", "/healthz", "", "", [2]string{}, 405},
			{"another method at the readiness", "DELETE", "/readyz", "", "", [2]string{}, 405},
			{"a header that is too long", "POST", "/graphql", `{"query":"{ __typename }"}`, token, [2]string{"X-Long", strings.Repeat("x", 100<<10)}, 431},
		},
		"the listener of webhooks": {
			{"a path where nothing is", "GET", "/nothing/here", "", "", [2]string{}, 404},
			{"the API", "POST", "/graphql", `{"query":"{ __typename }"}`, token, [2]string{}, 404},
			{"the numbers", "GET", "/metrics", "", token, [2]string{}, 404},
			{"the readiness", "GET", "/readyz", "", token, [2]string{}, 404},
			{"a webhook that is none", "POST", fire, "{}", "", [2]string{}, 404},
			{"another method at a webhook", "GET", fire, "", "", [2]string{}, 405},
			{"a packed body at a webhook", "POST", fire, "{}", "", [2]string{"Content-Encoding", "gzip"}, 415},
			{"another method at the health", "DELETE", "/healthz", "", "", [2]string{}, 405},
			{"a header that is too long", "GET", "/healthz", "", "", [2]string{"X-Long", strings.Repeat("x", 100<<10)}, 431},
		},
		"the operator's listener": {
			{"a path where nothing is", "GET", "/nothing/here", "", token, [2]string{}, 404},
			{"the API", "POST", "/graphql", `{"query":"{ __typename }"}`, token, [2]string{}, 404},
			{"a webhook", "POST", fire, "{}", "", [2]string{}, 404},
			{"the numbers, without a token", "GET", "/metrics", "", "", [2]string{}, 401},
			{"the numbers, with a token that is none", "GET", "/debug/vars", "", "rse_nonsense", [2]string{}, 401},
			{"the numbers, with a token that may not read", "GET", "/metrics", "", worker, [2]string{}, 403},
			{"another method at the numbers", "POST", "/metrics", "{}", token, [2]string{}, 405},
			{"another method at the variables", "DELETE", "/debug/vars", "", token, [2]string{}, 405},
			{"another method at the health", "POST", "/healthz", "", "", [2]string{}, 405},
			{"the readiness while nothing works", "GET", "/readyz", "", "", [2]string{}, 503},
			{"a header that is too long", "GET", "/metrics", "", token, [2]string{"X-Long", strings.Repeat("x", 100<<10)}, 431},
		},
	} {
		for _, tt := range rows {
			t.Run(at+", "+tt.name, func(t *testing.T) { tt.isRefused(t, served[at]) })
		}
	}
}

// refusedCall is a request that is refused with a status.
type refusedCall struct {
	name, method, path, body, token string
	headers                         [2]string
	status                          int
}

// isRefused sends the request and looks at the form of the answer.
func (c refusedCall) isRefused(t *testing.T, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.headers[0] != "" {
		r.Header.Set(c.headers[0], c.headers[1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
		Error struct{ Code, Message string } // of webhooks
	}
	if err := json.Unmarshal(body, &answer); err != nil || got.StatusCode != c.status || !strings.Contains(got.Header.Get("Content-Type"), "json") {
		t.Fatalf("%d %s: %v: %.200s", got.StatusCode, got.Header.Get("Content-Type"), err, body)
	}
	code, message := answer.Error.Code, answer.Error.Message
	if len(answer.Errors) > 0 {
		code, message = answer.Errors[0].Extensions.Code, answer.Errors[0].Message
	}
	if code == "" || message == "" {
		t.Errorf("neither code nor message: %s", body)
	}
	if c.status == 405 && got.Header.Get("Allow") == "" {
		t.Error("405 does not say which methods there are")
	}
}

// serveAll serves what the listeners of a process show, each on loopback as the process does, and returns the addresses.
func serveAll(t *testing.T, f *front, hooks http.Handler, w *watchers) map[string]string {
	t.Helper()
	away := func(context.Context) error { return errors.New("the database does not answer") }
	numbers := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { answer(rw, http.StatusOK, "numbers") })
	urls := map[string]string{}
	for at, h := range map[string]http.Handler{
		"the public listener": f.public(hooks, nil), "the listener of webhooks": f.webhookMux(hooks), "the operator's listener": adminMux(f.strangers.Handler, away, numbers, w.gate),
	} {
		l, err := take(t.Context(), "127.0.0.1:0", "--addr", config.EnvAddr)
		if err != nil {
			t.Fatal(err)
		}
		urls[at] = urlOf(l)
		f.start(l, h, func(err error) { t.Errorf("%s: %v", at, err) })
	}
	t.Cleanup(func() {
		for _, server := range f.servers {
			_ = server.Close() // what is open is the test's own
		}
		f.serving.Wait()
	})
	return urls
}

// createTestToken makes a token of the instance.
func createTestToken(t *testing.T, s *store.Store, name string, scopes []domain.TokenScope) string {
	t.Helper()
	text := "rse_test_of_refusals_" + name + "_0123456789012345678901234567890"
	if _, err := s.CreateToken(t.Context(), store.NewToken{Name: name, Prefix: "rse_", Digest: digestOf(text), Scopes: scopes}); err != nil {
		t.Fatal(err)
	}
	return text
}
