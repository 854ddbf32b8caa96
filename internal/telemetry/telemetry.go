// Package telemetry sends traces to an OpenTelemetry collector, when one is configured. A cause is one trace: its id is
// made from the causation id, so that every process that works on the cause adds to the same one, and nothing has to be
// carried from hop to hop.
package telemetry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"slices"

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

// Start makes traces over OTLP/HTTP to the collector that the environment names.
func Start(ctx context.Context, version string) (*Traces, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces to the collector that %s names: %w", endpointVariable, err)
	}
	return newTraces(version, sdktrace.WithBatcher(exporter)), nil
}

func newTraces(version string, processor sdktrace.TracerProviderOption) *Traces {
	about := resource.NewSchemaless(attribute.String("service.name", "rouse"), attribute.String("service.version", version))
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

// Trace adds a hop to the trace of its cause. It never blocks.
func (t *Traces) Trace(h store.Hop) {
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID(h.CausationID), SpanID: parentID(h), TraceFlags: trace.FlagsSampled, Remote: true})
	ctx := context.WithValue(trace.ContextWithSpanContext(context.Background(), parent), spanKey{}, spanID(h.ID))
	_, span := t.tracer.Start(ctx, h.Name, trace.WithTimestamp(h.Began), trace.WithAttributes(attributes(h.Facts)...))
	if h.Failed != "" {
		span.SetStatus(codes.Error, h.Failed)
	}
	span.End(trace.WithTimestamp(h.Ended))
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

// parentID is the span of the hop that this one is part of; the cause itself has one too, though nobody sends it.
func parentID(h store.Hop) trace.SpanID {
	if h.ParentID != "" {
		return spanID(h.ParentID)
	}
	return spanID("cause of " + h.CausationID)
}

type spanKey struct{}

// generator takes the ids that Trace chose.
type generator struct{}

func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	return trace.SpanContextFromContext(ctx).TraceID(), generator{}.NewSpanID(ctx, trace.TraceID{})
}

func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(spanKey{}).(trace.SpanID) // Trace sets it
	return id
}
