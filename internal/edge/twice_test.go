package edge

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
)

func TestAMemberThatARequestHasTwice(t *testing.T) {
	for text, name := range map[string]string{
		`{"query":"{ a }","query":"{ b }"}`:                                     "query",
		`{"query":"{ a }","variables":{"x":1,"y":{"x":2,"x":3}}}`:               "x",
		`{"query":"{ a }","variables":{"l":[{"a":1},{"a":1,"a":1}]}}`:           "a",
		`{"query":"{ a }","qu\u0065ry":"{ b }"}`:                                "query",
		`{"query":"{ a }","other":1,"other":2}`:                                 "other",
		`{"query":"{ a }","variables":{"":0,"":1}}`:                             "",
		`{"query":"{ a }","variables":{"x":1,"X":2,"y":{"x":[1,1,"x","x"]}}}`:   "none",
		`{"query":"{ a }","extensions":{"x":{"x":{"x":{}}}},"variables":{}}`:    "none",
		`{"query":"{ a }","variables":{"a\"b":1,"a\u0022b":2}}`:                 `a"b`,
		`{"query":"{ a }","variables":{"ä":1,"\u00e4":2}}`:                      "ä",
		`{"query":"{ a }","variables":{"x":"y","y":"x","z":["x","x",{"x":1}]}}`: "none",
		`{"query":"{ a: b(c: \"}\") }","variables":{"{":"[","}":",\"x"}}`:       "none",
		`{"query":"{ a }","variables":{` + members(40) + `}}`:                   "none",
		`{"query":"{ a }","variables":{` + members(40) + `,"m39":0}}`:           "m39",
		`{"query":"{ a }","variables":{` + members(40) + `,"m0":0}}`:            "m0",
	} {
		err := decodeParams(strings.NewReader(text), &graphql.RawParams{})
		twice, _ := errors.AsType[*twiceError](err)
		if (twice == nil) != (name == "none") || twice != nil && twice.name != name || twice == nil && err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// members are as many members of an object.
func members(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"m%d":%d`, i, i)
	}
	return strings.Join(list, ",")
}

// A text that is no JSON is no reason to fail, wherever it breaks off.
func TestWhatIsNoJSONHasNothingTwice(t *testing.T) {
	whole := `{"a\"":[1,{"b":"c"},"d"],"e":{}}`
	for i := range whole {
		if err := checkTwice([]byte(whole[:i])); err != nil {
			t.Errorf("%s: %v", whole[:i], err)
		}
	}
	for _, text := range []string{`}`, `]]`, `"`, `{"`, `{"\`, `{"\u12":1}`, "{\"a\n\":1}", `,{,"a"`} {
		if err := checkTwice([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Whoever has read the first member in front of us must not be made to pass the second.
func TestARequestWithAMemberTwiceIsRefused(t *testing.T) {
	f := newFixture(t, Options{})
	r := do(t, f, newPost(strings.NewReader(`{"query":"{ __typename }","query":"{ __schema { description } }"}`)))
	if r.status != 400 || r.code() != CodeBadRequest || !strings.Contains(r.text, `member \"query\" twice`) {
		t.Errorf("%d %s", r.status, r.text)
	}
	r = do(t, f, httptest.NewRequest(http.MethodGet, "/graphql?query=%7B__typename%7D&variables=%7B%22a%22%3A1%2C%22a%22%3A2%7D", nil))
	if r.status != 400 || !strings.Contains(r.text, "the parameter variables") {
		t.Errorf("%d %s", r.status, r.text)
	}
	var m message
	if err := m.decode([]byte(`{"type":"subscribe","id":"1","id":"2"}`)); err == nil {
		t.Error("a socket takes a message with two ids")
	}
	if text := (&twiceError{"my-secret"}).Error(); strings.Contains(text, "secret") {
		t.Errorf("it echoes what was sent: %s", text)
	}
}

func BenchmarkCheckTwice(b *testing.B) {
	text := []byte(`{"query":"{ a }","variables":{"input":{"lines":[` + strings.Repeat(`{"stream":"STDOUT","text":"some words of an agent"},`, 500) + `{}]}}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := checkTwice(bytes.Clone(text)); err != nil {
			b.Fatal(err)
		}
	}
}
