package edge

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// ownHeaders is how http.Server ends the header of what it answers by itself, to a request that it cannot read: no handler is
// asked. A handler's answer never looks so, since it has a date.
const ownHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// ownWords are what such a request did wrong, by the status, and what to do.
var ownWords = map[int]string{
	http.StatusRequestHeaderFieldsTooLarge: fmt.Sprintf("the header of the request has more than %d KiB: send fewer or shorter fields; of the token one is enough, and cookies are not read", maxHeader>>10),
	http.StatusBadRequest:                  "the request is not well-formed HTTP: send a request line and a header as HTTP/1.1 has them",
	http.StatusNotImplemented:              "the body has a Transfer-Encoding that this server does not read: send it with Content-Length, or as chunked alone",
}

// asJSON gives what http.Server answers by itself the form of every refusal; nil for anything else. http.Server writes such an
// answer at once, and closes the connection.
func asJSON(p []byte) []byte {
	line, isHTTP := bytes.CutPrefix(p, []byte("HTTP/1.1 "))
	line, text, isOwn := bytes.Cut(line, []byte(ownHeaders))
	if !isHTTP || !isOwn || bytes.Contains(line, []byte("\r\n")) || len(line) < 3 {
		return nil
	}
	status, err := strconv.Atoi(string(line[:3]))
	if err != nil {
		return nil
	}
	body := mustMarshal(envelope{Errors: gqlerror.List{(&Error{Code: codeOf(status), Message: ownMessage(status, string(text))}).gql()}})
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), mediaJSON, len(body), body)
}

// ownMessage says what http.Server says, and what to do. Its text repeats the status, and may name the reason behind a colon.
func ownMessage(status int, text string) string {
	message := ownWords[status]
	if message == "" {
		return clip(text)
	}
	if _, reason, ok := strings.Cut(text, ": "); ok {
		message += " (" + reason + ")"
	}
	return clip(message)
}
