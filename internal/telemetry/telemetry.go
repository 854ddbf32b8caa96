// Package telemetry sends traces to an OpenTelemetry collector, when one is configured. A cause is one trace. The
// trace's id is made from the causation id, so every process that works on the cause adds spans to the same trace, and
// no process has to pass anything on.
package telemetry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// The variables of the OpenTelemetry specification that switch traces on. The exporter itself reads them, and the other
// OTEL_EXPORTER_OTLP_ variables (headers, timeout, certificate).
const (
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// Configured says whether the environment names a collector.
func Configured() bool {
	return os.Getenv(endpointVariable) != "" || os.Getenv(tracesEndpointVariable) != ""
}

// Traces are sent in batches from the background: a collector that is slow or away costs spans, never a run.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Start makes traces over OTLP/HTTP to the collector that the environment names. What OpenTelemetry itself has to say goes
// to the log, for this process is the only one in it.
func Start(ctx context.Context, version string, log *slog.Logger) (*Traces, error) {
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(complaints(log))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces to the collector that %s names: %w", endpointVariable, err)
	}
	return newTraces(version, sdktrace.WithBatcher(&reporting{SpanExporter: exporter, log: log})), nil
}

func newTraces(version string, processor sdktrace.TracerProviderOption) *Traces {
	about := resource.NewSchemaless(attribute.String("service.name", "rouse"), attribute.String("service.version", version),
		attribute.String("service.instance.id", string(xid.New("prc"))), attribute.Int("process.pid", os.Getpid()))
	provider := sdktrace.NewTracerProvider(processor, sdktrace.WithResource(about), sdktrace.WithIDGenerator(generator{}), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	return &Traces{provider: provider, tracer: provider.Tracer("rouse.dev/rouse")}
}

// Stop sends what is left, as long as ctx lasts.
func (t *Traces) Stop(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Trace adds a span to the trace of its cause. It never blocks.
func (t *Traces) Trace(s store.Span) {
	ctx := context.WithValue(context.Background(), idsKey{}, ids{traceID(s.CausationID), spanID(s.ID)})
	if s.ID != s.CausationID { // the cause is the root
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID(s.CausationID), SpanID: parentID(s), TraceFlags: trace.FlagsSampled, Remote: true})
		ctx = trace.ContextWithSpanContext(ctx, parent)
	}
	kind := trace.SpanKindInternal
	if s.Calls {
		kind = trace.SpanKindClient
	}
	_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Began), trace.WithSpanKind(kind), trace.WithAttributes(attributes(s.Facts)...))
	if s.Failed != "" {
		span.SetStatus(codes.Error, s.Failed)
	}
	span.End(trace.WithTimestamp(s.Ended))
}

func attributes(facts map[string]string) (out []attribute.KeyValue) {
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		if facts[key] != "" {
			out = append(out, attribute.String(key, facts[key]))
		}
	}
	return out
}

// traceID is the id of a cause's trace.
func traceID(causationID xid.ID) (id trace.TraceID) {
	sum := sha256.Sum256([]byte(causationID))
	copy(id[:], sum[:])
	return id
}

func spanID(of xid.ID) (id trace.SpanID) {
	sum := sha256.Sum256([]byte(of))
	copy(id[:], sum[:])
	return id
}

// parentID is the span that this one is part of, or of the cause.
func parentID(s store.Span) trace.SpanID {
	if s.ParentID != "" {
		return spanID(s.ParentID)
	}
	return spanID(s.CausationID)
}

type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// generator takes the ids that Trace chose.
type generator struct{}

// NewIDs is asked for a root, and NewSpanID for a span with a parent.
func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	chosen, _ := ctx.Value(idsKey{}).(ids) // Trace sets them
	return chosen.trace, chosen.span
}

func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := generator{}.NewIDs(ctx)
	return span
}
