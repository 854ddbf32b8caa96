// Package edge is the HTTP and WebSocket edge around a gqlgen schema. It exists because gqlgen's own transports and
// complexity limit are not fit for strangers. It bounds what a document may ask for before the document is validated.
// It answers with the statuses and close codes that the drafts ask for, and lets no cause of a server error out. It
// knows nothing of the schema it serves beyond the directives @cost and @page.
package edge

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/vektah/gqlparser/v2/ast"
)

// Server serves one schema at one path: GET and POST with JSON, and WebSocket with the subprotocol graphql-transport-ws.
type Server struct {
	exec    *executor.Executor
	options Options
	limits  Limits
	log     *slog.Logger
	sockets sockets
	agents  agents
}

// New makes a Server. Every zero field of options means its default.
func New(schema graphql.ExecutableSchema, options Options) *Server {
	s := &Server{exec: executor.New(schema), options: options, limits: options.Limits.withDefaults(), log: options.Log}
	s.agents = newAgents(s.limits)
	if s.log == nil {
		s.log = slog.Default()
	}
	cache := lru.New[*ast.QueryDocument](s.limits.CachedQueries)
	s.exec.SetQueryCache(cache)
	s.exec.SetErrorPresenter(s.presentError)
	s.exec.SetRecoverFunc(s.recovered)
	s.exec.Use(extension.Introspection{})
	s.exec.Use(gate{limits: s.limits, schema: schema.Schema(), cache: cache})
	s.exec.Use(errorCap{max: s.limits.Errors})
	for _, e := range options.Extensions {
		s.exec.Use(e)
	}
	return s
}

// ServeHTTP answers one request. A refused Origin gets 403 before anything else is looked at.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := withRequestID(r.Context(), newRequestID())
	r = r.WithContext(graphql.StartOperationTrace(ctx))
	h := w.Header()
	h.Set("X-Request-Id", RequestID(ctx))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if refused := s.checkOrigin(h, r); refused != nil {
		s.options.Strangers.Wait(r.Context())
		s.writeRefusal(w, r, mediaJSON, refused)
		return
	}
	if IsUpgrade(r) {
		s.serveSocket(w, r)
		return
	}
	s.serveJSON(w, r)
}

// Shutdown refuses new sockets, closes the open ones with 1012 and a reason that tells the client to resubscribe, and waits for all their
// goroutines. When ctx ends first, the connections are cut and an error says how many had not finished. Call it before the sources of the
// subscriptions are closed: a stream that ends by itself tells the client that there is nothing more to come.
func (s *Server) Shutdown(ctx context.Context) error { return s.sockets.shutdown(ctx) }

// prepare parses, bounds and validates one request. Exactly one of the results is nil.
func (s *Server) prepare(ctx context.Context, params *graphql.RawParams) (oc *graphql.OperationContext, refused *refusal) {
	defer func() {
		if p := recover(); p != nil {
			oc, refused = nil, internalRefusal(s.logPanic(ctx, p))
		}
	}()
	oc, errs := s.exec.CreateOperationContext(ctx, params)
	if len(errs) > 0 {
		return nil, refuseRequest(oc, errs, s.limits.Errors)
	}
	return oc, nil
}

// deadline gives queries and mutations their time limit; subscriptions have none.
func (s *Server) deadline(ctx context.Context, op ast.Operation) (context.Context, context.CancelFunc) {
	switch op {
	case ast.Mutation:
		return context.WithTimeout(ctx, s.limits.MutationTimeout)
	case ast.Subscription:
		return context.WithCancel(ctx)
	default:
		return context.WithTimeout(ctx, s.limits.QueryTimeout)
	}
}

// execute runs a query or mutation. The response is never nil; without data it holds at least one error.
func (s *Server) execute(ctx context.Context, oc *graphql.OperationContext) (resp *graphql.Response) {
	defer func() {
		if p := recover(); p != nil {
			resp = errorResponse(internalError(s.logPanic(ctx, p)))
		}
	}()
	done, ok := s.agents.work(ctx)
	if !ok {
		return errorResponse(timeoutError())
	}
	defer done()
	handler, ctx := s.exec.DispatchOperation(withErrorBudget(ctx), oc)
	if resp = handler(ctx); resp == nil {
		resp = errorResponse(timeoutError())
	}
	return resp
}

// recovered is gqlgen's hook for a panic in a resolver.
func (s *Server) recovered(ctx context.Context, p any) error {
	return &panicError{requestID: s.logPanic(ctx, p)}
}

// logPanic writes the panic and its stack to the log and returns the request id that leads to it.
func (s *Server) logPanic(ctx context.Context, p any) string {
	id := RequestID(ctx)
	s.log.ErrorContext(ctx, "graphql panic", "request_id", id, "panic", p, "path", pathOf(ctx), "stack", string(debug.Stack()))
	return id
}
