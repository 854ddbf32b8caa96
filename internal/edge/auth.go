package edge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"rouse.dev/rouse/internal/auth"
)

// bearer takes the token out of an Authorization header; "" for an empty header.
func bearer(header string) (string, error) {
	if header == "" {
		return "", nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", &Error{Code: CodeUnauthenticated, Message: "the Authorization header is not of the form: Bearer <token>"}
	}
	return token, nil
}

// Bearer is the token in the Authorization header of a request outside the API; "" when it has none.
func Bearer(header string) (string, error) { return bearer(header) }

// challenge is the WWW-Authenticate header that goes with 401 (RFC 6750).
func challenge(token string) string {
	if token == "" {
		return "Bearer"
	}
	return `Bearer error="invalid_token"`
}

var errInitToken = &Error{Code: CodeUnauthenticated, Message: "Authorization and token of connection_init are texts that are not empty: send \"Bearer <token>\" or \"<token>\", or leave them out"}

// initToken finds the token in the payload of connection_init: {"Authorization": "Bearer …"}, in any case, or {"token": "…"}; "" when neither
// is there. Who names one of them means to be somebody, and is not let in as nobody when it is no token. A payload that is not an object is an
// error of the protocol: ok is false.
func initToken(payload json.RawMessage) (token string, ok bool, err error) {
	if len(payload) == 0 || string(payload) == "null" {
		return "", true, nil
	}
	var fields map[string]any
	if json.Unmarshal(payload, &fields) != nil {
		return "", false, nil
	}
	header := ""
	for key, v := range fields {
		name := strings.ToLower(key)
		if name != "authorization" && name != "token" {
			continue
		}
		text, _ := v.(string)
		if strings.TrimSpace(text) == "" {
			return "", true, errInitToken
		}
		if name == "token" {
			token = text
		} else {
			header = text
		}
	}
	if header != "" {
		token, err = bearer(header)
	}
	return token, true, err
}

// authenticate calls the authenticator. A panic or a context that is missing is a failure of the server, never a caller let in.
func (s *Server) authenticate(ctx context.Context, c Credentials) (out context.Context, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, internalError(s.logPanic(ctx, p))
		}
	}()
	out, err = s.options.Authenticate(ctx, c)
	if err == nil && out == nil {
		err = errors.New("authenticator returned neither a context nor an error")
	}
	return out, err
}

// authError is what the caller sees of a failed Authenticate.
func (s *Server) authError(ctx context.Context, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if s.options.PresentError != nil {
		if e := s.options.PresentError(ctx, err); e != nil {
			return e
		}
	}
	if ctx.Err() != nil { // the caller went away, or was closed for another: no failure of ours, and nothing for the log
		return &Error{Code: CodeUnavailable, Message: "the request ended before its token was looked up; send it again"}
	}
	id := RequestID(ctx)
	s.log.ErrorContext(ctx, "graphql authentication failed to run", "request_id", id, "error", err)
	return internalError(id)
}

// settle takes note on the connection of conn of who its caller is; ctx is what Authenticate made of it. Whose attempt has ended may still report,
// as a stranger.
func (s *Server) settle(conn, ctx context.Context, token string) {
	if caller, ok := auth.FromContext(ctx); ok && caller.Ended {
		doubted(conn, token)
		s.options.Strangers.Wait(conn)
		return
	}
	Proved(conn, token)
}
