package edge

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestPageSizes(t *testing.T) {
	f := newFixture(t, Options{})
	const n, m = "query($n:Int){items(first:$n){first last}}", "query($n:Int,$m:Int){items(first:$n,last:$m){first last}}"
	tests := []struct {
		name, query, variables string
		first, last            any    // what the resolver saw
		refused                string // part of the message
	}{
		{"no size: the default", "{items{first last}}", "{}", 25.0, nil, ""},
		{"first at the maximum", "{items(first:100){first last}}", "{}", 100.0, nil, ""},
		{"first above it", "{items(first:101){first last}}", "{}", nil, nil, "at most 100 rows"},
		{"last at the maximum", "{items(last:100){first last}}", "{}", nil, 100.0, ""},
		{"last above it", "{items(last:101){first last}}", "{}", nil, nil, "at most 100 rows"},
		{"first 1", "{items(first:1){first last}}", "{}", 1.0, nil, ""},
		{"first 0", "{items(first:0){first last}}", "{}", nil, nil, "first of items must be at least 1"},
		{"first negative", "{items(first:-1){first last}}", "{}", nil, nil, "first of items must be at least 1"},
		{"last 0", "{items(last:0){first last}}", "{}", nil, nil, "last of items must be at least 1"},
		{"first and last", "{items(first:1,last:1){first last}}", "{}", nil, nil, "first or last, not both"},
		{"first and last that would sum up to less", "{items(first:1,last:-1){first last}}", "{}", nil, nil, "last of items must be at least 1"},
		{"first null", "{items(first:null){first last}}", "{}", 25.0, nil, ""},
		{"first null and last", "{items(first:null,last:5){first last}}", "{}", nil, 5.0, ""},
		{"first and last null", "{items(first:5,last:null){first last}}", "{}", 5.0, nil, ""},
		{"a variable", n, `{"n":7}`, 7.0, nil, ""},
		{"a variable above the maximum", n, `{"n":101}`, nil, nil, "at most 100 rows"},
		{"a variable of 0", n, `{"n":0}`, nil, nil, "at least 1"},
		{"a negative variable", n, `{"n":-9223372036854775808}`, nil, nil, "at least 1"},
		{"the largest variable", n, `{"n":9223372036854775807}`, nil, nil, "at most 100 rows"},
		{"a variable beyond 64 bits", n, `{"n":99999999999999999999}`, nil, nil, "cannot use"},
		{"a null variable", n, `{"n":null}`, 25.0, nil, ""},
		{"an absent variable", n, `{}`, 25.0, nil, ""},
		{"a variable in a string", n, `{"n":"8"}`, 8.0, nil, ""},
		{"a string above the maximum", n, `{"n":"1000"}`, nil, nil, "at most 100 rows"},
		{"a string that is no number", n, `{"n":"many"}`, nil, nil, "cannot use"},
		{"a fraction", n, `{"n":2.5}`, nil, nil, "cannot use"},
		{"a whole float", n, `{"n":2.0}`, nil, nil, "cannot use"},
		{"a boolean", n, `{"n":true}`, nil, nil, "cannot use"},
		{"a list", n, `{"n":[1]}`, nil, nil, "cannot use"},
		{"the default of a variable", "query($n:Int=9){items(first:$n){first last}}", `{}`, 9.0, nil, ""},
		{"a bad default of a variable", "query($n:Int=900){items(first:$n){first last}}", `{}`, nil, nil, "at most 100 rows"},
		{"null against the default of a variable", "query($n:Int=9){items(first:$n){first last}}", `{"n":null}`, 25.0, nil, ""},
		{"both variables", m, `{"n":1,"m":1}`, nil, nil, "not both"},
		{"both variables, one null", m, `{"n":null,"m":3}`, nil, 3.0, ""},
		{"both variables null", m, `{"n":null,"m":null}`, 25.0, nil, ""},
		{"both variables absent", m, `{}`, 25.0, nil, ""},
		{"@page with its own default", "{items:events{first last}}", "{}", 50.0, nil, ""},
		{"@page with its own maximum", "{items:events(first:200){first last}}", "{}", 200.0, nil, ""},
		{"@page above its own maximum", "{items:events(first:201){first last}}", "{}", nil, nil, "at most 200 rows"},
		{"a connection without @page", "{items:forward{first last}}", "{}", 25.0, nil, ""},
		{"a connection without @page, above the maximum", "{items:forward(first:101){first last}}", "{}", nil, nil, "at most 100 rows"},
		{"in a fragment", "{...f} fragment f on Query{items{...g}} fragment g on ItemConnection{first last}", "{}", 25.0, nil, ""},
		{"in an inline fragment", "{...on Query{items{first last}}}", "{}", 25.0, nil, ""},
		{"a bad size that @skip leaves out", "query($x:Boolean!){a:items(first:0)@skip(if:$x){first} items{first last}}", `{"x":true}`, 25.0, nil, ""},
		{"a bad size that @include leaves out", "{a:items(first:0)@include(if:false){first} items{first last}}", `{}`, 25.0, nil, ""},
		{"a bad size that @skip lets through", "query($x:Boolean!){a:items(first:0)@skip(if:$x){first} items{first last}}", `{"x":false}`, nil, nil, "at least 1"},
		{"a bad size in a fragment left out", "{items{first last} ...f@skip(if:true)} fragment f on Query{a:items(first:0){first}}", "{}", 25.0, nil, ""},
		{"a list that is no page, below 1", "{upcoming(first:0){id} items{first last}}", "{}", nil, nil, "first of upcoming must be at least 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := f.ask(t, tt.query, json.RawMessage(tt.variables))
			if tt.refused != "" {
				if r.status < 400 || r.status > 422 || r.hasData() || !strings.Contains(r.text, tt.refused) {
					t.Errorf("status %d: %s", r.status, r.text)
				}
				return
			}
			if r.at("data", "items", "first") != tt.first || r.at("data", "items", "last") != tt.last {
				t.Errorf("got %s", r.text)
			}
		})
	}
}

func TestNestedPagesGetTheirDefaults(t *testing.T) {
	f := newFixture(t, Options{})
	query := `query($n:Int){ node(id:1){ children(first:$n){ first edges{ node{ ...kids } } } other: parent{ ...kids } } }
		fragment kids on Item { children(after:"x"){ first last edges{ cursor } } }`
	r := f.ask(t, query, nil)
	if r.at("data", "node", "children", "first") != 10.0 ||
		r.at("data", "node", "children", "edges", 9, "node", "children", "first") != 10.0 ||
		r.at("data", "node", "other", "children", "first") != 10.0 {
		t.Fatalf("%.400s", r.text)
	}
	r = f.ask(t, query, map[string]int{"n": 2})
	if r.at("data", "node", "children", "first") != 2.0 || r.at("data", "node", "children", "edges", 1, "node", "children", "first") != 10.0 {
		t.Fatalf("the cached document kept a size: %.400s", r.text)
	}
}

// One document in the cache, asked for with and without sizes at once: what one request writes must not show in another.
func TestDefaultsDoNotTouchTheCachedDocument(t *testing.T) {
	f := newFixture(t, Options{})
	const query = "query($n:Int){items(first:$n){first} ...f} fragment f on Query{node(id:1){children(first:$n){first}}}"
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				variables, top, nested := map[string]any{}, 25.0, 10.0
				if i%2 == 0 {
					variables["n"], top, nested = i+1, float64(i+1), float64(i+1)
				}
				r := f.ask(t, query, variables)
				if r.at("data", "items", "first") != top || r.at("data", "node", "children", "first") != nested {
					t.Errorf("with %v: %s", variables, r.text)
				}
			}
		})
	}
	wg.Wait()
}

func TestConditionsThatAreNull(t *testing.T) {
	f := newFixture(t, Options{})
	for _, directive := range []string{"skip", "include"} {
		r := f.ask(t, "query($x:Boolean=true){hello @"+directive+"(if:$x)}", map[string]any{"x": nil})
		if r.status != http.StatusUnprocessableEntity || r.code() != CodeBadInput {
			t.Errorf("@%s(if: null): status %d %s", directive, r.status, r.text)
		}
	}
}

func TestOneOf(t *testing.T) {
	f := newFixture(t, Options{})
	const whole, list = "query($p:Pick!){pick(by:$p)}", "query($p:[Pick!]!){picks(by:$p)}"
	tests := []struct {
		name, query, variables string
		ok                     bool
	}{
		{"one key", whole, `{"p":{"id":"1"}}`, true},
		{"one nested key", whole, `{"p":{"nested":{"name":"a"}}}`, true},
		{"no key", whole, `{"p":{}}`, false},
		{"two keys", whole, `{"p":{"id":"1","name":"a"}}`, false},
		{"two keys, one null", whole, `{"p":{"id":"1","name":null}}`, false},
		{"one null key", whole, `{"p":{"id":null}}`, false},
		{"two keys further down", whole, `{"p":{"nested":{"id":"1","name":"a"}}}`, false},
		{"two keys in a list", list, `{"p":[{"id":"1"},{"id":"1","name":"a"}]}`, false},
		{"two keys where a list is left out", list, `{"p":{"id":"1","name":"a"}}`, false},
		{"a list of good ones", list, `{"p":[{"id":"1"},{"name":"a"}]}`, true},
		{"two keys in the default of a variable", `query($p:Pick={id:"1",name:"a"}){pick(by:$p)}`, `{}`, false},
		{"a literal with one key", `{pick(by:{id:"1"})}`, `{}`, true},
		{"a literal with two", `{pick(by:{id:"1",name:"a"})}`, `{}`, false},
		{"a literal with a variable", `query($i:ID!){pick(by:{id:$i})}`, `{"i":"1"}`, true},
		{"a literal with a null variable", `query($i:ID){pick(by:{nested:{id:$i}})}`, `{"i":null}`, false},
		{"a literal with an absent variable", `query($i:ID){picks(by:[{nested:{id:$i}}])}`, `{}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := f.ask(t, tt.query, json.RawMessage(tt.variables))
			if ok := r.status == http.StatusOK && r.at("errors") == nil; ok != tt.ok {
				t.Errorf("ok is %v: %d %s", ok, r.status, r.text)
			}
		})
	}
}
