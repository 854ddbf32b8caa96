package edge

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// audit is one of the server audits of the npm package graphql-http 1.23, under its id.
type audit struct {
	id, name    string
	method      string // POST when empty
	query       url.Values
	accept      string
	contentType string
	body        string
	check       func(*testing.T, reply)
}

func statusIs(want int) func(*testing.T, reply) {
	return func(t *testing.T, r reply) {
		if r.status != want {
			t.Errorf("status %d, want %d: %s", r.status, want, r.text)
		}
	}
}

func statusFrom(low, high int) func(*testing.T, reply) {
	return func(t *testing.T, r reply) {
		if r.status < low || r.status > high {
			t.Errorf("status %d, want %d to %d: %s", r.status, low, high, r.text)
		}
	}
}

func answersAs(media string) func(*testing.T, reply) {
	return func(t *testing.T, r reply) {
		statusIs(200)(t, r)
		if got := r.header.Get("Content-Type"); !strings.Contains(got, media) {
			t.Errorf("content type %q, want %q", got, media)
		}
	}
}

func succeeds(t *testing.T, r reply) {
	statusIs(200)(t, r)
	if _, ok := r.body["errors"]; ok {
		t.Errorf("has errors: %s", r.text)
	}
}

func noData(t *testing.T, r reply) {
	if r.hasData() {
		t.Errorf("has data: %s", r.text)
	}
}

const (
	typename = `{"query":"{ __typename }"}`
	byType   = `query Type($name: String!) { __type(name: $name) { name } }`
	unknown  = `{"query":"{ 8f31403dfe404bccbb0e835f2629c6a7 }"}`
	coercion = `{"query":"query CoerceFailure($id: ID!){ __typename }","variables":{"id":null}}`
)

func audits() []audit {
	j, g := mediaJSON, mediaGraphQL
	list := []audit{
		{id: "22EB", name: "SHOULD accept application/graphql-response+json and match the content-type", accept: g, contentType: j, body: typename, check: answersAs(g)},
		{id: "4655", name: "MUST accept application/json and match the content-type", accept: j, contentType: j, body: typename, check: answersAs(j)},
		{id: "47DE", name: "SHOULD accept */* and use application/json for the content-type", accept: "*/*", contentType: j, body: typename, check: answersAs(j)},
		{id: "80D8", name: "SHOULD assume application/json content-type when accept is missing", contentType: j, body: typename, check: answersAs(j)},
		{id: "82A3", name: "MUST use utf-8 encoding when responding", contentType: j, body: typename, check: func(t *testing.T, r reply) {
			statusIs(200)(t, r)
			if !utf8.ValidString(r.text) {
				t.Error("not UTF-8")
			}
		}},
		{id: "BF61", name: "MUST accept utf-8 encoded request", contentType: j + "; charset=utf-8", body: `{"query":"{ __type(name: \"Run🏃Swim🏊\") { name } }"}`, check: statusIs(200)},
		{id: "78D5", name: "MUST assume utf-8 in request if encoding is unspecified", contentType: j, body: typename, check: statusIs(200)},
		{id: "2C94", name: "MUST accept POST requests", contentType: j, body: typename, check: statusIs(200)},
		{id: "5A70", name: "MAY accept application/x-www-form-urlencoded formatted GET requests", method: "GET", query: url.Values{"query": {"{ __typename }"}}, check: statusIs(200)},
		{id: "9C48", name: "MAY NOT allow executing mutations on GET requests", method: "GET", query: url.Values{"query": {"mutation { __typename }"}}, accept: g, check: statusFrom(400, 499)},
		{id: "9ABE", name: "SHOULD respond with 4xx status code if content-type is not supplied on POST requests", contentType: "text/plain;charset=UTF-8", body: typename, check: statusFrom(400, 499)},
		{id: "03D4", name: "MUST accept application/json POST requests", contentType: j, body: typename, check: statusIs(200)},
		{id: "A5BF", name: "MAY use 400 status code when request body is missing on POST", contentType: j, check: statusIs(400)},
		{id: "423L", name: "MAY use 400 status code on missing {query} parameter", accept: g, contentType: j, body: `{"notquery":"{ __typename }"}`, check: statusIs(400)},
		{id: "34A2", name: "SHOULD allow string {query} parameter when accepting application/graphql-response+json", accept: g, contentType: j, body: typename, check: statusIs(200)},
		{id: "13EE", name: "MUST allow string {query} parameter when accepting application/json", accept: j, contentType: j, body: typename, check: succeeds},
		{id: "8161", name: "SHOULD allow string {operationName} parameter when accepting application/graphql-response+json", accept: g, contentType: j, body: `{"operationName":"Query","query":"query Query { __typename }"}`, check: statusIs(200)},
		{id: "B8B3", name: "MUST allow string {operationName} parameter when accepting application/json", accept: j, contentType: j, body: `{"operationName":"Query","query":"query Query { __typename }"}`, check: succeeds},
		{id: "2EA1", name: "SHOULD allow map {variables} parameter when accepting application/graphql-response+json", accept: g, contentType: j, body: `{"query":"` + byType + `","variables":{"name":"sometype"}}`, check: statusIs(200)},
		{id: "28B9", name: "MUST allow map {variables} parameter when accepting application/json", accept: j, contentType: j, body: `{"query":"` + byType + `","variables":{"name":"sometype"}}`, check: succeeds},
		{id: "D6D5", name: "MAY allow URL-encoded JSON string {variables} parameter in GETs when accepting application/graphql-response+json", method: "GET", query: url.Values{"query": {byType}, "variables": {`{"name":"sometype"}`}}, accept: g, check: succeeds},
		{id: "6A70", name: "MAY allow URL-encoded JSON string {variables} parameter in GETs when accepting application/json", method: "GET", query: url.Values{"query": {byType}, "variables": {`{"name":"sometype"}`}}, accept: j, check: succeeds},
		{id: "428F", name: "SHOULD allow map {extensions} parameter when accepting application/graphql-response+json", accept: g, contentType: j, body: `{"query":"{ __typename }","extensions":{"some":"value"}}`, check: statusIs(200)},
		{id: "1B7A", name: "MUST allow map {extensions} parameter when accepting application/json", accept: j, contentType: j, body: `{"query":"{ __typename }","extensions":{"some":"value"}}`, check: succeeds},
		{id: "B6DC", name: "MAY use 2xx, 4xx, or 5xx status codes on JSON parsing failure when accepting application/json", accept: j, contentType: j, body: `{ "not a JSON`, check: statusFrom(200, 599)},
		{id: "BCF8", name: "SHOULD use 400 status code on JSON parsing failure when accepting application/json", accept: j, contentType: j, body: `{ "not a JSON`, check: statusIs(400)},
		{id: "B7N8", name: "SHOULD use 400 status code on JSON parsing failure when accepting application/graphql-response+json", accept: g, contentType: j, body: `{ "not a JSON`, check: statusIs(400)},
		{id: "8764", name: "MAY use 4xx or 5xx status codes if parameters are invalid", contentType: j, body: `{"qeury":"{ __typename }"}`, check: statusFrom(400, 599)},
		{id: "3E3A", name: "MAY use 400 status code if parameters are invalid", contentType: j, body: `{"qeury":"{ __typename }"}`, check: statusIs(400)},
		{id: "572B", name: "SHOULD use 200 status code on document parsing failure when accepting application/json", accept: j, contentType: j, body: `{"query":"{"}`, check: statusIs(200)},
		{id: "FDE2", name: "SHOULD use 200 status code on document validation failure when accepting application/json", accept: j, contentType: j, body: unknown, check: statusIs(200)},
		{id: "7B9B", name: "SHOULD use a status code of 200 on variable coercion failure when accepting application/json", accept: j, contentType: j, body: coercion, check: statusIs(200)},
		{id: "865D", name: "SHOULD use 4xx or 5xx status codes on document parsing failure when accepting application/graphql-response+json", accept: g, contentType: j, body: `{"query":"{"}`, check: statusFrom(400, 599)},
		{id: "556A", name: "SHOULD use 400 status code on document parsing failure when accepting application/graphql-response+json", accept: g, contentType: j, body: `{"query":"{"}`, check: statusIs(400)},
		{id: "D586", name: "SHOULD not contain the data entry on document parsing failure when accepting application/graphql-response+json", accept: g, contentType: j, body: `{"query":"{"}`, check: noData},
		{id: "51FE", name: "SHOULD use 4xx or 5xx status codes on document validation failure when accepting application/graphql-response+json", accept: g, contentType: j, body: unknown, check: statusFrom(400, 599)},
		{id: "74FF", name: "SHOULD use 400 status code on document validation failure when accepting application/graphql-response+json", accept: g, contentType: j, body: unknown, check: statusIs(400)},
		{id: "5E5B", name: "SHOULD not contain the data entry on document validation failure when accepting application/graphql-response+json", accept: g, contentType: j, body: unknown, check: noData},
		{id: "86EE", name: "SHOULD use a status code of 400 on variable coercion failure when accepting application/graphql-response+json", accept: g, contentType: j, body: coercion, check: statusIs(400)},
	}
	digits := []string{"0", "1", "2", "3"}
	for i, v := range []struct{ kind, json string }{{"object", `{"obj":"ect"}`}, {"number", "0"}, {"boolean", "false"}, {"array", `["array"]`}} {
		list = append(list,
			audit{id: "LKJ" + digits[i], name: "MAY use 400 status code on " + v.kind + " {query} parameter", contentType: j, body: `{"query":` + v.json + `}`, check: statusIs(400)},
			audit{id: "6C0" + digits[i], name: "MAY use 400 status code on " + v.kind + " {operationName} parameter", contentType: j, body: `{"query":"{ __typename }","operationName":` + v.json + `}`, check: statusIs(400)})
	}
	for i, v := range []struct{ kind, json string }{{"string", `"string"`}, {"number", "0"}, {"boolean", "false"}, {"array", `["array"]`}} {
		list = append(list,
			audit{id: "476" + digits[i], name: "MAY use 400 status code on " + v.kind + " {variables} parameter", contentType: j, body: `{"query":"{ __typename }","variables":` + v.json + `}`, check: statusIs(400)},
			audit{id: "58B" + digits[i], name: "MAY use 400 status code on " + v.kind + " {extensions} parameter", contentType: j, body: `{"query":"{ __typename }","extensions":` + v.json + `}`, check: statusIs(400)})
	}
	for i, p := range []string{"variables", "operationName", "extensions"} {
		body := `{"query":"{ __typename }","` + p + `":null}`
		list = append(list,
			audit{id: "94B" + digits[i], name: "SHOULD allow null {" + p + "} parameter when accepting application/graphql-response+json", accept: g, contentType: j, body: body, check: succeeds},
			audit{id: "022" + digits[i], name: "MUST allow null {" + p + "} parameter when accepting application/json", accept: j, contentType: j, body: body, check: succeeds})
	}
	return list
}

func TestGraphQLOverHTTPAudits(t *testing.T) {
	f := newFixture(t, Options{})
	list := audits()
	if len(list) != 61 {
		t.Fatalf("%d audits, want 61", len(list))
	}
	for _, a := range list {
		t.Run(a.id+" "+a.name, func(t *testing.T) {
			method := a.method
			if method == "" {
				method = http.MethodPost
			}
			r := httptest.NewRequest(method, "/graphql?"+a.query.Encode(), strings.NewReader(a.body))
			if a.accept != "" {
				r.Header.Set("Accept", a.accept)
			}
			if a.contentType != "" {
				r.Header.Set("Content-Type", a.contentType)
			}
			a.check(t, do(t, f, r))
		})
	}
}

func TestHTTP(t *testing.T) {
	f := newFixture(t, Options{})
	tests := []struct {
		name, method, target, accept, contentType, body string
		status                                          int
		code                                            string
	}{
		{"an unknown operation name is 400", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"query a{hello} query b{hello}","operationName":"c"}`, 400, CodeValidationFailed},
		{"no operation name among several is 400", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"query a{hello} query b{hello}"}`, 400, CodeValidationFailed},
		{"a limit is 422", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"{items(first:0){totalCount}}"}`, 422, CodeBadInput},
		{"a limit is 422 whatever Accept says", "POST", "/", mediaJSON, mediaJSON, `{"query":"{items(first:0){totalCount}}"}`, 422, CodeBadInput},
		{"members match exactly", "POST", "/", mediaGraphQL, mediaJSON, `{"Query":"{hello}"}`, 400, CodeBadRequest},
		{"and one beside them is none", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"{hello}","VARIABLES":1}`, 200, ""},
		{"a document of fragments only is 400", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"fragment f on Query{hello}"}`, 400, CodeValidationFailed},
		{"a batch is 400", "POST", "/", mediaGraphQL, mediaJSON, `[{"query":"{hello}"}]`, 400, CodeBadRequest},
		{"a second JSON value is 400", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"{hello}"}{}`, 400, CodeBadRequest},
		{"a null body is 400", "POST", "/", mediaGraphQL, mediaJSON, `null`, 400, CodeBadRequest},
		{"a subscription is 400", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"subscription{ticks(n:1)}"}`, 400, CodeBadRequest},
		{"a body of 256 KiB and more is 413", "POST", "/", mediaGraphQL, mediaJSON, `{"query":"{hello}","variables":{"s":"` + strings.Repeat("x", 256<<10) + `"}}`, 413, CodeLimitExceeded},
		{"variables of a GET beyond 256 KiB are 413", "GET", "/?query={hello}&variables=" + strings.Repeat("x", 256<<10+1), mediaGraphQL, "", "", 413, CodeLimitExceeded},
		{"multipart is 415", "POST", "/", mediaGraphQL, "multipart/form-data; boundary=x", "--x", 415, CodeBadRequest},
		{"a form is 415", "POST", "/", mediaGraphQL, "application/x-www-form-urlencoded", "query={hello}", 415, CodeBadRequest},
		{"latin-1 is 415", "POST", "/", mediaGraphQL, mediaJSON + "; charset=latin1", `{"query":"{hello}"}`, 415, CodeBadRequest},
		{"server-sent events are 406", "POST", "/", "text/event-stream", mediaJSON, `{"query":"subscription{ticks(n:1)}"}`, 406, CodeBadRequest},
		{"an unknown charset in Accept is 406", "POST", "/", mediaJSON + ";charset=latin1", mediaJSON, `{"query":"{hello}"}`, 406, CodeBadRequest},
		{"PUT is 405", "PUT", "/", mediaGraphQL, mediaJSON, `{"query":"{hello}"}`, 405, CodeBadRequest},
		{"a subscription by GET is 400", "GET", "/?query=subscription{ticks(n:1)}", mediaGraphQL, "", "", 400, CodeBadRequest},
		{"a GET with a bad escape is 400", "GET", "/?query=%zz", mediaGraphQL, "", "", 400, CodeBadRequest},
		{"a GET with variables in an array is 400", "GET", "/?query={hello}&variables=[1]", mediaGraphQL, "", "", 400, CodeBadRequest},
		{"a GET with a variable runs", "GET", "/?query=query($n:Int){items(first:$n){totalCount}}&variables={\"n\":3}", mediaGraphQL, "", "", 200, ""},
		{"the better quality of Accept counts", "POST", "/", mediaJSON + ";q=0.5, " + mediaGraphQL + ";q=0.9", mediaJSON, `{"query":"{"}`, 400, CodeParseFailed},
		{"quality 0 is none", "POST", "/", mediaJSON + ";q=0", mediaJSON, `{"query":"{hello}"}`, 406, CodeBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/", strings.NewReader(tt.body))
			r.URL.RawQuery = strings.TrimPrefix(tt.target, "/?")
			if tt.target == "/" {
				r.URL.RawQuery = ""
			}
			r.Header.Set("Accept", tt.accept)
			if tt.contentType != "" {
				r.Header.Set("Content-Type", tt.contentType)
			}
			got := do(t, f, r)
			if got.status != tt.status || got.code() != tt.code {
				t.Errorf("status %d code %s, want %d %s: %.300s", got.status, got.code(), tt.status, tt.code, got.text)
			}
			if tt.status != 200 && got.hasData() {
				t.Errorf("has data: %s", got.text)
			}
		})
	}
}
