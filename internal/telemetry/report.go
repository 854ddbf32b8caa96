package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"rouse.dev/rouse/internal/sparing"
)

// reporting tells the log that the collector takes no traces once for an outage, and once that it takes them again. The
// batches come every few seconds, one after the other.
type reporting struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	lost int // spans, since the outage began; 0: the collector takes them
}

// ExportSpans returns no error, because it has logged the error, and the processor would log it again each time.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil && r.lost > 0:
		r.log.Info("traces are sent again", "lost_spans", r.lost)
		r.lost = 0
	case err != nil && r.lost == 0:
		r.log.Warn("traces are lost: the collector does not take them; runs go on, and it is told when it does again", "error", err)
		fallthrough
	case err != nil:
		r.lost += len(spans)
	}
	return nil
}

// complaints writes what OpenTelemetry complains of, the same complaint once.
func complaints(log *slog.Logger) otel.ErrorHandlerFunc {
	var said sparing.Repeats
	return func(err error) { said.Warn(log, "a complaint of OpenTelemetry", err) }
}
