package graph

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/xid"
)

const (
	pageDefault = 25
	pageMax     = 100
	eventsMax   = 200
	logsMax     = 500
)

// page is what a connection was asked for. Exactly one of first and last is set. branches are those of its filter.
type page struct {
	after, before *ent.Cursor
	first, last   *int
	branches      []branch
}

// pageOf checks the arguments of a connection. The edge has checked the sizes before; a list has a bound here as well, so
// that none is ever without one.
func pageOf(most int, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (page, error) {
	if first != nil && last != nil {
		return page{}, badInput("a page is asked for by first or by last, not by both")
	}
	if first == nil && last == nil {
		first = new(min(pageDefault, most))
	}
	for _, n := range []*int{first, last} {
		if n != nil && (*n < 1 || *n > most) {
			return page{}, badInput("a page has 1..%d rows, %d were asked for", most, *n)
		}
	}
	return page{after: after, before: before, first: first, last: last}, nil
}

// order says what kind of value the cursors of an order carry: a cursor of another order must not be read as one of this.
type order int

const (
	byID     order = iota // the id alone
	byText                // a text, then the id
	byTime                // an instant, then the id
	byNumber              // a number as its digits, then the id
)

// check refuses cursors that another order made.
func (p page) check(o order) error {
	for _, c := range []*ent.Cursor{p.after, p.before} {
		if c != nil && !o.fits(*c) {
			return badInput("the cursor belongs to another list or another order; take one of this list, or begin without one")
		}
	}
	return nil
}

func (o order) fits(c ent.Cursor) bool {
	if c.ID == "" || !plain(string(c.ID)) {
		return false
	}
	switch v := c.Value.(type) {
	case nil:
		return o == byID
	case string:
		return o == byText && plain(v) || o == byNumber && isNumber(v)
	case time.Time:
		return o == byTime && v.Year() > 0 && v.Year() < 10_000 // a column has no other years
	}
	return false
}

// isNumber says whether a text is a number as an order's cursors have it: digits, with a fraction or none.
func isNumber(s string) bool {
	whole, fraction, _ := strings.Cut(s, ".")
	return len(whole) > 0 && len(s) <= 30 && strings.Trim(whole+fraction, "0123456789") == "" && !strings.HasSuffix(s, ".")
}

// plain says whether PostgreSQL can take the text: valid UTF-8 without NUL.
func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// checkText refuses a text that PostgreSQL could not take.
func checkText(name string, s *string) error {
	if s != nil && !plain(*s) {
		return badInput("%s holds a character that no stored text can hold", name)
	}
	return nil
}

// withSelection hides the caller's selection from entgql and shows it one of these fields. entgql reads selections by alias
// and takes the columns of the last alias for all of them, so that `list: edges {…}` came back empty and two aliases of one
// edge came back with blank columns. What is in a row is read whole instead (runs: see narrowed), and edges go through loaders.
func withSelection(ctx context.Context, names ...string) context.Context {
	set := make(ast.SelectionSet, len(names))
	for i, name := range names {
		set[i] = &ast.Field{Name: name, Alias: name}
	}
	return graphql.WithFieldContext(ctx, &graphql.FieldContext{
		Field: graphql.CollectedField{Field: &ast.Field{}, Selections: set},
	})
}

// forNode is ctx for entgql's Noder: it makes it read every column and no edge.
func forNode(ctx context.Context) context.Context { return withSelection(ctx, "*") }

// asksFor says whether the field being resolved has a selection of this name, whatever its alias.
func asksFor(ctx context.Context, name string) bool {
	fc := graphql.GetFieldContext(ctx)
	if fc == nil {
		return false
	}
	itself := []string{fc.Field.Definition.Type.Name()} // fragments on the type of the field count as well
	for _, f := range graphql.CollectFields(graphql.GetOperationContext(ctx), fc.Field.Selections, itself) {
		if f.Name == name {
			return true
		}
	}
	return false
}

// visible turns an id that is not there, or not the caller's, into null.
func visible[T any](row *T, err error) (*T, error) {
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return row, err
}

// valueOf is what a pointer points at, or the zero value.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func idOf(p *xid.ID) xid.ID { return valueOf(p) }
