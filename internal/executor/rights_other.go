//go:build unix && !linux

package executor

import (
	"os"
	"syscall"
)

// withRightsOf runs do as this process, because only Linux lends a thread an account's rights. What is opened is judged by its
// own permissions then.
func withRightsOf(_ *syscall.Credential, do func() error) error { return do() }

// kernelJudges is of Linux alone.
func kernelJudges(*syscall.Credential) bool { return false }

// isKernels is of Linux alone.
func isKernels(*os.File) bool { return false }

// openRoot opens a folder.
func openRoot(path string, _ *syscall.Credential) (*os.Root, error) { return os.OpenRoot(path) }
