package store

import (
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// wrap adds what was being done to a server error; what the caller can fix, and a fence, pass through as they are.
func wrap(doing string, err error) error {
	var ue *domain.UserError
	if err == nil || errors.As(err, &ue) || errors.Is(err, ErrFenced) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// userErrorText is the text of a problem the caller can fix; "" for any other error, and for none.
func userErrorText(err error) string {
	var ue *domain.UserError
	if errors.As(err, &ue) {
		return ue.Error()
	}
	return ""
}

// notFound turns a missing row into a problem the caller can fix.
func notFound(err error, path []string, what string, id xid.ID) error {
	if errors.Is(err, sql.ErrNoRows) {
		if what == "workspace" {
			return domain.RefuseField(path, domain.UserErrorCodeNotFound, "there is no workspace %s", id)
		}
		return domain.RefuseField(path, domain.UserErrorCodeNotFound, "there is no %s %s in this workspace", what, id)
	}
	return fmt.Errorf("read %s: %w", what, err)
}
