package tokenfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/auth"
)

func newToken(t *testing.T) auth.Token {
	t.Helper()
	token, err := auth.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestATokenIsReadAsItWasWrittenAndByItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	for range 2 { // the second takes the place of the first
		token := newToken(t)
		if err := Write(dir, token); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(dir); err != nil || got.Digest() != token.Digest() {
			t.Errorf("got %v, %v", got, err)
		}
	}
	info, err := os.Stat(Path(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestTheFileBelongsToTheFoldersOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can write into another's folder; CI runs as root")
		return
	}
	const owner = 12345
	dir := t.TempDir()
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, newToken(t)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != owner || stat.Gid != owner {
		t.Errorf("it belongs to %d:%d", stat.Uid, stat.Gid)
	}
}

func TestAFileThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		spoil    func(path string) error
		says     string
		unusable bool // another takes its place; else a person must look
	}{
		"others can read it": {func(path string) error { return os.Chmod(path, 0o640) }, "mode 0640", true},
		"it is cut off":      {func(path string) error { return os.Truncate(path, 20) }, "holds no token", true},
		"it is empty":        {func(path string) error { return os.Truncate(path, 0) }, "holds no token", true},
		"it is a link": {func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		}, "no regular file", false},
		"it is a folder":     {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "no regular file", false},
		"it is a named pipe": {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "no regular file", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			token := newToken(t)
			if err := errors.Join(Write(dir, token), test.spoil(Path(dir))); err != nil {
				t.Fatal(err)
			}
			_, err := Read(dir)
			_, unusable := errors.AsType[*UnusableError](err)
			if err == nil || unusable != test.unusable || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), token.Reveal()[:20]) {
				t.Errorf("got %v (unusable: %t), want one that says %q", err, unusable, test.says)
			}
		})
	}
}

func TestNothingIsLeftOfATokenThatCouldNotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(Path(dir), 0o700); err != nil { // a folder is in the way
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(Path(dir), "full"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, newToken(t)); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestOneAtATimeChangesAToken(t *testing.T) {
	dir := t.TempDir()
	var first atomic.Bool // has given it back
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			release, err := Lock(dir)
			if err != nil {
				t.Error(err)
				return
			}
			if !first.Load() {
				t.Error("two hold the lock")
			}
			if err := release(); err != nil {
				t.Error(err)
			}
		})
	}
	first.Store(true)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	group.Wait()
}
