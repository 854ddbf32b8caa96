package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestAPackageImportsOnlyWhatTheTableAllows(t *testing.T) {
	for _, f := range source(t) {
		if isGenerated(f.folder) {
			continue
		}
		i := slices.IndexFunc(rooms, func(r room) bool { return r.name == f.folder })
		if i < 0 {
			t.Errorf("%s: the package %s is not in the table of internal/archtest/table_test.go: add a line that says what it may import, and why no more", f.path, f.folder)
			continue
		}
		for _, name := range f.imports {
			if ours, ok := isOurs(name); ok && !matchesAny(rooms[i].may, ours) && ours != f.folder {
				t.Errorf("%s must not import %s: %s", f.path, ours, rooms[i].why)
			}
		}
	}
}

// isGenerated tells of ent/ and its packages for each table; what they import is the generator's matter.
func isGenerated(folder string) bool { return matches(anyEnt, folder) && folder != "ent/schema" }

func TestAPackageImportsNoneOfOthersThatAreForbidden(t *testing.T) {
	for _, f := range source(t) {
		for _, b := range bans {
			if !slices.Contains(b.who, f.folder) {
				continue
			}
			for _, name := range f.imports {
				if matchesAny(b.never, name) {
					t.Errorf("%s must not import %s: %s", f.path, name, b.why)
				}
			}
		}
	}
}

func TestAShippedProgramHoldsNothingOfTheTests(t *testing.T) {
	for _, f := range source(t) {
		if slices.Contains(testPackages, f.folder) {
			continue
		}
		for _, name := range f.imports {
			if ours, ok := isOurs(name); ok && slices.Contains(testPackages, ours) || matches("testing/...", name) || strings.HasPrefix(name, "github.com/ory/dockertest/") {
				t.Errorf("%s must not import %s: it is for tests alone", f.path, name)
			}
		}
	}
}

// SPEC and docs/architecture.md: a rule is given now; a rule that asks for it cannot be tested at 02:30 on the day the
// clocks change.
func TestARuleNeitherReadsTheClockNorRollsDice(t *testing.T) {
	for _, f := range source(t) {
		if !slices.Contains(purePackages, f.folder) {
			continue
		}
		names := localNames(f)
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := selector.X.(*ast.Ident); ok && slices.Contains(clock[names[id.Name]], selector.Sel.Name) {
				t.Errorf("%s uses %s.%s: a rule takes now, and what is random, as arguments", f.path, id.Name, selector.Sel.Name)
			}
			return true
		})
	}
}

// localNames gives the imported package for each name it has in a file.
func localNames(f file) map[string]string {
	names := map[string]string{}
	for i, spec := range f.syntax.Imports {
		name := path.Base(f.imports[i])
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = f.imports[i]
	}
	return names
}

// entgql 0.7.0 writes a broken import into ent/ when a package of ours is named like a table's package: ent's own
// packages are named for the tables, in lower case.
func TestNoPackageIsNamedLikeATable(t *testing.T) {
	files := source(t)
	tables := map[string]bool{}
	for _, f := range files {
		if f.folder == "ent/schema" {
			for _, name := range entities(f.syntax) {
				tables[strings.ToLower(name)] = true
			}
		}
	}
	if len(tables) == 0 {
		t.Fatal("no tables found in ent/schema")
	}
	for _, f := range files {
		if name := f.syntax.Name.Name; tables[name] && !isGenerated(f.folder) {
			t.Errorf("%s: the package %s has the name of a table, and entgql then writes a broken import: name it for what it does", f.path, name)
		}
	}
}

// entities are the types that embed ent.Schema.
func entities(syntax *ast.File) []string {
	var names []string
	ast.Inspect(syntax, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if body, ok := spec.Type.(*ast.StructType); ok && slices.ContainsFunc(body.Fields.List, embedsSchema) {
			names = append(names, spec.Name.Name)
		}
		return true
	})
	return names
}

func embedsSchema(field *ast.Field) bool {
	selector, ok := field.Type.(*ast.SelectorExpr)
	if !ok || len(field.Names) != 0 {
		return false
	}
	from, ok := selector.X.(*ast.Ident)
	return ok && from.Name == "ent" && selector.Sel.Name == "Schema"
}

// The table itself: a line twice would be read once, and a pure package without a line would be free.
func TestTheTableSaysEachThingOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rooms {
		if seen[r.name] || r.why == "" {
			t.Errorf("the table has %s twice, or without a reason", r.name)
		}
		seen[r.name] = true
	}
	for _, name := range slices.Concat(purePackages, testPackages) {
		if !seen[name] {
			t.Errorf("the table has no line for %s", name)
		}
	}
}
