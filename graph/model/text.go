package model

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
)

// MarshalText writes a text.
func MarshalText(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalText reads a text of an input. A number or truth value is none: what would be made of it is not what was sent.
func UnmarshalText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case nil:
		return "", nil
	}
	return "", fmt.Errorf("send a text in quotes, not %s", kindOf(v))
}

// MarshalTruth writes a Boolean.
func MarshalTruth(b bool) graphql.Marshaler { return graphql.MarshalBoolean(b) }

// UnmarshalTruth reads a Boolean of an input, and no text or number for it.
func UnmarshalTruth(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case nil:
		return false, nil
	}
	return false, fmt.Errorf("send true or false without quotes, not %s", kindOf(v))
}

// MarshalDecimal writes an exact number as a text.
func MarshalDecimal(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalDecimal reads an exact number of an input. A number without quotes is taken by its digits, since workers report
// costs so; whether the digits are those of a decimal number is for the field to say.
func UnmarshalDecimal(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	case int64: // from the document itself, as the next
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case nil:
		return "", nil
	}
	return "", fmt.Errorf("send a decimal number as a text in quotes, e.g. \"12.345\", not %s", kindOf(v))
}

// kindOf names the kind of a value that a caller sent, not the value, which may be long or a secret.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case json.Number, int, int32, int64, float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
