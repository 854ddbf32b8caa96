package graph

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// breakingChanges says what of one schema a client may rely on that another does not keep, sorted. What is added breaks
// nobody, unless it must be sent; a result may become non-null and an argument nullable.
func breakingChanges(before, after *ast.Schema) []string {
	var out []string
	report := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for name, old := range before.Types {
		now := after.Types[name]
		switch {
		case old.BuiltIn:
		case now == nil:
			report("type %s is gone", name)
		case now.Kind != old.Kind:
			report("type %s is no %s any more", name, old.Kind)
		default:
			compareMembers(old, now, report)
			for _, f := range old.Fields {
				compareField(old, f, now.Fields.ForName(f.Name), report)
			}
			if old.Kind == ast.InputObject {
				for _, f := range now.Fields {
					if old.Fields.ForName(f.Name) == nil && mustBeSent(f.Type, f.DefaultValue) {
						report("input %s asks for %s", name, f.Name)
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// compareMembers compares what a type consists of besides fields: values of an enum, members of a union, interfaces.
func compareMembers(old, now *ast.Definition, report func(string, ...any)) {
	for _, v := range old.EnumValues {
		if now.EnumValues.ForName(v.Name) == nil {
			report("enum %s has no %s any more", old.Name, v.Name)
		}
	}
	for _, member := range old.Types {
		if !slices.Contains(now.Types, member) {
			report("union %s has no %s any more", old.Name, member)
		}
	}
	for _, face := range old.Interfaces {
		if !slices.Contains(now.Interfaces, face) {
			report("type %s is no %s any more", old.Name, face)
		}
	}
	if old.Kind == ast.InputObject && old.Directives.ForName("oneOf") == nil && now.Directives.ForName("oneOf") != nil {
		report("input %s takes one field only", old.Name)
	}
}

func compareField(of *ast.Definition, old, now *ast.FieldDefinition, report func(string, ...any)) {
	name := of.Name + "." + old.Name
	if strings.HasPrefix(old.Name, "__") {
		return
	}
	if now == nil {
		report("field %s is gone", name)
		return
	}
	fits := keepsResult
	if of.Kind == ast.InputObject {
		fits = takesAsBefore
	}
	switch {
	case !fits(old.Type, now.Type):
		report("field %s: %s became %s", name, old.Type, now.Type)
	case of.Kind == ast.InputObject && mustBeSent(now.Type, now.DefaultValue) && !mustBeSent(old.Type, old.DefaultValue):
		report("field %s has no default any more", name)
	}
	for _, a := range old.Arguments {
		switch b := now.Arguments.ForName(a.Name); {
		case b == nil:
			report("argument %s(%s) is gone", name, a.Name)
		case !takesAsBefore(a.Type, b.Type):
			report("argument %s(%s): %s became %s", name, a.Name, a.Type, b.Type)
		case mustBeSent(b.Type, b.DefaultValue) && !mustBeSent(a.Type, a.DefaultValue):
			report("argument %s(%s) has no default any more", name, a.Name)
		}
	}
	for _, b := range now.Arguments {
		if old.Arguments.ForName(b.Name) == nil && mustBeSent(b.Type, b.DefaultValue) {
			report("field %s asks for argument %s", name, b.Name)
		}
	}
}

func mustBeSent(t *ast.Type, byDefault *ast.Value) bool { return t.NonNull && byDefault == nil }

// keepsResult says whether a client that reads the old type can read the new one: it may have gained a non-null.
func keepsResult(old, now *ast.Type) bool {
	if old.NonNull && !now.NonNull || (old.Elem == nil) != (now.Elem == nil) {
		return false
	}
	if old.Elem != nil {
		return keepsResult(old.Elem, now.Elem)
	}
	return old.NamedType == now.NamedType
}

// takesAsBefore says whether what a client sends for the old type is good for the new one: it may have lost a non-null.
func takesAsBefore(old, now *ast.Type) bool {
	if now.NonNull && !old.NonNull || (old.Elem == nil) != (now.Elem == nil) {
		return false
	}
	if old.Elem != nil {
		return takesAsBefore(old.Elem, now.Elem)
	}
	return old.NamedType == now.NamedType
}

func TestWhatBreaksAClient(t *testing.T) {
	t.Parallel()
	const before = `type Query { one(id: ID!, n: Int, order: Order = UP): Thing things: [Thing!]! face(m: Int! = 1): Face any: Any }
interface Face { id: ID! } type Thing implements Face { id: ID! name: String size: Int! tags: [String!]! } type Other { id: ID! }
enum Order { UP DOWN } union Any = Thing | Other input Filter { a: Int b: Int! c: [Int!] d: Int! = 1 } input Pick { a: Int b: Int } scalar Money
type Mutation { set(by: Filter!, pick: Pick, money: Money): Thing }`
	for _, c := range []struct {
		name, from, to, want string
		more                 []string // further pairs of from and to
	}{
		{"nothing", "", "", "", nil},
		{"a new type, field, optional argument, enum value and input field", "size: Int!", "size: Int! more(n: Int! = 1, m: Int): New", "", nil},
		{"a new enum value", "UP DOWN", "UP DOWN LEFT", "", nil},
		{"a new optional input field", "a: Int", "a: Int e: Int f: Int! = 1", "", nil},
		{"a new union member", "Thing | Other", "Thing | Other | New", "", nil},
		{"a result that is never null any more", "name: String", "name: String!", "", nil},
		{"an argument that may be null", "one(id: ID!", "one(id: ID", "", nil},
		{"a description", "size: Int!", `"How large." size: Int!`, "", nil},
		{"a type", "type Other { id: ID! }", "", "type Other is gone; union Any has no Other any more", []string{"Thing | Other", "Thing"}},
		{"another kind", "type Other { id: ID! }", "interface Other { id: ID! }", "type Other is no OBJECT any more; union Any has no Other any more", []string{"Thing | Other", "Thing"}},
		{"a field", "size: Int!", "", "field Thing.size is gone", nil},
		{"a result that may be null", "size: Int!", "size: Int", "field Thing.size: Int! became Int", nil},
		{"another type", "size: Int!", "size: Float!", "field Thing.size: Int! became Float!", nil},
		{"no list any more", "tags: [String!]!", "tags: String!", "field Thing.tags: [String!]! became String!", nil},
		{"elements that may be null", "tags: [String!]!", "tags: [String]!", "field Thing.tags: [String!]! became [String]!", nil},
		{"an argument", "n: Int,", "", "argument Query.one(n) is gone", nil},
		{"an argument that must be sent now", "n: Int,", "n: Int!,", "argument Query.one(n): Int became Int!", nil},
		{"an argument of another type", "n: Int,", "n: Float,", "argument Query.one(n): Int became Float", nil},
		{"a new argument that must be sent", "things:", "things(n: Int!):", "field Query.things asks for argument n", nil},
		{"an enum value", "UP DOWN", "UP", "enum Order has no DOWN any more", nil},
		{"a union member", "Thing | Other", "Thing", "union Any has no Other any more", nil},
		{"an interface", "type Thing implements Face", "type Thing", "type Thing is no Face any more", nil},
		{"an input field", "a: Int", "", "field Filter.a is gone", nil},
		{"an input field that must be sent now", "a: Int", "a: Int!", "field Filter.a: Int became Int!", nil},
		{"an input field that must be sent now, by its default", "a: Int", "a: Int! = 1", "field Filter.a: Int became Int!", nil},
		{"an input field that may be left out", "b: Int!", "b: Int", "", nil},
		{"elements of an input", "c: [Int!]", "c: [Int]", "", nil},
		{"a new input field that must be sent", "a: Int", "a: Int e: Int!", "input Filter asks for e", nil},
		{"an input field without its default", "d: Int! = 1", "d: Int!", "field Filter.d has no default any more", nil},
		{"an argument without its default", "m: Int! = 1", "m: Int!", "argument Query.face(m) has no default any more", nil},
		{"an input of one field only", "input Pick {", "input Pick @oneOf {", "input Pick takes one field only", nil},
		{"a scalar", "scalar Money", "", "argument Mutation.set(money): Money became Int; type Money is gone", []string{"money: Money", "money: Int"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := strings.Replace(before, c.from, c.to, 1)
			after = strings.NewReplacer(c.more...).Replace(after)
			if strings.Contains(after, "New") {
				after += " type New { id: ID! }"
			}
			if got := strings.Join(breakingChanges(sdl(t, before), sdl(t, after)), "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func sdl(t *testing.T, text string) *ast.Schema {
	t.Helper()
	s, err := gqlparser.LoadSchema(&ast.Source{Input: text})
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return s
}

func TestTheGoldenSchemaBreaksNoClientOfItsOwn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	if got := breakingChanges(sdl(t, string(text)), publicSchema()); len(got) > 0 {
		t.Error(got)
	}
}

// Clients of the last release go on working: what its schema promised is still there. Before the first release, and in a
// copy without its history or tags, there is nothing to compare.
func TestTheLastReleasesClientsGoOnWorking(t *testing.T) {
	t.Parallel()
	tag, err := git("describe", "--tags", "--abbrev=0")
	if err != nil {
		if tags, _ := git("tag", "--list"); tags != "" {
			t.Logf("none of the tags here is in this commit's history: %v", err)
		}
		return
	}
	text, err := git("show", tag+":./testdata/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range breakingChanges(sdl(t, text), publicSchema()) {
		t.Errorf("since %s: %s. Keep it, with @deprecated where it should go; a new field beside it breaks nobody", tag, change)
	}
}

// git runs git in this folder; its error has what git said.
func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
