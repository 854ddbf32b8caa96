package server

import (
	"context"
	"errors"
	"expvar"
	"net/http"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
)

// adminMux is for whoever watches this machine's server: health for all, at the pace of strangers, and numbers behind the gate.
func adminMux(paced func(http.Handler) http.Handler, ready func(context.Context) error, metrics http.Handler, gate func(http.Handler) http.Handler) http.Handler {
	mux, others := http.NewServeMux(), http.NewServeMux()
	mux.Handle("GET /metrics", gate(metrics))
	mux.Handle("GET /debug/vars", gate(expvar.Handler()))
	others.HandleFunc("/metrics", notByGet)
	others.HandleFunc("/debug/vars", notByGet)
	addHealth(others, ready)
	mux.Handle("/", paced(others))
	return mux
}

// Bounds of the watchers.
const (
	identifyLimit = 2 * time.Second // a scrape has some seconds, and a database that hangs must not use them up
	watchersKept  = 16
)

// watchers lets those in who may read the whole instance. Whoever was let in before is let in while the database does not
// answer: that is when the numbers matter most.
type watchers struct {
	gatekeeper *gatekeeper
	strangers  *edge.Strangers
	mu         sync.Mutex
	known      map[string]bool // digests of tokens
}

// gate asks for a token of the instance with scope READ.
func (w *watchers) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		status, why := w.judge(r)
		if status == http.StatusOK {
			w.strangers.Proved(r.Context(), "a watcher")
			next.ServeHTTP(rw, r)
			return
		}
		w.strangers.Wait(r.Context())
		if status == http.StatusUnauthorized {
			rw.Header().Set("WWW-Authenticate", "Bearer")
		}
		answer(rw, status, why+"\n")
	})
}

const watcherHint = "; send Authorization: Bearer with a token of the instance that may READ (`rouse token create --scope READ`), " +
	"which Prometheus reads from the file of authorization.credentials_file"

func (w *watchers) judge(r *http.Request) (status int, why string) {
	token, err := edge.Bearer(r.Header.Get("Authorization"))
	if err == nil && token == "" {
		err = errors.New("no token was sent")
	}
	if err != nil {
		return http.StatusUnauthorized, err.Error() + watcherHint
	}
	ctx, cancel := context.WithTimeout(r.Context(), identifyLimit)
	defer cancel()
	caller, err := w.gatekeeper.identify(ctx, token)
	switch {
	case errors.Is(err, errUnknownToken):
		w.remember(token, false)
		return http.StatusUnauthorized, err.Error() + watcherHint
	case err != nil && w.wasKnown(token):
		return http.StatusOK, ""
	case err != nil:
		return http.StatusServiceUnavailable, "the database does not answer, so nobody can say whose token this is; try again"
	case !caller.IsInstance() || !caller.Allows(domain.TokenScopeRead):
		return http.StatusForbidden, "this token is of one workspace, or may not READ" + watcherHint
	}
	w.remember(token, true)
	return http.StatusOK, ""
}

func (w *watchers) remember(token string, good bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	digest := digestOf(token)
	switch {
	case !good:
		delete(w.known, digest)
	case w.known == nil || len(w.known) >= watchersKept:
		w.known = map[string]bool{digest: true}
	default:
		w.known[digest] = true
	}
}

func (w *watchers) wasKnown(token string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[digestOf(token)]
}
