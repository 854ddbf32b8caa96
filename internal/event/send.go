package event

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/pause"
)

// send notifies other processes, in one batch per debounce interval (docs/queue.md rule 10), until ctx ends. Then it
// sends the rest once, so that another process takes a run at once that was handed back.
func (h *Hub) send(ctx context.Context) {
	away := outageLog{log: h.log, lost: "cannot notify other processes; they find changes by polling until the database is back",
		back: "notifying other processes again"}
	wait := h.options.Debounce
	for {
		select {
		case <-ctx.Done():
			h.flush(context.WithoutCancel(ctx), min(time.Second, h.options.Patience), &away)
			return
		case <-h.ready:
		}
		if !pause.For(ctx, wait) {
			h.flush(context.WithoutCancel(ctx), min(time.Second, h.options.Patience), &away)
			return
		}
		wait = h.options.Debounce
		if !h.flush(ctx, h.options.Patience, &away) {
			wait = h.options.Retry
		}
	}
}

// flush sends what is pending. What cannot be sent is pending again, and bounded, so that it costs nothing but time.
func (h *Hub) flush(ctx context.Context, limit time.Duration, away *outageLog) bool {
	batch := h.take()
	if batch.empty() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := h.notify(ctx, batch.encode(h.self))
	if err != nil {
		h.gather(batch)
	}
	if ctx.Err() != context.Canceled { // the hub is being stopped: nobody can act on it
		away.set(err)
	}
	return err == nil
}

func (h *Hub) take() signals {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := h.pending
	h.pending = signals{}
	return batch
}

func (h *Hub) notifyDatabase(ctx context.Context, payload string) error {
	if _, err := h.options.DB.ExecContext(ctx, "select pg_notify($1, $2)", channel, payload); err != nil {
		return fmt.Errorf("notify %s: %w", channel, err)
	}
	return nil
}
