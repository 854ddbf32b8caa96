package edge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// Whoever refuses, a program reads the same form; a person's browser keeps the text.
func TestErrorsHaveOneForm(t *testing.T) {
	f := newFixture(t, Options{})
	mux := http.NewServeMux()
	mux.Handle("/graphql", f)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "come back later", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotImplemented) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<p>none")
	})
	h := JSONErrors(mux)
	for _, tt := range []struct {
		method, path, accept, upgrade string
		status                        int
		code, says                    string // code "": no JSON error
	}{
		{"GET", "/healthz", "", "", 200, "", "ok"},
		{"POST", "/healthz", "", "", 405, CodeBadRequest, "Method Not Allowed"},
		{"GET", "/nothing", "", "", 404, CodeNotFound, "404 page not found"},
		{"GET", "/nothing", "text/html,*/*", "", 404, "", "404 page not found"},
		{"GET", "/busy", "application/json", "", 503, CodeUnavailable, "come back later"},
		{"GET", "/empty", "", "", 501, CodeInternal, "Not Implemented"},
		{"GET", "/page", "", "", 404, "", "<p>none"},
		{"PUT", "/graphql", "", "", 405, CodeBadRequest, "GET and POST"},
		{"GET", "/graphql", "", "websocket", 426, CodeBadRequest, "WebSocket"},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Header.Set("Accept", tt.accept)
			if tt.upgrade != "" {
				r.Header.Set("Upgrade", tt.upgrade)
			}
			got := do(t, h, r)
			if got.status != tt.status || got.code() != tt.code || !strings.Contains(got.text, tt.says) {
				t.Errorf("%d %s", got.status, got.text)
			}
		})
	}
	ts := httptest.NewServer(h)
	defer ts.Close()
	c, resp, err := websocket.Dial(t.Context(), ts.URL+"/graphql", &websocket.DialOptions{Subprotocols: []string{subprotocol}})
	if err != nil {
		t.Fatalf("a socket: %v %v", resp, err)
	}
	_ = c.CloseNow() // it was only to open
	if err := f.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
