package server

import (
	"context"
	"net/http"
	"time"

	"rouse.dev/rouse/internal/edge"
)

// drainRetryAfter is when whoever is turned away during a drain may ask again, in seconds: the next process is up by then, or this
// address is gone.
const drainRetryAfter = "5"

// narrow begins the shutdown. It closes sockets with a hint to come back. From now on the API's listener answers only
// reports of attempts, so that agents can report work that they end during the drain. All else gets 503 and when to ask
// again.
func (f *front) narrow(hurry context.Context, limit time.Duration) error {
	f.leave()
	if f.api == nil { // it never served
		return nil
	}
	for _, server := range f.servers {
		server.SetKeepAlivesEnabled(false) // whoever asks next looks for the address anew
	}
	ctx, cancel := context.WithTimeout(hurry, limit)
	defer cancel()
	if err := f.api.Shutdown(ctx); hurry.Err() == nil {
		return err
	}
	return nil
}

// whileDraining lets through what may be a report of an attempt; the API decides what is one. Health says that the process lives,
// and is not ready.
func (f *front) whileDraining(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case f.leaving.Err() == nil, r.URL.Path == "/healthz", r.URL.Path == graphqlPath && !edge.IsUpgrade(r):
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", drainRetryAfter)
		answer(w, http.StatusServiceUnavailable, "this server is ending; ask again in a few seconds\n")
	})
}
