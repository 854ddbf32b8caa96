//go:build unix && copies

package executor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// What only a real disk, git-lfs and a real ssh server can show. make test-copies runs it, as root: Debian has git-lfs and openssh-server.

// wantTrouble runs an attempt that cannot have its working copy.
func (w *gitWorld) wantTrouble(req Request, code domain.RunErrorCode, permanent bool, says string) {
	w.t.Helper()
	_, err := w.run(req)
	failure := &Failure{}
	if !errors.As(err, &failure) || failure.Code != code || failure.Permanent != permanent || !strings.Contains(failure.Message, says) {
		w.t.Fatalf("got %+v, %v", failure, err)
	}
}

// noise is a file that no compression makes smaller.
func noise(t *testing.T, bytes int) string {
	t.Helper()
	text := make([]byte, bytes)
	if _, err := rand.Read(text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A disk that fills up while a working copy is made fails the attempt, with what to do. Nothing of it stays, and when there is room the
// next attempt goes on.
func TestAFullDiskIsToldAndLeavesNothing(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("rouse-test", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatalf("a small disk is mounted for this test, which root may do: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := newGitWorld(t, Options{WorkRoot: disk})
	w.commit("large.bin", noise(t, 4<<20))
	for name, checkout := range map[string]domain.CheckoutSpec{"a worktree of a person's repository": {}, "a mirror of an address": {Repository: w.serve()}} {
		task := xid.New("tsk")
		w.wantTrouble(w.request(task, checkout, "true"), domain.RunErrorCodeLaunch, false, "is full")
		if trees, err := os.ReadDir(w.command.options.copyFolders(w.workspace).trees); err != nil || len(trees) != 0 {
			t.Errorf("%s: left %v, %v", name, trees, err)
		}
	}
	if err := syscall.Mount("rouse-test", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	for _, checkout := range []domain.CheckoutSpec{{}, {Repository: w.serve()}} {
		w.good(w.request(xid.New("tsk"), checkout, "test $(stat -c %s large.bin) = 4194304"))
	}
}

// Large files are fetched where git-lfs is set up, and said to be missing where their store has them no more.
func TestLargeFilesAreFetched(t *testing.T) {
	w := newGitWorld(t, Options{})
	gitIn(t, w.repository, "lfs", "install", "--local")
	gitIn(t, w.repository, "lfs", "track", "*.bin")
	large := noise(t, 1<<20)
	w.commit("large.bin", large)
	if text := gitIn(t, w.repository, "show", "HEAD:large.bin"); !strings.HasPrefix(text, "version https://git-lfs") {
		t.Fatalf("git-lfs is not at work: %.40q", text)
	}
	w.good(w.request(xid.New("tsk"), domain.CheckoutSpec{}, "test $(stat -c %s large.bin) = 1048576"))
	if err := os.RemoveAll(filepath.Join(w.repository, ".git", "lfs", "objects")); err != nil { // the remote has them
		t.Fatal(err)
	}
	w.good(w.request(xid.New("tsk"), domain.CheckoutSpec{}, "test $(stat -c %s large.bin) = 1048576"))
	for _, store := range []string{filepath.Join(w.repository, ".git", "lfs", "objects"), filepath.Join(w.remote, "lfs", "objects")} {
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
	}
	w.wantTrouble(w.request(xid.New("tsk"), domain.CheckoutSpec{}, "true"), domain.RunErrorCodeLaunch, false, "large files (Git LFS) could not be fetched")
}

// sshServer is a real server of ssh on a loopback address, to which one key opens the account that runs the test.
func sshServer(t *testing.T) (port, key string) {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	if err := errors.Join(listener.Close(), os.MkdirAll("/run/sshd", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"host", "key"} {
		run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name))
	}
	run("cp", filepath.Join(dir, "key.pub"), filepath.Join(dir, "authorized"))
	config := fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nPidFile none\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\n", port, dir, dir)
	writeFile(t, filepath.Join(dir, "config"), config)
	server := exec.CommandContext(t.Context(), "/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(dir, "config"))
	if err := server.Start(); err != nil {
		t.Fatalf("sshd is needed (Debian: openssh-server): %v", err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})
	for try := 0; ; try++ {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close() // it was only to be seen
			return port, filepath.Join(dir, "key")
		}
		if try == 100 {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond) // the server tells nobody that it listens
	}
}

// A repository behind ssh: without the host's key, without a key of one's own, and with both.
func TestARepositoryBehindSSH(t *testing.T) {
	w := newGitWorld(t, Options{})
	port, key := sshServer(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("ssh://%s@127.0.0.1:%s%s", me.Username, port, w.remote)
	hosts := filepath.Join(t.TempDir(), "hosts")
	request := func(options string) Request {
		req := w.request(xid.New("tsk"), domain.CheckoutSpec{Repository: address}, "test -f a.txt")
		req.Environment = append(req.Environment, Variable{"GIT_SSH_COMMAND", "ssh -F none -oBatchMode=yes -oIdentitiesOnly=yes -oIdentityAgent=none -oUserKnownHostsFile=" + hosts + options})
		return req
	}
	w.wantTrouble(request(""), domain.RunErrorCodeLaunch, true, "confirm the key")
	scanned, err := exec.CommandContext(t.Context(), "ssh-keyscan", "-p", port, "127.0.0.1").Output()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, hosts, string(scanned))
	w.wantTrouble(request(" -oIdentityFile=/nonexistent"), domain.RunErrorCodeAuth, true, "no key or password")
	w.good(request(" -oIdentityFile=" + key))
}

// subfolder makes the folder of a submodule, without which git would take it for removed.
func subfolder(t *testing.T, w *gitWorld) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(w.repository, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A submodule comes with the working copy, and one that has moved away is told.
func TestSubmodulesComeWithTheWorkingCopy(t *testing.T) {
	w := newGitWorld(t, Options{})
	lib := newGitWorld(t, Options{})
	lib.commit("lib.txt", "lib\n")
	address := lib.serve()
	subfolder(t, w)
	writeFile(t, filepath.Join(w.repository, ".gitmodules"), "[submodule \"lib\"]\n\tpath = lib\n\turl = "+address+"\n")
	gitIn(t, w.repository, "update-index", "--add", "--cacheinfo", "160000,"+gitIn(t, lib.repository, "rev-parse", "HEAD")+",lib")
	w.commit("b.txt", "b\n")
	w.good(w.request(xid.New("tsk"), domain.CheckoutSpec{}, "grep -q lib lib/lib.txt"))
	if err := os.Rename(lib.remote, lib.remote+".moved"); err != nil {
		t.Fatal(err)
	}
	again := newGitWorld(t, Options{})
	subfolder(t, again)
	writeFile(t, filepath.Join(again.repository, ".gitmodules"), "[submodule \"lib\"]\n\tpath = lib\n\turl = "+address+"\n")
	gitIn(t, again.repository, "update-index", "--add", "--cacheinfo", "160000,"+gitIn(t, lib.repository, "rev-parse", "HEAD")+",lib")
	again.commit("b.txt", "b\n")
	again.wantTrouble(again.request(xid.New("tsk"), domain.CheckoutSpec{}, "true"), domain.RunErrorCodeLaunch, true, "could not fetch the submodules")
}

// What a start costs: the first of a repository, and the next, of a small one and of one with a gigabyte.
func TestWhatAStartCosts(t *testing.T) {
	w := newGitWorld(t, Options{})
	for _, size := range []struct {
		name  string
		files int
	}{{"a small repository", 0}, {"a repository of 1 GB in 1,000 files", 1000}} {
		if size.files > 0 {
			for i := range size.files {
				writeFile(t, filepath.Join(w.repository, fmt.Sprintf("large.%04d", i)), noise(t, 1<<20))
			}
			gitIn(t, w.repository, "-c", "core.compression=0", "add", "-A")
			w.commit("b.txt", "b\n")
		}
		for name, checkout := range map[string]domain.CheckoutSpec{"a worktree of a person's": {}, "a mirror": {Repository: w.serve()}} {
			for _, which := range []string{"first", "next task"} {
				task := xid.New("tsk")
				began := time.Now()
				w.good(w.request(task, checkout, "true"))
				made := time.Since(began)
				began = time.Now()
				w.good(w.request(task, checkout, "true"))
				t.Logf("%s, %s, %s: %s, and the task's next run %s", size.name, name, which, made.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
			}
		}
	}
	began := time.Now()
	if _, err := w.command.Run(t.Context(), shell("true"), &recorder{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("without a working copy: %s", time.Since(began).Round(time.Millisecond))
}
