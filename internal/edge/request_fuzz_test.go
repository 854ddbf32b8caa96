package edge

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzReadRequest: the parser of requests never panics, gives a query or a refusal of 4xx, and keeps no secret of the body in it.
func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{
		`{"query":"{hello}"}`, `{"query":"{hello}","variables":{"a":[1,{"b":null}]},"operationName":"x","extensions":{}}`, `{"query":null}`, `[]`, `null`,
		`{"query":"{hello}"} {}`, `{"variables":1}`, "{\"query\":\"\xff\"}", "query=%7Bhello%7D&variables=%7B%7D", "query={a}&variables=[1]&extensions=null", "query=%zz&;",
		"query=%7Becho(s:%22%FF%22)%7D", "query=%7Bhello%7D&operationName=%FF",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	s := newFixture(f, Options{Limits: Limits{BodyBytes: 4096}})
	f.Fuzz(func(t *testing.T, text string, post bool) {
		r := httptest.NewRequest(http.MethodGet, "/graphql", nil)
		r.URL = &url.URL{Path: "/graphql", RawQuery: text}
		if post {
			r = newPost(strings.NewReader(text))
		}
		params, refused := s.readRequest(httptest.NewRecorder(), r)
		switch {
		case (params == nil) == (refused == nil):
			t.Fatalf("params %v, refusal %v", params, refused)
		case params != nil && params.Query == "":
			t.Fatal("no query and no refusal")
		case params != nil && !utf8.ValidString(params.Query+params.OperationName):
			t.Fatalf("%q is not UTF-8, and is taken", params.Query)
		case refused != nil && (refused.status < 400 || refused.status > 499 || len(refused.errors) != 1):
			t.Fatalf("refusal %+v", refused)
		}
	})
}

// FuzzDocument: whatever the document, the edge answers in JSON, without a server error.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		"{hello}", introspectionQuery, doubling(10, "id"), "query($n:Int=5){items(first:$n last:null){edges{node{children{first}}}}}", "mutation{touch(id:1)}",
		"{echo(n:1,s:\"x\",f:1.5,list:[[1,2],[3]],at:\"2026-04-25T09:00:00Z\")}", `query($p:[Pick!]!){picks(by:$p)}`, "{...a}fragment a on Query{...b}fragment b on Query{...a}",
		"{upcoming(first:99999999999999999999){id}}", "{byIds(ids:[1,2,3]){id}}", "{hello @skip(if:$x)}", "query($x:Boolean=true){hello @include(if:$x)}", "{items(first:1){...on ItemConnection{first}}}",
	} {
		f.Add(seed, `{"n":3,"p":{"id":1},"x":null}`)
		f.Add(seed, `{}`)
	}
	s := newFixture(f, Options{})
	f.Fuzz(func(t *testing.T, query, variables string) {
		if strings.Contains(query, "fail") || strings.Contains(query, "must") || strings.Contains(query, "slow") || strings.Contains(query, "stall") {
			t.Skip("these fields fail on purpose")
		}
		var raw map[string]any
		if decodeJSON(strings.NewReader(variables), &raw) != nil {
			raw = nil
		}
		r := do(t, s, newPost(requestBody(query, raw)))
		if r.status >= 500 || r.code() == CodeInternal {
			t.Fatalf("%d %s\n%s", r.status, r.text, s.log)
		}
	})
}
