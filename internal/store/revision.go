package store

import "rouse.dev/rouse/internal/domain"

// checkRevision refuses a change of a record that was changed since the caller read it.
func checkRevision(expected *int, is int, what string) error {
	if expected == nil || *expected == is {
		return nil
	}
	return domain.RefuseField([]string{"expectedRevision"}, domain.UserErrorCodeConflict,
		"the %s was changed meanwhile: its revision is %d, not %d; read it again and decide anew", what, is, *expected)
}

func nameTaken(what, name string) error {
	return domain.RefuseField([]string{"name"}, domain.UserErrorCodeTaken, "another %s of this workspace is called %q; choose another name", what, name)
}
