package edge

import (
	"context"
	"fmt"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
)

// gate is the gqlgen extension that bounds a document. It bounds the shape before validation, because validation takes
// quadratic time in it. It bounds cost, depth and page sizes after validation.
type gate struct {
	limits Limits
	schema *ast.Schema
	cache  graphql.Cache[*ast.QueryDocument]
}

func (gate) ExtensionName() string                   { return "Gate" }
func (gate) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationParameters checks the shape. A document in the cache has passed before.
func (g gate) MutateOperationParameters(ctx context.Context, p *graphql.RawParams) *gqlerror.Error {
	for _, v := range p.Variables {
		if deeper(v, g.limits.InputDepth) {
			return limitError("input depth", g.limits.InputDepth, 0)
		}
	}
	if n := len(p.Query); n > g.limits.DocumentBytes {
		return limitError("document bytes", g.limits.DocumentBytes, n)
	}
	if _, ok := g.cache.Get(ctx, p.Query); ok {
		return nil
	}
	if countTokens(p.Query, g.limits.Tokens) > g.limits.Tokens {
		return limitError("tokens", g.limits.Tokens, 0)
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: p.Query})
	if err != nil {
		return nil // the executor parses again and reports it
	}
	return checkShape(doc, g.limits)
}

// streams counts the fields that a subscription would start. Two aliases of one field pass validation.
func (g gate) streams(oc *graphql.OperationContext) int {
	return len(graphql.CollectFields(oc, oc.Operation.SelectionSet, []string{g.schema.Subscription.Name}))
}

// MutateOperationContext measures the operation and gives its pages their default sizes.
func (g gate) MutateOperationContext(_ context.Context, oc *graphql.OperationContext) *gqlerror.Error {
	if err := checkOneOfVariables(g.schema, oc); err != nil {
		return err
	}
	w := &costWalk{limits: g.limits, schema: g.schema, variables: oc.Variables, memo: map[string]measure{}, defaults: map[*ast.Field]int{}}
	m := w.set(oc.Operation.SelectionSet, false)
	switch {
	case w.err != nil:
		return w.err
	case m.depth == 0 && oc.Operation.Operation == ast.Subscription:
		return badInput(oc.Operation.Position, "@skip and @include leave nothing of this subscription; subscribe to one field")
	case oc.Operation.Operation == ast.Subscription && g.streams(oc) != 1:
		return badInput(oc.Operation.Position, "a subscription has one field, under one name: send each other one as an operation of its own")
	case m.depth > g.limits.Depth:
		return limitError("depth", g.limits.Depth, m.depth)
	case m.cost > g.limits.Cost:
		return limitError("cost", g.limits.Cost, m.cost)
	}
	applyPageDefaults(oc, w.defaults)
	oc.Stats.SetExtension(costExtension, OperationCost{Cost: m.cost, MaxCost: g.limits.Cost})
	return nil
}

// costExtension names what the gate notes about an operation, for CostOf.
const costExtension = "rouse.cost"

// OperationCost is what an operation was measured at, and the most that one may cost.
type OperationCost struct{ Cost, MaxCost int }

// CostOf is the cost of the operation that ctx belongs to; the zero value outside of one.
func CostOf(ctx context.Context) OperationCost {
	if !graphql.HasOperationContext(ctx) {
		return OperationCost{}
	}
	cost, _ := graphql.GetOperationContext(ctx).Stats.GetExtension(costExtension).(OperationCost)
	return cost
}

// limitError names the limit, its value and, unless zero, what was asked for.
func limitError(limit string, most, actual int) *gqlerror.Error {
	e := &Error{
		Code:       CodeLimitExceeded,
		Message:    fmt.Sprintf("the document has more than %d %s; split it into several requests", most, limit),
		Extensions: map[string]any{"limit": limit, "max": most},
	}
	switch limit {
	case "depth":
		e.Message = fmt.Sprintf("the operation nests fields deeper than %d levels; ask for the inner objects by id in a second request", most)
	case "input depth":
		e.Message = fmt.Sprintf("a value nests lists and objects deeper than %d levels; make it flatter, or send it as text", most)
	case "cost":
		e.Message = fmt.Sprintf("the operation may read too much: its cost is above %d; ask for smaller pages, or for fewer lists within lists", most)
	}
	if actual > 0 {
		e.Extensions["actual"] = actual
	}
	return e.gql()
}

func badInput(pos *ast.Position, format string, args ...any) *gqlerror.Error {
	e := (&Error{Code: CodeBadInput, Message: fmt.Sprintf(format, args...)}).gql()
	if pos != nil {
		e.Locations = []gqlerror.Location{{Line: pos.Line, Column: pos.Column}}
	}
	return e
}

// countTokens counts until one past most. A text the lexer cannot read counts up to there; the parser reports it.
func countTokens(text string, most int) int {
	lex := lexer.New(&ast.Source{Input: text})
	for n := 0; ; n++ {
		t, err := lex.ReadToken()
		if err != nil || t.Kind == lexer.EOF || n > most {
			return n
		}
	}
}

// deeper reports whether a JSON value nests lists and objects deeper than most levels.
func deeper(v any, most int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if most == 0 || deeper(member, most-1) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if most == 0 || deeper(element, most-1) {
				return true
			}
		}
	}
	return false
}

// checkShape bounds a parsed, not validated document in time linear in its size.
func checkShape(doc *ast.QueryDocument, l Limits) *gqlerror.Error {
	if n := len(doc.Fragments); n > l.Fragments {
		return limitError("fragments", l.Fragments, n)
	}
	s := &shape{limits: l, repeats: map[string]int{}}
	for _, op := range doc.Operations {
		s.directives(op.Directives)
		for _, v := range op.VariableDefinitions {
			s.value(v.DefaultValue, 0)
			s.directives(v.Directives)
		}
		s.set(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		s.directives(f.Directives)
		s.set(f.SelectionSet)
	}
	if s.err != nil {
		return s.err
	}
	return checkRootFields(doc, l)
}

// shape walks each definition once and remembers the first breach.
type shape struct {
	limits  Limits
	aliases int
	repeats map[string]int // by response name
	err     *gqlerror.Error
}

func (s *shape) fail(err *gqlerror.Error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *shape) set(set ast.SelectionSet) {
	if n := len(set); n > s.limits.Selections {
		s.fail(limitError("selections in one set", s.limits.Selections, n))
	}
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			s.field(sel)
		case *ast.InlineFragment:
			s.directives(sel.Directives)
			s.set(sel.SelectionSet)
		case *ast.FragmentSpread:
			s.directives(sel.Directives)
		}
	}
}

func (s *shape) field(f *ast.Field) {
	if s.repeats[f.Alias]++; s.repeats[f.Alias] > s.limits.Repeats {
		s.fail(limitError("fields of one name", s.limits.Repeats, 0))
	}
	if f.Alias != f.Name {
		if s.aliases++; s.aliases > s.limits.Aliases {
			s.fail(limitError("aliases", s.limits.Aliases, 0))
		}
	}
	for _, a := range f.Arguments {
		s.value(a.Value, 0)
	}
	s.directives(f.Directives)
	s.set(f.SelectionSet)
}

// directives refuses incremental delivery: gqlgen would start it, and no transport here carries it.
func (s *shape) directives(list ast.DirectiveList) {
	for _, d := range list {
		if d.Name == "defer" || d.Name == "stream" {
			s.fail(badInput(d.Position, "@%s is not served here; send a second request for the slow part", d.Name))
		}
		for _, a := range d.Arguments {
			s.value(a.Value, 0)
		}
	}
}

// value refuses numbers that Go cannot hold, since gqlgen panics on them, and literals that nest too deep.
func (s *shape) value(v *ast.Value, depth int) {
	if v == nil {
		return
	}
	if depth > s.limits.InputDepth {
		s.fail(limitError("input depth", s.limits.InputDepth, 0))
		return
	}
	var err error
	switch v.Kind {
	case ast.IntValue:
		_, err = strconv.ParseInt(v.Raw, 10, 64)
	case ast.FloatValue:
		_, err = strconv.ParseFloat(v.Raw, 64)
	}
	if err != nil {
		s.fail(badInput(v.Position, "a number in the document is out of range; numbers have 64 bits here"))
	}
	for _, c := range v.Children {
		s.value(c.Value, depth+1)
	}
}

// checkRootFields counts the fields of each operation's first level, through fragments.
func checkRootFields(doc *ast.QueryDocument, l Limits) *gqlerror.Error {
	c := rootCount{fragments: map[string]*ast.FragmentDefinition{}, memo: map[string]int{}, most: l.RootFields + 1}
	for _, f := range doc.Fragments {
		c.fragments[f.Name] = f
	}
	for _, op := range doc.Operations {
		n := c.count(op.SelectionSet)
		if op.Operation == ast.Mutation && n > l.Mutations {
			return limitError("mutations", l.Mutations, 0)
		}
		if n > l.RootFields {
			return limitError("root fields", l.RootFields, 0)
		}
	}
	return nil
}

// rootCount counts each fragment once and saturates at most. A fragment inside itself counts as nothing; validation refuses it.
type rootCount struct {
	fragments map[string]*ast.FragmentDefinition
	memo      map[string]int
	most      int
}

func (c rootCount) count(set ast.SelectionSet) int {
	n := 0
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			n++
		case *ast.InlineFragment:
			n += c.count(sel.SelectionSet)
		case *ast.FragmentSpread:
			n += c.spread(sel.Name)
		}
		n = min(n, c.most)
	}
	return n
}

func (c rootCount) spread(name string) int {
	if n, ok := c.memo[name]; ok {
		return n
	}
	c.memo[name] = 0
	if f := c.fragments[name]; f != nil {
		c.memo[name] = c.count(f.SelectionSet)
	}
	return c.memo[name]
}
