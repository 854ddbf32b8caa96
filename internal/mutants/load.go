package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pack is a package with its mutants.
type pack struct {
	dir     string // within the repository
	name    string // of the package
	fset    *token.FileSet
	info    *types.Info
	types   *types.Package
	fixed   map[*ast.BasicLit]bool // literals that must stay as they are
	sources map[string][]byte      // by the path within the repository
	mutants []mutant
}

// listed is what `go list` says.
type listed struct {
	ImportPath, Export string
	Name, Dir          string
	GoFiles            []string
}

// load reads and type-checks a package, and finds its mutants.
func load(dir string) (*pack, error) {
	list := exec.Command("go", "list", "-e", "-export", "-deps", "-json=ImportPath,Export,Name,Dir,GoFiles", "./"+dir)
	var said bytes.Buffer
	list.Stderr = &said
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", dir, err, said.String())
	}
	exports, self := map[string]string{}, listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath], self = l.Export, l // the package comes behind what it needs
	}
	p := &pack{dir: dir, name: self.Name, fset: token.NewFileSet(), sources: map[string][]byte{}, fixed: map[*ast.BasicLit]bool{},
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	var files []*ast.File
	for _, name := range self.GoFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(p.fset, filepath.Join(dir, name), text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.sources[filepath.ToSlash(filepath.Join(dir, name))] = text
		files = append(files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if p.types, err = config.Check(self.ImportPath, p.fset, files, p.info); err != nil {
		return nil, err
	}
	for _, file := range files {
		name := filepath.ToSlash(p.fset.Position(file.Package).Filename)
		if strings.HasSuffix(name, "_enum.go") || ast.IsGenerated(file) {
			continue // words and their lists
		}
		p.fixedIn(file)
		f := &finder{pack: p, name: name, file: file}
		f.walk()
		p.mutants = append(p.mutants, f.found...)
	}
	for i := range p.mutants {
		p.mutants[i].id = i + 1
	}
	return p, nil
}

// fix notes that the literals of a node must stay as they are.
func (p *pack) fix(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok {
			p.fixed[l] = true
		}
		return true
	})
}

// fixedIn notes literals whose place wants a constant: lengths, indexes and shifts.
func (p *pack) fixedIn(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.SHL || n.Op == token.SHR || p.untyped(n) {
				p.fix(n)
			}
		case *ast.KeyValueExpr:
			p.fix(n.Key)
		case *ast.IndexExpr:
			p.fix(n.Index)
		case *ast.CaseClause:
			for _, e := range n.List {
				if p.constant(e) {
					p.fix(e)
				}
			}
		case *ast.GenDecl:
			if n.Tok == token.CONST {
				p.fix(n)
			}
		}
		return true
	})
}

func (p *pack) typeOf(e ast.Expr) types.Type { return p.info.Types[e].Type }

func (p *pack) constant(e ast.Expr) bool { return p.info.Types[e].Value != nil }

func (p *pack) untyped(e ast.Expr) bool {
	b, ok := p.typeOf(e).(*types.Basic)
	return ok && b.Info()&types.IsUntyped != 0
}

func (p *pack) basic(e ast.Expr, kind types.BasicInfo) bool {
	t := p.typeOf(e)
	if t == nil || !p.info.Types[e].IsValue() {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&kind != 0
}

func (p *pack) isBool(e ast.Expr) bool   { return p.basic(e, types.IsBoolean) && !p.constant(e) }
func (p *pack) isNumber(e ast.Expr) bool { return p.basic(e, types.IsInteger|types.IsFloat) }
func (p *pack) isText(e ast.Expr) bool   { return p.basic(e, types.IsString) }

// isMessage: a text of no type of its own.
func (p *pack) isMessage(e ast.Expr) bool {
	b, ok := p.typeOf(e).(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func (p *pack) isFunction(e ast.Expr) bool {
	_, ok := p.typeOf(e).Underlying().(*types.Signature)
	return ok
}

// typeText is the type as the file can write it; false when it cannot.
func (f *finder) typeText(e ast.Expr) (string, bool) {
	t := f.typeOf(e)
	if t == nil {
		return "", false
	}
	if b, ok := t.(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		if b.Kind() != types.UntypedBool {
			return "", false
		}
		t = types.Typ[types.Bool]
	}
	if _, tuple := t.(*types.Tuple); tuple {
		return "", false
	}
	can := true
	text := types.TypeString(t, func(other *types.Package) string {
		if other == f.types {
			return ""
		}
		for _, i := range f.file.Imports {
			if strings.Trim(i.Path.Value, `"`) == other.Path() {
				if i.Name != nil {
					return i.Name.Name
				}
				return other.Name()
			}
		}
		can = false
		return ""
	})
	return text, can && !strings.Contains(text, "invalid type") && !strings.Contains(text, "\n")
}

// text is the source of a node, without comments.
func (p *pack) text(n ast.Node) string {
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), n); err != nil {
		return "?" // which no compiler takes
	}
	return b.String()
}
