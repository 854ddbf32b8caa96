package edge

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Codes the edge itself writes to extensions.code.
const (
	CodeInternal         = "INTERNAL"               // server error; extensions.requestId leads to the log
	CodeTimeout          = "TIMEOUT"                // out of time, or cancelled
	CodeUnavailable      = "UNAVAILABLE"            // shutting down, or something the server needs does not answer; come back
	CodeUnauthenticated  = "UNAUTHENTICATED"        // no token, or not a valid one
	CodeForbidden        = "FORBIDDEN"              // token valid, not for this
	CodeNotFound         = "NOT_FOUND"              // nothing is served at this path
	CodeBadRequest       = "BAD_REQUEST"            // not a GraphQL request
	CodeBadInput         = "BAD_INPUT"              // an argument or variable breaks a rule
	CodeLimitExceeded    = "LIMIT_EXCEEDED"         // extensions.limit, max and actual say which and by how much
	CodeParseFailed      = errcode.ParseFailed      // the document is not GraphQL
	CodeValidationFailed = errcode.ValidationFailed // the document does not fit the schema
)

// Error is an error the caller may see as it is: resolvers return it, wrapped or not. Extensions may be nil; its key "code" is Code.
type Error struct {
	Code       string
	Message    string
	Extensions map[string]any
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// gql gives e the form of the response.
func (e *Error) gql() *gqlerror.Error {
	ext := map[string]any{}
	maps.Copy(ext, e.Extensions)
	ext["code"] = e.Code
	return &gqlerror.Error{Err: e, Message: e.Message, Extensions: ext}
}

// panicError stands for a panic that is in the log already.
type panicError struct{ requestID string }

func (e *panicError) Error() string { return "panic, see request " + e.requestID }

func internalError(requestID string) *Error {
	return &Error{
		Code:       CodeInternal,
		Message:    "the server failed to answer; nothing is wrong with the request. Try again, and quote requestId to the operator if it stays",
		Extensions: map[string]any{"requestId": requestID},
	}
}

func timeoutError() *Error {
	return &Error{Code: CodeTimeout, Message: "the operation was stopped before it finished: it ran out of time or was cancelled. Ask for less at once, or try again"}
}

func errorResponse(e *Error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{e.gql()}}
}

// presentError is gqlgen's hook for each error of an execution. Nil drops the error: the response has as many as it may have.
func (s *Server) presentError(ctx context.Context, err error) *gqlerror.Error {
	if n := errorBudget(ctx); n != nil && int(n.Add(1)) > s.limits.Errors {
		return nil
	}
	out := s.classify(ctx, err).gql()
	out.Path = graphql.GetPath(ctx)
	if g, ok := errors.AsType[*gqlerror.Error](err); ok {
		out.Path, out.Locations = g.Path, g.Locations
	}
	return out
}

// classify decides what the caller sees: an Error or a refusal as it is, a bad argument with its text, anything else with a fixed text and its cause in the log.
func (s *Server) classify(ctx context.Context, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		return internalError(p.requestID)
	}
	if s.options.Refused != nil {
		if e := s.options.Refused(err); e != nil {
			return e
		}
	}
	if isArgumentError(ctx) { // whatever it wraps, as io.EOF for a cursor that was cut off, it speaks of what the caller sent
		return &Error{Code: CodeBadInput, Message: clip(plain(messageOf(err)))}
	}
	if s.options.PresentError != nil {
		if e := s.options.PresentError(ctx, err); e != nil {
			return e
		}
	}
	id := RequestID(ctx)
	switch {
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		s.log.Log(ctx, stopLevel(ctx), "graphql operation stopped", "request_id", id, "path", pathOf(ctx), "error", err)
		return timeoutError()
	default:
		s.log.ErrorContext(ctx, "graphql error", "request_id", id, "path", pathOf(ctx), "error", err)
		return internalError(id)
	}
}

// stopLevel is the level at which a stopped operation is logged. A caller that went away, such as a worker that was
// ended while it waited for a run, needs no attention. An operation that ran out of time may.
func stopLevel(ctx context.Context) slog.Level {
	if errors.Is(ctx.Err(), context.Canceled) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// isArgumentError reports whether gqlgen was still reading the arguments of the field: it has made the field's context, and not yet the
// argument map, which is never nil afterwards.
func isArgumentError(ctx context.Context) bool {
	fc := graphql.GetFieldContext(ctx)
	return fc != nil && fc.Args == nil && fc.Field.Field != nil && fc.Field.Definition != nil && len(fc.Field.Definition.Arguments) > 0
}

// messageOf leaves out the position that gqlerror's Error adds.
func messageOf(err error) string {
	if g, ok := errors.AsType[*gqlerror.Error](err); ok {
		return g.Message
	}
	return err.Error()
}

func pathOf(ctx context.Context) string { return graphql.GetPath(ctx).String() }

// errorCap gives each response its error budget and cuts what came past it.
type errorCap struct{ max int }

func (errorCap) ExtensionName() string                   { return "ErrorCap" }
func (errorCap) Validate(graphql.ExecutableSchema) error { return nil }

func (c errorCap) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	resp := next(withErrorBudget(ctx))
	if resp != nil && len(resp.Errors) > c.max {
		resp.Errors = resp.Errors[:c.max]
	}
	return resp
}

type contextKey int

const (
	requestIDKey contextKey = iota
	errorBudgetKey
	streamEndKey
)

func withErrorBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, errorBudgetKey, new(atomic.Int64))
}

func errorBudget(ctx context.Context) *atomic.Int64 {
	n, _ := ctx.Value(errorBudgetKey).(*atomic.Int64)
	return n
}

func newRequestID() string { return "req_" + strings.ToLower(rand.Text()) }

func withRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, id)
}

// RequestID returns the id of the request (HTTP) or operation (socket) that ctx belongs to, or "". The caller sees it as X-Request-Id and in
// the extensions of server errors.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}
