package edge

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

func translate(_ context.Context, err error) *Error {
	if errors.Is(err, errTranslated) {
		return &Error{Code: "NOT_FOUND", Message: "no such agent"}
	}
	if errors.Is(err, errAway) {
		return &Error{Code: CodeUnavailable, Message: "the database does not answer; try again"}
	}
	return nil
}

func TestErrorsOfResolvers(t *testing.T) {
	f := newFixture(t, Options{PresentError: translate})
	tests := []struct {
		name, query, code, message string
		logged                     string // part of the log; "" when nothing is logged
	}{
		{"an Error passes as it is", `{fail(with:"known")}`, "LIVENESS_UNREADABLE", "cannot read the backlog", ""},
		{"a translated error passes", `{fail(with:"translated")}`, "NOT_FOUND", "no such agent", ""},
		{"any other is a server error", `{fail(with:"other")}`, CodeInternal, "the server failed", "password authentication failed"},
		{"a panic is a server error", `{fail(with:"panic")}`, CodeInternal, "the server failed", "the secret of the panic"},
		{"a deadline is a timeout", `{fail(with:"timeout")}`, CodeTimeout, "ran out of time", "deadline exceeded"},
		{"a non-null field without a value is a server error", `{must}`, CodeInternal, "the server failed", "no value for must"},
		{"a bad scalar in the document is the caller's", `{echo(at:"yesterday")}`, CodeBadInput, "an Instant is written like", ""},
		{"a bad scalar in a variable is the caller's", `query($a:Instant="x"){echo(at:$a)}`, CodeBadInput, "an Instant is written like", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f.log.buf.Reset()
			r := f.ask(t, tt.query, nil)
			message, _ := r.at("errors", 0, "message").(string)
			if r.status != 200 || !r.hasData() || r.code() != tt.code || !strings.Contains(message, tt.message) {
				t.Errorf("status %d: %s", r.status, r.text)
			}
			if r.at("errors", 0, "path", 0) == nil || strings.Contains(r.text, "secret") || strings.Contains(r.text, "pq:") {
				t.Errorf("no path, or a cause that leaked: %s", r.text)
			}
			if log := f.log.String(); (log != "") != (tt.logged != "") || !strings.Contains(log, tt.logged) {
				t.Errorf("log: %s", log)
			}
			if tt.code == CodeInternal {
				id, _ := r.at("errors", 0, "extensions", "requestId").(string)
				if id == "" || id != r.header.Get("X-Request-Id") || !strings.Contains(f.log.String(), id) {
					t.Errorf("request id %q does not lead to the log", id)
				}
			}
		})
	}
	if r := f.ask(t, `{fail(with:"known")}`, nil); r.at("errors", 0, "extensions", "input") != "backlog" {
		t.Errorf("extensions lost: %s", r.text)
	}
}

func TestARefusalPassesWhileArgumentsAreRead(t *testing.T) {
	f := newFixture(t, Options{Refused: func(error) *Error {
		return &Error{Code: CodeForbidden, Message: "the field at needs a scope", Extensions: map[string]any{"field": "at"}}
	}})
	if r := f.ask(t, `{echo(at:"yesterday")}`, nil); r.code() != CodeForbidden || r.at("errors", 0, "extensions", "field") != "at" {
		t.Error(r.text)
	}
}

func TestABadArgumentIsTheCallersWhateverItsErrorWraps(t *testing.T) {
	f := newFixture(t, Options{PresentError: func(context.Context, error) *Error {
		return &Error{Code: CodeUnavailable, Message: "the database does not answer; try again"}
	}})
	for _, query := range []string{`{echo(at:"yesterday")}`, `query($a:Instant="x"){echo(at:$a)}`} {
		if r := f.ask(t, query, nil); r.code() != CodeBadInput {
			t.Errorf("%s: %s", query, r.text)
		}
	}
	if r := f.ask(t, `{fail(with:"other")}`, nil); r.code() != CodeUnavailable {
		t.Errorf("what fails after its arguments were read: %s", r.text)
	}
	if log := f.log.String(); log != "" {
		t.Errorf("log: %s", log)
	}
}

func TestPanicsAreLoggedWithTheirStack(t *testing.T) {
	f := newFixture(t, Options{})
	f.ask(t, `{fail(with:"panic")}`, nil)
	if log := f.log.String(); !strings.Contains(log, "testgraph") || !strings.Contains(log, `"stack":"goroutine`) {
		t.Errorf("log: %s", log)
	}
}

func TestAResponseHasTenErrorsAtMost(t *testing.T) {
	f := newFixture(t, Options{})
	r := f.ask(t, `{failures(n:5000){value}}`, nil)
	errs, _ := r.body["errors"].([]any)
	if len(errs) != 10 || !r.hasData() {
		t.Errorf("%d errors", len(errs))
	}
	if n := strings.Count(f.log.String(), "secret_table"); n != 10 {
		t.Errorf("%d causes in the log", n)
	}
	r = f.ask(t, "{"+repeat(20, "nope# ")+"}", nil)
	if errs, _ := r.body["errors"].([]any); r.status != 400 || len(errs) != 10 {
		t.Errorf("status %d, %d validation errors", r.status, len(errs))
	}
}

func TestRequestsAreNotEchoed(t *testing.T) {
	f := newFixture(t, Options{})
	long := strings.Repeat("geheim", 50_000)
	tests := map[string]string{
		"a body that is not JSON":              `{"query":"{hello}","variables":{"password":"geheim"}`,
		"a parameter of the wrong type":        `{"query":["geheim"]}`,
		"an operation name":                    `{"query":"query a{hello}","operationName":"geheim"}`,
		"the value of an enum":                 `{"query":"query($o:Order){sort(order:$o)}","variables":{"o":"geheim"}}`,
		"the value of a number":                `{"query":"query($n:Int){echo(n:$n)}","variables":{"n":"geheim"}}`,
		"an enum that tries to look like text": `{"query":"query($o:Order){sort(order:$o)}","variables":{"o":"geheim is not a valid x"}}`,
	}
	for name, body := range tests {
		if r := do(t, f, newPost(strings.NewReader(body))); r.status < 400 || strings.Contains(r.text, "geheim") {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	for name, body := range map[string]string{
		"a long key":   `{"query":"query($p:Pick!){pick(by:$p)}","variables":{"p":{"` + long[:200_000] + `":1}}}`,
		"a long field": `{"query":"{` + long[:30_000] + `}"}`,
	} {
		if r := do(t, f, newPost(strings.NewReader(body))); r.status < 400 || len(r.text) > 2000 {
			t.Errorf("%s: status %d, %d bytes", name, r.status, len(r.text))
		}
	}
}

// Most who read a message see no path, so a refused variable is named in the words.
func TestARefusedVariableIsNamed(t *testing.T) {
	f := newFixture(t, Options{})
	for body, want := range map[string]string{
		`{"query":"query($p:Pick!){pick(by:$p)}"}`:                                      "variable $p: must be defined",
		`{"query":"query($p:Pick!){pick(by:$p)}","variables":{"p":null}}`:               "variable $p: cannot be null",
		`{"query":"query($p:Pick!){pick(by:$p)}","variables":{"p":{"nope":1}}}`:         "variable $p.nope: unknown field",
		`{"query":"query($o:Order){sort(order:$o)}","variables":{"o":"SOMETHING"}}`:     "variable $o: the value is not a valid Order",
		`{"query":"query($p:[Pick!]!){picks(by:$p)}","variables":{"p":[{"nope":"x"}]}}`: "variable $p[0].nope: unknown field",
	} {
		r := do(t, f, newPost(strings.NewReader(body)))
		if errs, _ := r.body["errors"].([]any); len(errs) != 1 || errs[0].(map[string]any)["message"] != want {
			t.Errorf("%s: want %q, got %s", body, want, r.text)
		}
	}
}

func TestTimeouts(t *testing.T) {
	f := newFixture(t, Options{Limits: Limits{QueryTimeout: time.Millisecond, MutationTimeout: time.Millisecond}})
	for _, query := range []string{"{slow}", "mutation{stall}"} {
		r := f.ask(t, query, nil)
		if r.code() != CodeTimeout || strings.Contains(r.text, "pq:") {
			t.Errorf("%s: %s", query, r.text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := do(t, f, newPost(requestBody("{hello}", nil)).WithContext(ctx))
	if r.status != http.StatusServiceUnavailable || r.code() != CodeTimeout || r.hasData() {
		t.Errorf("a caller that is gone: %d %s", r.status, r.text)
	}
}

// brokenExtension fails where the executor does not expect it.
type brokenExtension struct{ where string }

func (brokenExtension) ExtensionName() string                   { return "Broken" }
func (brokenExtension) Validate(graphql.ExecutableSchema) error { return nil }

func (b brokenExtension) MutateOperationContext(context.Context, *graphql.OperationContext) *gqlerror.Error {
	if b.where == "check" {
		panic("the secret of the check")
	}
	return nil
}

func (b brokenExtension) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if b.where == "operation" {
		panic("the secret of the operation")
	}
	return next(ctx)
}

func TestPanicsOutsideResolvers(t *testing.T) {
	for _, where := range []string{"check", "operation"} {
		f := newFixture(t, Options{Extensions: []graphql.HandlerExtension{brokenExtension{where}}})
		r := f.ask(t, "{hello}", nil)
		if r.status != 500 || r.code() != CodeInternal || r.hasData() || strings.Contains(r.text, "secret") {
			t.Errorf("%s: %d %s", where, r.status, r.text)
		}
		if !strings.Contains(f.log.String(), "the secret of the "+where) {
			t.Errorf("%s: not in the log", where)
		}
	}
}

func TestClip(t *testing.T) {
	if got := clip(strings.Repeat("ä", 500)); !utf8.ValidString(got) || utf8.RuneCountInString(got) > 201 {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

func TestOnlyWhatRanOutOfTimeIsAWarning(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	late, end := context.WithTimeout(t.Context(), 0)
	defer end()
	for _, c := range []struct {
		name string
		ctx  context.Context
		want slog.Level
	}{{"the caller went away", gone, slog.LevelDebug}, {"it ran out of time", late, slog.LevelWarn}, {"a statement was cancelled", t.Context(), slog.LevelWarn}} {
		if got := stopLevel(c.ctx); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
