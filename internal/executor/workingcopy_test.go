//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/workcopy"
	"rouse.dev/rouse/internal/xid"
)

// gitWorld is a repository with a remote, and an executor that makes working copies.
type gitWorld struct {
	t          testing.TB
	command    *Command
	registry   Registry
	workspace  xid.ID
	remote     string // bare
	repository string // a person's clone of it
	keeper     *fakeKeeper
}

// fakeKeeper knows which tasks and runs have ended.
type fakeKeeper struct {
	mu      sync.Mutex
	ended   map[xid.ID]time.Time // zero: it goes on
	kept    []domain.KeptCopy
	removed []string
}

func (k *fakeKeeper) CopyOwners(_ context.Context, _ xid.ID, owners []xid.ID) (map[xid.ID]domain.CopyOwner, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := map[xid.ID]domain.CopyOwner{}
	for _, id := range owners {
		if at, ok := k.ended[id]; ok {
			known[id] = domain.CopyOwner{Exists: true, EndedAt: at}
		}
	}
	return known, nil
}

func (k *fakeKeeper) CopyKept(_ context.Context, _ xid.ID, kept domain.KeptCopy) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, kept)
	return nil
}

func (k *fakeKeeper) CopyRemoved(_ context.Context, _ xid.ID, name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removed = append(k.removed, name)
	return nil
}

// gitIn runs git by hand.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x", "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newGitWorld(t testing.TB, options Options) *gitWorld {
	t.Helper()
	dir := t.TempDir()
	w := &gitWorld{t: t, remote: filepath.Join(dir, "remote.git"), repository: filepath.Join(dir, "app"), workspace: xid.New("wsp"), keeper: &fakeKeeper{ended: map[xid.ID]time.Time{}}}
	gitIn(t, dir, "init", "--quiet", "--bare", "-b", "main", w.remote)
	gitIn(t, dir, "clone", "--quiet", w.remote, w.repository)
	gitIn(t, w.repository, "checkout", "--quiet", "-b", "main")
	w.commit("a.txt", "one\n")
	w.restart(options)
	return w
}

// restart is another process on the same folders.
func (w *gitWorld) restart(options Options) {
	if options.WorkRoot == "" && w.command != nil {
		options.WorkRoot = w.command.options.WorkRoot
	}
	w.command = newCommand(w.t, options)
	w.registry = NewRegistry(w.command, nil)
}

// commit is a commit by a person, pushed.
func (w *gitWorld) commit(name, text string) {
	w.t.Helper()
	writeFile(w.t, filepath.Join(w.repository, name), text)
	gitIn(w.t, w.repository, "add", "-A")
	gitIn(w.t, w.repository, "commit", "--quiet", "-m", name)
	gitIn(w.t, w.repository, "push", "--quiet", "origin", "HEAD:main")
}

const identity = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x; `

// request is one attempt of a run about a task.
func (w *gitWorld) request(task xid.ID, c domain.CheckoutSpec, script string) Request {
	req := shell(identity + script)
	req.WorkspaceID, req.RunID, req.AgentID, req.TaskID = w.workspace, xid.New("run"), xid.New("agt"), task
	if c.Repository == "" {
		c.Repository = w.repository
	}
	if c.Per == "" {
		c.Per = domain.CheckoutPerTask
	}
	req.Spec.Command.Checkout = &c
	w.keeper.mu.Lock()
	defer w.keeper.mu.Unlock()
	w.keeper.ended[task], w.keeper.ended[req.RunID] = time.Time{}, time.Time{}
	return req
}

func (w *gitWorld) run(req Request) (*recorder, error) {
	sink := &recorder{}
	_, err := w.registry.Run(w.t.Context(), req, sink)
	return sink, err
}

// good runs an attempt that has to succeed, and returns what it found and left.
func (w *gitWorld) good(req Request) (found, left domain.WorkingCopy) {
	w.t.Helper()
	sink, err := w.run(req)
	if err != nil || len(sink.copies) != 2 {
		w.t.Fatalf("err %v, copies %+v, log:\n%s", err, sink.copies, sink.text())
	}
	return sink.copies[0], sink.copies[1]
}

func (w *gitWorld) end(id xid.ID) {
	w.keeper.mu.Lock()
	defer w.keeper.mu.Unlock()
	w.keeper.ended[id] = time.Now().Add(-time.Minute)
}

func (w *gitWorld) sweep() {
	w.t.Helper()
	if err := w.command.SweepCopies(w.t.Context(), w.keeper, time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *gitWorld) wantKept(n int, part string) {
	w.t.Helper()
	if len(w.keeper.kept) != n || n > 0 && !strings.Contains(w.keeper.kept[n-1].Reason, part) {
		w.t.Fatalf("kept %+v", w.keeper.kept)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestARunWorksInAWorkingCopyOfItsTask(t *testing.T) {
	w := newGitWorld(t, Options{})
	task := xid.New("tsk")
	req := w.request(task, domain.CheckoutSpec{}, `pwd; git symbolic-ref --short HEAD; echo two >> a.txt; git commit -qam two; echo new > b.txt; echo "the secret is s3cret" >> a.txt`)
	req.Mask = func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }
	found, left := w.good(req)
	head := gitIn(t, w.repository, "rev-parse", "HEAD")
	if found.Branch != "rouse/"+task.String() || found.HeadBefore != head || found.HeadAfter != "" || found.Repository != w.repository || !strings.HasPrefix(found.Path, w.command.options.WorkRoot) {
		t.Errorf("found %+v", found)
	}
	if left.HeadBefore != head || left.HeadAfter == head || left.Commits != 1 || left.FilesChanged != 1 || left.Insertions != 2 || left.Deletions != 0 || left.Uncommitted != 2 || left.DiffCut {
		t.Errorf("left %+v", left)
	}
	if !strings.Contains(left.Diff, "+two") || !strings.Contains(left.Diff, "+the secret is ***") {
		t.Errorf("diff:\n%s", left.Diff)
	}
	if exists(filepath.Join(w.repository, "b.txt")) || gitIn(t, w.repository, "status", "--porcelain") != "" {
		t.Error("the person's own folder was changed")
	}
	_, next := w.good(w.request(task, domain.CheckoutSpec{}, `cat b.txt && git add -A && git commit -qm three`))
	if next.Path != found.Path || next.HeadBefore != left.HeadAfter || next.Commits != 1 || next.Uncommitted != 0 {
		t.Errorf("the task's next run left %+v", next)
	}
}

// A retry of a run counts from where the run began.
func TestASecondAttemptCountsFromTheFirst(t *testing.T) {
	w := newGitWorld(t, Options{})
	req := w.request("", domain.CheckoutSpec{}, `echo x >> a.txt; git commit -qam x; [ "$(git rev-list --count HEAD)" = 3 ] || exit 1`)
	if _, err := w.run(req); err == nil {
		t.Fatal("the first attempt has to fail")
	}
	req.Attempt = 2
	_, left := w.good(req)
	if left.Commits != 2 || left.Branch != "rouse/"+req.RunID.String() {
		t.Errorf("left %+v", left)
	}
}

func TestAWorkingCopyIsRemovedWhenNothingIsLostWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		checkout domain.CheckoutSpec
		script   string
		kept     string // a part of the reason; "": it goes
		mend     string // what a person does, so that it goes
	}{
		"nothing was done":                      {script: `true`},
		"commits are pushed":                    {script: `echo x > x; git add -A; git commit -qm x; git push -q origin HEAD`},
		"commits of a mirror are pushed":        {domain.CheckoutSpec{Repository: "MIRROR"}, `echo x > x; git add -A; git commit -qm x; git push -q origin HEAD`, "", ""},
		"ignored files are nobody's work":       {script: `echo junk > .git-ignored; mkdir -p m/n; touch m/n/f; chmod 555 m/n m; printf 'm\n.git-ignored\n' >> "$(git rev-parse --git-common-dir)/info/exclude"`},
		"a new file is not committed":           {script: `echo x > x`, kept: "1 file with changes", mend: `rm x`},
		"a changed file is not committed":       {script: `echo x >> a.txt`, kept: "1 file with changes", mend: `git checkout -q a.txt`},
		"a commit is not pushed":                {script: `echo x > x; git add -A; git commit -qm x`, kept: "1 commit that is not pushed", mend: `git push -q origin HEAD`},
		"a commit of a mirror is not pushed":    {domain.CheckoutSpec{Repository: "MIRROR"}, `echo x > x; git add -A; git commit -qm x`, "1 commit that is not pushed", `git push -q origin HEAD`},
		"a commit on no branch is not pushed":   {script: `git checkout -q --detach; echo x > x; git add -A; git commit -qm x`, kept: "1 commit", mend: `git push -q origin HEAD:refs/heads/detached`},
		"a commit on another branch is not":     {script: `git checkout -q -b mine; echo x > x; git add -A; git commit -qm x`, kept: "1 commit", mend: `git push -q origin HEAD`},
		"a commit that HEAD has left is not":    {script: `echo x > x; git add -A; git commit -qm x; git checkout -q --detach HEAD~1`, kept: "1 commit", mend: `git push -q origin rouse/$OWNER`},
		"what git cannot read may be anything":  {script: `rm .git`, kept: "git does not tell"},
		"a commit that a person merged is kept": {script: `echo x > x; git add -A; git commit -qm x`, kept: "1 commit", mend: `cd "$REPO" && git merge -q --ff-only rouse/$OWNER`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGitWorld(t, Options{})
			if c.checkout.Repository == "MIRROR" {
				c.checkout.Repository = w.serve()
			}
			task := xid.New("tsk")
			req := w.request(task, c.checkout, c.script)
			found, _ := w.mayLeave(req)
			w.sweep()
			if !exists(found.Path) {
				t.Fatal("it was removed while its task goes on")
			}
			w.end(task)
			w.sweep()
			w.sweep()
			if c.kept == "" {
				w.wantGone(found)
				return
			}
			w.wantKept(1, c.kept)
			if !exists(found.Path) {
				t.Fatal("it was removed with work in it")
			}
			if c.mend == "" {
				return
			}
			script := exec.CommandContext(t.Context(), "/bin/sh", "-ec", identity+"export OWNER="+task.String()+" REPO="+w.repository+"; "+c.mend)
			script.Dir = found.Path
			if out, err := script.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if err := w.command.SweepCopies(t.Context(), w.keeper, time.Now().Add(2*lookAgain)); err != nil {
				t.Fatal(err)
			}
			w.wantGone(found)
		})
	}
}

// mayLeave runs an attempt whose end cannot always be looked at.
func (w *gitWorld) mayLeave(req Request) (found domain.WorkingCopy, sink *recorder) {
	w.t.Helper()
	sink, err := w.run(req)
	if err != nil || len(sink.copies) == 0 {
		w.t.Fatalf("err %v, copies %+v, log:\n%s", err, sink.copies, sink.text())
	}
	return sink.copies[0], sink
}

func (w *gitWorld) wantGone(found domain.WorkingCopy) {
	w.t.Helper()
	if exists(found.Path) {
		w.t.Fatalf("it is still there; kept: %+v", w.keeper.kept)
	}
	if len(w.keeper.removed) != 1 {
		w.t.Errorf("removed %v", w.keeper.removed)
	}
	folders := w.command.options.copyFolders(w.workspace)
	if notes, err := os.ReadDir(folders.notes); err != nil || len(notes) != 0 {
		w.t.Errorf("notes %v, %v", notes, err)
	}
	if list := gitIn(w.t, w.repository, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 1 {
		w.t.Errorf("the repository still knows:\n%s", list)
	}
}

// A mirror is fetched once for many working copies. It goes when nobody has used it for long, and never with a branch that may be
// somebody's work.
func TestAMirrorGoesWhenNobodyUsesIt(t *testing.T) {
	w := newGitWorld(t, Options{})
	checkout := domain.CheckoutSpec{Repository: w.serve()}
	mirrors := func() int {
		t.Helper()
		entries, err := os.ReadDir(w.command.options.copyFolders(w.workspace).mirrors)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	sweepIn := func(d time.Duration) {
		t.Helper()
		if err := w.command.SweepCopies(t.Context(), w.keeper, time.Now().Add(d)); err != nil {
			t.Fatal(err)
		}
	}
	task := xid.New("tsk")
	found, _ := w.good(w.request(task, checkout, "true"))
	sweepIn(2 * workcopy.MirrorKeep)
	if !exists(found.Path) || mirrors() != 1 {
		t.Fatal("it went while its task goes on")
	}
	w.end(task)
	w.sweep()
	if exists(found.Path) || mirrors() != 1 {
		t.Fatal("the mirror went with the working copy, or the copy stayed")
	}
	if sweepIn(workcopy.MirrorKeep - time.Hour); mirrors() != 1 {
		t.Fatal("the mirror went before its time")
	}
	if sweepIn(workcopy.MirrorKeep + time.Hour); mirrors() != 0 {
		t.Fatal("the mirror stays when its time is over")
	}
	task = xid.New("tsk")
	found, _ = w.good(w.request(task, checkout, identity+"echo b > b; git add b; git commit -qm b"))
	if err := os.RemoveAll(found.Path); err != nil { // by hand, with a commit that was not pushed
		t.Fatal(err)
	}
	w.end(task)
	w.sweep()
	if sweepIn(workcopy.MirrorKeep + time.Hour); mirrors() != 1 {
		t.Fatal("the mirror went with a branch that is nowhere else")
	}
}

// serve gives the remote an address, which may be pushed to.
func (w *gitWorld) serve() string {
	w.t.Helper()
	gitIn(w.t, w.remote, "config", "http.receivepack", "true")
	backend := filepath.Join(gitIn(w.t, w.remote, "--exec-path"), "git-http-backend")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(w.remote), "GIT_HTTP_EXPORT_ALL=1"}})
	w.t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(w.remote)
}

func TestATroubleOfAWorkingCopySaysWhatToDo(t *testing.T) {
	w := newGitWorld(t, Options{})
	empty := filepath.Join(t.TempDir(), "empty")
	gitIn(t, "/", "init", "--quiet", empty)
	gitIn(t, w.repository, "checkout", "--quiet", "-b", "large")
	w.commit(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	gitIn(t, w.repository, "branch", "lfs")
	gitIn(t, w.repository, "checkout", "--quiet", "-b", "sub", "HEAD~1")
	writeFile(t, filepath.Join(w.repository, ".gitmodules"), "[submodule \"lib\"]\n\tpath = lib\n\turl = /nowhere/lib.git\n")
	gitIn(t, w.repository, "update-index", "--add", "--cacheinfo", "160000,"+gitIn(t, w.repository, "rev-parse", "HEAD")+",lib")
	gitIn(t, w.repository, "add", ".gitmodules")
	gitIn(t, w.repository, "commit", "--quiet", "-m", "sub")
	gitIn(t, w.repository, "checkout", "--quiet", "main")
	for _, c := range []struct {
		name      string
		checkout  domain.CheckoutSpec
		code      domain.RunErrorCode
		permanent bool
		want      string
	}{
		{"a missing ref", domain.CheckoutSpec{Ref: "v9"}, domain.RunErrorCodeLaunch, true, "the ref v9 is not there"},
		{"a repository without a commit", domain.CheckoutSpec{Repository: empty}, domain.RunErrorCodeLaunch, true, "a commit in the repository's default branch is not there"},
		{"a missing folder", domain.CheckoutSpec{Repository: "/nowhere/app"}, domain.RunErrorCodeLaunch, true, "does not exist"},
		{"a folder that is no repository", domain.CheckoutSpec{Repository: t.TempDir()}, domain.RunErrorCodeLaunch, true, "there is no repository at"},
		{"an address that nobody answers at", domain.CheckoutSpec{Repository: "http://127.0.0.1:9/app.git"}, domain.RunErrorCodeLaunch, false, "could not be reached"},
		{"large files without git-lfs", domain.CheckoutSpec{Ref: "lfs"}, domain.RunErrorCodeLaunch, true, "install git-lfs"},
		{"a submodule that is not there", domain.CheckoutSpec{Ref: "sub"}, domain.RunErrorCodeLaunch, true, "could not fetch the submodules"},
		{"a setup that fails", domain.CheckoutSpec{Setup: []string{"/bin/sh", "-c", "echo no package >&2; exit 3"}}, domain.RunErrorCodeLaunch, false, "it ended with code 3\nno package"},
		{"a setup that is not there", domain.CheckoutSpec{Setup: []string{"nonesuch-setup"}}, domain.RunErrorCodeLaunch, true, "the setup of the executor's checkout cannot be started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := xid.New("tsk")
			req := w.request(task, c.checkout, "true")
			if c.checkout.Ref == "lfs" { // this machine may have git-lfs
				req.Environment = append(req.Environment, Variable{"PATH", onlyPrograms(t, "git", "sh")})
			}
			_, err := w.run(req)
			failure := &Failure{}
			if !errors.As(err, &failure) || failure.Code != c.code || failure.Permanent != c.permanent || !strings.Contains(failure.Message, c.want) {
				t.Fatalf("got %#v", err)
			}
			w.end(task)
			w.sweep()
			w.wantKept(0, "")
			if trees, _ := os.ReadDir(w.command.options.copyFolders(w.workspace).trees); len(trees) != 0 {
				t.Errorf("left %v", trees)
			}
		})
	}
}

// onlyPrograms is a folder of these programs alone.
func onlyPrograms(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// A setup is run until it has succeeded once, with the agent's variables, and its words are in the run's log.
func TestASetupRunsUntilItSucceeds(t *testing.T) {
	w := newGitWorld(t, Options{})
	task := xid.New("tsk")
	marks := filepath.Join(t.TempDir(), "marks")
	c := domain.CheckoutSpec{Setup: []string{"/bin/sh", "-c", `echo "setting $NAME"; echo x >> ` + marks + `; [ "$(wc -l < ` + marks + `)" -ge 2 ]`}}
	for i := range 3 {
		req := w.request(task, c, "true")
		req.Environment = []Variable{{"NAME", "up"}}
		sink, err := w.run(req)
		if (err == nil) != (i > 0) || (strings.Contains(sink.text(), "SYSTEM setting up\n") || strings.HasSuffix(sink.text(), "SYSTEM setting up")) != (i < 2) {
			t.Fatalf("attempt %d: %v\n%s", i, err, sink.text())
		}
	}
	if text, _ := os.ReadFile(marks); len(text) != 4 {
		t.Errorf("the setup ran %d times", len(text)/2)
	}
}

// git runs without the run's token, and asks nobody.
func TestGitIsGivenNoToken(t *testing.T) {
	w := newGitWorld(t, Options{})
	hook := filepath.Join(w.repository, ".git", "hooks", "post-checkout")
	ran := filepath.Join(t.TempDir(), "ran")
	writeFile(t, hook, "#!/bin/sh\ntouch "+ran+"\n")
	if err := os.Chmod(hook, 0o700); err != nil { //nolint:gosec // a hook has to be a program
		t.Fatal(err)
	}
	seen := filepath.Join(t.TempDir(), "seen")
	tool := filepath.Join(t.TempDir(), "git")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, tool, "#!/bin/sh\nenv >> "+seen+"\nexec "+real+" \"$@\"\n")
	if err := os.Chmod(tool, 0o700); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	w.restart(Options{WorkRoot: w.command.options.WorkRoot, Path: filepath.Dir(tool) + ":" + os.Getenv("PATH")})
	t.Setenv("SERVER_SECRET", "of the server")
	req := w.request(xid.New("tsk"), domain.CheckoutSpec{}, "true")
	req.Environment = []Variable{{"ROUSE_RUN_TOKEN", "rsr_token"}, {"NPM_TOKEN", "of the agent"}, {"GIT_DIR", "/elsewhere"}}
	sink, _ := w.run(req) // the agent itself has GIT_DIR
	text, err := os.ReadFile(seen)
	if err != nil || len(sink.copies) == 0 {
		t.Fatal(err, sink.text())
	}
	for _, no := range []string{"rsr_token", "of the server", "/elsewhere"} {
		if strings.Contains(string(text), no) {
			t.Errorf("git was given %q", no)
		}
	}
	for _, yes := range []string{"NPM_TOKEN=of the agent", "GIT_TERMINAL_PROMPT=0", "GIT_SSH_COMMAND=ssh -oBatchMode=yes"} {
		if !strings.Contains(string(text), yes) {
			t.Errorf("git was not given %q", yes)
		}
	}
	if exists(ran) {
		t.Error("a hook of the repository was run")
	}
}

// What the making of a working copy left that was broken off goes before the next attempt, and a copy whose note is lost is kept.
func TestABrokenOffMakingIsCleared(t *testing.T) {
	w := newGitWorld(t, Options{})
	task := xid.New("tsk")
	folders := w.command.options.copyFolders(w.workspace)
	if err := folders.make(w.command.options); err != nil {
		t.Fatal(err)
	}
	name := workcopy.Name(task, w.repository)
	base := gitIn(t, w.repository, "rev-parse", "HEAD")
	common := filepath.Join(w.repository, ".git")
	if err := folders.write(&copyNote{Name: name, Owner: task, Repository: w.repository, Common: common, Own: true, Branch: workcopy.Branch(task), Base: base, MadeAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	gitIn(t, w.repository, "worktree", "add", "--quiet", "--lock", "-b", workcopy.Branch(task), folders.tree(name))
	writeFile(t, filepath.Join(folders.tree(name), "half"), "half")
	w.commit("later.txt", "later\n")
	found, left := w.good(w.request(task, domain.CheckoutSpec{}, "cat later.txt && [ ! -e half ]"))
	if left.Uncommitted != 0 {
		t.Errorf("left %+v", left)
	}
	if err := os.Remove(folders.note(name)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(found.Path, "work"), "work")
	lock := gitIn(t, found.Path, "rev-parse", "--git-path", "index.lock")
	writeFile(t, lock, "")
	w.end(task)
	w.sweep()
	w.wantKept(1, "1 file")
	w.good(w.request(task, domain.CheckoutSpec{}, "cat work && git add -A && git commit -qm work && git push -q origin HEAD"))
	w.end(task)
	w.sweep()
	w.wantGone(found)
}

// The cheap form of the proof: agents at once on one repository. See TestChaosOfWorkingCopies for the other one.
func TestAgentsAtOnceOnOneRepository(t *testing.T) {
	w := newGitWorld(t, Options{})
	const agents, rounds = 3, 2
	tasks := make([]xid.ID, agents)
	var all sync.WaitGroup
	for i := range agents {
		tasks[i] = xid.New("tsk")
		all.Go(func() {
			for round := range rounds {
				script := fmt.Sprintf(`echo "%d %d" >> mine.txt; echo %d > a.txt; git add -A; git commit -qm "round %d of %d"`, i, round, i, round, i)
				if sink, err := w.run(w.request(tasks[i], domain.CheckoutSpec{}, script)); err != nil {
					t.Errorf("%v\n%s", err, sink.text())
				}
			}
		})
	}
	all.Wait()
	for i, task := range tasks {
		want := ""
		for round := range rounds {
			want += fmt.Sprintf("%d %d\n", i, round)
		}
		if got := gitIn(t, w.repository, "show", workcopy.Branch(task)+":mine.txt"); got+"\n" != want {
			t.Errorf("agent %d left %q", i, got)
		}
		w.end(task)
	}
	w.sweep()
	w.sweep()
	if len(w.keeper.kept) != agents {
		t.Errorf("kept %+v", w.keeper.kept)
	}
}
