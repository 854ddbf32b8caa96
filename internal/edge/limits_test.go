package edge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// repeat writes n numbered pieces.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return b.String()
}

func nest(n int, open, inner, end string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// doubling spreads each of n fragments twice in the one before: 2ⁿ paths.
func doubling(n int, inner string) string {
	var b strings.Builder
	b.WriteString("{node(id:1){...f0}}")
	for i := range n - 1 {
		fmt.Fprintf(&b, "fragment f%d on Item{parent{...f%d} ...f%d}", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "fragment f%d on Item{%s}", n-1, inner)
	return b.String()
}

func TestLimits(t *testing.T) {
	f := newFixture(t, Options{})
	tests := []struct {
		name  string
		query string
		limit string // "" when the document passes
	}{
		{"a document of 32 KiB passes", "{hello}#" + strings.Repeat("x", 32<<10-8), ""},
		{"one byte more does not", "{hello}#" + strings.Repeat("x", 32<<10-7), "document bytes"},
		{"2,000 tokens pass", "{hello" + strings.Repeat("\n#c", 1997) + "\n}", ""},
		{"2,001 tokens do not, comments included", "{hello" + strings.Repeat("\n#c", 1998) + "\n}", "tokens"},
		{"a flood of punctuation is not parsed", strings.Repeat("{", 30000), "tokens"},
		{"a flood of nested lists is not parsed", "{echo(list:" + nest(5000, "[", "1", "]") + ")}", "tokens"},
		{"200 selections in a set pass", "{node(id:1){" + strings.Repeat("id ", 200) + "}}", ""},
		{"201 do not", "{node(id:1){" + strings.Repeat("id ", 201) + "}}", "selections in one set"},
		{"201 in an inline fragment of a fragment do not", "{...f} fragment f on Query{node(id:1){...on Item{" + strings.Repeat("id ", 201) + "}}}", "selections in one set"},
		{"201 in a fragment nobody spreads do not", "{hello} fragment f on Query{" + strings.Repeat("hello ", 201) + "}", "selections in one set"},
		{"one name 200 times over several sets passes", "{node(id:1){" + strings.Repeat("id ", 100) + " parent{" + strings.Repeat("id ", 100) + "}}}", ""},
		{"one name 201 times does not", "{node(id:1){" + strings.Repeat("id ", 100) + " parent{" + strings.Repeat("id ", 101) + "}}}", "fields of one name"},
		{"50 fragments pass", "{hello}" + repeat(50, "fragment f# on Query{hello}"), "validation"},
		{"51 fragments do not", "{hello}" + repeat(51, "fragment f# on Query{hello}"), "fragments"},
		{"30 aliases pass", "{node(id:1){" + repeat(30, "a#:id ") + "}}", ""},
		{"31 do not", "{node(id:1){" + repeat(31, "a#:id ") + "}}", "aliases"},
		{"31 spread over fragments do not", "{node(id:1){...a ...b}} fragment a on Item{" + repeat(16, "a#:id ") + "} fragment b on Item{" + repeat(15, "b#:id ") + "}", "aliases"},
		{"31 under @skip do not", "{node(id:1)@skip(if:true){" + repeat(31, "a#:id ") + "}}", "aliases"},
		{"20 root fields pass", "{" + strings.Repeat("hello ", 20) + "}", ""},
		{"21 do not", "{" + strings.Repeat("hello ", 21) + "}", "root fields"},
		{"21 through fragments do not", "{...f ...f ...f} fragment f on Query{" + strings.Repeat("hello ", 7) + "}", "root fields"},
		{"10 mutations pass", "mutation{" + strings.Repeat("touch(id:1) ", 10) + "}", ""},
		{"11 do not", "mutation{" + strings.Repeat("touch(id:1) ", 11) + "}", "mutations"},
		{"11 through fragments do not", "mutation{...f ...f} fragment f on Mutation{" + strings.Repeat("touch(id:1) ", 6) + "}", "mutations"},
		{"11 in a second operation do not", "query a{hello} mutation b{" + strings.Repeat("touch(id:1) ", 11) + "}", "mutations"},
		{"depth 12 passes", "{node(id:1){" + nest(10, "parent{", "id", "}") + "}}", ""},
		{"depth 13 does not", "{node(id:1){" + nest(11, "parent{", "id", "}") + "}}", "depth"},
		{"depth 13 through fragments does not", "{node(id:1){...a}} fragment a on Item{" + nest(6, "parent{", "...b", "}") + "} fragment b on Item{" + nest(5, "parent{", "id", "}") + "}", "depth"},
		{"depth 13 left out by @include passes", "{hello node(id:1)@include(if:false){" + nest(11, "parent{", "id", "}") + "}}", ""},
		{"depth 180 does not", "{node(id:1){" + nest(178, "parent{", "id", "}") + "}}", "depth"},
		{"a cost of 4,800 passes", "{" + repeat(8, "a#:heavy ") + "}", ""},
		{"a cost of 5,400 does not", "{" + repeat(9, "a#:heavy ") + "}", "cost"},
		{"a large multiplier does not", "{upcoming(first:5001){id}}", "cost"},
		{"a multiplier near overflow does not", "{upcoming(first:9223372036854775807){id}}", "cost"},
		{"the default of a multiplier counts", "{upcoming{id children(first:100){edges{node{id}}}}}", "cost"},
		{"lists in lists without arguments do not", "{list{" + nest(6, "siblings{", "id", "}") + "}}", "cost"},
		{"three levels of pages do not", "{items(first:50){edges{node{children(first:50){edges{node{children(first:50){edges{node{id}}}}}}}}}}", "cost"},
		{"a few pages for each of a hundred pass", "{items(first:100){edges{node{" + repeat(3, "a#:children(first:1){edges{cursor}} ") + "}}}}", ""},
		{"many pages for each of a hundred do not, though each is small", "{items(first:100){edges{node{" + repeat(5, "a#:children(first:1){edges{cursor}} ") + "}}}}", "cost"},
		{"pages in the default size count", "{items{edges{node{children{edges{node{children{edges{node{id}}}}}}}}}}", "cost"},
		{"a page of 100 with details passes", "{items(first:100){totalCount edges{cursor node{id name parent{id} children(first:1){totalCount}}}}}", ""},
		{"six copies of the schema do not", "{" + repeat(6, "a#:__schema{queryType{name}} ") + "}", "cost"},
		{"a fragment bomb that doubles 49 times does not", doubling(50, "id"), "depth"},
		{"@defer is not served", "{...@defer{hello}}", "@defer"},
		{"literals 64 lists deep pass the gate", "{echo(list:" + nest(64, "[", "1", "]") + ")}", "validation"},
		{"deeper ones do not", "{echo(list:" + nest(65, "[", "1", "]") + ")}", "input depth"},
		{"an Int beyond 64 bits is refused", "{echo(n:99999999999999999999999)}", "out of range"},
		{"one in a nested list is refused", "{echo(list:[[1],[99999999999999999999999]])}", "out of range"},
		{"one as the default of a variable is refused", "query($n:Int=99999999999999999999999){echo(n:$n)}", "out of range"},
		{"a Float beyond 64 bits is refused", "{echo(f:1e999)}", "out of range"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := f.askCheaply(t, tt.query)
			switch {
			case tt.limit == "validation":
				if r.code() != CodeValidationFailed {
					t.Errorf("got %s", r.text)
				}
			case tt.limit == "":
				if r.status != http.StatusOK || r.at("errors") != nil {
					t.Errorf("refused: %s", r.text)
				}
			case r.status != http.StatusUnprocessableEntity || r.hasData():
				t.Errorf("status %d: %.300s", r.status, r.text)
			case !strings.Contains(r.text, tt.limit):
				t.Errorf("not about %s: %.300s", tt.limit, r.text)
			}
		})
	}
}

// A value of 9,000 levels in 60 KB cost the reader of inputs 7 s and 700 MB, since each level carries its path.
func TestVariablesHaveALimitedDepth(t *testing.T) {
	f := newFixture(t, Options{})
	for name, test := range map[string]struct {
		value   string
		refused bool
	}{
		"64 lists pass":      {nest(64, "[", "1", "]"), false},
		"65 do not":          {nest(65, "[", "1", "]"), true},
		"64 objects pass":    {nest(64, `{"a":`, "1", "}"), false},
		"65 do not, mixed":   {nest(33, `{"a":[`, "1", "]}"), true},
		"9,000 are answered": {nest(9000, `{"a":`, "1", "}"), true},
	} {
		for range 2 { // the second time the document is cached
			r := f.ask(t, "{hello}", json.RawMessage(`{"v":`+test.value+`}`))
			if got := r.status == http.StatusUnprocessableEntity && strings.Contains(r.text, "input depth"); got != test.refused {
				t.Errorf("%s: status %d: %.300s", name, r.status, r.text)
			}
		}
	}
}

// The documents of the study: gqlgen's complexity walk took 0.4 s for 839 bytes of fragments, its validation 0.65 s for 18 KB of fields.
func TestDocumentsThatCostStockGqlgenSeconds(t *testing.T) {
	wide := "{...a} fragment a on Query{" + strings.Repeat("node(id:1){id} ", 190) + "}"
	tests := map[string]string{
		"fragments that double 22 times": doubling(23, "id"),
		"fragments that double 49 times": doubling(50, "id"),
		"3,000 fields in one set":        "{" + strings.Repeat("hello ", 3000) + "}",
		"as many equal fields as pass":   wide,
		"many sets of many fields":       "{node(id:1){" + strings.Repeat("parent{"+strings.Repeat("id ", 190)+"} ", 9) + "}}",
		"200 equal objects in a set":     "{node(id:1){" + strings.Repeat("parent{id name} ", 190) + "}}",
		"fragments that cross each other": "{...a ...b} fragment a on Query{" + strings.Repeat("node(id:1){...x ...y} ", 20) + "}fragment b on Query{" +
			strings.Repeat("node(id:1){...y ...x} ", 20) + "}fragment x on Item{" + strings.Repeat("parent{id ...y} ", 60) + "}fragment y on Item{" + strings.Repeat("parent{name} ", 60) + "}",
		"every fragment spreads all later ones": crossing(40),
		"a cycle of fragments":                  "{...a} fragment a on Query{...b} fragment b on Query{...a}",
	}
	for name, query := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{})
			f.askCheaply(t, query)
		})
	}
}

// askCheaply asks, and wants an answer within a second in one of five tries: a busy machine holds up one or the other, and a
// document that costs seconds costs them each time.
func (f *fixture) askCheaply(t *testing.T, query string) reply {
	t.Helper()
	for tries := 1; ; tries++ {
		start := time.Now()
		r := f.ask(t, query, nil)
		took := time.Since(start)
		if took > time.Second && tries < 5 {
			continue
		}
		if took > time.Second {
			t.Errorf("%d bytes took %v: %.200s", len(query), took, r.text)
		}
		return r
	}
}

// crossing makes n fragments, each of which spreads all later ones: quadratic in text.
func crossing(n int) string {
	var b strings.Builder
	b.WriteString("{node(id:1){...f0}}")
	for i := range n {
		fmt.Fprintf(&b, "fragment f%d on Item{id", i)
		for j := i + 1; j < n; j++ {
			fmt.Fprintf(&b, " ...f%d", j)
		}
		b.WriteString("}")
	}
	return b.String()
}

func TestTheSchemaCanBeReadWholeByTools(t *testing.T) {
	f := newFixture(t, Options{})
	r := f.ask(t, introspectionQuery, nil)
	if r.status != http.StatusOK || r.at("errors") != nil || r.at("data", "__schema", "queryType", "name") != "Query" {
		t.Fatalf("%.500s", r.text)
	}
	deep := "{__schema{types{fields{type{fields{type{fields{type{name}}}}}}}}}"
	if r := f.ask(t, deep, nil); r.code() != CodeValidationFailed {
		t.Errorf("lists within lists of introspection: %.300s", r.text)
	}
}

// introspectionQuery is the one of graphql-js, which GraphiQL sends.
const introspectionQuery = `query IntrospectionQuery { __schema { description queryType { name kind } mutationType { name kind } subscriptionType { name kind }
 types { ...FullType } directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } } } }
fragment FullType on __Type { kind name description specifiedByURL isOneOf fields(includeDeprecated: true) { name description
 args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
 inputFields(includeDeprecated: true) { ...InputValue } interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
 possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }`
