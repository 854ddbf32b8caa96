//go:build unix

package executor

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
)

func TestFilesAreReadInPartsAndWithinBounds(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	name := filepath.Join(dir, "a.txt")
	if err := f.write(name, "one\ntwo\nthree\nfour"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		line, limit int
		want        string
	}{{0, 0, "one\ntwo\nthree\nfour"}, {2, 2, "two\nthree\n"}, {4, 0, "four"}, {1, 1, "one\n"}, {9, 1, ""}, {2, math.MaxInt, "two\nthree\nfour"}} {
		if got, err := f.read(name, test.line, test.limit); err != nil || got != test.want {
			t.Errorf("%d, %d: got %q, %v", test.line, test.limit, got, err)
		}
	}
	if err := f.write(name, "short"); err != nil {
		t.Fatal(err)
	}
	if got, err := f.read(name, 0, 0); err != nil || got != "short" {
		t.Errorf("a shorter text left the rest of the longer one: %q, %v", got, err)
	}
	if err := f.write(name, strings.Repeat("x", maxFile+1)); err == nil {
		t.Error("a file beyond the bound was written")
	}
	if err := os.WriteFile(name, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.read(name, 0, 0); err == nil || !strings.Contains(err.Error(), "read a part") {
		t.Errorf("a file beyond the bound was read: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := mkfifo(pipe); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, dir, "/dev/null", dir + "x/b", "a.txt"} {
		if _, err := f.read(name, 0, 0); err == nil {
			t.Errorf("%s was read", name)
		}
		if err := f.write(name, "x"); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// A sparse file costs an agent nothing, and must cost rouse no more than it answers with.
func TestALineLongerThanTheBoundIsRefusedBeforeItIsHeld(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	name := filepath.Join(dir, "sparse")
	if err := os.WriteFile(name, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 1<<30); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct{ line, limit int }{{2, 1}, {2, 0}, {3, 1}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := f.read(name, part.line, part.limit)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "read less") {
			t.Errorf("line %d, limit %d: %v", part.line, part.limit, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 8*maxFile {
			t.Errorf("line %d, limit %d: %d MiB were held", part.line, part.limit, grown>>20)
		}
	}
	if got, err := f.read(name, 1, 1); err != nil || got != "one\n" {
		t.Errorf("a line before the long one: %q, %v", got, err)
	}
}

func TestTheAgentsAccountGetsNoMoreThroughRouseThanByItself(t *testing.T) {
	dir := passableFolder(t)
	f, err := openFolder(dir, &syscall.Credential{Uid: 54321, Gid: 54321})
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	closed, open := filepath.Join(dir, "closed"), filepath.Join(dir, "open")
	for name, mode := range map[string]os.FileMode{closed: 0o600, open: 0o644} {
		if err := os.WriteFile(name, []byte("text"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.read(closed, 0, 0); err == nil || !strings.Contains(err.Error(), "account") {
		t.Errorf("a file of somebody else's was read: %v", err)
	}
	if got, err := f.read(open, 0, 0); err != nil || got != "text" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, name := range []string{open, filepath.Join(dir, "new"), filepath.Join(dir, "folder", "new")} {
		if err := f.write(name, "x"); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
	if text, err := os.ReadFile(open); err != nil || string(text) != "text" {
		t.Errorf("got %q, %v", text, err)
	}
}

// passableFolder is a folder that every account can enter.
func passableFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, dir := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPermissions(t *testing.T) {
	all := []acp.PermissionOption{{OptionId: "aa", Kind: acp.PermissionOptionKindAllowAlways}, {OptionId: "ao", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionId: "ra", Kind: acp.PermissionOptionKindRejectAlways}, {OptionId: "ro", Kind: acp.PermissionOptionKindRejectOnce}}
	for _, test := range []struct {
		policy  domain.AcpPermissionPolicy
		kind    acp.ToolKind
		options []acp.PermissionOption
		want    acp.PermissionOptionId
		ok      bool
	}{
		{domain.AcpPermissionPolicyAllow, acp.ToolKindExecute, all, "ao", true},
		{domain.AcpPermissionPolicyAllow, "", all[:1], "aa", true},
		{domain.AcpPermissionPolicyAllow, acp.ToolKindEdit, all[2:], "", false},
		{domain.AcpPermissionPolicyReadOnly, acp.ToolKindRead, all, "ao", true},
		{domain.AcpPermissionPolicyReadOnly, acp.ToolKindSearch, all, "ao", true},
		{domain.AcpPermissionPolicyReadOnly, acp.ToolKindFetch, all, "ro", true},
		{domain.AcpPermissionPolicyReadOnly, "", all, "ro", true},
		{domain.AcpPermissionPolicyReject, acp.ToolKindRead, all[:3], "ra", true},
		{"", acp.ToolKindRead, all, "ro", true},
		{domain.AcpPermissionPolicyReject, acp.ToolKindRead, nil, "", false},
	} {
		if got, _, ok := permit(test.policy, test.kind, test.options); got != test.want || ok != test.ok {
			t.Errorf("%s %q: got %q, %v", test.policy, test.kind, got, ok)
		}
	}
}
