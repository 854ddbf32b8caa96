package edge

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLocalOnly(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	type headers map[string]string
	tests := []struct {
		name, method, host string
		headers            headers
		why                string // "" when it passes
	}{
		{"localhost", "POST", "localhost:8080", nil, ""},
		{"localhost in capitals", "POST", "LOCALHOST", nil, ""},
		{"127.0.0.1", "POST", "127.0.0.1:8080", nil, ""},
		{"the rest of 127.0.0.0/8", "POST", "127.8.9.10", nil, ""},
		{"::1 with a port", "POST", "[::1]:8080", nil, ""},
		{"::1 without a port", "POST", "[::1]", nil, ""},
		{"a mapped loopback address", "POST", "[::ffff:127.0.0.1]:80", nil, ""},
		{"a proxy that says for whom it asks", "POST", "localhost:8080", headers{"X-Forwarded-For": "203.0.113.7"}, "X-Forwarded-For"},
		{"a proxy that says under which name", "GET", "127.0.0.1:8080", headers{"x-forwarded-host": "rouse.example"}, "X-Forwarded-Host"},
		{"a proxy that says by which scheme", "GET", "127.0.0.1:8080", headers{"X-Forwarded-Proto": "https"}, "X-Forwarded-Proto"},
		{"a header of proxies that says nothing", "GET", "127.0.0.1:8080", headers{"X-Forwarded-For": ""}, "X-Forwarded-For"},
		{"a proxy of the standard", "POST", "localhost:8080", headers{"Forwarded": "for=203.0.113.7"}, "Forwarded"},
		{"nginx's own header", "POST", "localhost:8080", headers{"X-Real-IP": "203.0.113.7"}, "X-Real-Ip"},
		{"a proxy that names itself", "POST", "localhost:8080", headers{"Via": "1.1 proxy"}, "Via"},
		{"a socket through a proxy", "GET", "localhost:8080", headers{"Upgrade": "websocket", "X-Forwarded-For": "203.0.113.7"}, "X-Forwarded-For"},
		{"another name", "GET", "evil.example:8080", nil, "DNS rebinding"},
		{"a name that begins like localhost", "GET", "localhost.evil.example", nil, "DNS rebinding"},
		{"a name that begins like an address", "GET", "127.0.0.1.evil.example", nil, "DNS rebinding"},
		{"an address of the network", "GET", "192.168.1.2:8080", nil, "DNS rebinding"},
		{"0.0.0.0", "GET", "0.0.0.0:8080", nil, "DNS rebinding"},
		{"no host", "GET", "", nil, "DNS rebinding"},
		{"its own page", "POST", "localhost:8080", headers{"Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}, ""},
		{"its own page in an old browser", "POST", "localhost:8080", headers{"Origin": "http://localhost:8080"}, ""},
		{"a foreign page", "POST", "localhost:8080", headers{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, "not on this machine"},
		{"a foreign page that reads", "GET", "localhost:8080", headers{"Origin": "https://evil.example"}, "not on this machine"},
		{"a foreign page that opens a socket", "GET", "localhost:8080", headers{"Origin": "https://evil.example", "Upgrade": "websocket"}, "not on this machine"},
		{"a sandboxed page", "GET", "localhost:8080", headers{"Origin": "null"}, "not on this machine"},
		{"a file page", "GET", "localhost:8080", headers{"Origin": "file://"}, "not on this machine"},
		{"another port of this machine that writes", "POST", "localhost:8080", headers{"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, "another origin"},
		{"another port in an old browser", "POST", "localhost:8080", headers{"Origin": "http://localhost:3000"}, "another origin"},
		{"a foreign page's picture", "GET", "localhost:8080", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, "another origin"},
		{"a link on a foreign page", "GET", "localhost:8080", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, ""},
		{"a form on a foreign page", "POST", "localhost:8080", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, "another origin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/graphql", nil)
			r.Host = tt.host
			for k, v := range tt.headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			LocalOnly(next).ServeHTTP(w, r)
			if tt.why == "" && w.Code != http.StatusNoContent {
				t.Errorf("refused: %s", w.Body)
			}
			if tt.why != "" && (w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), tt.why) || !strings.Contains(w.Body.String(), "start it without --auth none")) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

// A proxy that is set up in one line may say nothing of itself, and ask under the server's own name; nginx speaks HTTP/1.0 then.
func TestLocalOnlyRefusesTheSilentProxy(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for minor, want := range []int{http.StatusForbidden, http.StatusNoContent} {
		r := httptest.NewRequest("POST", "/graphql", nil)
		r.Host, r.ProtoMajor, r.ProtoMinor = "127.0.0.1:8080", 1, minor
		w := httptest.NewRecorder()
		LocalOnly(next).ServeHTTP(w, r)
		if w.Code != want || want == http.StatusForbidden && !strings.Contains(w.Body.String(), "HTTP/1.0") {
			t.Errorf("HTTP/1.%d: %d %s, want %d", minor, w.Code, w.Body, want)
		}
	}
}

func TestNewHTTPServer(t *testing.T) {
	type key struct{}
	base := context.WithValue(t.Context(), key{}, "base")
	var log logBuffer
	s := NewHTTPServer(base, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Context().Value(key{}).(string))
	}), slog.New(slog.NewTextHandler(&log, nil)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	resp, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "base" {
		t.Errorf("the context is not that of the server: %s", body)
	}
	if s.ReadHeaderTimeout == 0 || s.IdleTimeout == 0 || s.MaxHeaderBytes == 0 {
		t.Error("unbounded")
	}
	s.ErrorLog.Print("a complaint")
	if !strings.Contains(log.String(), "a complaint") {
		t.Error("complaints are not in the log")
	}
}
