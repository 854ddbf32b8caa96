package account

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// few are ids that nobody has, for a test that uses them up.
var few = Range{39990000, 39990003}

func openFew(t *testing.T) *Claims {
	t.Helper()
	return &Claims{t.TempDir(), few}
}

func mustClaim(t *testing.T, c *Claims, workspace, folder string, wish, want uint32) {
	t.Helper()
	if got, err := c.Claim(workspace, folder, wish); err != nil || got != want {
		t.Fatalf("%s got %d, %v, want %d", workspace, got, err, want)
	}
}

func TestEachWorkspaceKeepsAnIDOfItsOwn(t *testing.T) {
	c, here, there := openFew(t), t.TempDir(), t.TempDir()
	mustClaim(t, c, "a", here, 0, few.First)
	mustClaim(t, c, "b", here, 0, few.First+1)
	again := &Claims{c.dir, few} // another process, or the next start
	mustClaim(t, again, "a", here, 0, few.First)
	mustClaim(t, again, "a", there, 0, few.First) // a restored copy, or another server of the database
	mustClaim(t, again, "c", there, few.First+2, few.First+2)
	if _, err := again.Claim("d", there, few.First); !errors.Is(err, ErrExhausted) {
		t.Errorf("a fourth workspace got %v", err)
	}
	mustClaim(t, again, "b", there, 0, few.First+1) // the others go on
}

func TestAListThatWasLostIsMadeAgainFromTheFolders(t *testing.T) {
	c, here := openFew(t), t.TempDir()
	mustClaim(t, c, "b", here, few.First+1, few.First+1)
	mustClaim(t, c, "a", here, few.First+1, few.First+2) // what somebody else has is not given, whatever the folder says
	mustClaim(t, c, "x", here, 12, few.First)            // nor what is in no range of ours
}

func TestAnIDIsGivenAgainOnlyWhenNothingOfItIsLeft(t *testing.T) {
	c, here := openFew(t), t.TempDir()
	gone := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, c, "a", gone, 0, few.First)
	mustClaim(t, c, "b", here, 0, few.First+1)
	mustClaim(t, c, "c", here, 0, few.First+2)
	if _, err := c.Claim("d", here, 0); !errors.Is(err, ErrExhausted) {
		t.Fatalf("its folder is there: %v", err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		left := sleeper(t, few.First)
		if _, err := c.Claim("d", here, 0); !errors.Is(err, ErrExhausted) {
			t.Fatalf("its process is there: %v", err)
		}
		_ = left.Process.Kill()
		_ = left.Wait()
	}
	mustClaim(t, c, "d", here, 0, few.First)
}

func TestSeveralServersAtOnceGiveNoIDTwice(t *testing.T) {
	dir, here := t.TempDir(), t.TempDir()
	wide := Range{39990000, 39990100}
	var mu sync.Mutex
	got := map[uint32]string{}
	var all sync.WaitGroup
	for server := range 4 {
		all.Go(func() {
			c := &Claims{dir, wide}
			for i := range 10 {
				workspace := fmt.Sprintf("%d-%d", server, i)
				uid, err := c.Claim(workspace, here, 0)
				mu.Lock()
				if other, taken := got[uid]; err != nil || taken {
					t.Errorf("%s got %d, %v, which %s has", workspace, uid, err, other)
				}
				got[uid] = workspace
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

func sleeper(t *testing.T, uid uint32) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{}}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestASweepEndsAllOfAnIDAndNobodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can start and end processes of other accounts")
		return
	}
	c := openFew(t)
	mine, other := sleeper(t, few.First), sleeper(t, few.First+1)
	release, err := c.Hold(few.First)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Sweep(few.First); err != nil {
		t.Fatal(err)
	}
	if len(uidsOf(fmt.Sprint(mine.Process.Pid))) == 0 {
		t.Fatal("an attempt of the account runs, and its process was ended")
	}
	release()
	if err := c.Sweep(few.First); err != nil {
		t.Fatal(err)
	}
	if err := mine.Wait(); err == nil {
		t.Error("it ended well")
	}
	if len(uidsOf(fmt.Sprint(other.Process.Pid))) == 0 {
		t.Error("a process of another account was ended")
	}
	if uid := syscall.Geteuid(); uid != 0 {
		t.Errorf("this process is uid %d now", uid)
	}
}

func TestRangesThatAreNone(t *testing.T) {
	for text, ok := range map[string]bool{
		"70000-74095": true, " 70000 - 74095 ": true, "70000": false, "a-b": false, "0-10": false, "999-2000": false, "74095-70000": false, "70000-70000": false,
		"60000-70000": false, "100000-4294967295": false, "-1-5": false,
	} {
		if r, err := ParseRange(text); (err == nil) != ok {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
}
