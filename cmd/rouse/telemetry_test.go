package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"rouse.dev/rouse/internal/pgtest"
)

// TestProgramSendsOneTraceForACause lets a collector of another make receive what a wake became.
func TestProgramSendsOneTraceForACause(t *testing.T) {
	t.Parallel()
	received := make(chan *spans.Span, 100)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					received <- span
				}
			}
		}
	}))
	defer to.Close()
	p := start(t, pgtest.Installed(t), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + to.URL})
	j := newJourney(p)
	run := j.wake(j.agent("echo", map[string]any{"echo": map[string]any{}}))
	j.end(run)
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d: %s", code, p.log)
	}
	close(received)
	sent, parents := map[string]bool{}, map[string]string{} // ids of spans, and the names of those that name a parent
	names := map[string][]string{}                          // of the spans of a trace
	mine := ""
	for span := range received {
		sent[string(span.TraceId)+string(span.SpanId)] = true
		if len(span.ParentSpanId) > 0 {
			parents[string(span.TraceId)+string(span.ParentSpanId)] = span.Name
		}
		names[string(span.TraceId)] = append(names[string(span.TraceId)], span.Name)
		if span.Name == "run" && factOf(span, "run_id") == run {
			mine = string(span.TraceId)
		}
	}
	slices.Sort(names[mine])
	if got, want := strings.Join(names[mine], " "), "attempt cause run wakeup"; got != want {
		t.Errorf("the trace of the cause has the spans %q, want %q", got, want)
	}
	for parent, child := range parents {
		if !sent[parent] {
			t.Errorf("a span %q names a parent that was never sent", child)
		}
	}
	if strings.Contains(p.log.String(), "traces are lost") {
		t.Error(p.log)
	}
}

func factOf(span *spans.Span, key string) string {
	for _, a := range span.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}
