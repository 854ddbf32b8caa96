package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/migrations"
)

// childFolder, when set, makes this program one of several that share the cluster in a folder.
const childFolder = "ROUSE_TEST_CHILD_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		os.Exit(runChild(dir))
	}
	Main(m)
}

// runChild joins the cluster, says which server it is, and leaves when its input ends.
func runChild(dir string) int {
	s, err := joinCluster(dir)
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	if _, err := s.template(context.Background(), migrations.FS); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	text, err := os.ReadFile(filepath.Join(dir, "cluster", "data", "postmaster.pid"))
	pid, _, _ := strings.Cut(string(text), "\n")
	fmt.Println(pid, err)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	if err := s.leave(); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	return 0
}

func TestEveryTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	first, url := NewURL(t)
	second := New(t)
	if _, err := first.Exec("CREATE TABLE mine (id int)"); err != nil {
		t.Fatal(err)
	}
	var mine, migrated bool
	query := "SELECT to_regclass('mine') IS NOT NULL, to_regclass('goose_db_version') IS NOT NULL"
	if err := second.QueryRow(query).Scan(&mine, &migrated); err != nil || mine || !migrated {
		t.Fatalf("got mine %v, migrated %v, %v; want a migrated database without the other's table", mine, migrated, err)
	}
	third, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if err := third.QueryRow(query).Scan(&mine, &migrated); err != nil || !mine {
		t.Fatalf("the URL leads elsewhere: %v", err)
	}
}

func TestAnEmptyDatabaseHasNoTables(t *testing.T) {
	db, _ := Empty(t)
	var n int
	query := "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
	if err := db.QueryRow(query).Scan(&n); err != nil || n != 0 {
		t.Fatalf("got %d tables, %v", n, err)
	}
}

func TestADatabaseIsDroppedAfterItsTest(t *testing.T) {
	var name string
	t.Run("a test", func(t *testing.T) {
		if err := New(t).QueryRow("SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var there bool
	err := New(t).QueryRow("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil || there {
		t.Fatalf("%s is still there: %v, %v", name, there, err)
	}
}

func TestManyTestsSideBySideHaveRoom(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				db := New(t)
				if err := db.Ping(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// cloneLimit is generous: on a quiet machine it is 10 to 25 ms.
const cloneLimit = 500 * time.Millisecond

func TestCloningIsFast(t *testing.T) {
	New(t)
	const n = 20
	began := time.Now()
	for range n {
		t.Run("a test", func(t *testing.T) { New(t) })
	}
	each := time.Since(began) / n
	t.Logf("a database takes %v", each)
	if each > cloneLimit {
		t.Errorf("a database takes %v, want less than %v", each, cloneLimit)
	}
}

func TestATemplateThatWasNeverFinishedIsBuiltAgain(t *testing.T) {
	New(t)
	s := shared.server
	files := fstest.MapFS{"20250101000000_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (id int);\n")}}
	key, err := hash(files)
	if err != nil {
		t.Fatal(err)
	}
	db, _ := Empty(t)
	if _, err := db.Exec("CREATE DATABASE " + templatePrefix + key); err != nil { // as a killed builder leaves it
		t.Fatal(err)
	}
	name, err := s.template(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	clone, err := s.clone(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer s.discard(clone)
	got, err := postgres.Open(t.Context(), s.url(clone))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if _, err := got.Exec("SELECT * FROM a"); err != nil {
		t.Fatal(err)
	}
}

func TestTheHashKnowsNamesAndContent(t *testing.T) {
	seen := map[string]string{}
	for name, files := range map[string]fstest.MapFS{
		"one file":        {"a.sql": {Data: []byte("x")}},
		"another content": {"a.sql": {Data: []byte("y")}},
		"another name":    {"b.sql": {Data: []byte("x")}},
		"two files":       {"a.sql": {Data: []byte("x")}, "b.sql": {Data: []byte("x")}},
	} {
		h, err := hash(files)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[h] = name
	}
}

func TestWhichDatabasesAreAbandoned(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, want := range map[string]bool{
		"rouse_test_1700000000_1_1": true,
		"rouse_test_1799999000_1_1": false,
		"rouse_test_notes":          false,
		"rouse_test_x_1_1":          false,
	} {
		if got := abandoned(name, now); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// program is one of several test programs that share a cluster.
type program struct {
	cmd    *exec.Cmd
	input  io.Closer
	server string // process id of the server it uses
}

func launch(t *testing.T, dir string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childFolder+"="+dir)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, ok := strings.CutSuffix(line, " <nil>\n")
	if err != nil || !ok {
		t.Fatalf("the program says %q, %v", line, err)
	}
	return &program{cmd: cmd, input: input, server: pid}
}

func (p *program) leave(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.input.Close(), p.cmd.Wait()); err != nil {
		t.Error(err)
	}
}

func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil {
		t.Error("it ended by itself")
	}
}

// runs tells whether a server works: a zombie does not.
func runs(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(n, 0) != nil {
		return false
	}
	_, err = os.Readlink(filepath.Join("/proc", pid, "cwd"))
	return !errors.Is(err, fs.ErrNotExist)
}

func TestProgramsShareOneServerAndTheLastStopsIt(t *testing.T) {
	dir := Folder(t) + "/shared"
	launched := make([]*program, 3)
	var wg sync.WaitGroup
	for i := range launched {
		wg.Go(func() { launched[i] = launch(t, dir) }) // at once
	}
	wg.Wait()
	for _, p := range launched {
		if p.server != launched[0].server {
			t.Fatalf("two servers: %s and %s", p.server, launched[0].server)
		}
	}
	launched[0].leave(t)
	launched[1].leave(t)
	if !runs(t, launched[2].server) {
		t.Fatal("the server was stopped under the last program")
	}
	launched[2].leave(t)
	if runs(t, launched[2].server) {
		t.Fatal("the last program left the server running")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the last program left the folder: %v", err)
	}
}

func TestTheNextRunEndsWhatAKilledOneLeft(t *testing.T) {
	dir := Folder(t) + "/shared"
	first := launch(t, dir)
	first.kill(t)
	if !runs(t, first.server) {
		t.Fatal("the server died with the program, so this proves nothing")
	}
	second := launch(t, dir)
	if runs(t, first.server) || second.server == first.server {
		t.Fatal("the server that was left still runs")
	}
	third := launch(t, dir) // a program killed beside others changes nothing
	third.kill(t)
	second.leave(t)
	if runs(t, second.server) {
		t.Fatal("the last program left the server running")
	}
}

func TestAFolderOfAnotherAccountIsRefused(t *testing.T) {
	dir := Folder(t) + "/shared"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := joinCluster(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Fatalf("got %v, want a refusal", err)
	}
}

func TestANamedServerIsUsedAndLeftClean(t *testing.T) {
	New(t)
	s, err := named(shared.server.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	template, err := s.template(t.Context(), migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	name, err := s.clone(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	s.discard(name)
	if err := s.leave(); err != nil {
		t.Fatal(err)
	}
	var there bool
	err = New(t).QueryRow("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil || there {
		t.Fatalf("%s is left: %v, %v", name, there, err)
	}
	if _, err := named("postgres://u:s3cr3t%zz@h/d"); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Fatalf("got %v, want an error without the password", err)
	}
}

func TestWithoutDockerItSaysSo(t *testing.T) {
	s, err := startContainer()
	if err != nil {
		t.Logf("no Docker here: %v", err)
		return
	}
	defer func() {
		if err := s.leave(); err != nil {
			t.Error(err)
		}
	}()
	name, err := s.clone(t.Context(), "template0")
	if err != nil {
		t.Fatal(err)
	}
	s.discard(name)
}

func BenchmarkNew(b *testing.B) {
	New(b)
	for b.Loop() {
		New(b)
	}
}

func TestAnInstalledFolderHoldsAMigratedClusterOfItsOwn(t *testing.T) {
	for range 2 { // the second is as the first was, whatever became of that
		dir := Installed(t)
		c, err := postgres.StartCluster(t.Context(), postgres.Options{Dir: filepath.Join(dir, clusterName), Log: slog.New(slog.DiscardHandler), Throwaway: true})
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.Open(t.Context(), c.URL("rouse"))
		if err != nil {
			t.Fatal(err)
		}
		missing, empty, err := postgres.Pending(t.Context(), db, migrations.FS)
		if err != nil || empty || missing > 0 {
			t.Errorf("%d migrations are missing, empty %t, %v", missing, empty, err)
		}
		if _, err := db.Exec("CREATE TABLE mine (id int)"); err != nil {
			t.Error(err)
		}
		if err := errors.Join(db.Close(), c.Stop(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
