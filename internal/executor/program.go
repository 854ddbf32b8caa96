//go:build unix

package executor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// findProgram resolves argv[0] as a shell would, in the agent's PATH and as the agent's account, which is told of no file that it
// could not see by itself.
func (o Options) findProgram(name, directory, path string) (file string, failure *Failure) {
	err := withRightsOf(o.Credential, func() error {
		file, failure = o.seekProgram(name, directory, path)
		return nil
	})
	if err != nil {
		return "", launchFailure(err, "the program %q cannot be looked for: %v", name, err)
	}
	return file, failure
}

// seekProgram is findProgram with the rights that this thread has.
func (o Options) seekProgram(name, directory, path string) (string, *Failure) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(directory, name)
		}
		return file, o.checkProgram(file)
	}
	var unusable *Failure
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if !filepath.IsAbs(dir) {
			continue
		}
		failure := o.checkProgram(file)
		if failure == nil {
			return file, nil
		}
		if !errors.Is(failure, fs.ErrNotExist) && unusable == nil {
			unusable = failure
		}
	}
	if unusable != nil {
		return "", unusable
	}
	return "", missingProgram("the program %q was not found in PATH (%s): install it, or write its full path in argv", name, path)
}

func (o Options) checkProgram(file string) *Failure {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return missingProgram("the program %s does not exist: install it, or correct argv", file)
	case errors.Is(err, fs.ErrPermission):
		return o.unrunnable(file)
	case err != nil:
		return launchFailure(err, "the program %s cannot be read: %v", file, err)
	case !info.Mode().IsRegular():
		return launchFailure(nil, "%s is not a program but a folder or device: correct argv", file)
	case info.Mode().Perm()&0o111 == 0:
		return launchFailure(fs.ErrPermission, "%s is not executable: run chmod +x on it, or name its interpreter first in argv", file)
	case !mayEnter(filepath.Dir(file), o.Credential) || !mayRun(file, info, o.Credential):
		return o.unrunnable(file)
	}
	return nil
}

func (o Options) unrunnable(file string) *Failure {
	return launchFailure(fs.ErrPermission, "%s may not be run by %s: install it where everybody may run it, e.g. /usr/local/bin", file, o.who())
}

// mayEnter reports whether the account may pass every folder from / to dir.
func mayEnter(dir string, credential *syscall.Credential) bool { return barrier(dir, credential) == "" }

// barrier is the first folder on the way from / to dir, dir included, that the account may not enter; "" when it may
// enter all.
func barrier(dir string, credential *syscall.Credential) string {
	shut := ""
	for {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || !mayRun(dir, info, credential) {
			shut = dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return shut
		}
		dir = parent
	}
}

// mayRun reports whether the account has the execute bit on a file or folder; nil is the account of this process.
func mayRun(file string, info fs.FileInfo, credential *syscall.Credential) bool {
	if credential == nil {
		return unix.Access(file, unix.X_OK) == nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || credential.Uid == 0 {
		return true
	}
	mode := info.Mode().Perm()
	switch {
	case stat.Uid == credential.Uid:
		return mode&0o100 != 0
	case stat.Gid == credential.Gid || slices.Contains(credential.Groups, stat.Gid):
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// missingProgram is permanent: trying again for hours brings no program, and a person should know now.
func missingProgram(format string, args ...any) *Failure {
	failure := launchFailure(fs.ErrNotExist, format, args...)
	failure.Permanent = true
	return failure
}
