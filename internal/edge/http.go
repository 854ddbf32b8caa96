package edge

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// envelope is a response on the wire. Data is left out when nothing was executed.
type envelope struct {
	Errors     gqlerror.List   `json:"errors,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Extensions map[string]any  `json:"extensions,omitempty"`
}

func envelopeOf(r *graphql.Response) envelope {
	return envelope{Errors: r.Errors, Data: r.Data, Extensions: r.Extensions}
}

// text is the response as JSON. Data that comes alone is put in as it is: it was written as JSON a moment ago, and reading
// it again takes longer than all else that is done to it here.
func (e envelope) text() ([]byte, error) {
	if len(e.Errors) > 0 || len(e.Extensions) > 0 || len(e.Data) == 0 {
		return json.Marshal(e)
	}
	out := make([]byte, 0, len(e.Data)+len(`{"data":}`))
	return append(append(append(out, `{"data":`...), e.Data...), '}'), nil
}

// serveJSON answers GET and POST as GraphQL over HTTP asks.
func (s *Server) serveJSON(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	if r.Method == http.MethodOptions {
		s.options.Strangers.Wait(r.Context())
		w.Header().Set("Allow", "GET, POST")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.Body != nil && r.Body != http.NoBody {
		// Lifted once the body has been read. Before that it also bounds the draining of a body that nobody wants.
		deadline(http.NewResponseController(w).SetReadDeadline, s.limits.BodyTimeout)
	}
	media := negotiate(r.Header.Get("Accept"))
	if media == "" {
		s.options.Strangers.Wait(r.Context())
		s.writeRefusal(w, r, mediaJSON, refuse(http.StatusNotAcceptable, CodeBadRequest, "the response can be %s or %s; name one of them in Accept", mediaGraphQL, mediaJSON))
		return
	}
	resp, refused := s.answer(w, r)
	if refused != nil {
		s.writeRefusal(w, r, media, refused)
		return
	}
	s.write(w, r, media, statusOf(resp), envelopeOf(resp))
}

// answer authenticates, reads, checks and executes one request. Exactly one of the results is nil.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) (*graphql.Response, *refusal) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		s.options.Strangers.Wait(r.Context())
		w.Header().Set("Allow", "GET, POST")
		return nil, refuse(http.StatusMethodNotAllowed, CodeBadRequest, "GraphQL is served by GET and POST")
	}
	ctx, refused := s.authenticateHTTP(w, r)
	if refused != nil {
		return nil, refused
	}
	leave, refused := s.agents.enter(ctx)
	if refused != nil {
		return nil, refused
	}
	defer leave()
	params, refused := s.readRequest(w, r)
	if refused != nil {
		return nil, refused
	}
	oc, refused := s.prepare(ctx, params)
	if refused != nil {
		return nil, refused
	}
	op := oc.Operation.Operation
	if op == ast.Subscription {
		return nil, refuse(http.StatusBadRequest, CodeBadRequest, "a subscription needs a WebSocket with the subprotocol %s at this address", subprotocol)
	}
	if r.Method == http.MethodGet && op != ast.Query {
		w.Header().Set("Allow", "POST")
		return nil, refuse(http.StatusMethodNotAllowed, CodeBadRequest, "a GET may only run a query; send this by POST")
	}
	ctx, cancel := s.deadline(ctx, op)
	defer cancel()
	return s.execute(ctx, oc), nil
}

// statusOf is 200 once there is data, null included, unless it is null since the caller turned out to be nobody, or the server
// has to be asked later.
func statusOf(r *graphql.Response) int {
	code := ""
	if len(r.Errors) > 0 {
		code, _ = r.Errors[0].Extensions["code"].(string)
	}
	turnedAway := string(r.Data) == "null" && (code == CodeUnauthenticated || code == CodeUnavailable)
	if len(r.Data) > 0 && !turnedAway {
		return http.StatusOK
	}
	switch code {
	case CodeTimeout, CodeUnavailable:
		return http.StatusServiceUnavailable
	case CodeUnauthenticated:
		return http.StatusUnauthorized
	case CodeForbidden:
		return http.StatusForbidden
	case CodeInternal, "":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

func (s *Server) writeRefusal(w http.ResponseWriter, r *http.Request, media string, refused *refusal) {
	status := refused.status
	if refused.soft && media == mediaJSON {
		status = http.StatusOK
	}
	s.write(w, r, media, status, envelope{Errors: refused.errors})
}

// retryAfter is when to come back after a 503, in seconds: an outage or the end of a process is over soon, or not.
const retryAfter = "5"

// write sends the response within WriteTimeout. The deadline is lifted afterwards, as the connection may serve other handlers.
func (s *Server) write(w http.ResponseWriter, r *http.Request, media string, status int, e envelope) {
	body, err := e.text()
	if err != nil {
		id := w.Header().Get("X-Request-Id")
		s.log.Error("graphql response is not JSON", "request_id", id, "error", err)
		body, status = mustMarshal(envelope{Errors: gqlerror.List{internalError(id).gql()}}), http.StatusInternalServerError
	}
	control := http.NewResponseController(w)
	deadline(control.SetWriteDeadline, s.limits.WriteTimeout)
	defer deadline(control.SetWriteDeadline, 0)
	body = pack(w.Header(), r, body)
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("graphql response not delivered", "error", err)
		return
	}
	_ = control.Flush() // the deadline must still hold when the bytes leave; a writer that cannot flush has none
}

// mustMarshal is for values of fixed shape.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// authenticateHTTP gives the context of the caller, or 401, 403, 500 or 503.
func (s *Server) authenticateHTTP(w http.ResponseWriter, r *http.Request) (context.Context, *refusal) {
	if s.options.Authenticate == nil {
		Proved(r.Context(), "")
		return r.Context(), nil
	}
	token, err := bearer(r.Header.Get("Authorization"))
	ctx := r.Context()
	if err == nil {
		ctx, err = s.authenticate(r.Context(), Credentials{Token: token, RemoteAddr: r.RemoteAddr})
	}
	if err == nil {
		s.settle(r.Context(), ctx, token)
		return ctx, nil
	}
	doubted(r.Context(), token)
	s.options.Strangers.Wait(r.Context())
	e := s.authError(r.Context(), err)
	status := http.StatusUnauthorized
	switch e.Code {
	case CodeForbidden:
		status = http.StatusForbidden
	case CodeInternal:
		status = http.StatusInternalServerError
	case CodeUnavailable:
		status = http.StatusServiceUnavailable
	default:
		w.Header().Set("WWW-Authenticate", challenge(token))
	}
	return nil, &refusal{status: status, errors: gqlerror.List{e.gql()}}
}
