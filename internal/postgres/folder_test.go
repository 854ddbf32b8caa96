package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAFolderHeldByAnotherNamesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	lock, err := LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockFolder(dir)
	var inUse *FolderInUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Fatalf("got %v, want a refusal that names process %d", err, os.Getpid())
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, lockName), []byte("1\n"), 0o600); err != nil { // a stale file
		t.Fatal(err)
	}
	lock, err = LockFolder(dir)
	if err != nil {
		t.Fatalf("got %v, want a stale file to be no hindrance", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestARefusedFolderSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.EACCES, "may not write there"},
		{syscall.EPERM, "may not write there"},
		{syscall.EROFS, "read-only file system"},
		{syscall.ENOSPC, "the disk is full"},
		{syscall.EDQUOT, "the disk is full"},
		{syscall.ENOTDIR, "a file is where a folder should be"},
		{syscall.EIO, "choose another folder"},
	} {
		err := folderError("/data", &os.PathError{Op: "mkdir", Path: "/data", Err: c.err})
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--data-dir") {
			t.Errorf("for %v: got %q, want it to say %q", c.err, err, c.want)
		}
	}
}

func TestAFileInTheWayIsAClearError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{path, filepath.Join(path, "data")} {
		_, err := LockFolder(dir)
		if err == nil || !strings.Contains(err.Error(), "a file is where a folder should be") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}

func TestAFolderTheAccountCannotReachNamesTheObstacle(t *testing.T) {
	closed := filepath.Join(folder(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "data", "postgres")
	if os.Geteuid() != 0 { // here it is a folder that even we may not enter
		if err := os.Chmod(closed, 0); err != nil {
			t.Fatal(err)
		}
		_, err := StartCluster(t.Context(), Options{Dir: dir, Log: quiet})
		if err == nil || !strings.Contains(err.Error(), "may not write there") {
			t.Fatalf("got %v, want a clear refusal", err)
		}
		return
	}
	_, err := StartCluster(t.Context(), Options{Dir: dir, Log: quiet})
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Folder != closed || unreachable.Path != dir {
		t.Fatalf("got %v, want it to name %s", err, closed)
	}
	if !strings.Contains(err.Error(), "chmod o+x "+closed) {
		t.Fatalf("%q does not say what to do", err)
	}
}

func TestAStrictUmaskDoesNotShutTheServerOut(t *testing.T) {
	parent := folder(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	start(t, filepath.Join(parent, "new", "data", "postgres"))
}

func TestTheDefaultFolderIsOneTheServerCanReach(t *testing.T) {
	want := ".rouse"
	if os.Geteuid() == 0 {
		want = "/var/lib/rouse"
	}
	if got := DefaultDataDir(); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func FuzzParsePostmaster(f *testing.F) {
	f.Add("4711\n/data\n1700000000\n5432\n/run\n\n  5432001 1\nready   \n")
	f.Add("4711\n/data\n1700000000\n5432\n")
	f.Add("-1\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePostmaster(text)
		if err == nil && p.pid <= 1 {
			t.Fatalf("accepted process %d", p.pid)
		}
	})
}
