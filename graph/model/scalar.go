package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/internal/domain"
)

// dateTimeLayout is RFC 3339 with milliseconds; instants are written in UTC.
const dateTimeLayout = "2006-01-02T15:04:05.000Z07:00"

// MarshalDateTime writes an instant in UTC, with milliseconds.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(dateTimeLayout)))
	})
}

// UnmarshalDateTime reads an RFC 3339 instant with any offset. It comes in UTC, since the database does not know offsets of
// 16 hours and more.
func UnmarshalDateTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, errors.New("a DateTime is a text in quotes: send RFC 3339, e.g. \"2026-04-25T09:00:00.000Z\"")
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a DateTime: want RFC 3339, e.g. 2026-04-25T09:00:00.000Z", clip(s))
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 { // by its offset, too
		return time.Time{}, fmt.Errorf("%q is out of range: in UTC the year of a DateTime is 0001 to 9999", clip(s))
	}
	return t, nil
}

// MarshalJSONObject writes a JSON object; nil is null.
func MarshalJSONObject(v map[string]any) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("null") // cannot happen: the values come out of JSON
		}
		_, _ = w.Write(text)
	})
}

// UnmarshalJSONObject reads a JSON object. Numbers from variables stay json.Number; one that no float64 holds is an error, since the
// database could not store it.
func UnmarshalJSONObject(v any) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("a JSONObject is an object, not a list or a single value: send e.g. {\"branch\": \"main\"}")
	}
	if n := outOfRange(m); n != "" {
		return nil, fmt.Errorf("the number %s is out of range: send it as a text in quotes", clip(n))
	}
	return m, nil
}

// outOfRange is a number in a JSON value that needs more than 64 bits; "" when all numbers fit.
func outOfRange(v any) string {
	switch v := v.(type) {
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return string(v)
		}
	case map[string]any:
		for _, member := range v {
			if n := outOfRange(member); n != "" {
				return n
			}
		}
	case []any:
		for _, element := range v {
			if n := outOfRange(element); n != "" {
				return n
			}
		}
	}
	return ""
}

// clip keeps an error short that quotes what a caller sent.
func clip(s string) string { return domain.ClipText(s, 60) }
