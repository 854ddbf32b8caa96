// Package testgraph is the small schema the tests of package edge run against: real generated gqlgen code, so that the edge is tried with the
// executor it will meet, and resolvers that fail, panic, stall and stream on request.
package testgraph

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Item is a row; its children and siblings never end.
type Item struct{ ID, Name string }

// Instant is a scalar whose parser refuses what is not RFC 3339.
type Instant time.Time

// UnmarshalGQL parses an RFC 3339 string.
func (i *Instant) UnmarshalGQL(v any) error {
	s, ok := v.(string)
	if !ok {
		return errors.New("an Instant is a string")
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("an Instant is written like 2026-04-25T09:00:00Z")
	}
	*i = Instant(t)
	return nil
}

// MarshalGQL writes RFC 3339.
func (i Instant) MarshalGQL(w io.Writer) {
	_, _ = io.WriteString(w, strconv.Quote(time.Time(i).Format(time.RFC3339)))
}
