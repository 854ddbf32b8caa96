//go:build unix

package executor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/workcopy"
	"rouse.dev/rouse/internal/xid"
)

// copiesVariable makes the test program a server that is to be killed while agents are at work in working copies. Its value is a
// copiesPlan.
const copiesVariable = "EXECUTOR_TEST_COPIES"

// copiesPlan is what such a server is to run.
type copiesPlan struct {
	WorkRoot, Repository string
	Workspace            xid.ID
	Runs                 []copiesRun
}

// copiesRun is one run. Those of one agent follow each other, and those of different agents run at once.
type copiesRun struct {
	Agent, Number int
	Task, Run     xid.ID // Task "": it has a working copy of its own
	Attempt       int
	Pushes, Ended bool
}

// line is what the run writes into its agent's file, once.
func (r copiesRun) line() string { return fmt.Sprintf("%d %d", r.Agent, r.Number) }

// owner is what its working copy is made for.
func (r copiesRun) owner() xid.ID { return workcopy.Owner(domain.CheckoutPerTask, r.Task, r.Run) }

// script does a run's work; an attempt that was killed may have done any part of it. All agents change the same two files.
func (r copiesRun) script() string {
	push := ""
	if r.Pushes {
		push = "; git push -q origin HEAD"
	}
	return identity + fmt.Sprintf(`set -e; grep -qx '%[1]s' mine.txt 2>/dev/null || echo '%[1]s' >> mine.txt; echo %[2]d > a.txt; for i in 1 2 3 4 5; do echo $i > "big.%[2]d.$i"; git add -A; done
git diff --cached --quiet || git commit -qm 'run %[1]s'%[3]s`, r.line(), r.Agent, push)
}

// serveCopies runs the plan's runs, and reports when one begins and ends.
func serveCopies(text string) {
	var plan copiesPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	c := NewCommand(Options{WorkRoot: plan.WorkRoot})
	registry := NewRegistry(c, nil)
	agents := map[int][]copiesRun{}
	for _, r := range plan.Runs {
		if !r.Ended {
			agents[r.Agent] = append(agents[r.Agent], r)
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	for _, runs := range agents {
		all.Go(func() {
			for _, r := range runs {
				req := shell(r.script())
				req.WorkspaceID, req.RunID, req.TaskID, req.Attempt = plan.Workspace, r.Run, r.Task, r.Attempt
				req.Spec.Command.Checkout = &domain.CheckoutSpec{Repository: plan.Repository, Per: domain.CheckoutPerTask}
				sink := &recorder{}
				say("begins %s", r.Run)
				if _, err := registry.Run(context.Background(), req, sink); err != nil {
					say("failed %s: %s", r.Run, strings.ReplaceAll(err.Error()+"\n"+sink.text(), "\n", " | "))
					return
				}
				say("ended %s", r.Run)
			}
		})
	}
	all.Wait()
	say("done")
}

// The proof that agents at work on one repository neither overwrite each other nor lose what they did, whenever the server is killed:
// in a cheap form here, and in full by make test-copies.
func TestChaosOfWorkingCopies(t *testing.T) {
	agents, rounds, kills := 2, 2, []int{3}
	if os.Getenv("ROUSE_COPIES_FULL") != "" {
		agents, rounds, kills = 5, 8, []int{2, 6, 7, 9, 13, 14, 18, 22, 30}
	}
	w := newGitWorld(t, Options{})
	plan := copiesPlan{WorkRoot: w.command.options.WorkRoot, Repository: w.repository, Workspace: w.workspace}
	for agent := range agents {
		task := xid.New("tsk")
		for n := range rounds {
			r := copiesRun{Agent: agent, Number: n, Task: task, Run: xid.New("run"), Pushes: agent%2 == 0}
			if n%4 == 3 { // one in four has no task, and a working copy of its own
				r.Task = ""
			}
			plan.Runs = append(plan.Runs, r)
		}
	}
	for _, after := range kills {
		plan.serve(t, after)
	}
	if !plan.serve(t, 0) {
		t.Fatal("the last server did not come to its end")
	}
	plan.check(t, w)
}

// serve starts a server for what is left to run, and kills it after so many reports; 0: never. It says whether all runs have ended.
func (p *copiesPlan) serve(t *testing.T, killAfter int) (done bool) {
	t.Helper()
	for i := range p.Runs {
		p.Runs[i].Attempt++
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), os.Args[0])
	server.Env = append(os.Environ(), copiesVariable+"="+string(text))
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines, seen := bufio.NewScanner(out), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "done":
			done = true
		case "ended":
			p.ended(xid.ID(rest))
		case "failed":
			t.Error(lines.Text())
		}
		if seen++; seen == killAfter {
			_ = server.Process.Kill() // it may have come to its end
		}
	}
	_ = server.Wait() // killed, as wanted, or done
	host, boot := here("")
	for _, r := range p.Runs { // as the rescue does before another attempt
		if _, err := EndLeftover("", ProcessGroup{Host: host, BootID: boot, Launch: LaunchesOf("", r.Run, r.Attempt)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := EndOrphanedCgroups(""); err != nil {
		t.Fatal(err)
	}
	return done
}

func (p *copiesPlan) ended(run xid.ID) {
	for i := range p.Runs {
		if p.Runs[i].Run == run {
			p.Runs[i].Ended = true
		}
	}
}

// check looks at each branch for the lines of its own runs alone, and then lets the sweep do its work.
func (p *copiesPlan) check(t *testing.T, w *gitWorld) {
	t.Helper()
	want, pushes := map[xid.ID]string{}, map[xid.ID]bool{}
	for _, r := range p.Runs {
		if !r.Ended {
			t.Errorf("the run %s has not ended", r.line())
		}
		want[r.owner()] += r.line() + "\n"
		pushes[r.owner()] = r.Pushes
		w.keeper.ended[r.owner()] = time.Now().Add(-time.Minute)
	}
	trees := w.command.options.copyFolders(p.Workspace)
	for owner, text := range want {
		if got := gitIn(t, p.Repository, "show", workcopy.Branch(owner)+":mine.txt") + "\n"; got != text {
			t.Errorf("%s has %q, want %q", owner, got, text)
		}
		if left := gitIn(t, trees.tree(workcopy.Name(owner, p.Repository)), "status", "--porcelain"); left != "" {
			t.Errorf("%s has uncommitted %s", owner, left)
		}
	}
	for range 2 {
		w.sweep()
	}
	held := 0
	for owner, pushed := range pushes {
		there := exists(trees.tree(workcopy.Name(owner, p.Repository)))
		if there == pushed {
			t.Errorf("%s: there %v, pushed %v", owner, there, pushed)
		}
		ref := "refs/heads/" + workcopy.Branch(owner)
		if pushed {
			ref = "refs/remotes/origin/" + workcopy.Branch(owner)
		} else {
			held++
		}
		if got := gitIn(t, p.Repository, "show", ref+":mine.txt") + "\n"; got != want[owner] {
			t.Errorf("after the sweep %s has %q", owner, got)
		}
	}
	if len(w.keeper.kept) != held {
		t.Errorf("the inbox was told %d times, want %d", len(w.keeper.kept), held)
	}
	if list := gitIn(t, p.Repository, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != held+1 || strings.Contains(list, "prunable") {
		t.Errorf("git knows of\n%s", list)
	}
	gitIn(t, p.Repository, "fsck", "--no-dangling")
	t.Logf("%d runs of %d working copies, %d held", len(p.Runs), len(want), held)
}
