package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/store"
)

func TestWhoSeesTheNumbersOfTheInstance(t *testing.T) {
	b := newBook()
	watcher, worker := "rse_"+strings.Repeat("c3", 22), "rse_"+strings.Repeat("d4", 22)
	b.known[digestOf(watcher)] = &store.Token{ID: "tok_2", Scopes: []domain.TokenScope{domain.TokenScopeRead}}
	b.known[digestOf(worker)] = &store.Token{ID: "tok_3", Scopes: []domain.TokenScope{domain.TokenScopeExecute}}
	strangers := edge.NewStrangers(edge.StrangerLimits{})
	w := &watchers{gatekeeper: &gatekeeper{tokens: b, sockets: &liveSockets{}}, strangers: strangers}
	numbers := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "numbers") })
	h := adminMux(strangers.Handler, func(context.Context) error { return nil }, numbers, w.gate)
	get := func(path, authorization string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		rw := httptest.NewRecorder()
		h.ServeHTTP(rw, r)
		return rw.Code, rw.Body.String()
	}
	for name, test := range map[string]struct {
		authorization string
		status        int
		says          string
	}{
		"nobody":                             {"", 401, "credentials_file"},
		"a token of nobody":                  {"Bearer " + watcher + "x", 401, "not known here"},
		"a password":                         {"Basic abc", 401, "Bearer <token>"},
		"a token of the instance that reads": {"Bearer " + watcher, 200, ""},
		"a token of one workspace":           {"Bearer " + apiToken, 403, "of one workspace"},
		"a worker's token":                   {"Bearer " + worker, 403, "may not READ"},
		"a token of a run":                   {"Bearer " + runToken, 403, "of one workspace"},
	} {
		for _, path := range []string{"/metrics", "/debug/vars"} {
			if status, body := get(path, test.authorization); status != test.status || !strings.Contains(body, test.says) {
				t.Errorf("%s, %s: %d %s", name, path, status, body)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := get(path, ""); status != 200 {
			t.Errorf("%s asks for a token: %d", path, status)
		}
	}

	b.change(func() { b.err = errors.New("away") })
	if status, body := get("/metrics", "Bearer "+watcher); status != 200 {
		t.Errorf("who was let in before, while the database is away: %d %s", status, body)
	}
	for name, token := range map[string]string{"another's token": apiToken, "a token that is new": watcher + "x"} {
		if status, body := get("/metrics", "Bearer "+token); status != 503 || !strings.Contains(body, "does not answer") {
			t.Errorf("%s, while the database is away: %d %s", name, status, body)
		}
	}
	b.change(func() { b.err = nil; delete(b.known, digestOf(watcher)) })
	if status, _ := get("/metrics", "Bearer "+watcher); status != 401 {
		t.Errorf("a revoked token: %d", status)
	}
	b.change(func() { b.err = errors.New("away") })
	if status, _ := get("/metrics", "Bearer "+watcher); status != 503 {
		t.Errorf("a token that was known as revoked, while the database is away: %d", status)
	}
}
