package graph_test

import (
	"reflect"
	"testing"
)

// field is one fact of a record that a test compares, so that a failure names the field and not a record of twelve.
type field struct {
	name      string
	got, want any
}

func is[T any](name string, got, want T) field { return field{name, got, want} }

// holds is a fact of which only the truth counts, such as "the secret is not shown".
func holds(name string, fact bool) field { return field{name, fact, true} }

// compare fails once for each field that is not as wanted.
func compare(t testing.TB, what string, fields ...field) {
	t.Helper()
	for _, f := range fields {
		if !reflect.DeepEqual(f.got, f.want) {
			t.Errorf("%s: %s is %v, want %v", what, f.name, f.got, f.want)
		}
	}
}
