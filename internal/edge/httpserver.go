package edge

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"rouse.dev/rouse/internal/sparing"
)

// headerTime is how long the header of a request may take to come.
const headerTime = 5 * time.Second

// maxHeader bounds the header of a request, in bytes; http.Server allows 4 KiB more.
const maxHeader = 64 << 10

// NewHTTPServer makes the http.Server for a handler: bounded headers and idle connections, its own complaints in log. Every request's context
// descends from base; cancelling base ends what still streams after Shutdown. Bodies and responses have no limit of time here, since sockets and
// streams live long; each handler bounds its own.
func NewHTTPServer(base context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(sparing.New(log.Handler()), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
}
