package telemetry

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"rouse.dev/rouse/internal/store"
)

func instanceOf(span tracetest.SpanStub) string {
	id, _ := span.Resource.Set().Value("service.instance.id")
	return id.AsString()
}

func TestACauseIsOneTraceWhoeverWorksOnIt(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var all tracetest.SpanStubs
	for _, h := range []store.Span{ // each from a process of its own
		{Name: "cause", CausationID: "cau_1", ID: "cau_1", Began: began, Ended: began},
		{Name: "wakeup", CausationID: "cau_1", ID: "wkp_1", Began: began, Ended: began, Facts: map[string]string{"agent_id": "agt_1", "outcome": ""}},
		{Name: "attempt", CausationID: "cau_1", ID: "run_1/1", ParentID: "run_1", Began: began.Add(time.Second), Ended: began.Add(2 * time.Second), Failed: "exit status 1"},
		{Name: "attempt", CausationID: "cau_1", ID: "run_1/2", ParentID: "run_1", Began: began, Ended: began, Calls: true},
		{Name: "run", CausationID: "cau_1", ID: "run_1", Began: began, Ended: began.Add(time.Minute)},
	} {
		memory := tracetest.NewInMemoryExporter()
		traces := newTraces("v1", sdktrace.WithSyncer(memory))
		traces.Trace(h)
		all = append(all, memory.GetSpans()...)
		if err := traces.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) != 5 {
		t.Fatalf("%d spans were sent", len(all))
	}
	root, wakeup, attempt, call, run := all[0], all[1], all[2], all[3], all[4]
	if root.Parent.IsValid() || root.SpanContext.TraceID() != traceID("cau_1") {
		t.Errorf("the cause is no root: %+v", root.Parent)
	}
	if wakeup.Parent.SpanID() != root.SpanContext.SpanID() {
		t.Error("the wakeup is not part of its cause")
	}
	if call.SpanKind != trace.SpanKindClient || attempt.SpanKind != trace.SpanKindInternal {
		t.Errorf("a call is %s, another attempt %s", call.SpanKind, attempt.SpanKind)
	}
	if a, b := instanceOf(wakeup), instanceOf(run); a == "" || a == b {
		t.Errorf("two processes have the ids %q and %q", a, b)
	}
	for _, span := range all {
		if got := span.SpanContext.TraceID(); got != traceID("cau_1") {
			t.Errorf("%s is in trace %s", span.Name, got)
		}
	}
	if attempt.Parent.SpanID() != run.SpanContext.SpanID() {
		t.Error("the attempt is not part of its run")
	}
	if wakeup.Parent.SpanID() != run.Parent.SpanID() {
		t.Error("the wakeup and the run have not the same cause")
	}
	if attempt.Status.Code != codes.Error || attempt.Status.Description != "exit status 1" || run.Status.Code == codes.Error {
		t.Errorf("status %+v and %+v", attempt.Status, run.Status)
	}
	if !run.EndTime.Equal(began.Add(time.Minute)) || len(wakeup.Attributes) != 1 {
		t.Errorf("%v, %v", run.EndTime, wakeup.Attributes)
	}
	if traceID("cau_2") == traceID("cau_1") {
		t.Error("two causes share a trace")
	}
}
