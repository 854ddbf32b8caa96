package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutant is one small change. What it is in front of and behind the text that it wraps makes it a choice of the running program.
type mutant struct {
	id            int
	file          string // as the repository names it
	line          int
	function      string // "" outside of functions
	what          string // "a < b → a <= b"
	nth           int    // of those in the function that are alike otherwise
	from, to      int    // of the text it wraps, as offsets
	before, after string
}

// key names a mutant for as long as its function has the same text there, wherever that stands.
func (m mutant) key() string {
	key := fmt.Sprintf("%s %s: %s", m.file, cmp.Or(m.function, "(package)"), m.what)
	if m.nth > 0 {
		key += fmt.Sprintf(" #%d", m.nth+1)
	}
	return key
}

// finder walks the syntax of a file and notes what can be changed.
type finder struct {
	*pack
	name     string
	file     *ast.File
	function string
	found    []mutant
}

// functions of the file, and what the package's variables are made of.
func (f *finder) walk() {
	for _, d := range f.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || d.Name.Name == "String" || d.Name.Name == "init" {
				continue
			}
			f.function = functionName(d)
			ast.Inspect(d.Body, f.visit)
		case *ast.GenDecl:
			if f.function = ""; d.Tok == token.VAR {
				ast.Inspect(d, f.visit)
			}
		}
	}
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.ArrayType:
		return false // its length must stay a constant
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT && f.isBool(n) {
			f.swap(n, f.text(n.X))
		}
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ReturnStmt:
		f.results(n.Results)
	case *ast.CaseClause:
		for _, e := range n.List {
			f.condition(e)
			f.caseOf(e)
		}
		f.statements(n.Body)
	case *ast.BasicLit:
		f.literal(n)
	case *ast.KeyValueExpr:
		f.element(n)
	case *ast.CallExpr:
		f.call(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	}
	return true
}

var comparisons = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
}

var sums = map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL}

func (f *finder) binary(n *ast.BinaryExpr) {
	if f.constant(n) {
		return
	}
	for _, op := range comparisons[n.Op] {
		if f.isBool(n) {
			f.swap(n, f.text(n.X)+" "+op.String()+" "+f.text(n.Y))
		}
	}
	if (n.Op == token.LAND || n.Op == token.LOR) && f.isBool(n) {
		f.swap(n, f.text(n.X))
		f.swap(n, f.text(n.Y))
	}
	if op, ok := sums[n.Op]; ok && f.isNumber(n) {
		f.swap(n, f.text(n.X)+" "+op.String()+" "+f.text(n.Y))
	}
}

// condition is a truth that no operator makes: it is turned round.
func (f *finder) condition(e ast.Expr) {
	if id, ok := e.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
		f.swap(e, "!"+id.Name)
		return
	}
	switch e.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr, *ast.IndexExpr:
		if f.isBool(e) {
			f.swap(e, "!"+f.text(e))
		}
	}
}

// results that a function returns. Beside a false, or an error, the others are not looked at.
func (f *finder) results(list []ast.Expr) {
	for _, r := range list {
		f.condition(r)
	}
	if len(list) < 2 {
		return
	}
	last := list[len(list)-1]
	id, named := last.(*ast.Ident)
	if named && id.Name == "false" || !(named && (id.Name == "nil" || id.Name == "true")) && types.Implements(f.typeOf(last), errorType) {
		for _, r := range list[:len(list)-1] {
			f.fix(r)
		}
	}
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// caseOf is a word that a switch compares with: it is made another.
func (f *finder) caseOf(e ast.Expr) {
	if t, ok := f.typeText(e); ok && f.isText(e) && f.constant(e) {
		f.wrap(e, "case "+f.text(e)+" never", fmt.Sprintf("mutantWord[%s](%%d, ", t), ")")
	}
}

// literal is a whole number that becomes one more, or a truth that is turned round.
func (f *finder) literal(n *ast.BasicLit) {
	if t, ok := f.typeText(n); n.Kind == token.INT && ok && f.isNumber(n) && !f.fixed[n] {
		f.wrap(n, n.Value+" → "+n.Value+"+1", fmt.Sprintf("mutantOr[%s](%%d, ", t), ", "+n.Value+"+1)")
	}
}

// element is a named part of a value: it is left out. Words for people are no rule.
func (f *finder) element(n *ast.KeyValueExpr) {
	if inner, ok := n.Value.(*ast.CompositeLit); ok && inner.Type == nil {
		return // its type is what is around it
	}
	if t, ok := f.typeText(n.Value); ok && !f.isMessage(n.Value) && !f.isFunction(n.Value) {
		f.wrap(n.Value, f.text(n)+" left out", fmt.Sprintf("mutantZero[%s](%%d, ", t), ")")
	}
}

func (f *finder) call(n *ast.CallExpr) {
	id, ok := n.Fun.(*ast.Ident)
	if !ok || len(n.Args) != 2 || !f.isNumber(n) || f.constant(n) {
		return
	}
	other := map[string]string{"min": "max", "max": "min"}[id.Name]
	if other != "" {
		f.swap(n, other+"("+f.text(n.Args[0])+", "+f.text(n.Args[1])+")")
	}
}

// statements that can be left out without another becoming wrong.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.IncDecStmt:
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && f.text(call.Fun) == "panic" {
				continue // what stands behind it would need another end
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s) {
				continue
			}
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE {
				continue
			}
		default:
			continue
		}
		f.wrap(s, f.text(s)+" left out", "if mutantNot(%d) { ", " }")
	}
}

func blank(s *ast.AssignStmt) bool {
	return !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return !ok || id.Name != "_" })
}

// swap puts another text in the place of an expression, evaluated only when it counts.
func (f *finder) swap(e ast.Expr, other string) {
	t, ok := f.typeText(e)
	if !ok {
		return
	}
	f.wrap(e, f.text(e)+" → "+other, fmt.Sprintf("func() %s { if mutantNot(%%d) { return ", t), fmt.Sprintf(" }; return %s }()", other))
}

func (f *finder) wrap(n ast.Node, what, before, after string) {
	at := f.fset.Position(n.Pos())
	what = oneLine(what)
	m := mutant{file: f.name, line: at.Line, function: f.function, what: what, from: at.Offset, to: f.fset.Position(n.End()).Offset, before: before, after: after}
	for _, other := range f.found {
		if other.function == m.function && other.what == m.what {
			m.nth++
		}
	}
	f.found = append(f.found, m)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
