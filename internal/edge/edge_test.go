package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/edge/internal/testgraph"
)

// fixture is a Server over the test schema and what it logged.
type fixture struct {
	*Server
	graph *testgraph.Resolver
	log   *logBuffer
}

func newFixture(t testing.TB, o Options) *fixture {
	t.Helper()
	f := &fixture{graph: &testgraph.Resolver{EndStream: EndSubscription}, log: &logBuffer{}}
	f.graph.Fail = failure
	o.Log = slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f.Server = New(testgraph.NewExecutableSchema(testgraph.Config{Resolvers: f.graph}), o)
	return f
}

// failure makes the error of a name.
func failure(with string) error {
	switch with {
	case "known":
		return &Error{Code: "LIVENESS_UNREADABLE", Message: "cannot read the backlog", Extensions: map[string]any{"input": "backlog", "code": "OTHER"}}
	case "translated":
		return errTranslated
	case "lagging":
		return &Error{Code: "SUBSCRIPTION_LAGGED", Message: "too slow", Extensions: map[string]any{"resumeAfter": "c7"}}
	case "timeout":
		return context.DeadlineExceeded
	}
	return errors.New("pq: password authentication failed for user rouse")
}

var (
	errTranslated = errors.New("domain: no such agent")
	errAway       = errors.New("pq: nobody listens")
)

// logBuffer collects log lines from many goroutines.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// reply is a response as a client sees it.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// code is extensions.code of the first error.
func (r reply) code() string {
	errs, _ := r.body["errors"].([]any)
	if len(errs) == 0 {
		return ""
	}
	ext, _ := errs[0].(map[string]any)["extensions"].(map[string]any)
	code, _ := ext["code"].(string)
	return code
}

// at follows keys and indices into the body.
func (r reply) at(path ...any) any {
	v := any(r.body)
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			list, _ := v.([]any)
			if p >= len(list) {
				return nil
			}
			v = list[p]
		}
	}
	return v
}

func do(t testing.TB, h http.Handler, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	out := reply{status: w.Code, header: w.Header(), text: w.Body.String()}
	if strings.Contains(out.header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(w.Body.Bytes(), &out.body); err != nil {
			t.Fatalf("response is not JSON: %v: %s", err, out.text)
		}
	}
	return out
}

func newPost(body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/graphql", body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", mediaGraphQL)
	return r
}

func requestBody(query string, variables any) io.Reader {
	return bytes.NewReader(mustMarshal(map[string]any{"query": query, "variables": variables}))
}

// ask posts a query.
func (f *fixture) ask(t testing.TB, query string, variables any) reply {
	t.Helper()
	return do(t, f, newPost(requestBody(query, variables)))
}

// hasData reports whether the response has the key data.
func (r reply) hasData() bool { _, ok := r.body["data"]; return ok }
