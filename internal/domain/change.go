package domain

// Change is what an update does to one field: nothing, unless Set; else it gives it Value, or clears it when Value is nil.
type Change[T any] struct {
	Set   bool
	Value *T
}

// To is a change that gives a field a value.
func To[T any](v T) Change[T] { return Change[T]{Set: true, Value: &v} }

// Or is the field after the change: old when it stays, cleared when it is cleared.
func (c Change[T]) Or(old, cleared T) T {
	switch {
	case !c.Set:
		return old
	case c.Value == nil:
		return cleared
	}
	return *c.Value
}

// OrNil is a field that may be empty after the change.
func (c Change[T]) OrNil(old *T) *T {
	if !c.Set {
		return old
	}
	return c.Value
}

// differences are the names of fields that became different, in the API's spelling.
type differences []string

func (d *differences) add(field string, different bool) {
	if different {
		*d = append(*d, field)
	}
}

// sameValue compares two values that may be absent.
func sameValue[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
