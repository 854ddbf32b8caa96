//go:build unix

package executor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxFile bounds a file that an agent reads or writes through rouse.
const maxFile = 4 << 20

// folder is an agent's folder. Every request stays inside, symlinks included. os.Root binds the kernel's own path walk
// to the folder, so that a link which is swapped in between leads nowhere. The account that the agent runs as gets
// through rouse no more than it could open by itself: files are opened and made with its rights.
type folder struct {
	root       *os.Root
	names      []string // the folder as it was configured, and as it is called without symlinks
	credential *syscall.Credential
}

func openFolder(path string, credential *syscall.Credential) (*folder, error) {
	root, err := openRoot(path, credential)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root, names: []string{filepath.Clean(path)}, credential: credential}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		f.names = append(f.names, real)
	}
	return f, nil
}

func (f *folder) close() { _ = f.root.Close() } // a handle only

// inside is the path within the folder.
func (f *folder) inside(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("the path %q is not absolute", path)
	}
	for _, name := range f.names {
		if rel, err := filepath.Rel(name, filepath.Clean(path)); err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", fmt.Errorf("%s is outside the agent's folder %s", path, f.names[0])
}

// read returns limit lines of a file from line on, counted from 1; 0 is from the first, and all.
func (f *folder) read(path string, line, limit int) (text string, err error) {
	err = withRightsOf(f.credential, func() (err error) {
		text, err = f.readAs(path, line, limit)
		return err
	})
	return text, err
}

// readAs is read with the rights that this thread has.
func (f *folder) readAs(path string, line, limit int) (string, error) {
	rel, err := f.inside(path)
	if err != nil {
		return "", err
	}
	file, err := f.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe must not block
	if err != nil {
		return "", plainPathError(path, err)
	}
	defer file.Close() // it was only read
	if err := f.check(file, path, 0o4); err != nil {
		return "", err
	}
	if line <= 1 && limit <= 0 {
		all, err := io.ReadAll(io.LimitReader(file, maxFile+1))
		if err == nil && len(all) > maxFile {
			err = fmt.Errorf("%s is larger than %d MiB: read a part of it", path, maxFile>>20)
		}
		return string(all), err
	}
	return readLines(bufio.NewReader(file), max(line, 1), limit)
}

// readLines returns the lines of the part. Memory is bounded by maxFile, whatever the file holds; so is a line that is passed over.
func readLines(r *bufio.Reader, line, limit int) (string, error) {
	var text strings.Builder
	for n := 1; limit <= 0 || n < line || n-line < limit; n++ {
		keep := &text
		if n < line {
			keep = nil
		}
		if err := readLine(r, keep); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

// readLine adds the next line, with its end, to the text; nil passes over it. What is longer than maxFile is refused before it
// is held.
func readLine(r *bufio.Reader, to *strings.Builder) error {
	for length := 0; ; {
		part, err := r.ReadSlice('\n')
		if length += len(part); length > maxFile || to != nil && to.Len()+len(part) > maxFile {
			return fmt.Errorf("the part is larger than %d MiB: read less of it", maxFile>>20)
		}
		if to != nil {
			to.Write(part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// write replaces a file's content, and makes the file and the folders to it when they are missing.
func (f *folder) write(path, content string) error {
	return withRightsOf(f.credential, func() error { return f.writeAs(path, content) })
}

// writeAs is write with the rights that this thread has.
func (f *folder) writeAs(path, content string) error {
	rel, err := f.inside(path)
	if err != nil {
		return err
	}
	if len(content) > maxFile {
		return fmt.Errorf("the content is larger than %d MiB", maxFile>>20)
	}
	if err := f.makeFolders(filepath.Dir(rel), path); err != nil {
		return err
	}
	file, err := f.open(rel, path)
	if err != nil {
		return err
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteString(content)
	}
	return errors.Join(err, file.Close())
}

// open opens a file for writing; a new one belongs to the agent.
func (f *folder) open(rel, path string) (*os.File, error) {
	file, err := f.root.OpenFile(rel, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		if err := f.checkName(filepath.Dir(rel), path); err != nil {
			return nil, err
		}
		file, err = f.root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return nil, plainPathError(path, err)
	}
	if made && f.credential != nil {
		err = file.Chown(int(f.credential.Uid), int(f.credential.Gid))
	}
	if err == nil {
		err = f.check(file, path, 0o2)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// makeFolders makes the folders of a path that are missing, each the agent's.
func (f *folder) makeFolders(rel, path string) error {
	if rel == "." {
		return nil
	}
	if _, err := f.root.Stat(rel); !errors.Is(err, fs.ErrNotExist) {
		return nil // opening the file tells whatever is wrong
	}
	if err := f.makeFolders(filepath.Dir(rel), path); err != nil {
		return err
	}
	if err := f.checkName(filepath.Dir(rel), path); err != nil {
		return err
	}
	if err := f.root.Mkdir(rel, 0o755); err != nil {
		return plainPathError(path, err)
	}
	if f.credential == nil {
		return nil
	}
	return f.root.Lchown(rel, int(f.credential.Uid), int(f.credential.Gid))
}

// checkName is check for a folder in which something is to be made.
func (f *folder) checkName(rel, path string) error {
	info, err := f.root.Stat(rel)
	if err != nil {
		return plainPathError(path, err)
	}
	if !kernelJudges(f.credential) && !mayUse(info, f.credential, 0o3) {
		err = fmt.Errorf("%s may not be written by the agent's account", path)
	}
	return err
}

// check refuses what is not a regular file, and what the agent's account may not open by itself. bit is 4 to read, 2 to
// write.
func (f *folder) check(file *os.File, path string, bit fs.FileMode) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return plainPathError(path, err)
	case !info.Mode().IsRegular() || isKernels(file):
		return fmt.Errorf("%s is no file", path)
	case !kernelJudges(f.credential) && !mayUse(info, f.credential, bit):
		return fmt.Errorf("%s may not be opened by the agent's account", path)
	}
	return nil
}

// mayUse reports whether the account has all the bits (of rwx) on a file or folder; nil is the account of this process,
// which the system has judged.
func mayUse(info fs.FileInfo, credential *syscall.Credential, bits fs.FileMode) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if credential == nil || !ok || credential.Uid == 0 {
		return true
	}
	mode := info.Mode().Perm()
	switch {
	case stat.Uid == credential.Uid:
		mode >>= 6
	case stat.Gid == credential.Gid || slices.Contains(credential.Groups, stat.Gid):
		mode >>= 3
	}
	return mode&bits == bits
}

// plainPathError says what went wrong with the path that was asked for.
func plainPathError(path string, err error) error {
	reason := err
	var pe *fs.PathError
	if errors.As(err, &pe) {
		reason = pe.Err
	}
	switch {
	case errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%s is no file", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be opened by the agent's account: it, or a folder on the way to it, is shut: %w", path, reason)
	}
	return fmt.Errorf("%s: %w", path, reason)
}
