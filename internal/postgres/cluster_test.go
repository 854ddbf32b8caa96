package postgres

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/account"
)

// childFolder, when set, makes this test program a rouse that holds a folder and runs a cluster until it is killed.
const childFolder = "ROUSE_TEST_CHILD_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		runChild(dir)
	}
	os.Exit(m.Run())
}

func runChild(dir string) {
	_, err := LockFolder(dir)
	if err == nil {
		_, err = StartCluster(context.Background(), Options{Dir: filepath.Join(dir, "postgres"), Log: quiet, Throwaway: true})
	}
	fmt.Println("started:", err)
	select {}
}

var quiet = slog.New(slog.DiscardHandler)

// folder is one that the server's account can reach, unlike t.TempDir for root; in memory where there is enough.
func folder(t testing.TB) string {
	t.Helper()
	var base string
	var stat syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &stat); err == nil && stat.Bavail*uint64(stat.Bsize) > 1<<30 {
		base = "/dev/shm"
	}
	return folderIn(t, base)
}

func folderIn(t testing.TB, base string) string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "rouse-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start runs a cluster that does not wait for the disk: the death of a process loses nothing all the same.
func start(t testing.TB, dir string) *Cluster {
	t.Helper()
	return startWith(t, Options{Dir: dir, Throwaway: true})
}

func startWith(t testing.TB, o Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o.Log = quiet
	c, err := StartCluster(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t testing.TB, c *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
	select {
	case <-c.Done():
	default:
		t.Error("stopped, but Done is open")
	}
}

func connect(t testing.TB, c *Cluster) *sql.DB {
	t.Helper()
	db, err := Open(t.Context(), c.URL("rouse"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

func expectKept(t testing.TB, c *Cluster) {
	t.Helper()
	var n int
	if err := connect(t, c).QueryRow("SELECT n FROM kept").Scan(&n); err != nil || n != 7 {
		t.Fatalf("got %d, %v, want the row committed before", n, err)
	}
}

func gone(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the server did not end")
	}
}

func TestAClusterIsMadeStoppedAndStartedAgainWithItsData(t *testing.T) {
	dir := filepath.Join(folderIn(t, ""), "data", "postgres") // as people run it: on a disk, and durable
	began := time.Now()
	c := startWith(t, Options{Dir: dir})
	t.Logf("first start took %v", time.Since(began))
	db := connect(t, c)
	mustExec(t, db, "CREATE TABLE kept AS SELECT 7 AS n")
	for setting, want := range map[string]string{
		"server_encoding": "UTF8", "TimeZone": "UTC", "listen_addresses": "", "application_name": "rouse",
		"lc_collate": "C", "lc_ctype": "C.UTF-8", "fsync": "on", "idle_in_transaction_session_timeout": "15s",
	} {
		var got string
		if err := db.QueryRow("SELECT current_setting($1)", setting).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	began = time.Now()
	stop(t, c)
	t.Logf("stop took %v", time.Since(began))
	stop(t, c) // a second time is fine
	if c.Err() != nil {
		t.Errorf("got %v, want no failure after a regular stop", c.Err())
	}
	began = time.Now()
	c = startWith(t, Options{Dir: dir})
	t.Logf("later start took %v", time.Since(began))
	expectKept(t, c)
}

func TestTheServerIsApartFromOurTerminalAndEnvironment(t *testing.T) {
	t.Setenv("ROUSE_SOMETHING", "s3cr3t")
	t.Setenv("PGOPTIONS", "-c work_mem=1MB")
	c := start(t, filepath.Join(folder(t), "postgres"))
	group, err := syscall.Getpgid(c.PID())
	if err != nil || group != c.PID() {
		t.Fatalf("its process group is %d, %v; want its own, which Ctrl-C does not reach", group, err)
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.PID()))
	if errors.Is(err, os.ErrNotExist) {
		return // this system does not show environments
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(environment), "s3cr3t") || strings.Contains(string(environment), "PGOPTIONS") {
		t.Fatal("the server got our environment")
	}
}

func TestAListenerWorksOnTheURLOfACluster(t *testing.T) {
	c := start(t, filepath.Join(folder(t), "postgres"))
	l := pq.NewListener(c.URL("rouse"), time.Second, time.Minute, nil)
	t.Cleanup(func() { _ = l.Close() })
	if err := l.Listen("runs"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, connect(t, c), "SELECT pg_notify('runs', 'run_1')")
	select {
	case n := <-l.Notify:
		if n == nil || n.Extra != "run_1" {
			t.Fatalf("got %+v, want run_1", n)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no notification came")
	}
}

func TestOnlyRootAndTheServersAccountGetIn(t *testing.T) {
	c := start(t, filepath.Join(folder(t), "postgres"))
	for _, path := range []string{c.data(), c.socket.path} {
		if err := closed(path, c.account); err != nil {
			t.Error(err)
		}
	}
	if os.Geteuid() != 0 {
		return // one account cannot be kept out by itself
	}
	nobody, err := account.ForCommands("")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.socket.path, 0o711); err != nil { // as if somebody had opened the folder
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(c.socket.path, socketFile), 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(c.binaries.Dir, "psql"), c.URL("rouse"), "-c", "SELECT 1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody.Credential()}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "eer authentication failed") {
		t.Fatalf("psql as nobody: %v: %s; want to be refused by the server", err, out)
	}
}

func TestAServerThatIsKilledIsNoticedAndRecovers(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	c := start(t, dir)
	mustExec(t, connect(t, c), "CREATE TABLE kept AS SELECT 7 AS n")
	if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, c.Done())
	if c.Err() == nil || !strings.Contains(c.Err().Error(), "killed") {
		t.Errorf("got %v, want the way it ended", c.Err())
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); err != nil {
		t.Fatalf("the crash left no pid file, so this proves nothing: %v", err)
	}
	expectKept(t, start(t, dir))
}

func TestAStartWaitsForProcessesOfACrashedServer(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	c := start(t, dir)
	db := connect(t, c)
	mustExec(t, db, "CREATE TABLE kept AS SELECT 7 AS n")
	busy := make(chan error, 1)
	running := make(chan struct{})
	go func() { // a busy process looks for the end of its server only now and then
		conn, err := db.Conn(context.Background())
		if err == nil {
			defer conn.Close()
			close(running)
			_, err = conn.ExecContext(context.Background(), "SELECT count(*) FROM generate_series(1, 20000000)")
		}
		busy <- err
	}()
	<-running
	waitFor(t, func() bool {
		var n int
		err := db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 2000%' AND pid <> pg_backend_pid()").Scan(&n)
		return err == nil && n > 0
	})
	if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, c.Done())
	expectKept(t, start(t, dir))
	if err := <-busy; err != nil {
		t.Logf("the busy query ended with its server: %v", err)
	}
}

// waitFor asks until something outside this process has happened.
func waitFor(t testing.TB, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAServerLeftByAKilledProcessIsTakenOver(t *testing.T) {
	dir := folder(t)
	child := startChild(t, dir)
	var inUse *FolderInUseError
	if _, err := LockFolder(dir); !errors.As(err, &inUse) || inUse.PID != child.Process.Pid {
		t.Fatalf("got %v, want a refusal that names process %d", err, child.Process.Pid)
	}
	kill(t, child)

	lock, err := LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, filepath.Join(dir, "postgres"))
	if pid := strings.SplitN(string(left), "\n", 2)[0]; pid != strconv.Itoa(c.PID()) {
		t.Fatalf("the server is process %d, want the one left over, %s", c.PID(), pid)
	}
	mustExec(t, connect(t, c), "CREATE TABLE kept AS SELECT 7 AS n")
	stop(t, c)
	if serves(c.PID(), c.data()) {
		t.Fatal("the server taken over still runs after Stop")
	}
	expectKept(t, start(t, filepath.Join(dir, "postgres")))
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

func startChild(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childFolder+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "started: <nil>\n" {
		kill(t, child)
		t.Fatalf("the child says %q, %v", line, err)
	}
	return child
}

func kill(t *testing.T, child *exec.Cmd) {
	t.Helper()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
}

func TestAServerTakenOverThatEndsByItselfIsNoticed(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	first := start(t, dir)
	second := start(t, dir)
	if first.PID() != second.PID() {
		t.Fatalf("got processes %d and %d, want one server", first.PID(), second.PID())
	}
	if err := syscall.Kill(first.PID(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	gone(t, first.Done())
	gone(t, second.Done())
}

func TestStalePIDFiles(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(folder(t), "postgres")
	c := start(t, dir)
	mustExec(t, connect(t, c), "CREATE TABLE kept AS SELECT 7 AS n")
	path := filepath.Join(c.data(), "postmaster.pid")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	beside := filepath.Join(c.socket.path, socketFile+".lock") // names the server too
	living := exec.Command("sleep", "600")                     // under the server's own account: only then PostgreSQL believes the number
	living.SysProcAttr = &syscall.SysProcAttr{Credential: c.account.Credential()}
	if err := living.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = living.Process.Kill()
		_ = living.Wait() // says that it was killed
	}()
	for name, content := range map[string]string{
		"of a dead process":                       strconv.Itoa(dead.Process.Pid) + "\n" + rest,
		"whose number another program got":        strconv.Itoa(living.Process.Pid) + "\n" + rest,
		"that a crash of the machine left empty":  "",
		"of our own number, as after a container": strconv.Itoa(os.Getpid()) + "\n" + rest,
	} {
		t.Run("a pid file "+name+" does not hinder a start", func(t *testing.T) {
			stop(t, c)
			for _, path := range []string{path, beside} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := give(path, c.account); err != nil {
					t.Fatal(err)
				}
			}
			c = start(t, dir)
			expectKept(t, c)
			stop(t, c)
		})
	}
}

func TestAnInterruptedFirstStartLeavesNothingThatFails(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		waitFor(t, func() bool {
			m, err := filepath.Glob(filepath.Join(dir, initPrefix+"*", "global"))
			return err == nil && len(m) > 0
		})
		cancel()
	}()
	_, err := StartCluster(ctx, Options{Dir: dir, Log: quiet, Throwaway: true})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the interruption", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want no data folder", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, initPrefix+"killed", "base"), 0o700); err != nil { // as kill -9 leaves it
		t.Fatal(err)
	}
	start(t, dir)
	if m, err := filepath.Glob(filepath.Join(dir, initPrefix+"*")); err != nil || len(m) != 0 {
		t.Fatalf("unfinished folders are left: %v, %v", m, err)
	}
}

func TestAPathTooLongForASocketUsesATemporaryFolder(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("long", 30), "postgres")
	c := start(t, dir)
	socket := c.socket.path
	if strings.HasPrefix(socket, dir) || !fits(socket) {
		t.Fatalf("the socket is in %s", socket)
	}
	mustExec(t, connect(t, c), "CREATE TABLE kept AS SELECT 7 AS n")
	if again := start(t, dir); again.socket.path != socket || again.PID() != c.PID() {
		t.Fatalf("the second start uses %s, want %s", again.socket.path, socket)
	}
	if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, c.Done())
	c = start(t, dir)
	if c.socket.path != socket {
		t.Fatalf("the start after a crash uses %s, want %s again", c.socket.path, socket)
	}
	expectKept(t, c)
	stop(t, c)
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is left after Stop: %v", socket, err)
	}
}

func TestStopIsImmediateWhenItsTimeIsOver(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	c := start(t, dir)
	mustExec(t, connect(t, c), "CREATE TABLE kept AS SELECT 7 AS n")
	if err := syscall.Kill(c.PID(), syscall.SIGSTOP); err != nil { // deaf to SIGINT
		t.Fatal(err)
	}
	wake := time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(c.PID(), syscall.SIGCONT) })
	defer wake.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want an error that says it was not a regular stop", err)
	}
	gone(t, c.Done())
	expectKept(t, start(t, dir))
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	c := start(t, dir)
	stop(t, c)
	if err := os.Remove(filepath.Join(c.data(), "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	_, err := StartCluster(t.Context(), Options{Dir: dir, Log: quiet})
	if err == nil || !strings.Contains(err.Error(), "could not find the database system") {
		t.Fatalf("got %v, want PostgreSQL's own words", err)
	}
}

func TestALargeServerLogIsPutAside(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	c := start(t, dir)
	stop(t, c)
	path := filepath.Join(dir, "server.log")
	if err := os.Truncate(path, logLimit+1); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	info, err := os.Stat(path)
	if err != nil || info.Size() > 1<<20 {
		t.Fatalf("the log has %d bytes, %v; want a new one", info.Size(), err)
	}
	if _, err := os.Stat(path + ".old"); err != nil {
		t.Fatal(err)
	}
}

func TestStopLeftEndsAServerNobodyOwns(t *testing.T) {
	dir := folder(t)
	kill(t, startChild(t, dir))
	cluster := filepath.Join(dir, "postgres")
	server, ok := left(filepath.Join(cluster, "data"))
	if !ok {
		t.Fatal("no server is left, so this proves nothing")
	}
	for range 2 { // a second time is fine
		if err := StopLeft(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	if serves(server.pid, filepath.Join(cluster, "data")) {
		t.Fatal("it still runs")
	}
}

func BenchmarkFirstStart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir := filepath.Join(folderIn(b, ""), "postgres")
		b.StartTimer()
		c := startWith(b, Options{Dir: dir})
		b.StopTimer()
		stop(b, c)
		b.StartTimer()
	}
}

func BenchmarkLaterStart(b *testing.B) {
	dir := filepath.Join(folderIn(b, ""), "postgres")
	stop(b, startWith(b, Options{Dir: dir}))
	for b.Loop() {
		c := startWith(b, Options{Dir: dir})
		b.StopTimer()
		stop(b, c)
		b.StartTimer()
	}
}

func BenchmarkStop(b *testing.B) {
	dir := filepath.Join(folderIn(b, ""), "postgres")
	for b.Loop() {
		b.StopTimer()
		c := startWith(b, Options{Dir: dir})
		b.StartTimer()
		stop(b, c)
	}
}
