package edge

import (
	"net/http"
	"strings"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// JSONErrors gives all refusals one form. What a handler, the mux or a library answers as plain text becomes the errors
// of a GraphQL response. Browsers that open a page keep the text.
func JSONErrors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			next.ServeHTTP(w, r)
			return
		}
		e := &textError{ResponseWriter: w}
		next.ServeHTTP(e, r)
		e.finish()
	})
}

// textError holds back an error that is plain text.
type textError struct {
	http.ResponseWriter
	begun  bool
	status int // of an error that is held back; 0: none
	text   strings.Builder
}

// longestText bounds what is kept of an error.
const longestText = 2000

// Unwrap lets http.ResponseController through.
func (e *textError) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader passes a status on, unless it begins an error in plain text.
func (e *textError) WriteHeader(status int) {
	if e.begun || e.status != 0 {
		return
	}
	kind := e.Header().Get("Content-Type")
	if status >= http.StatusBadRequest && (kind == "" || strings.HasPrefix(kind, "text/plain")) {
		e.status = status
		return
	}
	e.begun = status >= http.StatusOK // others may follow what only informs
	e.ResponseWriter.WriteHeader(status)
}

// Write passes a body on, or keeps it for the error.
func (e *textError) Write(p []byte) (int, error) {
	if e.status == 0 {
		e.begun = true
		return e.ResponseWriter.Write(p)
	}
	e.text.Write(p[:min(len(p), longestText-min(e.text.Len(), longestText))])
	return len(p), nil
}

// finish writes the error that was held back.
func (e *textError) finish() {
	if e.status == 0 {
		return
	}
	message := strings.TrimSpace(strings.ToValidUTF8(e.text.String(), ""))
	if message == "" {
		message = http.StatusText(e.status)
	}
	h := e.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", mediaJSON+"; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	e.ResponseWriter.WriteHeader(e.status)
	_, _ = e.ResponseWriter.Write(mustMarshal(envelope{Errors: gqlerror.List{(&Error{Code: codeOf(e.status), Message: message}).gql()}})) // a caller that went away is no error of ours
}

// codeOf is the code of an error that has only a status.
func codeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return CodeUnauthenticated
	case status == http.StatusForbidden:
		return CodeForbidden
	case status == http.StatusNotFound:
		return CodeNotFound
	case status == http.StatusServiceUnavailable:
		return CodeUnavailable
	case status >= http.StatusInternalServerError:
		return CodeInternal
	}
	return CodeBadRequest
}
