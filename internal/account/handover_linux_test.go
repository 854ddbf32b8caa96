package account

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// handed is a folder that the account from filled, with what an agent may plant in it.
func handed(t *testing.T, from uint32) (folder, secret string) {
	t.Helper()
	base := t.TempDir()
	folder, secret = filepath.Join(base, "folder"), filepath.Join(base, "secret")
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	step(os.Mkdir(folder, 0o700))
	step(os.Mkdir(filepath.Join(folder, "sub"), 0o755))
	step(os.WriteFile(filepath.Join(folder, "sub", "mine"), []byte("mine"), 0o640))
	step(os.WriteFile(secret, []byte("root's"), 0o600))
	step(os.Link(secret, filepath.Join(folder, "planted")))                  // a file of root's, where links to it are not forbidden
	step(os.Symlink(secret, filepath.Join(folder, "link")))                  // to a file
	step(os.Symlink(base, filepath.Join(folder, "up")))                      // to a folder
	step(os.WriteFile(filepath.Join(base, "neighbour"), []byte("n"), 0o600)) // of the same account, elsewhere
	step(os.Link(filepath.Join(base, "neighbour"), filepath.Join(folder, "shared")))
	step(syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	for _, name := range []string{"", "sub", "sub/mine", "link", "up", "shared", "pipe"} {
		step(os.Lchown(filepath.Join(folder, name), int(from), int(from)))
	}
	return folder, secret
}

func ownerOfFile(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

func TestAHandoverTakesNothingOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can give files away")
		return
	}
	const from, to = 39990000, 39990001
	folder, secret := handed(t, from)
	if _, err := HandOver(folder, to, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint32{"": to, "sub": to, "sub/mine": to, "link": to, "up": to, "shared": to, "pipe": to, "planted": 0, "../secret": 0, "../neighbour": from} {
		if got := ownerOfFile(t, filepath.Join(folder, name)); got != want {
			t.Errorf("%q belongs to %d, want %d", name, got, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "shared")); err != nil || string(text) != "n" {
		t.Errorf("the copy holds %q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "sub", "mine")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "root's" {
		t.Errorf("root's file holds %q, %v", text, err)
	}
	if err := os.Symlink(folder, folder+"-link"); err != nil {
		t.Fatal(err)
	}
	if _, err := HandOver(folder+"-link", from, from); err == nil {
		t.Error("a symbolic link was handed over")
	}
}

func TestAHandoverEndsWhoStandsInTheFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can give files away")
		return
	}
	const from, to = 39990000, 39990001
	folder, _ := handed(t, from)
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(folder)), 0o755); err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sleep", "1000")
	left.Dir = folder
	left.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: from, Gid: from, Groups: []uint32{}}}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	elsewhere := sleeper(t, from)
	if _, err := HandOver(folder, to, to); err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil {
		t.Error("it ended well")
	}
	if len(uidsOf(fmt.Sprint(elsewhere.Process.Pid))) == 0 {
		t.Error("a process of the account that stands elsewhere was ended")
	}
}

func TestACopyOfATreeIsMadeByBothAccounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can act for both")
		return
	}
	const from, to = 39990000, 39990001
	folder, _ := handed(t, from)
	target := filepath.Join(filepath.Dir(folder), "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(target, to, to); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(folder); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := CopyTree(t.Context(), folder, from, target, to)
	if err == nil {
		t.Error("a file of root's could be read")
	}
	if text, err := os.ReadFile(filepath.Join(target, "sub", "mine")); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(target, "planted")); err == nil {
		t.Error("a file of root's was copied")
	}
}
