package server

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/xid"
)

// stranger is a uid that nobody has.
const stranger = 48211

// listing is every file below dir with its owner, mode, time and content.
func listing(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
		}
		stat := info.Sys().(*syscall.Stat_t)
		files = append(files, fmt.Sprintf("%s %s %d:%d %s %q", path, info.Mode(), stat.Uid, stat.Gid, info.ModTime(), content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// clinic is an installation with the demo's two agents; the shell agent's own folder is folder.
func clinic(t *testing.T) (examine func(dir string, ask bool) string, dir, folder string, workspace xid.ID) {
	t.Helper()
	db, address := pgtest.NewURL(t)
	tokens := NewTokens(&Database{DB: db, log: quiet()})
	if err := fillDemo(t.Context(), tokens.store); err != nil {
		t.Fatal(err)
	}
	shell, err := tokens.store.Reader().Agent.Query().Where(agent.Name("shell")).Only(auth.WithPrincipal(t.Context(), auth.Local()))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(pgtest.Folder(t), "data")
	examine = func(dir string, ask bool) string {
		t.Helper()
		c := settings(t, address)
		c.DataDir = dir
		var said strings.Builder
		Doctor(t.Context(), c, ask, quiet(), func(f Finding) {
			fmt.Fprintf(&said, "%v %s %s: %s → %s\n", f.OK, f.Subject, f.Name, f.Detail, f.Hint)
		})
		return said.String()
	}
	return examine, dir, filepath.Join(dir, "work", shell.ID.String()), shell.WorkspaceID
}

func TestTheDoctorMakesNothing(t *testing.T) {
	examine, dir, folder, _ := clinic(t)
	for _, ask := range []bool{false, true} {
		said := examine(dir, ask)
		if !strings.Contains(said, "true demo/shell program: /bin/sh in "+folder+", which its first run will make") || strings.Contains(said, "false ") {
			t.Errorf("ask %v:\n%s", ask, said)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("ask %v: the data folder was made: %v", ask, listing(t, dir))
		}
	}
}

func TestTheDoctorLeavesAFolderAsItWas(t *testing.T) {
	examine, dir, folder, workspace := clinic(t)
	makeFolders(t, folder)
	write(t, filepath.Join(folder, "notes"), "mine")
	write(t, filepath.Join(dir, "rouse.lock"), "1\n")
	if agents, err := prepareAccount(config.Default(), dir); err != nil {
		t.Fatal(err)
	} else if agents.claims != nil {
		uid, err := agents.claim(workspace)
		if err != nil {
			t.Fatal(err)
		}
		chown(t, folder, int(uid), int(uid))
	}
	before := listing(t, dir)
	for _, ask := range []bool{false, true} {
		if said := examine(dir, ask); !strings.Contains(said, "true demo/shell program: /bin/sh in "+folder+" →") || strings.Contains(said, "false ") {
			t.Errorf("ask %v:\n%s", ask, said)
		}
		if after := listing(t, dir); !slices.Equal(before, after) {
			t.Errorf("ask %v: before\n%s\nafter\n%s", ask, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
}

func TestTheDoctorLeavesAnotherAccountsFolderAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can give a folder away, and only root could take it")
		return
	}
	examine, dir, folder, _ := clinic(t)
	makeFolders(t, folder)
	chown(t, folder, stranger, stranger)
	before := listing(t, dir)
	for _, ask := range []bool{false, true} {
		if said := examine(dir, ask); !strings.Contains(said, fmt.Sprintf("true demo/shell program: /bin/sh in %s, which its next run will take over from uid %d", folder, stranger)) || strings.Contains(said, "false ") {
			t.Errorf("ask %v:\n%s", ask, said)
		}
		if after := listing(t, dir); !slices.Equal(before, after) {
			t.Errorf("ask %v: before\n%s\nafter\n%s", ask, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
}

func makeFolders(t *testing.T, folder string) {
	t.Helper()
	for _, step := range []struct {
		path string
		mode os.FileMode
	}{{filepath.Dir(filepath.Dir(folder)), 0o711}, {filepath.Dir(folder), 0o755}, {folder, 0o700}} {
		if err := os.Mkdir(step.path, step.mode); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string, uid, gid int) {
	t.Helper()
	if err := os.Lchown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
}

func TestTheDoctorKnowsADatabaseThatIsNewerThanItsProgram(t *testing.T) {
	db, address := pgtest.NewURL(t)
	if _, err := db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (20990101000000, true)`); err != nil {
		t.Fatal(err)
	}
	var hint string
	Doctor(t.Context(), settings(t, address), false, quiet(), func(f Finding) {
		if f.Name == "migrations" && !f.OK {
			hint = f.Hint
		}
	})
	if !strings.Contains(hint, "newer program") {
		t.Errorf("the hint is %q", hint)
	}
}

// Asked with another range of ids than the server's, the doctor says so where agents have a home, and gives no workspace an id.
func TestTheDoctorGivesNoUserIDs(t *testing.T) {
	dir := t.TempDir()
	c := config.Default()
	c.AgentUIDs = "81000-81009"
	agents, err := lookAtAccount(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	if agents.claims == nil { // whoever is not root has one account for all
		return
	}
	const machine = "/var/lib/rouse-uids"
	list := func() []string {
		entries, err := os.ReadDir(machine)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := list()
	workspace := xid.New("wsp")
	got, err := agents.of(workspace)
	if err != nil || got.Credential.Uid < 81000 || got.Credential.Uid > 81009 {
		t.Errorf("it would be %+v, %v", got.Credential, err)
	}
	home := filepath.Join(homes(dir), workspace.String())
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	chown(t, home, 70123, 70123)
	if _, err := agents.of(workspace); err == nil || !strings.Contains(err.Error(), "70123") || !strings.Contains(err.Error(), "--agent-uids") {
		t.Errorf("with a home of another range: %v", err)
	}
	for _, name := range list() {
		if uid, err := strconv.Atoi(name); err == nil && uid >= 81000 && uid <= 81009 && !slices.Contains(before, name) {
			t.Errorf("uid %d was given", uid)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "uids")); !os.IsNotExist(err) {
		t.Errorf("a list was made in the data folder: %v", err)
	}
}

// What the doctor foresees for a workspace stays as it is while it looks, though others are given ids meanwhile: it makes the folder
// in which it asks an agent before the agent is started.
func TestTheAccountThatTheDoctorForeseesStays(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		return // all agents have one account
	}
	c := config.Default()
	c.AgentUIDs = "910000-910009"
	looks, err := lookAtAccount(c, pgtest.Folder(t))
	if err != nil {
		t.Fatal(err)
	}
	workspace := xid.New("wsp")
	foreseen, err := looks.of(workspace)
	if err != nil {
		t.Fatal(err)
	}
	server, err := accountOfAgents(c, pgtest.Folder(t), account.OpenClaims)
	if err != nil {
		t.Fatal(err)
	}
	if given, err := server.of(xid.New("wsp")); err != nil || given.Credential.Uid != foreseen.Credential.Uid {
		t.Fatalf("another workspace was given %+v, %v; want what was foreseen, %d", given.Credential, err, foreseen.Credential.Uid)
	}
	if again, err := looks.of(workspace); err != nil || again.Credential.Uid != foreseen.Credential.Uid {
		t.Errorf("it foresees %+v now, %v, and %d before", again.Credential, err, foreseen.Credential.Uid)
	}
}
