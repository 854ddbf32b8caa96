package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/console"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/webhook"
)

const graphqlPath = "/graphql"

// strangersLimit is how long a shutdown waits for requests of callers who have not proved themselves.
const strangersLimit = time.Second

// front is what the process shows to others: the listener of the API and the console, the one of webhooks, and the one for its operator.
type front struct {
	log      *slog.Logger
	listener net.Listener
	webhooks net.Listener // nil: listener serves them
	admin    net.Listener // nil: off
	loopback bool         // only this machine can reach the listener
	open     bool         // --auth none: callers need no token
	origins  []string     // of web pages that may call the API beside its own

	base      context.Context // of every request
	cancel    context.CancelFunc
	leaving   context.Context // ends as the stop begins: requests that wait for something are answered then
	leave     context.CancelFunc
	api       *edge.Server
	strangers *edge.Strangers
	logs      http.Handler // of runs, as text; nil: none
	servers   []*http.Server
	serving   sync.WaitGroup
}

// listen takes the addresses. Nothing is answered before serve; a taken port is an error that says what to do.
func listen(ctx context.Context, c config.Config, log *slog.Logger) (*front, error) {
	f := &front{strangers: edge.NewStrangers(edge.StrangerLimits{}), log: log, open: c.Auth == config.AuthNone}
	var err error
	if f.origins, err = c.Origins(); err != nil {
		return nil, err
	}
	f.base, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.leaving, f.leave = context.WithCancel(f.base)
	if f.listener, err = take(ctx, c.Addr, "--addr", config.EnvAddr); err != nil {
		return nil, err
	}
	f.loopback = isLoopback(f.listener.Addr())
	for _, more := range []struct {
		listener                *net.Listener
		address, flag, variable string
	}{{&f.webhooks, c.WebhookAddr, "--webhook-addr", config.EnvWebhookAddr}, {&f.admin, c.AdminAddr, "--admin-addr", config.EnvAdminAddr}} {
		if more.address == "" {
			continue
		}
		if *more.listener, err = take(ctx, more.address, more.flag, more.variable); err != nil {
			return nil, errors.Join(err, f.closeListeners())
		}
	}
	return f, nil
}

func take(ctx context.Context, address, flag, variable string) (net.Listener, error) {
	l, err := (&net.ListenConfig{Control: control, KeepAlive: -1}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s: end it, or choose another port with %s (%s); port 0 takes a free one", address, flag, variable)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("this account may not listen on %s: choose a port above 1023 with %s (%s)", address, flag, variable)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("this machine has no address %s: choose another with %s (%s)", address, flag, variable)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w; choose another address with %s (%s)", address, err, flag, variable)
	}
	return l, nil
}

func isLoopback(a net.Addr) bool {
	p, err := netip.ParseAddrPort(a.String())
	return err == nil && p.Addr().Unmap().IsLoopback()
}

// url is the address of the API for programs of this machine.
func (f *front) url() string { return urlOf(f.listener) }

// webhookURL is that of webhooks.
func (f *front) webhookURL() string {
	if f.webhooks != nil {
		return urlOf(f.webhooks)
	}
	return f.url()
}

func urlOf(l net.Listener) string {
	p, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return "http://" + l.Addr().String()
	}
	host := p.Addr().Unmap()
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return "http://" + netip.AddrPortFrom(host, p.Port()).String()
}

// allowsOrigin says whether a web page of another origin may call the API.
func (f *front) allowsOrigin(origin string) bool {
	return slices.Contains(f.origins, strings.ToLower(origin))
}

// serve answers from now on. It calls fail when a listener breaks.
func (f *front) serve(api *edge.Server, hooks http.Handler, ready func(context.Context) error, admin func(ready func(context.Context) error) http.Handler, fail func(error)) {
	f.api = api
	look := shared{ask: ready}
	f.start(f.listener, f.whileDraining(f.public(hooks, look.get)), fail)
	if f.webhooks != nil {
		f.start(f.webhooks, f.whileDraining(f.webhookMux(hooks)), fail)
	}
	if f.admin != nil {
		f.start(f.admin, admin(look.get), fail)
	}
}

func (f *front) start(l net.Listener, h http.Handler, fail func(error)) {
	server := edge.NewHTTPServer(f.base, edge.JSONErrors(h), f.log)
	server.ConnContext = f.strangers.ConnContext
	f.servers = append(f.servers, server)
	f.serving.Go(func() {
		if err := server.Serve(f.strangers.Listener(l)); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve %s: %w", l.Addr(), err))
		}
	})
}

// public is what the listener of the API shows. Health is for anybody who reaches it; the console is a page without data;
// the API asks for a token, unless --auth none says otherwise. Webhooks ask for none: their callers prove themselves to the
// trigger, whose path nobody can guess, and come through tunnels under any name (C227).
func (f *front) public(hooks http.Handler, ready func(context.Context) error) http.Handler {
	guard := func(h http.Handler) http.Handler { return h }
	if f.open {
		guard = edge.LocalOnly
	}
	mux, others := http.NewServeMux(), http.NewServeMux()
	mux.Handle(graphqlPath, guard(f.api))
	if f.logs != nil {
		mux.Handle(runLogPath, guard(f.logs))
	}
	if f.webhooks == nil {
		mux.Handle(webhook.Path, hooks)
	} else {
		others.HandleFunc(webhook.Path, func(w http.ResponseWriter, _ *http.Request) {
			webhook.NotFound(w, "this server takes webhooks at another address, that of --webhook-addr")
		})
	}
	addHealth(others, ready)
	others.Handle("/", guard(console.Handler(console.Options{TokenRequired: !f.open})))
	mux.Handle("/", f.strangers.Handler(others))
	return mux
}

// webhookMux is for the outside: whoever may reach it reaches nothing but webhooks, and a sign that the process answers.
func (f *front) webhookMux(hooks http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(webhook.Path, hooks)
	others := http.NewServeMux()
	addHealthz(others)
	others.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { webhook.NotFound(w, "only webhooks are served here") })
	mux.Handle("/", f.strangers.Handler(others))
	return mux
}

// addHealth adds /healthz, which says that the process answers, and /readyz, which says that it can work.
func addHealth(mux *http.ServeMux, ready func(context.Context) error) {
	addHealthz(mux)
	mux.HandleFunc("/readyz", notByGet)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
		answer(w, http.StatusOK, "ok\n")
	})
}

func addHealthz(mux *http.ServeMux) {
	mux.HandleFunc("/healthz", notByGet)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok\n") })
}

// notByGet refuses other methods than GET, which a mux that serves all other paths as well would call not found.
func notByGet(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	answer(w, http.StatusMethodNotAllowed, "send a GET\n")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a caller that went away is no error of ours
}

// stop takes no more requests, reports included, and waits for the requests under way, up to limit. When hurry ends,
// they are cut off, and that is not an error.
func (f *front) stop(hurry context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(hurry, limit)
	defer cancel()
	defer f.cancel()
	f.leave()
	if f.api == nil { // it never served
		return f.closeListeners()
	}
	strangers := time.AfterFunc(strangersLimit, f.strangers.Close)
	defer strangers.Stop()
	failures := make([]error, len(f.servers)+1)
	var closing sync.WaitGroup
	for i, server := range f.servers {
		closing.Go(func() { failures[i] = server.Shutdown(ctx) })
	}
	failures[len(f.servers)] = f.api.Shutdown(ctx)
	closing.Wait()
	f.cancel() // ends what is still under way
	for _, server := range f.servers {
		_ = server.Close() // only what Shutdown gave up, and reported, is left
	}
	f.serving.Wait()
	if hurry.Err() != nil {
		return nil
	}
	return errors.Join(failures...)
}

func (f *front) closeListeners() error {
	var err error
	for _, l := range []net.Listener{f.listener, f.webhooks, f.admin} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}
