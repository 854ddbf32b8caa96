package archtest

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "rouse.dev/rouse/"
	root   = "../.."
)

// file is one non-test source file.
type file struct {
	path    string // from the root, with slashes
	folder  string // the package's path in the module
	syntax  *ast.File
	imports []string // as written; ours without the module
}

// isOurs tells a package of the module from all others.
func isOurs(syntaxPath string) (string, bool) { return strings.CutPrefix(syntaxPath, module) }

// source reads every non-test file of the module by itself and not through `go list`: the test cache knows which files a
// test has read, so that it cannot answer "ok" from before a change. Files with the tag "ignore" are programs beside the
// package, not a part of it.
func source(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		slashed := path.Clean(strings.TrimPrefix(filepath.ToSlash(name), root+"/"))
		switch base := entry.Name(); {
		case entry.IsDir() && name != root && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" || slashed == "tools"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go"):
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, mode(slashed))
		if err != nil {
			return err
		}
		if !ignored(syntax) {
			files = append(files, newFile(slashed, syntax))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no source files found")
	}
	return files
}

// mode reads whole files only where calls are looked at: ent/ has some 190,000 lines.
func mode(name string) parser.Mode {
	if slices.Contains(purePackages, path.Dir(name)) || strings.HasPrefix(name, "ent/schema/") {
		return parser.SkipObjectResolution | parser.ParseComments
	}
	return parser.ImportsOnly | parser.ParseComments
}

func ignored(syntax *ast.File) bool {
	for _, group := range syntax.Comments {
		for _, comment := range group.List {
			if comment.Pos() > syntax.Package || !constraint.IsGoBuild(comment.Text) {
				continue
			}
			expression, err := constraint.Parse(comment.Text)
			return err == nil && !expression.Eval(func(tag string) bool { return tag != "ignore" })
		}
	}
	return false
}

func newFile(name string, syntax *ast.File) file {
	f := file{path: name, folder: path.Dir(name), syntax: syntax}
	for _, spec := range syntax.Imports {
		text, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser has accepted it
		}
		f.imports = append(f.imports, text)
	}
	return f
}

// matches tells whether a package is named by a pattern: itself, or "x/..." for x and all below it.
func matches(pattern, name string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == below || strings.HasPrefix(name, below+"/")
	}
	return name == pattern
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return matches(p, name) || p == pure && slices.Contains(purePackages, name)
	})
}
