package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

func TestMigrateSaysWhatThereWasToDo(t *testing.T) {
	_, empty := emptyDatabase(t)
	db, address := pgtest.NewURL(t)
	version, err := postgres.Version(t.Context(), db)
	if err != nil || version < 20261129170404 {
		t.Fatalf("%d, %v", version, err)
	}
	for _, c := range []struct{ name, address, want string }{
		{"a database that is up to date", address, "nothing to do: the database is at version %d already\n"},
		{"an empty one", empty, "the database is at version %d now\n"},
		{"the same again", empty, "nothing to do: the database is at version %d already\n"},
	} {
		var out strings.Builder
		if err := Migrate(t.Context(), settings(t, c.address), quiet(), &out); err != nil || out.String() != fmt.Sprintf(c.want, version) {
			t.Errorf("%s: %v, %q", c.name, err, out.String())
		}
	}
}

// Where all agents run as one account, a workspace that is not there is refused as well: its name was meant to say something.
func TestAShellOfAnUnknownWorkspaceIsRefused(t *testing.T) {
	_, address := pgtest.NewURL(t)
	c := settings(t, address)
	if os.Geteuid() == 0 {
		c.AgentUser = "nobody"
	}
	for name, o := range map[string]ShellOptions{
		"a slug":                       {Config: c, Workspace: "nope"},
		"an id":                        {Config: c, Workspace: "wsp_00000000000000000000000000"},
		"a slug at a worker's machine": {Config: config.Config{AgentUser: c.AgentUser, DataDir: pgtest.Folder(t)}, Worker: true, Workspace: "nope"},
	} {
		var told strings.Builder
		o.Log, o.Errors, o.Argv = quiet(), &told, []string{"/bin/true"}
		if code, err := RunAgentShell(t.Context(), o); err == nil || !strings.Contains(err.Error(), o.Workspace) || code != -1 || told.Len() > 0 {
			t.Errorf("%s: %d, %v, %q", name, code, err, told.String())
		}
	}
}
