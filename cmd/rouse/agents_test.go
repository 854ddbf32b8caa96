package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// workshop is a folder that agents of any account can work in.
type workshop struct{ dir string }

func newWorkshop(t testing.TB) workshop {
	t.Helper()
	w := workshop{pgtest.Folder(t)}
	if err := os.Chmod(w.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w workshop) path(name string) string { return filepath.Join(w.dir, name) }

func (w workshop) exists(name string) bool {
	_, err := os.Stat(w.path(name))
	return err == nil
}

// touch makes a file that a script waits for.
func (w workshop) touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(w.path(name), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

// threeLines prints three lines over two seconds, and goes on after each only when the test has seen it.
func (w workshop) threeLines() string {
	return fmt.Sprintf(`cat >/dev/null
for i in 1 2 3; do
	echo "line $i"
	sleep 0.6
	until [ -e %s$i ]; do sleep 0.05; done
done
echo '{"summary": "printed three lines"}'`, w.path("seen"))
}

// longWork never ends by itself, and has a child in the background.
const longWork = `cat >/dev/null
sleep 1000 &
echo "pids $$ $!"
wait`

// guarded works for ever in its first attempt and at once in later ones. It holds a lock all the time, its children too,
// one of which leaves the process group, and reports when another process of it lives.
func (w workshop) guarded() string {
	return fmt.Sprintf(`cat >/dev/null
cd %s || exit 1
exec 9>>lock
flock -n 9 || { echo overlap >>overlap; exit 9; }
tries=$(cat tries 2>/dev/null || echo 0)
tries=$((tries + 1))
echo $tries >tries
echo "$ROUSE_RUN_TOKEN" >token$tries
chmod 666 token$tries
if [ $tries -gt 1 ]; then
	echo '{"summary": "done in a later attempt"}'
	exit 0
fi
sleep 1000 &
child=$!
setsid sh -c 'echo $$ >stray; exec sleep 1000' &
until [ -s stray ]; do sleep 0.05; done
echo "pids $$ $child $(cat stray)"
wait`, w.dir)
}

// pidsOf reads the line "pids 12 13".
func pidsOf(t *testing.T, line string) []int {
	t.Helper()
	var pids []int
	for _, field := range strings.Fields(strings.TrimPrefix(line, "pids ")) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// living lists which of the processes are there; one that only waits for its parent is not.
func living(pids []int) []int {
	var left []int
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil && !isZombie(pid) {
			left = append(left, pid)
		}
	}
	return left
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// processesOf lists the live processes that were started for a run, wherever they went.
func processesOf(t *testing.T, run string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(environment), "ROUSE_RUN_ID="+run) {
			continue // it ended meanwhile, or is none of ours
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && !isZombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
