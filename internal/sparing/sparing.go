// Package sparing keeps from the log what others can repeat at will.
package sparing

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Bounds of one Handler.
const (
	most  = 10          // records
	every = time.Minute // within this time
)

// Handler passes ten records a minute on; the first one after others were left out says how many.
type Handler struct {
	slog.Handler
	count *count // shared by what WithAttrs and WithGroup make
}

type count struct {
	mu      sync.Mutex
	since   time.Time
	passed  int
	dropped int
}

// Log makes a logger that writes to log, sparingly.
func Log(log *slog.Logger) *slog.Logger { return slog.New(New(log.Handler())) }

// New makes a Handler over next.
func New(next slog.Handler) *Handler { return &Handler{next, &count{}} }

// Handle passes a record on, or counts it.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	dropped, pass := h.count.take(r.Time)
	if !pass {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out_before", dropped))
	}
	return h.Handler.Handle(ctx, r)
}

func (c *count) take(now time.Time) (dropped int, pass bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= every {
		c.since, c.passed = now, 0
	}
	if c.passed >= most {
		c.dropped++
		return 0, false
	}
	c.passed++
	dropped, c.dropped = c.dropped, 0
	return dropped, true
}

// WithAttrs is that of slog.Handler.
func (h *Handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attributes), h.count}
}

// WithGroup is that of slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.count}
}
