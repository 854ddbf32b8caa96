package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
)

// MarshalInt writes an Int.
func MarshalInt(n int) graphql.Marshaler { return graphql.MarshalInt(n) }

// UnmarshalInt reads an Int of an input: a whole number of 32 bits, as GraphQL has it. A larger one is an error and not
// what would be left of it.
func UnmarshalInt(v any) (int, error) {
	n, err := UnmarshalInt64(v)
	return int(n), err
}

// MarshalInt64 writes an Int whose field has 64 bits.
func MarshalInt64(n int64) graphql.Marshaler { return graphql.MarshalInt64(n) }

// UnmarshalInt64 reads an Int into a field that has 64 bits; the bounds are those of UnmarshalInt.
func UnmarshalInt64(v any) (int64, error) {
	if v == nil {
		return 0, nil
	}
	text := fmt.Sprint(v)
	switch v.(type) {
	case int, int32, int64, float64, json.Number:
	default:
		return 0, fmt.Errorf("%s is not a whole number: send digits without quotes", kindOf(v))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (n < math.MinInt32 || n > math.MaxInt32):
		return 0, fmt.Errorf("%.40s is too large: an Int has 32 bits, from %d to %d", text, math.MinInt32, math.MaxInt32)
	case err != nil:
		return 0, fmt.Errorf("%.40s is not a whole number", text)
	}
	return n, nil
}

// MarshalBigInt writes a whole number as digits.
func MarshalBigInt(n int64) graphql.Marshaler { return graphql.MarshalInt64(n) }

// UnmarshalBigInt reads a whole number of 64 bits.
func UnmarshalBigInt(v any) (int64, error) {
	if v == nil {
		return 0, nil
	}
	switch v.(type) {
	case int, int32, int64, json.Number:
	default:
		return 0, fmt.Errorf("%s is not a whole number of 64 bits: send digits without quotes", kindOf(v))
	}
	n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s is not a whole number of 64 bits", fmt.Sprint(v))
	}
	return n, nil
}
