package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

// onlyRoot says whether this is root, who alone can give agents accounts of their own.
func onlyRoot(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("as an ordinary user all agents run as that user, and docs/security.md says what they can do")
	}
	return os.Geteuid() == 0
}

// attempts are what an agent tries on another workspace's, whose process, folder and home are $1, $2 and $3, and on rouse, whose data
// folder is $4. A line says what could be done.
const attempts = `cat >/dev/null
tries() { what=$1; shift; if "$@" >/dev/null 2>&1 </dev/null; then echo "could: $what"; fi; }
tries "read the environment" cat /proc/$VICTIM/environ
tries "see the working folder" ls /proc/$VICTIM/cwd/
tries "open its files" ls /proc/$VICTIM/fd
tries "signal it" kill -0 $VICTIM
tries "end it" kill -KILL $VICTIM
tries "list its work" ls "$WORK"
tries "read its work" cat "$WORK/notes"
tries "write its work" touch "$WORK/mine"
tries "list its home" ls "$ITSHOME"
tries "write its home" touch "$ITSHOME/mine"
tries "list the data folder" ls "$DATA"
tries "write the data folder" touch "$DATA/mine"
tries "read the token" cat "$DATA/token"
tries "read the key" cat "$DATA/secret.key"
tries "enter the database's folder" ls "$DATA/postgres"
tries "reach the database" psql -h "$DATA/postgres/run" -U rouse -d rouse -c "SELECT 1"
tries "reach the database elsewhere" psql -h "$SOCKETS" -U rouse -d rouse -c "SELECT 1"
tries "read the list of ids" ls /var/lib/rouse-uids
tries "become root" sudo -n true
tries "read the server" cat /proc/$PPID/environ
tries "write a program of all" touch /usr/local/bin/rouse-mine
tries "make a cgroup" sh -c 'mkdir /sys/fs/cgroup/mine || mkdir /sys/fs/cgroup/unified/mine'
echo '{"summary": "tried"}'`

func TestProgramKeepsTheAgentsOfWorkspacesApart(t *testing.T) {
	t.Parallel()
	if !onlyRoot(t) {
		return
	}
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	one, other := newJourney(p), newJourney(p)
	victim := one.agent("victim", command(`cat >/dev/null; echo mine >notes; echo "pids $$"; sleep 1000`, map[string]string{"SECRET": "of-workspace-one"}))
	run := one.wake(victim)
	pid := pidsOf(t, one.subscribe(one.owner, followRun, map[string]any{"id": run}).line())[0]
	address, _ := databaseOf(t, data)
	sockets := ""
	if at := strings.Index(address, "host="); at >= 0 {
		sockets, _, _ = strings.Cut(address[at+len("host="):], "&")
	}
	settings := map[string]string{"VICTIM": strconv.Itoa(pid), "WORK": filepath.Join(data, "work", victim), "ITSHOME": filepath.Join(data, "homes", one.workspace),
		"DATA": data, "SOCKETS": strings.ReplaceAll(sockets, "%2F", "/")}
	if got := other.end(other.wake(other.agent("evil", command(attempts, settings)))); got.Status != "FINISHED" || strings.Contains(strings.Join(got.lines(), "\n"), "could:") {
		t.Errorf("%s: %q", got.Status, got.lines())
	}
	if len(living([]int{pid})) != 1 {
		t.Error("the other workspace's agent has ended")
	}
	// What it could do as the same account shows that the tries are good ones.
	same := one.end(one.wake(one.agent("sibling", command(attempts, settings))))
	for _, can := range []string{"read the environment", "signal it", "list its work", "write its home"} {
		if !strings.Contains(strings.Join(same.lines(), "\n"), "could: "+can) {
			t.Errorf("an agent of the same workspace could not %s: %q", can, same.lines())
		}
	}
}

// command is an executor that runs a script with an environment.
func command(script string, environment map[string]string) map[string]any {
	var values []map[string]any
	for name, value := range environment {
		values = append(values, map[string]any{"name": name, "value": value})
	}
	return map[string]any{"command": map[string]any{"argv": []string{"/bin/sh", "-c", script}, "grace": "PT2S", "environment": values}}
}

// asks is what programs ask about who they are.
const asks = `cat >/dev/null
id -un; whoami; getent passwd "$(id -u)" | cut -d: -f1; getent group "$(id -g)" | cut -d: -f1
node -e 'console.log(os.userInfo().username, os.userInfo().homedir)'
ssh -o BatchMode=yes -o ConnectTimeout=1 -p 1 127.0.0.1 true 2>&1 | grep -c "No user exists"
git init -q repository && cd repository && git commit -q --allow-empty -m first && git log -1 --format='%an <%ae>'
echo "home $HOME $(stat -c '%a %U' "$HOME")"
echo '{"summary": "told"}'`

func TestProgramGivesEachWorkspacesAgentsANameAndAHome(t *testing.T) {
	t.Parallel()
	if !onlyRoot(t) {
		return
	}
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	j := newJourney(p)
	agent := j.script("curious", asks)
	lines := j.end(j.wake(agent)).lines()
	if len(lines) < 8 {
		t.Fatalf("got %q", lines)
	}
	name, home := lines[0], filepath.Join(data, "homes", j.workspace)
	host, _ := os.Hostname()
	for i, want := range []string{name, name, name, name, name + " " + home, "0", fmt.Sprintf("agents of %s <%s@%s>", j.workspace, name, host), "home " + home + " 700 " + name} {
		if lines[i] != want || !strings.HasPrefix(name, "rouse-") {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], want)
		}
	}
	// The next start, and a shell, are the same account in the same home.
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d", code)
	}
	again := start(t, data, nil)
	if next := j.on(t, again).end(j.on(t, again).wake(agent)).lines(); len(next) == 0 || next[0] != name {
		t.Errorf("after a restart: %q", next)
	}
	shell := exec.Command(binary, "agent-shell", "--data-dir", data, "--workspace", j.workspace, "--", "/bin/sh", "-c", `whoami; pwd; exit 7`)
	out, err := shell.Output()
	if code := shell.ProcessState.ExitCode(); code != 7 || string(out) != name+"\n"+home+"\n" {
		t.Errorf("the shell ended with %d (%v) and said %q", code, err, out)
	}
	if out, err := exec.Command(binary, "agent-shell", "--data-dir", data, "--workspace", "none").CombinedOutput(); err == nil || !strings.Contains(string(out), `there is no workspace "none"`) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestProgramHandsOverFoldersOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	if !onlyRoot(t) {
		return
	}
	data := pgtest.Installed(t)
	p := start(t, data, nil, "--agent-user", "nobody") // as an earlier version always did
	one, other := newJourney(p), newJourney(p)
	const leave = `cat >/dev/null; mkdir -p sub && echo mine >sub/notes; mkdir -p "$HOME" && echo login >"$HOME/.login"; ln -sf /etc/shadow planted; whoami; echo '{"summary": "left"}'`
	const look = `cat >/dev/null; cat sub/notes "$HOME/.login" && echo more >>sub/notes && whoami; ls -n planted | cut -d" " -f3; echo '{"summary": "seen"}'`
	agents := map[string]journey{one.script("first", leave): one, other.script("second", leave): other}
	for agent, j := range agents {
		if lines := j.end(j.wake(agent)).lines(); len(lines) == 0 || lines[0] != "nobody" {
			t.Fatalf("got %q", lines)
		}
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d", code)
	}
	again := start(t, data, nil)
	names := map[string]bool{}
	for agent, j := range agents {
		j = j.on(t, again)
		var out any
		j.request(`mutation($id: ID!, $argv: [String!]!) { updateAgent(input: {agentId: $id, executor: {command: {argv: $argv}}}) { userErrors { message } } }`,
			map[string]any{"id": agent, "argv": []string{"/bin/sh", "-c", look}}, &out)
		lines := j.end(j.wake(agent)).lines()
		if len(lines) < 4 || lines[0] != "mine" || lines[1] != "login" || !strings.HasPrefix(lines[2], "rouse-") {
			t.Fatalf("got %q\n%s", lines, again.log)
		}
		names[lines[2]] = true
	}
	if len(names) != 2 {
		t.Errorf("two workspaces have the accounts %v", names)
	}
	if stat, err := os.Stat("/etc/shadow"); err != nil || stat.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("/etc/shadow: %v, %v", stat, err)
	}
}

// TestProgramSaysWhatHappensWhenIDsRunOut: the others go on.
func TestProgramSaysWhatHappensWhenIDsRunOut(t *testing.T) {
	t.Parallel()
	if !onlyRoot(t) {
		return
	}
	data := pgtest.Installed(t)
	p := start(t, data, nil, "--agent-uids", "39995000-39995001")
	one, other := newJourney(p), newJourney(p)
	first := one.script("first", `cat >/dev/null; id -u; echo '{"summary": "well"}'`)
	if lines := one.end(one.wake(first)).lines(); len(lines) == 0 || lines[0] != "39995000" {
		t.Fatalf("got %q", lines)
	}
	if run := other.end(other.wake(other.script("second", "true"))); run.Status != "FAILED" || len(run.Attempts) != 1 || run.Attempts[0].Error == nil || !strings.Contains(run.Attempts[0].Error.Message, "--agent-uids") {
		t.Errorf("%+v", run)
	}
	if run := one.end(one.wake(first)); run.Status != "FINISHED" {
		t.Errorf("%+v", run)
	}
	out, err := exec.Command(binary, "doctor", "--data-dir", data, "--agent-uids", "39995000-39995001").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FAIL user ids: all of 39995000-39995001 were given") || !strings.Contains(string(out), "give a longer range with --agent-uids") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestProgramEndsWhatEscapesWithItsServer: a process without the mark, in a session of its own, of a server that is killed.
func TestProgramEndsWhatEscapesWithItsServer(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"as it comes": nil, "without cgroups": {"--agent-cgroups=false"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(args) > 0 && !onlyRoot(t) { // an ordinary user has neither cgroups nor ids to find it by
				return
			}
			data := pgtest.Installed(t)
			p := start(t, data, nil, args...)
			j := newJourney(p)
			run := j.wake(j.script("escapes", `cat >/dev/null
env -i setsid sh -c 'echo "pids $$"; exec sleep 1000' &
sleep 1000`))
			pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": run}).line())
			if len(living(pids)) != 1 {
				t.Fatalf("of %v there are %v", pids, living(pids))
			}
			p.end(syscall.SIGKILL)
			start(t, data, nil, args...)
			if left := living(pids); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// TestProgramSaysWhatOneAccountMeans: the banner and the doctor.
func TestProgramSaysWhatOneAccountMeans(t *testing.T) {
	t.Parallel()
	if !onlyRoot(t) {
		return
	}
	data := pgtest.Installed(t)
	p := start(t, data, nil, "--agent-user", "nobody")
	const means = "one account for the agents of all workspaces, which can read each other's secrets"
	if !strings.Contains(p.out.String(), means) {
		t.Errorf("the banner does not say it:\n%s", p.out)
	}
	if out, err := exec.Command(binary, "doctor", "--data-dir", data, "--agent-user", "nobody").CombinedOutput(); err != nil || !strings.Contains(string(out), means) {
		t.Errorf("%v: %s", err, out)
	}
	out, err := exec.Command(binary, "doctor", "--data-dir", data).CombinedOutput()
	for _, want := range []string{"agents run as a user id for each workspace (70000-74095)", "ok   ends: ", "are free", "ok   names: "} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: the doctor does not say %q:\n%s", err, want, out)
		}
	}
}

// TestProgramThatHangsHasItsAgentsEndedBeforeTheirLeasesEnd: a server or a worker that stands still can end nobody itself, and another
// one takes its runs up when their leases are over.
func TestProgramThatHangsHasItsAgentsEndedBeforeTheirLeasesEnd(t *testing.T) {
	t.Parallel()
	p := start(t, pgtest.Installed(t), nil, "--lease", "5s", "--drain", "0s")
	j := newJourney(p)
	pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": j.wake(j.script("long", longWork))}).line())
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent of a server that stands still is gone", patience, func() bool { return len(living(pids)) == 0 })
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// chains are agents that leave a chain of processes behind, each of which lives for 0.1 ms; $9 is open in all of them.
var chains = map[string]string{
	"a chain":                                      `"$SELF" fork-chain same & echo on`,
	"a chain with a session for each step":         `"$SELF" fork-chain setsid & echo on`,
	"one without the mark":                         `env -i setsid "$SELF" fork-chain setsid & echo on`,
	"one without the mark in a session of its own": `env -i setsid "$SELF" fork-chain same & echo on`,
}

// TestProgramEndsChainsOfProcesses with their attempt, and with a server that is killed.
func TestProgramEndsChainsOfProcesses(t *testing.T) {
	for mode, args := range map[string][]string{"as it comes": nil, "without cgroups": {"--agent-cgroups=false"}} {
		t.Run(mode, func(t *testing.T) {
			data := pgtest.Installed(t)
			p := start(t, data, nil, args...)
			j := newJourney(p)
			for name, script := range chains {
				gone, prefix := aliveUntilGone(t)
				if run := j.on(t, p).end(j.on(t, p).wake(j.on(t, p).script(name, prefix+script))); run.Status != "FINISHED" {
					t.Errorf("%s: %+v", name, run)
				}
				gone(name)
			}
			if len(args) > 0 && os.Geteuid() != 0 { // an ordinary user has neither cgroups nor ids to find it by
				return
			}
			gone, prefix := aliveUntilGone(t)
			run := j.wake(j.script("killed", prefix+chains["one without the mark"]+"; sleep 1000"))
			j.subscribe(j.owner, followRun, map[string]any{"id": run}).line()
			p.end(syscall.SIGKILL)
			start(t, data, nil, args...)
			gone("of a server that was killed")
		})
	}
}

// aliveUntilGone is what a script begins with, and what waits until the last process of it is gone.
func aliveUntilGone(t *testing.T) (gone func(what string), prefix string) {
	t.Helper()
	w := newWorkshop(t)
	showSelf(t, w.path("self"))
	if err := errors.Join(syscall.Mkfifo(w.path("alive"), 0o666), os.Chmod(w.path("alive"), 0o666)); err != nil {
		t.Fatal(err)
	}
	read, err := os.OpenFile(w.path("alive"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	return func(what string) {
		t.Helper()
		_ = read.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.ReadAll(read); err != nil {
			t.Errorf("%s lives: %v", what, err)
		}
	}, fmt.Sprintf("cat >/dev/null; exec 9>%s; SELF=%s; ", w.path("alive"), w.path("self"))
}

// showSelf lets this test program be run from a path by any account. It has a hundred megabytes, so it is copied only to another disk.
func showSelf(t testing.TB, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, path) == nil {
		return
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(path, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
