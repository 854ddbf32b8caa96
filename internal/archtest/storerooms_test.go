package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAFileOfTheStoreRefersToNoRoomAboveItsOwn(t *testing.T) {
	files, fset := storeFiles(t)
	for _, r := range upward(fset, files, roomOf) {
		t.Error(r)
	}
}

func TestAFileOfTheStoreIsInOneRoom(t *testing.T) {
	files, _ := storeFiles(t)
	seen := map[string]string{}
	for _, room := range storeRooms {
		if !slices.IsSorted(room.files) || room.holds == "" {
			t.Errorf("the files of room %s are not in order, or nothing says what it holds", room.name)
		}
		for _, name := range room.files {
			if other, twice := seen[name]; twice {
				t.Errorf("%s.go is in the rooms %s and %s", name, other, room.name)
			}
			if files[name] == nil {
				t.Errorf("room %s names %s.go, which does not exist", room.name, name)
			}
			seen[name] = room.name
		}
	}
	for name := range files {
		if seen[name] == "" {
			t.Errorf("internal/store/%s.go is in no room: add it to internal/archtest/storerooms_table_test.go, with the noun that its name begins with", name)
		}
	}
}

// The receiver of an exported method tells the reader, and who is handed a part, of which room it is.
func TestTheReceiverTellsTheRoom(t *testing.T) {
	files, _ := storeFiles(t)
	for name, f := range files {
		room := roomOf(name)
		if room == len(storeRooms) {
			continue // which is told elsewhere
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			on := receiverOf(fn)
			i := slices.IndexFunc(storeRooms, func(r storeRoom) bool { return r.receiver == on })
			if on == "Store" || on != "" && i >= 0 && i != room {
				t.Errorf("internal/store/%s.go: the method %s of *%s is in room %s: its receiver is to be *%s", name, fn.Name.Name, on, storeRooms[room].name, storeRooms[room].receiver)
			}
		}
	}
}

// roomOf is the place of a file's room; that of a file in none is beyond all.
func roomOf(name string) int {
	if i := slices.IndexFunc(storeRooms, func(r storeRoom) bool { return slices.Contains(r.files, name) }); i >= 0 {
		return i
	}
	return len(storeRooms)
}

func storeFiles(t *testing.T) (map[string]*ast.File, *token.FileSet) {
	t.Helper()
	paths, err := filepath.Glob(root + "/internal/store/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files of the store found: %v", err)
	}
	files, fset := map[string]*ast.File{}, token.NewFileSet()
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".go")
		if strings.HasSuffix(name, "_test") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if files[name], err = parser.ParseFile(fset, path, text, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	return files, fset
}

// upward lists the references of declarations to those of rooms above their own. Types are worked out without what is imported:
// a private method whose receiver is not known so is taken for the one method of that name, should there be one alone.
func upward(fset *token.FileSet, files map[string]*ast.File, room func(file string) int) (found []string) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}} // what is imported is not known, which is an error each time
	_, _ = config.Check("store", fset, slices.Collect(maps.Values(files)), info)
	homes, methods := declarations(files, info)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		called := map[*ast.Ident]bool{}
		ast.Inspect(files[name], func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok {
					called[s.Sel] = true
				}
			}
			id, ok := n.(*ast.Ident)
			if !ok || info.Defs[id] != nil {
				return true
			}
			home, known := homes[originOf(info.Uses[id])]
			if info.Uses[id] == nil && called[id] && !id.IsExported() && len(methods[id.Name]) == 1 {
				home, known = methods[id.Name][0], true
			}
			if known && room(home) > room(name) {
				found = append(found, fmt.Sprintf("%s refers to %s of %s.go, which is in a room above its own: move one of them", fset.Position(id.Pos()), id.Name, home))
			}
			return true
		})
	}
	return found
}

// declarations are the files of what is declared in a package, and of its methods by their names.
func declarations(files map[string]*ast.File, info *types.Info) (homes map[types.Object]string, methods map[string][]string) {
	homes, methods = map[types.Object]string{}, map[string][]string{}
	for name, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				homes[info.Defs[d.Name]] = name
				if d.Recv != nil {
					methods[d.Name.Name] = append(methods[d.Name.Name], name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					for _, id := range namesOf(spec) {
						homes[info.Defs[id]] = name
					}
				}
			}
		}
	}
	delete(homes, nil)
	return homes, methods
}

func namesOf(spec ast.Spec) []*ast.Ident {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{s.Name}
	case *ast.ValueSpec:
		return s.Names
	}
	return nil
}

func originOf(o types.Object) types.Object {
	if f, ok := o.(*types.Func); ok {
		return f.Origin()
	}
	return o
}

func receiverOf(fn *ast.FuncDecl) string {
	on := fn.Recv.List[0].Type
	if star, ok := on.(*ast.StarExpr); ok {
		on = star.X
	}
	if id, ok := on.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// nothing imports packages that hold nothing.
type nothing struct{}

// Import is that of types.Importer.
func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// The walk itself, on a package whose upper file is referred to in each way there is.
func TestAReferenceUpwardIsFound(t *testing.T) {
	const upper = `package store
type above struct{ below }
const word = "x"
func helper() {}
func (t *tx) lift() {}
func (above) only() {}`
	for name, tt := range map[string]struct {
		lower string
		want  string // the name that is told; "" for none
	}{
		"a function":                       {`func f() { helper() }`, "helper"},
		"a method":                         {`func f(t *tx) { t.lift() }`, "lift"},
		"a method of what is embedded":     {`type c struct{ *tx }; func (c *c) f() { c.lift() }`, "lift"},
		"a method of what is not known":    {`func f() { ext.Get().only() }`, "only"},
		"a method in a closure":            {`func f(t *tx) { do(func() error { t.lift(); return nil }) }; func do(func() error) {}`, "lift"},
		"a type":                           {`var v above`, "above"},
		"a constant in a statement":        {"const q = `SELECT ` + word", "word"},
		"nothing above":                    {`func f(t *tx) { t.here() }; func (t *tx) here() {}`, ""},
		"a local of the same name":         {`func f() { helper := 1; _ = helper }`, ""},
		"a field of the same name":         {`type r struct{ word int }; func f(x r) { _ = x.word }`, ""},
		"another package's of that name":   {`func f() { ext.helper() }`, ""},
		"a method of that name of its own": {`type r struct{}; func (r) lift() {}; func f(x r) { x.lift() }`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fset, files := token.NewFileSet(), map[string]*ast.File{}
			for file, text := range map[string]string{"lower": "package store\nimport \"x/ext\"\nvar _ = ext.X\ntype tx struct{}\ntype below struct{}\n" + tt.lower, "upper": upper} {
				f, err := parser.ParseFile(fset, file+".go", text, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				files[file] = f
			}
			found := upward(fset, files, func(file string) int { return map[string]int{"lower": 0, "upper": 1}[file] })
			if got := len(found); tt.want == "" && got != 0 || tt.want != "" && (got != 1 || !strings.Contains(found[0], "refers to "+tt.want+" of upper.go")) {
				t.Errorf("%d references are told: %v", got, found)
			}
		})
	}
}
