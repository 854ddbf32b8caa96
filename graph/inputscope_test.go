package graph

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

// What an input field names: see testdata/inputscopes.txt.
var inputKinds = []string{"data", "program", "address", "secret", "proof"}

// executorTypes are inputs that say how runs are executed.
var executorTypes = []string{"ExecutorInput", "CommandExecutorInput", "AcpExecutorInput", "HttpExecutorInput", "PullExecutorInput", "EchoExecutorInput", "NameValueInput"}

// inputScopes says for each field of each input which scopes let a caller set it, by all ways that lead there.
func inputScopes(s *ast.Schema) map[string][]string {
	found := map[string]map[string]bool{}
	var walk func(d *ast.Definition, scopes string)
	walk = func(d *ast.Definition, scopes string) {
		if d == nil || d.Kind != ast.InputObject {
			return
		}
		for _, f := range d.Fields {
			name, needs := d.Name+"."+f.Name, scopes
			if own := requiredScopes(f.Directives); own != "" {
				needs = own
			}
			if found[name] == nil {
				found[name] = map[string]bool{}
			}
			if found[name][needs] {
				continue // also the end of inputs that contain themselves
			}
			found[name][needs] = true
			walk(s.Types[f.Type.Name()], needs)
		}
	}
	for _, d := range s.Types {
		if d.Kind != ast.Object {
			continue
		}
		for _, f := range d.Fields {
			scopes := requiredScopes(f.Directives)
			if scopes == "" {
				scopes = "READ" // as the query above it
			}
			for _, a := range f.Arguments {
				walk(s.Types[a.Type.Name()], scopes)
			}
		}
	}
	out := map[string][]string{}
	for name, scopes := range found {
		out[name] = slices.Sorted(maps.Keys(scopes))
	}
	return out
}

// requiredScopes are those of @requires, e.g. OPERATE|RUN.
func requiredScopes(list ast.DirectiveList) string {
	d := list.ForName("requires")
	if d == nil {
		return ""
	}
	var names []string
	for _, v := range d.Arguments.ForName("scopes").Value.Children {
		names = append(names, v.Value.Raw)
	}
	return strings.Join(names, "|")
}

// Every field of every input is in a table that a person has looked at, with the scope it needs and what it names; what names
// a program, an address or a secret needs ADMIN by whatever way it is reached.
func TestEveryInputFieldNeedsTheScopeOfTheTable(t *testing.T) {
	t.Parallel()
	const file = "testdata/inputscopes.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{} // name to its scopes, the kind last
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			if len(words) < 3 || !slices.Contains(inputKinds, words[len(words)-1]) || table[words[0]] != nil {
				t.Errorf("%s: cannot read %q, or it is there twice", file, line)
			}
			table[words[0]] = words[1:]
		}
	}
	s := publicSchema()
	is := inputScopes(s)
	for _, name := range slices.Sorted(maps.Keys(is)) {
		row := table[name]
		if row == nil {
			t.Errorf("%s is not in %s: decide what it names, and add the line %q with data, program, address or secret for it", name, file, name+" "+strings.Join(is[name], " ")+" …")
			continue
		}
		scopes, kind := row[:len(row)-1], row[len(row)-1]
		if !slices.Equal(scopes, is[name]) {
			t.Errorf("%s needs %v, the table says %v", name, is[name], scopes)
		}
		if sensitive := kind == "program" || kind == "address" || kind == "secret"; sensitive && !slices.Equal(is[name], []string{"ADMIN"}) {
			t.Errorf("%s names a %s and needs only %v: give it @requires(scopes: [ADMIN])", name, kind, is[name])
		}
	}
	for name := range table {
		if is[name] == nil {
			t.Errorf("%s of %s is no input field any more", name, file)
		}
	}
	for _, d := range s.Types {
		for _, f := range d.Fields {
			if d.Kind != ast.InputObject || !slices.Contains(executorTypes, f.Type.Name()) {
				continue
			}
			if row := table[d.Name+"."+f.Name]; len(row) > 0 && row[len(row)-1] == "data" {
				t.Errorf("%s.%s holds how runs are executed and is called data", d.Name, f.Name)
			}
			if f.Type.Name() == "ExecutorInput" && requiredScopes(f.Directives) != "ADMIN" {
				t.Errorf("%s.%s can be set to null without ADMIN: give it @requires(scopes: [ADMIN]) itself", d.Name, f.Name)
			}
		}
	}
}

// A field that needs a scope of its own has no default, which would be there though nobody sent it.
func TestNoGuardedInputFieldHasADefault(t *testing.T) {
	t.Parallel()
	guarded := 0
	for _, d := range publicSchema().Types {
		for _, f := range d.Fields {
			if d.Kind != ast.InputObject || f.Directives.ForName("requires") == nil {
				continue
			}
			if guarded++; f.DefaultValue != nil || f.Type.NonNull {
				t.Errorf("%s.%s needs a scope and cannot be left out", d.Name, f.Name)
			}
		}
	}
	if guarded < 8 {
		t.Errorf("only %d input fields are guarded", guarded)
	}
}
