package account

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestLookupTakesTheFirstThatExists(t *testing.T) {
	a, err := Lookup("no-such-account-here", "nobody", "root")
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "nobody" || a.UID == 0 {
		t.Fatalf("got %+v, want nobody", a)
	}
	if _, err := Lookup("no-such-account-here"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("got %v, want ErrNotFound", err)
	}
}

func TestByUIDGivesAnAccountEvenWithoutAnEntry(t *testing.T) {
	a, err := ByUID(0)
	if err != nil || a.Name != "root" {
		t.Fatalf("got %v, %v, want root", a, err)
	}
	a, err = ByUID(3999999998)
	if err != nil || a.UID != 3999999998 || a.String() != "uid 3999999998" {
		t.Fatalf("got %v, %v, want an account without a name", a, err)
	}
}

func TestANilAccountStaysWhoWeAre(t *testing.T) {
	var a *Account
	if a.Credential() != nil {
		t.Fatal("a nil account has no credential")
	}
}

func TestAccountsOfChildren(t *testing.T) {
	cluster, err := ForCluster()
	if err != nil {
		t.Fatal(err)
	}
	commands, err := ForCommands("")
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if cluster != nil || commands != nil {
			t.Fatalf("got %v and %v, want to stay who we are", cluster, commands)
		}
		return
	}
	if cluster.UID == 0 || commands.Name != "nobody" || cluster.UID == commands.UID {
		t.Fatalf("got cluster %v and commands %v, want two unprivileged accounts", cluster, commands)
	}
	if _, err := ForCommands(cluster.Name); err == nil {
		t.Fatal("the server's account was accepted for agents' commands")
	}
	if _, err := ForCommands("no-such-account-here"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("got %v, want ErrNotFound", err)
	}
	if a, err := ForCommands("root"); a != nil || err != nil {
		t.Fatalf("got %v, %v, want root to mean staying root", a, err)
	}
}

func TestAChildHasNoSupplementaryGroups(t *testing.T) {
	a, err := ForCommands("")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("id", "-G")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.Credential()}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.TrimSpace(string(out))
	if a != nil && got != strconv.FormatUint(uint64(a.GID), 10) {
		t.Fatalf("groups of the child are %q, want only %d", got, a.GID)
	}
}
