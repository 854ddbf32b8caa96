package pgtx

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// ErrFenced says that another attempt, or none, owns the run: the report of this one changes nothing (SPEC S7.7).
var ErrFenced = errors.New("the attempt no longer owns its run")

// ErrChanged says that what a transaction read without locks was different once it held them: it is repeated.
var ErrChanged = errors.New("the records were changed meanwhile")

// Retryable is true for a deadlock, for a lost serialization race, and for what was changed before it was locked.
func Retryable(err error) bool { return hasCode(err, "40P01", "40001") || errors.Is(err, ErrChanged) }

// LockTimeout says that somebody held a row for longer than the transaction waits.
func LockTimeout(err error) bool { return hasCode(err, "55P03") }

func hasCode(err error, codes ...pqerror.Code) bool {
	pe, ok := errors.AsType[*pq.Error](err)
	if !ok {
		return false
	}
	for _, c := range codes {
		if pe.Code == c {
			return true
		}
	}
	return false
}

// UniqueViolation names the constraint that an insert ran into, or "".
func UniqueViolation(err error) string {
	if pe, ok := errors.AsType[*pq.Error](err); ok && pe.Code == "23505" {
		return pe.Constraint
	}
	return ""
}

// NoRows says that a query found nothing.
func NoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// Wrap adds what was being done to a server error; what the caller can fix, and a fence, pass through as they are.
func Wrap(doing string, err error) error {
	var ue *domain.UserError
	if err == nil || errors.As(err, &ue) || errors.Is(err, ErrFenced) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// UserErrorText is the text of a problem the caller can fix; "" for any other error, and for none.
func UserErrorText(err error) string {
	if ue, ok := errors.AsType[*domain.UserError](err); ok {
		return ue.Error()
	}
	return ""
}

// NotFound turns a missing row into a problem the caller can fix.
func NotFound(err error, path []string, what string, id xid.ID) error {
	if errors.Is(err, sql.ErrNoRows) {
		if what == "workspace" {
			return domain.RefuseField(path, domain.UserErrorCodeNotFound, "there is no workspace %s", id)
		}
		return domain.RefuseField(path, domain.UserErrorCodeNotFound, "there is no %s %s in this workspace", what, id)
	}
	return fmt.Errorf("read %s: %w", what, err)
}
