package model

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAnIntHas32Bits(t *testing.T) {
	for _, c := range []struct {
		name    string
		in      any
		want    int
		problem string
	}{
		{"absent", nil, 0, ""},
		{"a literal", int64(-7), -7, ""},
		{"a variable", json.Number("2147483647"), 2147483647, ""},
		{"the smallest", json.Number("-2147483648"), -2147483648, ""},
		{"one more than the largest", json.Number("2147483648"), 0, "an Int has 32 bits"},
		{"a literal beyond the bounds", int64(1) << 40, 0, "an Int has 32 bits"},
		{"beyond 64 bits", json.Number("99999999999999999999"), 0, "an Int has 32 bits"},
		{"a fraction", json.Number("1.5"), 0, "not a whole number"},
		{"a text", "5", 0, "not a whole number"},
		{"a truth", true, 0, "not a whole number"},
	} {
		got, err := UnmarshalInt(c.in)
		if got != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %d, %v, want %d and %q", c.name, got, err, c.want, c.problem)
		}
	}
}

func TestABigIntIsWrittenAsDigitsAndReadWhole(t *testing.T) {
	var out strings.Builder
	MarshalBigInt(1_000_000_000_000_000).MarshalGQL(&out)
	if out.String() != "1000000000000000" {
		t.Errorf("written %s", out.String())
	}
	if n, err := UnmarshalBigInt(json.Number("9223372036854775807")); err != nil || n != 9223372036854775807 {
		t.Errorf("read %d, %v", n, err)
	}
	for _, v := range []any{json.Number("9223372036854775808"), json.Number("1.5"), "x", true} {
		if n, err := UnmarshalBigInt(v); err == nil || !strings.Contains(err.Error(), "64 bits") {
			t.Errorf("%v is read as %d, %v", v, n, err)
		}
	}
}
