package model

import (
	"errors"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/ent"
)

// MarshalCursor writes a place in a list or a stream.
func MarshalCursor(c ent.Cursor) graphql.Marshaler { return c }

var errNoCursor = errors.New("this is not a cursor: send one that this list gave (a cursor of its edges, or endCursor), or none to begin at the start")

// UnmarshalCursor reads a place. Only what the API wrote is taken, to the last byte: ent's decoder leaves alone what follows a
// cursor, and would take one that was damaged on its way for another.
func UnmarshalCursor(v any) (ent.Cursor, error) {
	text, ok := v.(string)
	if !ok {
		return ent.Cursor{}, errors.New("a cursor is a text in quotes: send one as the API gave it")
	}
	var c ent.Cursor
	if err := c.UnmarshalGQL(text); err != nil || CursorText(c) != text {
		return ent.Cursor{}, errNoCursor
	}
	return c, nil
}

// CursorText is a cursor as clients see it.
func CursorText(c ent.Cursor) string {
	var b strings.Builder
	c.MarshalGQL(&b)
	return strings.Trim(b.String(), `"`)
}
