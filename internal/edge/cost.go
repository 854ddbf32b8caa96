package edge

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// costWalk measures a validated operation. The cost of a field is n × (weight + cost of its selections). The weight is
// that of @cost, else 1 for an object and 0 for a leaf. n is the page size for first and last, or the argument that
// @cost calls multiplier (a number, or the length of a list). For any other list of objects n is ListSize, else 1. A
// page costs pageCost more, since it is a statement of its own for each of its parents. Introspection has fixed costs.
// Fields that @skip and @include leave out are free. Each fragment is measured once, whatever the number of its
// spreads. On the way the walk holds pages to their bounds and notes where a default is due.
type costWalk struct {
	limits    Limits
	schema    *ast.Schema
	variables map[string]any
	memo      map[string]measure
	defaults  map[*ast.Field]int
	err       *gqlerror.Error
}

// measure is what one selection adds.
type measure struct{ cost, depth int }

const (
	costCeiling = math.MaxInt32
	pageCost    = 10
	// Introspection answers with the whole schema, up to 30 aliases wide: a few of them fit into one operation.
	schemaCost = 1000
	typeCost   = 100
)

func addCost(a, b int) int { return min(a+b, costCeiling) }

func mulCost(a, b int) int {
	if a > 0 && b > costCeiling/a {
		return costCeiling
	}
	return a * b
}

func (w *costWalk) fail(err *gqlerror.Error) {
	if w.err == nil {
		w.err = err
	}
}

// set measures a selection set; inPage says that its lists are already counted by the connection they belong to.
func (w *costWalk) set(set ast.SelectionSet, inPage bool) (total measure) {
	for _, sel := range set {
		var m measure
		switch sel := sel.(type) {
		case *ast.Field:
			if w.included(sel.Directives) {
				m = w.field(sel, inPage)
			}
		case *ast.InlineFragment:
			if w.included(sel.Directives) {
				m = w.set(sel.SelectionSet, inPage)
			}
		case *ast.FragmentSpread:
			if w.included(sel.Directives) {
				m = w.spread(sel, inPage)
			}
		}
		if w.err != nil {
			return measure{}
		}
		total = measure{addCost(total.cost, m.cost), max(total.depth, m.depth)}
	}
	return total
}

// spread measures a fragment once. Whether it is in a page follows from its type, so the memo needs no more than its name.
func (w *costWalk) spread(s *ast.FragmentSpread, inPage bool) measure {
	m, ok := w.memo[s.Name]
	if !ok {
		m = w.set(s.Definition.SelectionSet, inPage)
		w.memo[s.Name] = m
	}
	return m
}

func (w *costWalk) field(f *ast.Field, inPage bool) measure {
	switch {
	case f.Name == "__schema":
		return measure{cost: schemaCost}
	case f.Name == "__type":
		return measure{cost: typeCost}
	case f.Definition == nil || strings.HasPrefix(f.Name, "__"):
		return measure{}
	}
	w.checkOneOfArguments(f)
	n := w.multiplier(f, inPage)
	if w.err != nil {
		return measure{}
	}
	inner := w.set(f.SelectionSet, isConnection(f.Definition.Type))
	cost := mulCost(n, addCost(weight(f), inner.cost))
	if isConnection(f.Definition.Type) {
		cost = addCost(cost, pageCost)
	}
	return measure{cost, inner.depth + 1}
}

// weight is the cost of one value of the field itself.
func weight(f *ast.Field) int {
	if d := f.Definition.Directives.ForName("cost"); d != nil {
		if n, ok := literalInt(d, "weight"); ok {
			return n
		}
	}
	if len(f.SelectionSet) == 0 {
		return 0
	}
	return 1
}

// multiplier says how many values the field may have.
func (w *costWalk) multiplier(f *ast.Field, inPage bool) int {
	if f.Definition.Arguments.ForName("first") != nil || f.Definition.Arguments.ForName("last") != nil {
		return w.pageSize(f)
	}
	if d := f.Definition.Directives.ForName("cost"); d != nil {
		if a := d.Arguments.ForName("multiplier"); a != nil && a.Value.Kind == ast.StringValue {
			return w.size(f, a.Value.Raw)
		}
	}
	if f.Definition.Type.Elem != nil && len(f.SelectionSet) > 0 && !inPage {
		return w.limits.ListSize
	}
	return 1
}

// size is the number in, or the length of, the argument; 1 when it is absent.
func (w *costWalk) size(f *ast.Field, name string) int {
	v, err := w.argument(f, name)
	if err != nil {
		w.fail(err)
		return 0
	}
	if list, ok := v.([]any); ok {
		return len(list)
	}
	if n, ok := wholeNumber(v); ok {
		return min(max(n, 0), costCeiling)
	}
	return 1
}

// argument is the value the resolver will see, nil when absent; it follows gqlparser's Field.ArgumentMap, which panics where this fails.
func (w *costWalk) argument(f *ast.Field, name string) (any, *gqlerror.Error) {
	def := f.Definition.Arguments.ForName(name)
	value := (*ast.Value)(nil)
	if a := f.Arguments.ForName(name); a != nil {
		value = a.Value
	}
	if value != nil && value.Kind == ast.Variable {
		if v, ok := w.variables[value.Raw]; ok {
			return v, nil
		}
		value = nil
	}
	if value == nil && def != nil {
		value = def.DefaultValue
	}
	v, err := value.Value(w.variables)
	if err != nil {
		return nil, badInput(f.Position, "argument %s of %s is out of range", name, f.Name)
	}
	return v, nil
}

// included applies @skip and @include. Where the condition is null, which a nullable variable with a default lets through, gqlgen would panic.
func (w *costWalk) included(list ast.DirectiveList) bool {
	in := true
	for _, d := range list {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		a := d.Arguments.ForName("if")
		if a == nil {
			continue
		}
		v, err := a.Value.Value(w.variables)
		cond, ok := v.(bool)
		if err != nil || !ok {
			w.fail(badInput(d.Position, "the condition of @%s must be true or false, not null", d.Name))
			return false
		}
		in = in && cond == (d.Name == "include")
	}
	return in
}

// wholeNumber reads the forms in which gqlgen and its variables carry an Int.
func wholeNumber(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case int64:
		return int(v), true
	case json.Number:
		n, err := strconv.Atoi(string(v))
		return n, err == nil
	case string:
		n, err := strconv.Atoi(v)
		return n, err == nil
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < costCeiling
	}
	return 0, false
}

// literalInt reads an argument of a directive in the schema.
func literalInt(d *ast.Directive, name string) (int, bool) {
	a := d.Arguments.ForName(name)
	if a == nil || a.Value.Kind != ast.IntValue {
		return 0, false
	}
	n, err := strconv.Atoi(a.Value.Raw)
	return n, err == nil
}

func isConnection(t *ast.Type) bool { return strings.HasSuffix(t.Name(), "Connection") }
