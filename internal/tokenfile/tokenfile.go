// Package tokenfile keeps the token of a data folder: the file by which whoever owns the folder proves it to the API.
package tokenfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"rouse.dev/rouse/internal/auth"
)

// Name is the file's name in the data folder.
const Name = "token"

// maxSize bounds what is read of the file, in bytes.
const maxSize = 1024

// UnusableError says why the token in a file should not be used any more, if it ever was one: another takes its place.
type UnusableError struct{ Path, Why string }

func (e *UnusableError) Error() string {
	return fmt.Sprintf("%s %s; `rouse token rotate-local` makes another, and so does the next start of `rouse serve`", e.Path, e.Why)
}

// Path is where the file of a data folder lies.
func Path(dir string) string { return filepath.Join(dir, Name) }

// Read gives the token of a data folder. The error is fs.ErrNotExist when there is no file, and an *UnusableError when
// others may have read it or when it holds no token.
func Read(dir string) (auth.Token, error) {
	path := Path(dir)
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return auth.Token{}, irregular(path)
	case errors.Is(err, fs.ErrPermission):
		return auth.Token{}, fmt.Errorf("this account may not read %s, the token of its data folder: call this as the account that the server runs as", path)
	case err != nil:
		return auth.Token{}, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return auth.Token{}, err
	}
	if !info.Mode().IsRegular() {
		return auth.Token{}, irregular(path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return auth.Token{}, &UnusableError{path, fmt.Sprintf("has mode %04o, so that other accounts may have read it", mode)}
	}
	return parse(path, file)
}

func irregular(path string) error {
	return fmt.Errorf("%s is no regular file, and the token of the data folder belongs there: move it away", path)
}

func parse(path string, file io.Reader) (auth.Token, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxSize))
	if err != nil {
		return auth.Token{}, err
	}
	token, err := auth.ParseToken(strings.TrimSpace(string(text)))
	if err != nil { // which never repeats the text
		return auth.Token{}, &UnusableError{path, "holds no token"}
	}
	return token, nil
}

// Write puts a token into the file of a data folder in one step, so that a reader sees the old token or the new one.
// The file belongs to the folder's owner, who alone can read it.
func Write(dir string, token auth.Token) (err error) {
	file, err := os.CreateTemp(dir, Name+".*") // O_EXCL, mode 0600
	if err != nil {
		return fmt.Errorf("write the token of %s: %w", dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write the token of %s: %w", dir, err), os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(fill(file, dir, token), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), Path(dir)); err != nil {
		return err
	}
	return syncFolder(dir)
}

func fill(file *os.File, dir string, token auth.Token) error {
	if os.Geteuid() == 0 { // also for another's folder: it is theirs
		owner, err := os.Stat(dir)
		if err != nil {
			return err
		}
		stat := owner.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // what os.Stat has on every unix
		if err := file.Chown(int(stat.Uid), int(stat.Gid)); err != nil {
			return err
		}
	}
	if _, err := file.WriteString(token.Reveal() + "\n"); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder makes the new name survive a power cut, since the old token ends after this.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Lock keeps others from changing the token of a data folder until release: a server that starts and a command beside it
// would each end the other's.
func Lock(dir string) (release func() error, err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the token of %s: %w", dir, err)
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the token of %s: %w; choose a folder on a local disk with --data-dir", dir, err), folder.Close())
	}
	return folder.Close, nil
}
