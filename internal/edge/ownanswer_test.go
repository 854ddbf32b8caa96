package edge

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
)

// What http.Server answers by itself, because no handler can be asked, has the form of every refusal.
func TestWhatTheHTTPServerRefusesByItselfIsJSON(t *testing.T) {
	for name, tt := range map[string]struct {
		request, code, says string
		status              int
	}{
		"a header that is too long":      {"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", CodeBadRequest, "64 KiB", 431},
		"no request line":                {"hello\r\n\r\n", CodeBadRequest, "not well-formed HTTP", 400},
		"no host":                        {"GET / HTTP/1.1\r\n\r\n", CodeBadRequest, "(missing required Host header)", 400},
		"a field without a name":         {"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", CodeBadRequest, "not well-formed HTTP", 400},
		"a version that is none":         {"GET / HTTP/3.1\r\nHost: x\r\n\r\n", CodeInternal, "505", 505},
		"a transfer that nobody reads":   {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", CodeInternal, "Transfer-Encoding", 501},
		"of a second request of a kind":  {someRequest + "hello\r\n\r\n", CodeBadRequest, "not well-formed HTTP", 400},
		"what a handler refuses is left": {"GET /refused HTTP/1.1\r\nHost: x\r\n\r\n", "", "as it is", 400},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serveStrangers(t)
			c := dialTCP(t, addr)
			if _, err := io.WriteString(c, tt.request); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(c)
			if strings.HasPrefix(tt.request, someRequest) {
				first, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, first.Body); err != nil {
					t.Fatal(err)
				}
			}
			got, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != tt.status || !strings.Contains(string(body), tt.says) {
				t.Fatalf("%d %s", got.StatusCode, body)
			}
			if tt.code == "" {
				return
			}
			var answer struct {
				Errors []struct {
					Message    string
					Extensions struct{ Code string }
				}
			}
			if err := json.Unmarshal(body, &answer); err != nil || len(answer.Errors) != 1 || answer.Errors[0].Extensions.Code != tt.code || answer.Errors[0].Message == "" {
				t.Errorf("%v: %s", err, body)
			}
			if kind := got.Header.Get("Content-Type"); kind != "application/json; charset=utf-8" || !got.Close {
				t.Errorf("%s, close %v", kind, got.Close)
			}
		})
	}
}

// serveStrangers serves on loopback as a process does, and returns the address.
func serveStrangers(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	strangers := NewStrangers(StrangerLimits{})
	server := NewHTTPServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			http.Error(w, "as it is", http.StatusBadRequest)
		}
	}), slog.New(slog.DiscardHandler))
	server.ConnContext = strangers.ConnContext
	gone := make(chan struct{}, 1) // the one connection: after a header that is too long http.Server keeps it for half a second
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			gone <- struct{}{}
		}
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(strangers.Listener(l)) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		<-gone
	})
	return l.Addr().String()
}
