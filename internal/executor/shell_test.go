//go:build unix

package executor

import (
	"path/filepath"
	"slices"
	"testing"
)

// A program that is logged in starts what SHELL names, which its own name is not.
func TestAShellsVariableNamesAShell(t *testing.T) {
	for about, argv := range map[string][]string{"a shell": nil, "a program": {"true"}} {
		l, failure := Options{Home: t.TempDir()}.shellLaunch(Shell{Argv: argv})
		if failure != nil {
			t.Fatal(failure.Message)
		}
		shell := lookup(l.environment, "SHELL")
		if !slices.Contains([]string{"/bin/bash", "/bin/sh"}, shell) {
			t.Errorf("%s is told that its shell is %q", about, shell)
		}
		if argv == nil && (l.argv[0] != shell || filepath.Base(l.program) != filepath.Base(shell)) {
			t.Errorf("%q (%s) is started, and SHELL is %q", l.argv, l.program, shell)
		}
	}
}
