package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/config"
)

// What is put outside by --webhook-addr is webhooks and nothing else, and the other address has them no more.
func TestWebhooksOnAnAddressOfTheirOwn(t *testing.T) {
	hooks := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	})
	c := config.Default()
	c.Addr, c.WebhookAddr = "127.0.0.1:0", "127.0.0.1:0"
	f, err := listen(t.Context(), c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.closeListeners(); err != nil {
			t.Error(err)
		}
	}()
	if f.webhookURL() == f.url() || !strings.HasSuffix(f.webhookURL(), f.webhooks.Addr().String()) {
		t.Errorf("webhooks at %s, the API at %s", f.webhookURL(), f.url())
	}
	const fire = "/api/routine-triggers/abc/fire"
	apart, beside, listener := f.webhookMux(hooks), f.public(hooks, nil), f.webhooks
	f.webhooks = nil
	alone := f.public(hooks, nil)
	f.webhooks = listener
	for _, tt := range []struct {
		name         string
		at           http.Handler
		method, path string
		status       int
		says         string
	}{
		{"a webhook at its own address", apart, "POST", fire, 202, ""},
		{"a sign of life there", apart, "GET", "/healthz", 200, "ok"},
		{"whether the database answers, there", apart, "GET", "/readyz", 404, "only webhooks"},
		{"the API there", apart, "POST", "/graphql", 404, "only webhooks"},
		{"the console there", apart, "GET", "/", 404, "only webhooks"},
		{"a webhook at the API's address", beside, "POST", fire, 404, "--webhook-addr"},
		{"a webhook at the only address", alone, "POST", fire, 202, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			tt.at.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
