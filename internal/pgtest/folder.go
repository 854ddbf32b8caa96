package pgtest

import (
	"os"
	"testing"
)

// Folder is a temporary folder for a data folder of rouse. Unlike t.TempDir, the database server's account can pass it
// when the tests run as root. It is removed when t is over.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rouse-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // passable, not readable
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
