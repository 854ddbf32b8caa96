//go:build unix

package executor

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"rouse.dev/rouse/internal/domain"
)

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // memory takes everything
	_ = w.Close()
	return b.String()
}

// wide is a text in UTF-16, with the mark that says so or without.
func wide(text string, mark bool) string {
	var b []byte
	if mark {
		b = append(b, 0xff, 0xfe)
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		b = append(b, byte(unit), byte(unit>>8))
	}
	return string(b)
}

// What an answer comes to: its status, its headers and its body.
func TestWhatAnAnswerComesTo(t *testing.T) {
	const good = `{"summary":"made it","usage":{"cost_usd":2}}`
	page := "<!DOCTYPE html><html><title>Sign in</title></html>"
	long := `{"summary":"` + strings.Repeat("x", maxResultLine) + `","usage":{"cost_usd":2}}`
	for _, test := range []struct {
		name          string
		status        int
		headers       string // "name: value" with ; between
		body          string
		want          string // "accepted", "nothing", the object as JSON, text:…, or fails:… with a part of the message
		permanent     bool
		usageIsUnread bool
	}{
		{"a result", 200, "Content-Type: application/json", good, good, false, false},
		{"a result without a type", 200, "", good, good, false, false},
		{"a result that is called text", 200, "Content-Type: text/plain; charset=utf-8", good, good, false, false},
		{"a result of another kind of JSON", 200, "Content-Type: application/vnd.agent+json", good, good, false, false},
		{"a result of 201", 201, "Content-Type: application/json", good, good, false, false},
		{"a mark before it is nothing", 200, "Content-Type: application/json", "\uFEFF" + good, good, false, false},
		{"space around it is nothing", 200, "", "\r\n " + good + "\n\n", good, false, false},
		{"identity is no coding", 200, "Content-Encoding: identity", good, good, false, false},
		{"any other object is the result", 200, "", `{"answer":42}`, `{"result":{"answer":42}}`, false, false},
		{"a log record is no result, but an object", 200, "", `{"level":"info","message":"x"}`, `{"result":{"level":"info","message":"x"}}`, false, false},
		{"a list is the result", 200, "Content-Type: application/json", `[1,2]`, `{"result":[1,2]}`, false, false},
		{"a number is the result", 200, "Content-Type: application/json", `42`, `{"result":42}`, false, false},
		{"a text of JSON is the message", 200, "Content-Type: application/json", `"all good"`, "text:all good", false, false},
		{"null is nothing", 200, "Content-Type: application/json", `null`, "nothing", false, false},
		{"words are the message", 200, "Content-Type: text/plain", "all good\nreally\n", "text:all good\nreally", false, false},
		{"words without a type", 200, "", "all good", "text:all good", false, false},
		{"words in markdown", 200, "Content-Type: text/markdown", "# done", "text:# done", false, false},
		{"words of octets", 200, "Content-Type: application/octet-stream", "done", "text:done", false, false},
		{"no content", 204, "", "", "nothing", false, false},
		{"an empty 200", 200, "", "", "nothing", false, false},
		{"an empty 200 of text", 200, "Content-Type: text/plain", " \n", "nothing", false, false},
		{"words that are too long are cut", 200, "", strings.Repeat("x", maxResultLine+1), "text:xxx", false, false},
		{"accepted", 202, "", "", "accepted", false, false},
		{"accepted, whatever it says", 202, "Content-Type: text/html", page, "accepted", false, false},

		{"empty, though it says JSON", 200, "Content-Type: application/json", "", "fails:cannot be read (EOF): nothing", false, false},
		{"JSON that is cut", 200, "Content-Type: application/json", good[:20], `fails:answered 200 OK with JSON that cannot be read (unexpected EOF): {"summary":"made it"`, false, false},
		{"JSON that is cut behind its account", 200, "", good[:len(good)-1], "fails:cannot be read", false, true},
		{"something like JSON", 200, "", `{summary: 'x'}`, "fails:with JSON that cannot be read (invalid character 's'", false, false},
		{"two results", 200, "", good + good, "fails:more follows the first value", false, true},
		{"a result that is too deep", 200, "", `{"result":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}", "fails:nested more than 64 levels", false, false},
		{"a list that is too deep", 200, "Content-Type: application/json", strings.Repeat("[", 70) + strings.Repeat("]", 70), "fails:cannot be read", false, false},
		{"a result that is too long", 200, "", long, "fails:a result of more than 256 KiB", true, true},
		{"a page", 200, "Content-Type: text/html; charset=utf-8", page, "fails:with a page (HTML) instead of a result; correct the executor's url, or its headers when a proxy in front of the service asks for a login: <!DOCTYPE", false, false},
		{"a page that is called text", 200, "Content-Type: text/plain", "\n " + page, "fails:a page (HTML)", false, false},
		{"a page without a type", 200, "", "<HTML><body>hello", "fails:a page (HTML)", false, false},
		{"words that are called a page", 200, "Content-Type: text/html", "all good", "fails:a page (HTML)", false, false},
		{"XML", 200, "Content-Type: application/xml", "<r/>", "fails:with 4 bytes of application/xml, which are no result", false, false},
		{"a picture", 200, "Content-Type: image/png", "\x89PNG", "fails:with 4 bytes of image/png", false, false},
		{"octets", 200, "Content-Type: application/octet-stream", "\x00\x01", "fails:with 2 bytes of application/octet-stream", false, false},
		{"octets without a type", 200, "", "\xff\xfe\x00\x01"[1:], "fails:with 3 bytes of no known kind", false, false},
		{"a stream of events", 200, "Content-Type: text/event-stream", "data: {}\n\n", "fails:with a stream of events", false, false},
		{"lines of JSON", 200, "Content-Type: application/x-ndjson", good + "\n" + good, "fails:more follows the first value", false, true},
		{"lines of JSON lists", 200, "Content-Type: application/x-ndjson", "[1]\n[2]", "fails:with a stream of events", false, false},
		{"gzip that nobody asked for", 200, "Content-Type: application/json; Content-Encoding: gzip", zipped(good), "fails:in the coding gzip, which was not asked for", true, true},
		{"gzip that nobody tells of", 200, "Content-Type: application/json", zipped(good), "fails:in the coding gzip", true, true},
		{"another coding", 200, "Content-Encoding: br", "xx", "fails:in the coding br", true, true},
		{"UTF-16 with its mark", 200, "Content-Type: application/json", wide(good, true), "fails:in UTF-16, which cannot be read", true, true},
		{"UTF-16 that its type tells of", 200, "Content-Type: application/json|charset=UTF-16LE", wide(good, false), "fails:in UTF-16LE", true, true},
		{"UTF-16 that nobody tells of", 200, "", wide(good, false), "fails:in UTF-16", true, true},
		{"words in UTF-16", 200, "Content-Type: text/plain", wide("all good", true), "fails:in UTF-16", true, true},

		{"a redirect", 302, "Location: https://elsewhere/", "", "fails:redirects are not followed: set the executor's url to where it leads (https://elsewhere/)", false, false},
		{"a redirect for good", 308, "Location: /new", "", "fails:redirects are not followed", true, false},
		{"bad request", 400, "", "what?", "fails:400 Bad Request: what?\nthe service does not understand the request", true, false},
		{"not known", 401, "", "", "fails:401 Unauthorized\nit does not know the caller: set the executor's headers", true, false},
		{"not paid", 402, "", "no credit", "fails:402 Payment Required: no credit\nit wants to be paid", true, false},
		{"not allowed", 403, "", "bad signature", "fails:403 Forbidden: bad signature\nit refuses the caller", true, false},
		{"not there", 404, "Content-Type: text/html", page, "fails:there is nothing at this address: correct the executor's url; then retry the run", true, false},
		{"no POST", 405, "", "", "fails:takes a POST", true, false},
		{"too slow", 408, "", "", "fails:408 Request Timeout", false, false},
		{"busy with another", 409, "", "", "fails:409 Conflict", false, false},
		{"gone", 410, "", "", "fails:moved away for good", true, false},
		{"too long", 413, "", "", "fails:raise its limit", true, false},
		{"a teapot", 418, "", "", "fails:correct the executor's url and headers, or the service", true, false},
		{"locked", 423, "", "", "fails:423 Locked", false, false},
		{"too early", 425, "", "", "fails:425 Too Early", false, false},
		{"too many", 429, "", "", "fails:429 Too Many Requests", false, false},
		{"broken", 500, "", "oops", "fails:500 Internal Server Error: oops", false, false},
		{"behind something broken", 502, "Content-Type: text/html", page, "fails:502 Bad Gateway: <!DOCTYPE", false, false},
		{"not now", 503, "", "", "fails:503 Service Unavailable", false, false},
		{"a status of its own", 599, "", "", "fails:599", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := readAnswer(receivedOf(test.status, test.headers, test.body))
			if said := saidOf(got); !strings.HasPrefix(said, test.want) && !(strings.HasPrefix(test.want, "fails:") && strings.Contains(said, strings.TrimPrefix(test.want, "fails:"))) {
				t.Errorf("got %.500s", said)
			}
			if f := got.failure; (f != nil) != strings.HasPrefix(test.want, "fails:") || f != nil && f.Permanent != test.permanent {
				t.Errorf("got %+v", f)
			}
			if (got.usage != nil && got.usage.CostUnread) != test.usageIsUnread {
				t.Errorf("use %+v", got.usage)
			}
		})
	}
}

func receivedOf(status int, headers, body string) received {
	r := received{status: status, header: http.Header{}, body: []byte(body), now: time.Unix(1_700_000_000, 0), mask: strings.Clone}
	for h := range strings.SplitSeq(headers, "; ") {
		if name, value, ok := strings.Cut(h, ": "); ok {
			r.header.Add(name, strings.ReplaceAll(value, "|", "; "))
		}
	}
	if len(r.body) > maxResultLine {
		r.body, r.long = r.body[:maxResultLine+1], true
	}
	return r
}

func saidOf(a answer) string {
	switch {
	case a.failure != nil:
		return a.failure.Message
	case a.accepted:
		return "accepted"
	case a.text != "":
		return "text:" + a.text
	case a.object == nil:
		return "nothing"
	}
	text, err := json.Marshal(a.object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Retry-After counts where time can mend the refusal, in seconds or as a date of the service's clock.
func TestHowLongAServiceWantsToBeLeftAlone(t *testing.T) {
	now := time.Unix(1_700_000_000, 0).UTC()
	date := func(d time.Duration) string { return strings.ReplaceAll(now.Add(d).Format(http.TimeFormat), "; ", "") }
	for _, test := range []struct {
		name, headers string
		status        int
		want          time.Duration
	}{
		{"seconds of a 429", "Retry-After: 120", 429, 2 * time.Minute},
		{"seconds of a 503", "Retry-After: 120", 503, 2 * time.Minute},
		{"seconds of a 408", "Retry-After: 7", 408, 7 * time.Second},
		{"a date", "Retry-After: " + date(time.Hour), 503, time.Hour},
		{"a date of the service's clock", "Date: " + date(10*time.Hour) + "; Retry-After: " + date(11*time.Hour), 503, time.Hour},
		{"a date in the old form", "Retry-After: " + now.Add(time.Minute).Format(time.RFC850), 503, time.Minute},
		{"a date in the form of C", "Retry-After: " + now.Add(time.Minute).Format(time.ANSIC), 429, time.Minute},
		{"35 days", "Retry-After: 3024000", 503, 35 * 24 * time.Hour},
		{"longer than is believed", "Retry-After: 3024001", 503, 0},
		{"longer than a number", "Retry-After: 99999999999999999999", 503, 0},
		{"a date that is past", "Retry-After: " + date(-time.Hour), 503, 0},
		{"less than nothing", "Retry-After: -5", 503, 0},
		{"nothing", "Retry-After: 0", 503, 0},
		{"words", "Retry-After: soon", 503, 0},
		{"none", "", 503, 0},
		{"of a refusal that no time mends", "Retry-After: 120", 404, 0},
	} {
		got := readAnswer(receivedOf(test.status, test.headers, ""))
		if got.failure.RetryAfter != test.want {
			t.Errorf("%s: %s", test.name, got.failure.RetryAfter)
		}
	}
}

func TestWhatIsShownOfAnAnswerIsMaskedAndBounded(t *testing.T) {
	for name, r := range map[string]received{
		"a page":      receivedOf(200, "Content-Type: text/html", "<html>hunter2"+strings.Repeat("x", 100_000)),
		"broken JSON": receivedOf(200, "", `{"key":"hunter2`+strings.Repeat("x", 100_000)),
		"a refusal":   receivedOf(500, "Retry-After: hunter2", "hunter2"+strings.Repeat("x", 100_000)),
		"a coding":    receivedOf(200, "Content-Encoding: hunter2", "x"),
		"a type":      receivedOf(200, "Content-Type: image/hunter2", "x"),
		"a redirect":  receivedOf(302, "Location: https://x/?k=hunter2"+strings.Repeat("x", 10_000), ""),
	} {
		r.mask = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		f := readAnswer(r).failure
		if f == nil || len(f.Message) > httpErrorBytes+1000 || strings.Contains(f.Message, "hunter2") || !strings.Contains(f.Message, "***") {
			t.Errorf("%s: %.300v", name, f)
		}
	}
}

func TestTheServiceIsAskedForAPlainAnswer(t *testing.T) {
	var asked http.Header
	url := service(t, func(w http.ResponseWriter, r *http.Request) { asked = r.Header; write(200, `{"summary":"s"}`)(w, r) })
	if _, err := NewHTTP(loopback).Run(t.Context(), callOf(url), &recorder{}); err != nil || asked.Get("Accept-Encoding") != "identity" {
		t.Errorf("%v, %v", asked, err)
	}
}

// An answer whose account cannot be read is charged, and a body that breaks off is a lost connection.
func TestAResultThatIsLostIsAccountedFor(t *testing.T) {
	result, err := NewHTTP(loopback).Run(t.Context(), callOf(service(t, write(200, `{"summary":"x","usage":{"cost_usd":2}`))), &recorder{})
	if failure := failureOf(t, err); failure.Permanent || result.Usage == nil || !result.Usage.CostUnread {
		t.Errorf("%+v, %+v", failure, result.Usage)
	}
	cut := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		write(200, `{"summary":`)(w, r)
	})
	_, err = NewHTTP(loopback).Run(t.Context(), callOf(cut), &recorder{})
	if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeCrash || !strings.Contains(failure.Message, "was lost before it had answered") {
		t.Errorf("%+v", failure)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(200, "application/json", `{"summary":"x"}`)
	f.Add(200, "text/html", "<html>")
	f.Add(503, "", "no")
	f.Fuzz(func(t *testing.T, status int, kind, body string) {
		r := receivedOf(status%600, "", body)
		r.header.Set("Content-Type", kind)
		a := readAnswer(r)
		outcomes := 0
		for _, is := range []bool{a.accepted, a.failure != nil, a.text != "", a.object != nil && !a.accepted} {
			if is {
				outcomes++
			}
		}
		if outcomes > 1 || outcomes == 0 && a.note == "" {
			t.Fatalf("%d %q %q: %+v", status, kind, body, a)
		}
		if ok := r.status >= 200 && r.status < 300; !ok && a.failure == nil {
			t.Fatal(fmt.Sprint("a status that is none of success is one: ", r.status))
		}
	})
}
