package store

import (
	"errors"

	"rouse.dev/rouse/internal/postgres"
)

// listError says that what there is to do could not be listed.
type listError struct {
	what string
	err  error
}

// Error says what could not be listed, and why.
func (e *listError) Error() string { return "list " + e.what + ": " + e.err.Error() }

// Unwrap is the cause.
func (e *listError) Unwrap() error { return e.err }

// Disconnected says of an error that the database could not be asked, so that nothing else can be.
func Disconnected(err error) bool { return postgres.Away(err) }

// CutShort says of an error of Claim that it kept everything from being claimed. Without it the error is about the lanes
// that it names, and the others were served.
func CutShort(err error) bool {
	_, unlisted := errors.AsType[*listError](err)
	return unlisted || Disconnected(err)
}
