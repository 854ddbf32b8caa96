package edge

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serveCounted serves f on loopback; each end of a handler sends to done.
func serveCounted(t *testing.T, f *fixture) (addr string, done chan struct{}) {
	done = make(chan struct{}, 10)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.ServeHTTP(w, r)
		done <- struct{}{}
	}))
	t.Cleanup(ts.Close)
	return ts.Listener.Addr().String(), done
}

func dialTCP(t *testing.T, addr string) *net.TCPConn {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(15 * time.Second))
	return c.(*net.TCPConn)
}

func TestABodyThatDoesNotArrive(t *testing.T) {
	for name, tt := range map[string]struct {
		options Options
		status  int
	}{
		"of a caller who may call":     {Options{}, http.StatusRequestTimeout},
		"of a caller who may not call": {Options{Authenticate: tokens}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Limits.BodyTimeout = 50 * time.Millisecond
			addr, _ := serveCounted(t, newFixture(t, tt.options))
			c := dialTCP(t, addr)
			_, _ = fmt.Fprintf(c, "POST /graphql HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"query\":", addr)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != tt.status {
				t.Fatalf("%v %v", resp, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the connection was kept: %v", err)
			}
		})
	}
}

func TestAResponseThatIsNotRead(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{WriteTimeout: 50 * time.Millisecond}})
	f.graph.Fail = func(string) error { return &Error{Code: "LONG", Message: strings.Repeat("x", 8<<20)} }
	addr, done := serveCounted(t, f)
	c := dialTCP(t, addr)
	_ = c.SetReadBuffer(4096)
	_, _ = fmt.Fprintf(c, "GET /graphql?query={fail(with:\"x\")} HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		t.Fatal("the handler waits for the reader")
	}
}

// The deadlines of one request must not reach into the next on the same connection.
func TestAConnectionOutlivesItsDeadlines(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{WriteTimeout: 20 * time.Millisecond, BodyTimeout: 20 * time.Millisecond}})
	addr, _ := serveCounted(t, f)
	c := dialTCP(t, addr)
	r := bufio.NewReader(c)
	const body = `{"query":"{hello}"}`
	for range 3 {
		_, _ = fmt.Fprintf(c, "POST /graphql HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v", resp, err)
		}
		if text, _ := io.ReadAll(resp.Body); string(text) != `{"data":{"hello":"world"}}` {
			t.Fatalf("%s", text)
		}
		<-time.After(30 * time.Millisecond) // past both deadlines
	}
}
