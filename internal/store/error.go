package store

import (
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
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
