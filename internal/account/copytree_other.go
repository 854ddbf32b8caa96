//go:build unix && !linux

package account

import (
	"context"
	"errors"
)

// CopyTree is for Linux, where workspaces have accounts of their own.
func CopyTree(context.Context, string, uint32, string, uint32) error {
	return errors.ErrUnsupported
}
