package store

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// said starts the run of a wake about a task, ends it with words, and gives what it was told.
func (w *world) said(agent, task xid.ID, words string) *Launch {
	w.Helper()
	c, launch := w.wakeOn(agent, task)
	w.ok(w.Finish(w.Context(), c.Attempt, Success{Summary: words, SessionID: "s-" + string(agent), Resumable: true}))
	return launch
}

func (w *world) wantTold(launch *Launch, want ...string) {
	w.Helper()
	for _, text := range want {
		if !strings.Contains(launch.Prompt, text) {
			w.Errorf("the prompt does not say %q:\n%s", text, launch.Prompt)
		}
	}
}

func (w *world) wantNotTold(launch *Launch, not ...string) {
	w.Helper()
	for _, text := range not {
		if strings.Contains(launch.Prompt, text) {
			w.Errorf("the prompt says %q:\n%s", text, launch.Prompt)
		}
	}
}

// Who is woken because of what others did is told what they said at their ends: of the task's other agents, of its children, and of the
// blockers that the agent may read.
func TestAPromptQuotesWhatOthersCameTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben, cleo := w.agent("Ada"), w.agent("Ben"), w.agent("Cleo")
	task := w.task("Importer", func(in *CreateTask) { in.AssigneeID = ada })
	w.finishAll()
	_, _, err := w.SetTaskParticipants(t.Context(), SetTaskParticipants{WorkspaceID: w.workspace, TaskID: task, Reviewers: domain.To([]xid.ID{cleo})})
	w.ok(err)
	w.said(ada, task, "It reads two formats.")
	w.said(ada, task, "It reads three formats.")
	w.said(ben, task, "The page is written.")

	review := w.said(cleo, task, "Nothing tests the limit.")
	w.wantTold(review, "Ada ("+string(ada)+"), its assignee, ended a run about it at ", "> It reads three formats.\n", "Ben ("+string(ben)+") ended", "> The page is written.")
	w.wantNotTold(review, "two formats", "tests the limit")
	again := w.said(ada, task, "Tested.")
	w.wantTold(again, "Cleo ("+string(cleo)+"), its reviewer, ended", "> Nothing tests the limit.")
	w.wantNotTold(again, "three formats")

	parent := w.task("Release", func(in *CreateTask) { in.AssigneeID = ada })
	child := w.task("Notes", func(in *CreateTask) { in.ParentID = parent })
	w.finishAll()
	w.said(cleo, child, "Read the notes.")
	w.said(ben, child, "The notes are in docs/notes.md.")
	w.sql(`UPDATE tasks SET assignee_id = $2 WHERE id = $1`, child, cleo)
	w.moveTo(child, domain.TaskStateDone)
	w.wantTold(w.launch(w.claimOne()), "All subtasks of task "+string(parent)+" have ended.", "- Notes ("+string(child)+"), DONE\n  Cleo ("+string(cleo)+") said at the end:\n> Read the notes.\n")
	w.sound()
}

// A blocker's outcome is told with its title, and neither of a blocker that the agent named by itself.
func TestAPromptQuotesTheBlockersThatItsAgentMayRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	open, hidden := w.task("Design"), w.task("Secret")
	w.said(ben, open, "The format is decided.")
	w.said(ben, hidden, "The plan is hidden.")
	task := w.task("Build", func(in *CreateTask) { in.AssigneeID, in.BlockedBy = ada, []xid.ID{open, hidden} })
	w.sql(`UPDATE task_blockers SET linked_by_id = $2 WHERE blocker_id = $1`, hidden, ada)
	w.sql(`UPDATE tasks SET state = 'DONE' WHERE id IN ($1, $2)`, open, hidden)
	w.request(ada, func(r *newRequest) {
		r.taskID, r.scope, r.source = task, domain.TaskScope(string(task)), domain.WakeupSourceTaskBlockersResolved
		r.payload = &domain.BlockersPayload{TaskID: string(task), ResolvedBlockerIDs: []string{string(open), string(hidden)}}
	})
	w.sql(`UPDATE runs SET parked_reason = NULL, parked_until = NULL WHERE task_id = $1`, task)
	launch := w.launch(w.claimOne())
	w.wantTold(launch, "Nothing blocks task "+string(task), "- Design ("+string(open)+"), DONE\n  Ben ("+string(ben)+") said at the end:\n> The format is decided.")
	w.wantNotTold(launch, "hidden", "Secret")
}

// A coordinator is told whom it may give work to, who reports to it first; nobody else is.
func TestACoordinatorIsToldOfItsColleagues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.agent("Boss", func(in *CreateAgent) { in.Role = domain.AgentRoleCoordinator })
	far := w.agent("Far", func(in *CreateAgent) { in.Instructions = "Writes the notes. Asks nobody." })
	near := w.agent("Near", func(in *CreateAgent) { in.ManagerID = boss })
	gone := w.agent("Gone")
	w.pause(far)
	w.ok(w.DeleteAgent(t.Context(), w.workspace, gone))
	w.wake(boss)
	launch := w.launch(w.claimOne())
	w.wantTold(launch, "## Your colleagues\n\n- Near ("+string(near)+"), worker, idle\n- Far ("+string(far)+"), worker, paused: Writes the notes.\n\n")
	w.wantNotTold(launch, "Gone", "Asks nobody", "- Boss")
	w.wake(near)
	w.wantNotTold(w.launch(w.claimOne()), "colleagues", "Far")
}

// A session that lives is told instructions that have changed, once, and no others again.
func TestChangedInstructionsReachALivingSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada", func(in *CreateAgent) { in.Instructions = "Be brief." })
	task := w.task("Importer")
	w.wantTold(w.said(ada, task, "one"), "Be brief.")
	w.wantNotTold(w.said(ada, task, "two"), "Be brief.", "# Your instructions")
	c, _ := w.wakeOn(ada, task)
	w.ok(w.update(ada, domain.AgentPatch{Instructions: domain.To("Be thorough.")})) // while a run is at work that was told the former ones
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "three", SessionID: "s-" + string(ada), Resumable: true}))
	c, launch := w.wakeOn(ada, task)
	w.wantTold(launch, "# Your instructions\n\nThese hold from now on", "Be thorough.")
	w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeTimeout, Message: "too slow"}))
	w.waited(c.RunID)
	c = w.claimOne()
	w.wantTold(w.launch(c), "Be thorough.") // who failed may not have heard it
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "four", SessionID: "s-" + string(ada), Resumable: true}))
	w.wantNotTold(w.said(ada, task, "five"), "Be thorough.", "# Your instructions")
}

// What a prompt is made of takes a fixed number of statements, however much is told.
func TestTheStatementsOfAPromptDoNotGrowWithWhatItTells(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	count := func(n int) int64 {
		boss := w.agent(string(xid.New("agt")), func(in *CreateAgent) { in.Role = domain.AgentRoleCoordinator })
		task := w.task("Task", func(in *CreateTask) { in.AssigneeID = boss })
		w.finishAll()
		for range n {
			child := w.task("Child", func(in *CreateTask) { in.ParentID = task })
			w.said(w.agent(string(xid.New("agt"))), child, "done")
			w.commentOn(task)
			w.finishAll()
		}
		w.wakeOnly(boss, task)
		before := statements.Load()
		w.launch(w.claimOne())
		return statements.Load() - before
	}
	if few, many := count(1), count(5); few != many || few > 16 {
		t.Errorf("%d statements with one child and one comment, %d with five, want at most 16", few, many)
	}
}
