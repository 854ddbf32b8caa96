//go:build unix

package executor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"rouse.dev/rouse/internal/domain"
)

// received is an answer of an agent service as it came.
type received struct {
	status int
	header http.Header
	body   []byte
	long   bool // the body is longer than what was read of it
	now    time.Time
	mask   func(string) string
}

// answer is what it comes to: accepted, a result, a text, nothing, or a failure.
type answer struct {
	accepted bool           // the service reports the end itself
	object   map[string]any // the result, neither cleaned nor masked; of an accepted run only its session counts
	text     string         // an answer in words
	usage    *Usage         // not masked
	note     string         // for the log
	failure  *Failure
}

// readAnswer turns an answer into a result or a failure. A result is a JSON object; any other JSON is the member result
// of one, and plain text a message. JSON that cannot be read is a failure, and so is a body that is neither. As a
// success it would lose what the agent brought back, and what that cost.
func readAnswer(r received) answer {
	switch {
	case r.status == http.StatusAccepted:
		object, _ := decodeObject(r.plain())
		return answer{accepted: true, object: object}
	case r.status >= 300 && r.status < 400:
		return answer{failure: r.redirect()}
	case r.status < 200 || r.status >= 300:
		return answer{failure: r.refusal()}
	}
	if coding := r.coding(); coding != "" {
		return r.unreadable("in the coding "+shortWord(coding, r.mask)+", which was not asked for: let the service answer without one", true)
	}
	if charset := r.foreignCharset(); charset != "" {
		return r.unreadable("in "+charset+", which cannot be read: let the service answer in UTF-8", true)
	}
	if len(bytes.TrimSpace(r.plain())) == 0 && !r.saysJSON() {
		return answer{note: "the agent service answered " + r.statusText() + " and nothing else"}
	}
	if r.saysJSON() {
		return r.json()
	}
	return r.words()
}

// json reads an answer that says that it is JSON.
func (r received) json() answer {
	if r.long {
		return r.unreadable(fmt.Sprintf("with a result of more than %d KiB, of which nothing can be taken: let it write long texts elsewhere and a summary into the result", maxResultLine>>10), true)
	}
	text := r.plain()
	if object, ok := decodeObject(text); ok {
		a := answer{object: object, usage: domain.ResultUsage(object)}
		if _, known := parseResult(text); !known {
			a.object = map[string]any{"result": object}
		}
		return a
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	if err == nil && decoder.More() {
		err = fmt.Errorf("more follows the first value")
	}
	if _, isObject := value.(map[string]any); err == nil && isObject {
		err = errTooDeep
	}
	if err != nil {
		return r.unreadable(fmt.Sprintf("with JSON that cannot be read (%v): %s", err, r.shownBody()), false)
	}
	switch value := value.(type) {
	case nil:
		return answer{note: "the agent service answered " + r.statusText() + " and null"}
	case string:
		return answer{text: strings.TrimSpace(value)}
	}
	object, ok := decodeObject(append(append([]byte(`{"result":`), text...), '}'))
	if !ok {
		return r.unreadable("with JSON that cannot be read: "+r.shownBody(), false)
	}
	return answer{object: object}
}

// words reads an answer that does not say that it is JSON.
func (r received) words() answer {
	text := r.plain()
	kind := r.mediaType()
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml" || looksLikePage(text):
		return r.noResult("with a page (HTML) instead of a result; correct the executor's url, or its headers when a proxy in front of the service asks for a login: " + r.shownBody())
	case kind == "text/event-stream" || kind == "application/x-ndjson" || kind == "application/jsonl":
		return r.noResult("with a stream of events, which is not read; let it answer once, with the result: " + r.shownBody())
	case kind != "" && kind != "application/octet-stream" && (!strings.HasPrefix(kind, "text/") || kind == "text/xml") || !utf8.Valid(text) && !r.long || bytes.IndexByte(text, 0) >= 0:
		return r.noResult(fmt.Sprintf("with %d bytes of %s, which are no result; let it answer with JSON", len(r.body), cmp.Or(shortWord(kind, r.mask), "no known kind")))
	}
	a := answer{text: strings.TrimSpace(string(text))}
	if r.long {
		a.note = fmt.Sprintf("the answer is longer than %d KiB; only its beginning was read", maxResultLine>>10)
	}
	return a
}

// unreadable is a result that cannot be taken. What it says of the attempt's use is lost with it. A permanent one would be the
// same the next time, while the work would be done again.
func (r received) unreadable(how string, permanent bool) answer {
	a := r.noResult(how)
	a.failure.Permanent = permanent
	if permanent || bytes.Contains(r.body, []byte(`"usage"`)) || bytes.Contains(r.body, []byte(`"total_cost_usd"`)) {
		a.usage = domain.UnreadUsage("the agent service's answer, with what it says of its use, cannot be read")
	}
	return a
}

func (r received) noResult(how string) answer {
	return answer{failure: &Failure{Code: domain.RunErrorCodeOther, Message: "the agent service answered " + r.statusText() + " " + how}}
}

// plain is the body without the mark that some programs begin UTF-8 with.
func (r received) plain() []byte { return bytes.TrimPrefix(r.body, []byte("\uFEFF")) }

func (r received) mediaType() string {
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil {
		kind, _, _ = strings.Cut(r.header.Get("Content-Type"), ";")
	}
	return strings.ToLower(strings.TrimSpace(kind))
}

// coding is what the body is wrapped in; "" for nothing.
func (r received) coding() string {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(r.header.Values("Content-Encoding"), ", ")))
	if coding == "identity" {
		return ""
	}
	if coding == "" && bytes.HasPrefix(r.body, []byte{0x1f, 0x8b}) {
		return "gzip"
	}
	return coding
}

// foreignCharset is the name of a character set that is not supported; "" for UTF-8 and its subsets.
func (r received) foreignCharset() string {
	_, parameters, _ := mime.ParseMediaType(r.header.Get("Content-Type")) // nil when it cannot be read
	charset := strings.ToUpper(parameters["charset"])
	switch {
	case strings.HasPrefix(charset, "UTF-16") || strings.HasPrefix(charset, "UTF-32") || strings.HasPrefix(charset, "UCS-"):
		return shortWord(charset, r.mask)
	case bytes.HasPrefix(r.body, []byte{0xfe, 0xff}) || bytes.HasPrefix(r.body, []byte{0xff, 0xfe}):
		return "UTF-16"
	case bytes.HasPrefix(r.body, []byte("{\x00")) || bytes.HasPrefix(r.body, []byte("\x00{")):
		return "UTF-16"
	}
	return ""
}

// saysJSON reports whether the service means to answer with JSON.
func (r received) saysJSON() bool {
	kind := r.mediaType()
	if kind == "application/json" || kind == "text/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json") {
		return true
	}
	return bytes.HasPrefix(bytes.TrimSpace(r.plain()), []byte("{"))
}

func looksLikePage(text []byte) bool {
	start := strings.ToLower(string(bytes.TrimSpace(text[:min(len(text), 200)])))
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

func (r received) statusText() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)))
}

// shownBody is the beginning of the body, masked.
func (r received) shownBody() string {
	return cmp.Or(maskedText(strings.TrimSpace(string(r.body)), httpErrorBytes, r.mask), "nothing")
}

// shortWord is a word of the service for a message, short and masked.
func shortWord(word string, mask func(string) string) string {
	return maskedText(word, maxStepWord, mask)
}

// redirect is the failure of an answer that leads elsewhere.
func (r received) redirect() *Failure {
	permanent := r.status == http.StatusMovedPermanently || r.status == http.StatusPermanentRedirect
	return &Failure{Code: domain.RunErrorCodeOther, Permanent: permanent, Message: fmt.Sprintf(
		"the agent service answered %s, and redirects are not followed: set the executor's url to where it leads (%s)", r.statusText(), maskedText(r.header.Get("Location"), httpErrorBytes, r.mask))}
}

// refusal is the failure of an answer that is an error.
func (r received) refusal() *Failure {
	f := &Failure{Code: domain.RunErrorCodeOther, Message: "the agent service answered " + r.statusText(), Permanent: lastingStatus(r.status)}
	switch r.status {
	case http.StatusTooManyRequests:
		f.Code = domain.RunErrorCodeRateLimited
	case http.StatusUnauthorized:
		f.Code = domain.RunErrorCodeAuth
	case http.StatusPaymentRequired:
		f.Code = domain.RunErrorCodeBilling
	}
	if after := r.header.Get("Retry-After"); after != "" && !f.Permanent {
		f.Message += "; Retry-After: " + shortWord(after, r.mask)
		if wait, ok := retryAfter(after, r.date()); ok {
			f.RetryAfter = wait
		}
	}
	if text := strings.TrimSpace(string(r.body)); text != "" {
		f.Message += ": " + maskedText(text, httpErrorBytes, r.mask)
	}
	f.Words = f.Message
	if hint := statusHints[r.status]; f.Permanent {
		f.Message = cutText(f.Message, maxFailure/2) + "\n" + cmp.Or(hint, "correct the executor's url and headers, or the service: the same request would be refused again") + "; then retry the run"
	}
	return f
}

// date is the service's clock, by which it says until when.
func (r received) date() time.Time {
	if at, err := http.ParseTime(r.header.Get("Date")); err == nil {
		return at
	}
	return r.now
}

// lastingStatus reports whether the same request would be refused again: an error of the caller that no time mends.
func lastingStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// statusHints say what to do about refusals that no time mends.
var statusHints = map[int]string{
	http.StatusBadRequest:            "the service does not understand the request: compare it with what docs/executors.md says of the call",
	http.StatusUnauthorized:          "it does not know the caller: set the executor's headers, or its secret, to what the service takes",
	http.StatusPaymentRequired:       "it wants to be paid: see the account that the service works for",
	http.StatusForbidden:             "it refuses the caller: set the executor's headers, or its secret, to what the service takes, or let the service allow rouse",
	http.StatusNotFound:              "there is nothing at this address: correct the executor's url",
	http.StatusMethodNotAllowed:      "nothing at this address takes a POST: correct the executor's url",
	http.StatusGone:                  "the service has moved away for good: set the executor's url to where it is now",
	http.StatusRequestEntityTooLarge: "the prompt is longer than what the service takes: raise its limit, or shorten the agent's instructions",
	http.StatusUnsupportedMediaType:  "the service does not take application/json: correct the executor's url, or the service",
	http.StatusUnprocessableEntity:   "the service does not understand the request: compare it with what docs/executors.md says of the call",
}

// retryAfter reads the value of a Retry-After header, a number of seconds or an HTTP date, as the time from now on. It is false
// for one that cannot be read or is past.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		after := time.Duration(min(max(seconds, 0), int64(maxRetryAfter/time.Second)+1)) * time.Second
		return after, after > 0 && after <= maxRetryAfter
	}
	at, err := http.ParseTime(value)
	after := at.Sub(now)
	return after, err == nil && after > 0 && after <= maxRetryAfter
}

// maxRetryAfter is the longest that a header is believed (SPEC S8.2).
const maxRetryAfter = 35 * 24 * time.Hour
