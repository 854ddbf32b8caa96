package edge

import (
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// pageSize checks a field with first or last by the rule of pages, and returns how many rows it asks for. first and
// last exclude each other, and neither may be below 1. A page (@page, or a type …Connection) has a largest size, and a
// default for when neither is given.
func (w *costWalk) pageSize(f *ast.Field) int {
	first, hasFirst := w.bound(f, "first")
	last, hasLast := w.bound(f, "last")
	fallback, most, paged := w.page(f)
	switch n := first + last; { // at most one of them is not zero, or both are refused
	case w.err != nil:
		return 0
	case hasFirst && hasLast:
		w.fail(badInput(f.Position, "%s takes first or last, not both", f.Name))
	case !hasFirst && !hasLast && paged:
		w.defaults[f] = fallback
		return fallback
	case !hasFirst && !hasLast:
		return w.limits.ListSize
	case paged && n > most:
		w.fail(badInput(f.Position, "%s gives at most %d rows at once, %d were asked for; read on with after or before", f.Name, most, n))
	default:
		return min(n, costCeiling)
	}
	return 0
}

// bound reads first or last; null is as good as absent.
func (w *costWalk) bound(f *ast.Field, name string) (n int, given bool) {
	v, err := w.argument(f, name)
	if err != nil {
		w.fail(err)
		return 0, false
	}
	if v == nil {
		return 0, false
	}
	n, ok := wholeNumber(v)
	if !ok {
		w.fail(badInput(f.Position, "%s of %s must be a whole number", name, f.Name))
	} else if n < 1 {
		w.fail(badInput(f.Position, "%s of %s must be at least 1; leave it out for the default", name, f.Name))
	}
	return n, true
}

// page reads @page; a Connection without it has the general bounds.
func (w *costWalk) page(f *ast.Field) (fallback, most int, paged bool) {
	d := f.Definition.Directives.ForName("page")
	if d == nil {
		return w.limits.PageDefault, w.limits.PageMax, isConnection(f.Definition.Type)
	}
	fallback, most = w.limits.PageDefault, w.limits.PageMax
	if n, ok := literalInt(d, "max"); ok {
		most = n
	}
	if n, ok := literalInt(d, "default"); ok {
		fallback = n
	}
	return min(fallback, most), most, true
}

// applyPageDefaults writes the default sizes into the operation, so that every reader of the arguments sees them: gqlgen's resolvers and entgql's eager
// loading of nested edges alike. The document may be in the cache and in use by others, so what changes is copied.
func applyPageDefaults(oc *graphql.OperationContext, defaults map[*ast.Field]int) {
	if len(defaults) == 0 {
		return
	}
	c := copier{defaults: defaults, fragments: map[*ast.FragmentDefinition]*ast.FragmentDefinition{}}
	op := *oc.Operation
	op.SelectionSet = c.set(op.SelectionSet)
	doc := *oc.Doc
	doc.Operations = slices.Clone(doc.Operations)
	doc.Operations[slices.Index(doc.Operations, oc.Operation)] = &op
	doc.Fragments = slices.Clone(doc.Fragments)
	for i, f := range doc.Fragments {
		if changed := c.fragments[f]; changed != nil {
			doc.Fragments[i] = changed
		}
	}
	oc.Doc, oc.Operation = &doc, &op
}

// copier copies selections; each fragment once.
type copier struct {
	defaults  map[*ast.Field]int
	fragments map[*ast.FragmentDefinition]*ast.FragmentDefinition
}

func (c copier) set(set ast.SelectionSet) ast.SelectionSet {
	if set == nil {
		return nil
	}
	out := make(ast.SelectionSet, len(set))
	for i, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			out[i] = c.field(sel)
		case *ast.InlineFragment:
			f := *sel
			f.SelectionSet = c.set(sel.SelectionSet)
			out[i] = &f
		case *ast.FragmentSpread:
			s := *sel
			s.Definition = c.fragment(sel.Definition)
			out[i] = &s
		}
	}
	return out
}

func (c copier) fragment(f *ast.FragmentDefinition) *ast.FragmentDefinition {
	if out := c.fragments[f]; out != nil {
		return out
	}
	out := *f
	out.SelectionSet = c.set(f.SelectionSet)
	c.fragments[f] = &out
	return &out
}

func (c copier) field(f *ast.Field) *ast.Field {
	out := *f
	out.SelectionSet = c.set(f.SelectionSet)
	size, ok := c.defaults[f]
	if !ok {
		return &out
	}
	name := "first"
	if f.Definition.Arguments.ForName(name) == nil {
		name = "last"
	}
	def := f.Definition.Arguments.ForName(name)
	value := &ast.Value{Raw: strconv.Itoa(size), Kind: ast.IntValue, Position: f.Position, ExpectedType: def.Type}
	out.Arguments = slices.DeleteFunc(slices.Clone(f.Arguments), func(a *ast.Argument) bool { return a.Name == name })
	out.Arguments = append(out.Arguments, &ast.Argument{Name: name, Value: value, Position: f.Position})
	return &out
}
