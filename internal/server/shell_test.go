//go:build linux

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/xid"
)

// A shell that was given another range of ids than the server would hand the home over, and so end the agents that work there.
func TestAShellWithAnotherRangeLeavesTheHomeAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root gives agents ids of their own
	}
	data, workspace := pgtest.Folder(t), xid.New("wsp")
	home := filepath.Join(homes(data), workspace.String())
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	const theirs = 39990100
	if err := os.Chown(home, theirs, theirs); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	o := ShellOptions{Config: config.Config{DataDir: data, AgentUIDs: "39990200-39990202"}, Worker: true, Workspace: workspace.String(), Argv: []string{"/bin/true"}, Log: quiet(), Errors: &told}
	code, err := RunAgentShell(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "uid 39990100, which is not in --agent-uids 39990200-39990202") || code != -1 || told.Len() > 0 {
		t.Errorf("%d, %v, %q", code, err, told.String())
	}
	if owner := account.OwnerOf(home); owner != theirs {
		t.Errorf("the home belongs to %d now", owner)
	}
}
