// Package domain holds Rouse's vocabulary and its decisions. Every rule here is a pure function: facts and an instant
// in, a decision out. It imports nothing of ours and nothing that reads a clock, a database, a file or the network.
package domain

//go:generate go run enumgen.go

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

func enumValues[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func marshalEnum[T ~string](w io.Writer, v T) { _, _ = io.WriteString(w, strconv.Quote(string(v))) }

func unmarshalEnum[T ~string](dst *T, in any, values []T) error {
	s, ok := in.(string)
	if !ok {
		return fmt.Errorf("send one of %s", strings.Join(enumValues(values), ", "))
	}
	if !slices.Contains(values, T(s)) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(enumValues(values), ", "))
	}
	*dst = T(s)
	return nil
}
