package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/config"
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
	token, err := createTestToken(t, s)
	if err != nil {
		t.Fatal(err)
	}
	public := httptest.NewServer(edge.JSONErrors(f.public(hooks, nil)))
	defer public.Close()
	const fire = "/api/routine-triggers/none/fire"
	long := `{"query":"{ __typename }","variables":{"x":"` + strings.Repeat("x", 300<<10) + `"}}`
	for _, tt := range []struct {
		name, method, path, body, token string
		headers                         [2]string
		status                          int
	}{
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
		{"a list of requests", "POST", "/graphql", `[{"query":"{ __typename }"}]`, token, [2]string{}, 400},
		{"an answer of another type", "POST", "/graphql", `{"query":"{ __typename }"}`, token, [2]string{"Accept", "image/png"}, 406},
		{"a subscription without a socket", "POST", "/graphql", `{"query":"subscription { loopLivenessChanged(workspaceId: \"wsp_00000000000000000000000000\") { verdict } }"}`, token, [2]string{}, 400},
		{"a webhook that is none", "POST", fire, "{}", "", [2]string{}, 404},
		{"another method at a webhook", "GET", fire, "", "", [2]string{}, 405},
		{"a packed body at a webhook", "POST", fire, "{}", "", [2]string{"Content-Encoding", "gzip"}, 415},
		{"another method at the health", "POST", "/healthz", "", "", [2]string{}, 405},
		{"another method at the readiness", "DELETE", "/readyz", "", "", [2]string{}, 405},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, public.URL+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if tt.token != "" {
				r.Header.Set("Authorization", "Bearer "+tt.token)
			}
			if tt.headers[0] != "" {
				r.Header.Set(tt.headers[0], tt.headers[1])
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
			if err := json.Unmarshal(body, &answer); err != nil || got.StatusCode != tt.status || !strings.Contains(got.Header.Get("Content-Type"), "json") {
				t.Fatalf("%d %s: %v: %.200s", got.StatusCode, got.Header.Get("Content-Type"), err, body)
			}
			code, message := answer.Error.Code, answer.Error.Message
			if len(answer.Errors) > 0 {
				code, message = answer.Errors[0].Extensions.Code, answer.Errors[0].Message
			}
			if code == "" || message == "" {
				t.Errorf("neither code nor message: %s", body)
			}
			if tt.status == 405 && got.Header.Get("Allow") == "" {
				t.Error("405 does not say which methods there are")
			}
		})
	}
}

// createTestToken makes a token of the instance that may do all.
func createTestToken(t *testing.T, s *store.Store) (string, error) {
	t.Helper()
	const text = "rse_test_of_refusals_0123456789012345678901234567890"
	_, err := s.CreateToken(t.Context(), store.NewToken{Name: "test", Prefix: "rse_", Digest: digestOf(text), Scopes: localScopes})
	return text, err
}
