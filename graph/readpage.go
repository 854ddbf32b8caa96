package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/xid"
)

// rowsQuery is what ent generates for the rows N of a table.
type rowsQuery[Q, N any, P, O ~func(*sql.Selector)] interface {
	Where(...P) Q
	Order(...O) Q
	Limit(int) Q
	Clone() Q
	All(context.Context) ([]*N, error)
	Count(context.Context) (int, error)
	Exist(context.Context) (bool, error)
}

// ordering is the order of a connection's rows: by a column that is never null, or by an expression that never is, then by id.
type ordering struct {
	kind   order
	column string // empty: by id alone, unless there is an expression
	desc   bool
	expr   string // in SQL; {t} stands for the table
}

// inOrderMade is the order of lists by id alone: ids sort as they were made.
var inOrderMade = ordering{kind: byID}

// orderedBy reads an order that the caller may choose; its fields are named as their columns are, in upper case. Without a
// field it is by id.
func orderedBy(direction entgql.OrderDirection, field fmt.Stringer) ordering {
	o := ordering{kind: byTime, column: strings.ToLower(field.String()), desc: direction == entgql.OrderDirectionDesc}
	switch o.column {
	case "":
		o.kind = byID
	case "name":
		o.kind = byText
	}
	return o
}

// pageRead is a page of rows, and what its connection says of it.
type pageRead[N any] struct {
	rows  []*N
	info  ent.PageInfo
	total int // 0 unless the caller asked for totalCount
}

// readPage reads one page of q's rows, which at gives the cursors of. It takes one statement, one more for totalCount, and one
// more where the row of the cursor that it starts at is gone. narrow lets the query of the rows read fewer columns.
func readPage[Q rowsQuery[Q, N, P, O], N any, P, O ~func(*sql.Selector)](ctx context.Context, q Q, p page, by ordering, at func(*N) ent.Cursor, narrow ...func(Q)) (out pageRead[N], err error) {
	if err := p.check(by.kind); err != nil {
		return out, err
	}
	if asksFor(ctx, "totalCount") {
		if out.total, err = q.Clone().Where(anyBranch(p.branches)).Count(ctx); err != nil {
			return out, fmt.Errorf("count the rows of a list: %w", err)
		}
	}
	within := q.Clone()
	for _, where := range by.within(p) {
		within.Where(where)
	}
	within.Where(by.branched(p.branches, p.reach(), p.last != nil))
	for _, term := range by.terms(p.last != nil) {
		within.Order(term)
	}
	for _, read := range narrow { // last, because a count has no columns
		read(within)
	}
	rows, err := within.Limit(p.reach()).All(ctx)
	if err != nil {
		return out, fmt.Errorf("read a page of a list: %w", err)
	}
	rows, met, more := cut(p, rows, at)
	if start := p.start(); start != nil && !met {
		if met, err = q.Clone().Where(by.beside(*start, p.last == nil)).Where(by.branched(p.branches, 1, p.last != nil)).Exist(ctx); err != nil {
			return out, fmt.Errorf("look before the start of a page: %w", err)
		}
	}
	return pageRead[N]{rows, infoOf(p, rows, at, met, more), out.total}, nil
}

// start is the cursor at which the reading of a page starts: after it for a page from the beginning, before it for a
// page from the end.
func (p page) start() *ent.Cursor {
	if p.last != nil {
		return p.before
	}
	return p.after
}

// size is how many rows the page may have.
func (p page) size() int {
	if p.last != nil {
		return *p.last
	}
	return *p.first
}

// reach is how many rows are read for a page: one more says whether others follow, and the start's row whether others precede.
func (p page) reach() int {
	if p.start() == nil {
		return p.size() + 1
	}
	return p.size() + 2
}

// cut takes a page out of the rows that were read from its start on, and gives them in the order of the list. It says whether
// the row of the start was met, and whether more rows follow in the direction of the reading. It is the algorithm of Relay's
// cursor connections, but that a cursor whose row is gone still stands for its place.
func cut[R any](p page, rows []R, at func(R) ent.Cursor) (out []R, met, more bool) {
	if start := p.start(); start != nil && len(rows) > 0 && samePlace(*start, at(rows[0])) {
		rows, met = rows[1:], true
	}
	if more = len(rows) > p.size(); more {
		rows = rows[:p.size()]
	}
	if p.last != nil {
		rows = slices.Clone(rows)
		slices.Reverse(rows)
	}
	return rows, met, more
}

// samePlace compares places as the database does, which knows microseconds.
func samePlace(a, b ent.Cursor) bool {
	if a.ID != b.ID {
		return false
	}
	s, isTime := a.Value.(time.Time)
	t, areBoth := b.Value.(time.Time)
	if isTime && areBoth {
		return s.Round(time.Microsecond).Equal(t.Round(time.Microsecond))
	}
	return a.Value == b.Value
}

// infoOf describes a page: passed says that rows lie before the place where its reading started, more that others follow where
// it ended. What lies beyond the other cursor is not part of what was asked for.
func infoOf[R any](p page, rows []R, at func(R) ent.Cursor, passed, more bool) ent.PageInfo {
	info := ent.PageInfo{HasPreviousPage: passed, HasNextPage: more}
	if p.last != nil {
		info = ent.PageInfo{HasPreviousPage: more, HasNextPage: passed}
	}
	if len(rows) > 0 {
		info.StartCursor, info.EndCursor = new(at(rows[0])), new(at(rows[len(rows)-1]))
	}
	return info
}

// within are the conditions of the page's cursors. The place where the reading starts is included, since its row says that
// there is something before the page.
func (o ordering) within(p page) (out []func(*sql.Selector)) {
	bound := func(c *ent.Cursor, forward bool) {
		if c == nil {
			return
		}
		out = append(out, o.place(*c, o.operator(forward, c == p.start())))
	}
	bound(p.after, true)
	bound(p.before, false)
	return out
}

// beside is the condition of rows on the other side of a cursor than the page: before it for one that reads forwards.
func (o ordering) beside(c ent.Cursor, forward bool) func(*sql.Selector) {
	return o.place(c, o.operator(!forward, true))
}

// operator compares with a place: what comes after it in the list, or before, and itself or not.
func (o ordering) operator(after, itself bool) string {
	sign := " < "
	if after != o.desc {
		sign = " > "
	}
	if itself {
		sign = strings.TrimRight(sign, " ") + "= "
	}
	return sign
}

// place is a condition on a row's place in the order, as one comparison of rows, so that an index serves it.
func (o ordering) place(c ent.Cursor, operator string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			if o.column == "" && o.expr == "" {
				b.Ident(s.C("id")).WriteString(operator).Arg(c.ID)
				return
			}
			b.Wrap(func(b *sql.Builder) { b.WriteString(o.key(s)).Comma().Ident(s.C("id")) }).WriteString(operator).
				Wrap(func(b *sql.Builder) { b.Args(c.Value, c.ID) })
		}))
	}
}

// key is what the order compares first, as SQL of a statement's table.
func (o ordering) key(s *sql.Selector) string {
	if o.expr == "" {
		return s.C(o.column)
	}
	return strings.ReplaceAll(o.expr, "{t}", strings.TrimSuffix(s.C("id"), `."id"`))
}

// terms order the rows as they are read.
func (o ordering) terms(backwards bool) (out []func(*sql.Selector)) {
	direction := sql.Asc
	if o.desc != backwards {
		direction = sql.Desc
	}
	return []func(*sql.Selector){func(s *sql.Selector) {
		switch {
		case o.expr != "" && o.desc != backwards:
			s.OrderExpr(sql.Expr(o.key(s) + " DESC"))
		case o.expr != "":
			s.OrderExpr(sql.Expr(o.key(s)))
		case o.column != "":
			s.OrderBy(direction(s.C(o.column)))
		}
		s.OrderBy(direction(s.C("id")))
	}}
}

// edges makes a connection's edges; the list is never nil.
func edges[R, E any](rows []R, edge func(R) *E) []*E {
	out := make([]*E, len(rows))
	for i, row := range rows {
		out[i] = edge(row)
	}
	return out
}

// idCursor is the place of a row in a list by id.
func idCursor(id xid.ID) ent.Cursor { return ent.Cursor{ID: id} }
