package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
)

const (
	mediaJSON    = "application/json"
	mediaGraphQL = "application/graphql-response+json"
)

// negotiate picks the media type of the response from Accept: the one of the highest quality, the first of equals, "" when none can be served.
func negotiate(accept string) string {
	if strings.TrimSpace(accept) == "" {
		return mediaJSON
	}
	best, bestQuality := "", 0.0
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || !isUTF8(params["charset"]) {
			continue
		}
		quality := 1.0
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			quality = q
		}
		switch media {
		case mediaGraphQL, mediaJSON:
		case "application/*", "*/*":
			media = mediaJSON
		default:
			continue
		}
		if quality > bestQuality {
			best, bestQuality = media, quality
		}
	}
	return best
}

func isUTF8(charset string) bool {
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// readRequest reads the GraphQL request of a GET or POST. No text of the request comes back in a refusal.
func (s *Server) readRequest(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, *refusal) {
	params := &graphql.RawParams{Headers: r.Header}
	params.ReadTime.Start = graphql.Now()
	read := s.readPost
	if r.Method == http.MethodGet {
		read = s.readGet
	}
	if refused := read(w, r, params); refused != nil {
		return nil, refused
	}
	if params.Query == "" {
		return nil, refuse(http.StatusBadRequest, CodeBadRequest, "the request has no query: send the GraphQL document in the parameter query")
	}
	params.ReadTime.End = graphql.Now()
	return params, nil
}

func (s *Server) readGet(_ http.ResponseWriter, r *http.Request, params *graphql.RawParams) *refusal {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, CodeBadRequest, "the query string of the URL is not well-formed; percent-encode the parameters")
	}
	params.Query, params.OperationName = values.Get("query"), values.Get("operationName")
	if !utf8.ValidString(params.Query) || !utf8.ValidString(params.OperationName) { // JSON is made valid as it is read
		return refuse(http.StatusBadRequest, CodeBadRequest, "the parameter query or operationName is not UTF-8; percent-encode the bytes of its UTF-8 form")
	}
	if refused := s.readMap(values.Get("variables"), "variables", &params.Variables); refused != nil {
		return refused
	}
	return s.readMap(values.Get("extensions"), "extensions", &params.Extensions)
}

func (s *Server) readMap(text, name string, to *map[string]any) *refusal {
	if int64(len(text)) > s.limits.BodyBytes {
		return tooLarge(s.limits.BodyBytes)
	}
	if text == "" {
		return nil
	}
	if err := decodeJSON(strings.NewReader(text), to); err != nil {
		return refuse(http.StatusBadRequest, CodeBadRequest, "the parameter %s is not a JSON object", name)
	}
	if err := checkTwice([]byte(text)); err != nil {
		return refuse(http.StatusBadRequest, CodeBadRequest, "the parameter %s: %s", name, err)
	}
	return nil
}

func (s *Server) readPost(w http.ResponseWriter, r *http.Request, params *graphql.RawParams) *refusal {
	if coding := strings.TrimSpace(r.Header.Get("Content-Encoding")); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return refuse(http.StatusUnsupportedMediaType, CodeBadRequest, "the request body is compressed, which this server does not read: send it without Content-Encoding")
	}
	media, attrs, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != mediaJSON || !isUTF8(attrs["charset"]) {
		return refuse(http.StatusUnsupportedMediaType, CodeBadRequest, "the request must be JSON in UTF-8: send it with Content-Type: application/json")
	}
	err = decodeParams(http.MaxBytesReader(w, r.Body, s.limits.BodyBytes), params)
	if err == nil {
		deadline(http.NewResponseController(w).SetReadDeadline, 0)
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.Header().Set("Connection", "close")
		return refuse(http.StatusRequestTimeout, CodeTimeout, "the request body did not arrive within %v", s.limits.BodyTimeout)
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(s.limits.BodyBytes)
	}
	if twice, ok := errors.AsType[*twiceError](err); ok {
		return refuse(http.StatusBadRequest, CodeBadRequest, "%s", twice)
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field != "" {
		return refuse(http.StatusBadRequest, CodeBadRequest, "the parameter %s has the wrong type: query and operationName are strings, variables and extensions objects", mismatch.Field)
	}
	return refuse(http.StatusBadRequest, CodeBadRequest, "the request body could not be read as one JSON object {query, operationName, variables, extensions}")
}

// decodeParams reads the members of a request by their exact names, as GraphQL over HTTP spells them. encoding/json by
// itself would take "Query" for "query". The server would then serve another request than a proxy in front has checked.
func decodeParams(r io.Reader, params *graphql.RawParams) error {
	var members map[string]json.RawMessage
	var text bytes.Buffer
	if err := decodeJSON(io.TeeReader(r, &text), &members); err != nil {
		return err
	}
	if err := checkTwice(text.Bytes()); err != nil {
		return err
	}
	if members == nil {
		return errors.New("null")
	}
	for name, to := range map[string]any{"query": &params.Query, "operationName": &params.OperationName, "variables": &params.Variables, "extensions": &params.Extensions} {
		value, there := members[name]
		if !there {
			continue
		}
		if err := decodeJSON(bytes.NewReader(value), to); err != nil {
			if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				mismatch.Field = name
			}
			return err
		}
	}
	return nil
}

// deadline sets a deadline of the connection, or none for zero. Response writers of tests have none.
func deadline(set func(time.Time) error, after time.Duration) {
	at := time.Time{}
	if after > 0 {
		at = time.Now().Add(after)
	}
	_ = set(at)
}

func tooLarge(most int64) *refusal {
	r := refuse(http.StatusRequestEntityTooLarge, CodeLimitExceeded, "the request has more than %d bytes; split it, or shorten its variables", most)
	r.errors[0].Extensions["limit"], r.errors[0].Extensions["max"] = "body bytes", most
	return r
}

// decodeJSON reads exactly one JSON value; numbers keep their digits.
func decodeJSON(r io.Reader, to any) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("more than one JSON value")
		}
		return err
	}
	return nil
}
