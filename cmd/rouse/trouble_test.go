package main

import (
	"bufio"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

func TestProgramSurvivesTheDeathOfItsDatabase(t *testing.T) {
	t.Parallel()
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	j := newJourney(p)
	w := newWorkshop(t)
	agent := j.script("three lines", w.threeLines())
	run := j.wake(agent)
	if got := j.subscribe(j.owner, followRun, map[string]any{"id": run}).line(); got != "line 1" {
		t.Fatalf("%q", got)
	}
	if err := syscall.Kill(clusterPID(t, data), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"seen1", "seen2", "seen3"} {
		w.touch(t, name)
	}
	eventually(t, "the database is back", patience, func() bool {
		status, body := p.post(p.owner, `query($id: ID!) { run(id: $id) { status } }`, map[string]any{"id": run})
		return status == 200 && strings.Contains(string(body), "FINISHED")
	})
	view := j.run(run)
	if view.attempts() != "SUCCEEDED" || len(view.lines()) < 3 {
		t.Errorf("the outage cost more than time: %+v", view)
	}
	if again := j.end(j.wake(j.agent("echo", map[string]any{"echo": map[string]any{}}))); again.Status != "FINISHED" {
		t.Errorf("%+v", again)
	}
	if code := p.end(syscall.SIGTERM); code != 0 || strings.Contains(p.log.String(), "database is closed") || strings.Contains(p.log.String(), "panic") {
		t.Errorf("exit %d:\n%s", code, p.log)
	}
}

func TestProgramStartsAgainFromEachKindOfEnd(t *testing.T) { // C230
	t.Parallel()
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	workspace := newJourney(p).workspace
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT, syscall.SIGKILL} {
		if code := p.end(signal); signal != syscall.SIGKILL && code != 0 {
			t.Errorf("exit %d:\n%s", code, p.log)
		}
		p = start(t, data, nil)
		var out struct{ Node *struct{ ID string } }
		p.request(`query($id: ID!) { node(id: $id) { id } }`, map[string]any{"id": workspace}, &out)
		if out.Node == nil {
			t.Fatalf("after %v the workspace is gone", signal)
		}
	}
}

func TestProgramInterruptedWhileItStarts(t *testing.T) {
	t.Parallel()
	data := pgtest.Folder(t)
	for _, after := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond, 100 * time.Millisecond} {
		p := launch(t, nil, "serve", "--addr", "127.0.0.1:0", "--data-dir", data)
		select { // there is no signal for "in the middle of the start"
		case <-time.After(after):
		case <-p.done:
			t.Fatalf("it ended by itself:\n%s", p.log)
		}
		code := p.end(syscall.SIGTERM)
		if code != 0 && code != -1 { // -1: before it listened for signals
			t.Errorf("after %v: exit %d:\n%s", after, code, p.log)
		}
		if _, running := postgres.RunningURL(filepath.Join(data, "postgres"), ""); running && code == 0 {
			t.Errorf("after %v: the database server runs on:\n%s", after, p.log)
		}
	}
	if code := start(t, data, nil).end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestProgramWithABootstrapToken(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef0123456789abcdef"
	p := start(t, pgtest.Installed(t), []string{"ROUSE_BOOTSTRAP_TOKEN=" + token}, "--addr", "0.0.0.0:0")
	if status, body := p.post("", "{ __typename }", nil); status != 401 {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body := p.post(token, "{ process { version } }", nil); status != 200 {
		t.Errorf("with it: %d %s", status, body)
	}
	if strings.Contains(p.log.String()+p.out.String(), token) {
		t.Error("the token is in the output")
	}
}

func TestProgramTokensWithoutAServer(t *testing.T) {
	t.Parallel()
	data := pgtest.Folder(t)
	made := launch(t, nil, "token", "create", "--data-dir", data, "--scope", "READ", "--name", "reader", "--expires", "1h")
	if code := made.wait(); code != 0 || !strings.HasPrefix(made.out.String(), "rse_") {
		t.Fatalf("exit %d: %s%s", code, made.out, made.log)
	}
	if said := made.log.String(); !strings.Contains(said, "made tok_") || !strings.Contains(said, `"reader": READ for the instance (all workspaces), for 1h0m0s`) || strings.Contains(said, "rse_") {
		t.Errorf("it is said of the token: %s", said)
	}
	list := launch(t, nil, "token", "list", "--data-dir", data)
	if code := list.wait(); code != 0 || !strings.Contains(list.out.String(), "reader") || !strings.Contains(list.out.String(), "live until") {
		t.Errorf("exit %d: %s%s", code, list.out, list.log)
	}
	p := start(t, data, nil) // the folder is free again
	none := launch(t, nil, "token", "create", "--data-dir", data, "--workspace", "nosuch")
	if code := none.wait(); code != 1 || !strings.Contains(none.log.String(), `there is no workspace "nosuch"`) {
		t.Errorf("a token of a workspace that is none: exit %d: %s", code, none.log)
	}
	beside := launch(t, nil, "token", "create", "--data-dir", data)
	if code := beside.wait(); code != 0 {
		t.Errorf("beside a server: exit %d: %s", code, beside.log)
	}
	if status, body := p.post(strings.TrimSpace(made.out.String()), "mutation { createWorkspace(input: {name: \"x\"}) { workspace { id } } }", nil); !strings.Contains(string(body), "FORBIDDEN") {
		t.Errorf("a reader writes: %d %s", status, body)
	}
}

func TestProgramPrunesOnRequest(t *testing.T) {
	t.Parallel()
	data := pgtest.Installed(t)
	start(t, data, nil)
	would := launch(t, nil, "prune", "--dry-run", "--retention", "24h", "--data-dir", data)
	if code := would.wait(); code != 0 || !strings.Contains(would.out.String(), "WOULD BE REMOVED") || !strings.Contains(would.out.String(), "activity entries") {
		t.Errorf("exit %d: %s%s", code, would.out, would.log)
	}
	done := launch(t, nil, "prune", "--data-dir", data)
	if code := done.wait(); code != 0 || !strings.HasPrefix(strings.TrimSpace(done.out.String()), "REMOVED") {
		t.Errorf("exit %d: %s%s", code, done.out, done.log)
	}
	short := launch(t, nil, "prune", "--retention", "1h", "--data-dir", data)
	if code := short.wait(); code != 2 || !strings.Contains(short.log.String(), "ROUSE_RETENTION") || !strings.Contains(short.log.String(), "24h") {
		t.Errorf("exit %d: %s", code, short.log)
	}
}

func TestProgramRefusesAnotherSecretKey(t *testing.T) {
	t.Parallel()
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d: %s", code, p.log)
	}
	other := []string{"ROUSE_SECRET_KEY=" + strings.Repeat("0f1e", 16)}
	refused := launch(t, other, "serve", "--addr", "127.0.0.1:0", "--data-dir", data)
	if code := refused.wait(); code != 1 || !strings.Contains(refused.log.String(), "--new-secret-key") {
		t.Errorf("with another key: exit %d: %s", code, refused.log)
	}
	lost := start(t, data, other, "--new-secret-key")
	if code := lost.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d: %s", code, lost.log)
	}
	start(t, data, other)
}

func TestProgramOutlivesTheReaderOfItsOutput(t *testing.T) {
	t.Parallel()
	data := pgtest.Installed(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "serve", "--addr", "127.0.0.1:0", "--data-dir", data)
	command.Stdout, command.Stderr = write, write
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	lines := bufio.NewScanner(read)
	for lines.Scan() && !strings.Contains(lines.Text(), "API") {
	}
	if err := read.Close(); err != nil { // as `rouse serve | head` does
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("it did not end by itself: %v", err)
	}
	if address, running := postgres.RunningURL(filepath.Join(data, "postgres"), ""); running {
		t.Errorf("its database still runs at %s", address)
	}
}

func TestProgramRefusesWhatItCannotDo(t *testing.T) { // C230
	t.Parallel()
	built, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		code int
		args []string
		want string
	}{
		{"the version as a flag", 0, []string{"--version"}, "rouse " + recordedVersion(built)},
		{"no command", 2, nil, "serve"},
		{"an unknown flag", 2, []string{"serve", "--colour"}, "--colour"},
		{"an address that is none", 2, []string{"serve", "--addr", "nowhere"}, "--addr"},
		{"a doctor of a database that is none", 2, []string{"doctor", "--database-url", "mysql://x"}, "ROUSE_DATABASE_URL"},
		{"a doctor of addresses that are none", 2, []string{"doctor", "--http-allow", "bad"}, "ROUSE_HTTP_ALLOW"},
		{"a database that does not answer", 1, []string{"serve", "--addr", "127.0.0.1:0", "--data-dir", pgtest.Folder(t), "--database-url",
			"postgres://nobody@127.0.0.1:1/none?sslmode=disable"}, "ROUSE_DATABASE_URL"},
		{"migrating a database that does not answer", 1, []string{"migrate", "--database-url", "postgres://nobody@127.0.0.1:1/none?sslmode=disable", "--data-dir", pgtest.Folder(t)}, "ROUSE_DATABASE_URL"},
		{"a token that ends before it begins", 2, []string{"token", "create", "--expires=-1h", "--data-dir", pgtest.Folder(t)}, "no time to come"},
		{"a token of a workspace in a folder without a database", 1, []string{"token", "create", "--workspace", "nosuch", "--data-dir", pgtest.Folder(t)}, "there is no database"},
		{"tokens of a folder without a database", 1, []string{"token", "list", "--data-dir", pgtest.Folder(t)}, "there is no database"},
		{"a flag of another command", 2, []string{"token", "list", "--addr", "x"}, "rouse token list --help"},
		{"a token of a scope that is none", 2, []string{"token", "create", "--scope", "KING", "--data-dir", pgtest.Folder(t)}, "KING"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := launch(t, nil, tt.args...)
			if code := p.wait(); code != tt.code || !strings.Contains(p.log.String()+p.out.String(), tt.want) {
				t.Errorf("exit %d: %s%s", code, p.out, p.log)
			}
		})
	}
}

// TestProgramTellsOfAMissingProgramAtOnce: trying again for hours would bring none.
func TestProgramTellsOfAMissingProgramAtOnce(t *testing.T) {
	t.Parallel()
	j := newJourney(start(t, pgtest.Installed(t), nil))
	agent := j.agent("missing", map[string]any{"command": map[string]any{"argv": []string{"no-such-agent"}}})
	id := j.wake(agent)
	if run := j.end(id); run.Status != "FAILED" || len(run.Attempts) != 1 || run.Attempts[0].Error == nil || !strings.Contains(run.Attempts[0].Error.Message, "install it") {
		t.Errorf("%+v", run)
	}
	var told struct {
		Workspace struct {
			Inbox struct {
				Edges []struct {
					Node struct{ Subject struct{ ID string } }
				}
			}
		}
	}
	j.request(`query($w: ID!) { workspace(id: $w) { inbox(filter: {kind: [AGENT_ERROR]}) { edges { node { subject { ... on Run { id } } } } } } }`,
		map[string]any{"w": j.workspace}, &told)
	if items := told.Workspace.Inbox.Edges; len(items) != 1 || items[0].Node.Subject.ID != id {
		t.Errorf("the inbox has %+v", items)
	}
}
