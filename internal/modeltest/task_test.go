package modeltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// TestTasksAtOnceKeepTheLaws lets eight processes assign, move, block, review, comment on and archive the same few tasks of
// two workspaces, set and delete budgets, and sweep, while they claim and end the runs about them, and checks what must hold
// when they stop and when all has been done.
func TestTasksAtOnceKeepTheLaws(t *testing.T) {
	t.Parallel()
	first := seed(t)
	p := newProgram(t, connections)
	for i := uint64(0); i < uint64(officeAtOnce()) && !t.Failed(); i += connections {
		c := &office{crowd: crowd{seed: first + i}}
		if err := c.run(t.Context(), p); err != nil {
			t.Errorf("%s=%d (and the %d after it): %v", seedVariable, c.seed, connections-1, err)
		}
	}
	var deadlocks int
	if err := p.db.QueryRowContext(t.Context(), `SELECT pg_stat_force_next_flush(), deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(new(any), &deadlocks); err != nil {
		t.Fatal(err)
	}
	if deadlocks > 0 {
		t.Errorf("%d deadlocks", deadlocks)
	}
}

// taskLaws hold of tasks whenever nobody is in the middle of a transition.
var taskLaws = map[string]string{
	"a live run about a task holds it": `
SELECT count(*) FROM runs r JOIN tasks t ON t.id = r.task_id WHERE r.workspace_id = $1 AND r.status = 'CLAIMED' AND t.checkout_run_id IS DISTINCT FROM r.id`,
	"who holds a task is a live run about it": `
SELECT count(*) FROM tasks t LEFT JOIN runs r ON r.id = t.checkout_run_id AND r.status = 'CLAIMED' AND r.task_id = t.id AND r.agent_id = t.checkout_agent_id
WHERE t.workspace_id = $1 AND t.checkout_run_id IS NOT NULL AND r.id IS NULL`,
	"nothing is held up by a task that is free": `
SELECT count(*) FROM wakeup_requests q JOIN tasks t ON t.id = q.task_id
WHERE q.workspace_id = $1 AND q.status = 'SKIPPED' AND q.end_reason = 'CHECKOUT_HELD' AND t.checkout_run_id IS NULL`,
	"what waits for blockers has one, or news on its way": `
SELECT count(*) FROM runs b WHERE b.workspace_id = $1 AND b.status = 'QUEUED' AND b.parked_reason = 'TASK_BLOCKED'
  AND NOT EXISTS (SELECT 1 FROM task_blockers k JOIN tasks x ON x.id = k.blocker_id WHERE k.task_id = b.task_id
    AND x.state NOT IN ('DONE', 'CANCELLED') AND x.archived_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM wakeup_requests q WHERE q.agent_id = b.agent_id AND q.scope = b.scope AND q.status = 'QUEUED' AND q.run_id IS NULL)`,
	"blockers form no circle": `
WITH RECURSIVE reach AS (
  SELECT task_id AS start, blocker_id AS at FROM task_blockers WHERE workspace_id = $1
  UNION SELECT r.start, b.blocker_id FROM reach r JOIN task_blockers b ON b.task_id = r.at)
SELECT count(*) FROM reach WHERE start = at`,
	"a former assignee's first assignment ended with the reassignment": `
SELECT count(*) FROM wakeup_requests q JOIN tasks t ON t.id = q.task_id LEFT JOIN runs r ON r.id = q.run_id
WHERE q.workspace_id = $1 AND q.source = 'TASK_ASSIGNED' AND q.basis = 'ASSIGNEE' AND q.finished_at IS NULL AND q.resends = 0
  AND (r.id IS NULL OR r.status = 'QUEUED' AND r.attempt = 0) AND q.agent_id IS DISTINCT FROM t.assignee_id`,
	"blockers are resolved at most once in a generation": `
SELECT count(*) FROM tasks t WHERE t.workspace_id = $1 AND t.wake_generation < (SELECT count(*) FROM wakeup_requests q WHERE q.task_id = t.id AND q.source = 'TASK_BLOCKERS_RESOLVED')`,
	"a task in review that needs an approval has one open": `
SELECT count(*) FROM approvals a JOIN tasks t ON t.id = a.task_id WHERE a.workspace_id = $1 AND a.completion AND a.status = 'PENDING' AND (t.state <> 'IN_REVIEW' OR t.archived_at IS NOT NULL)`,
}

// officeLaws are what holds of a workspace with tasks.
func officeLaws() map[string]string {
	all := maps.Clone(laws)
	maps.Copy(all, taskLaws)
	// One that lost its reason between two attempts was in the prompt of the first; the second has another.
	all["a request with a receipt is in a prompt"] += ` AND q.status <> 'CANCELLED'`
	return all
}

// office is a crowd around some tasks, in one workspace after the other.
type office struct {
	crowd
	places []*place
}

// clerk is one process of an office.
type clerk struct {
	player
	places []*place
}

func (o *office) run(ctx context.Context, p *program) (err error) {
	for i := range uint64(2) {
		if err := o.open(ctx, p, i); err != nil {
			return err
		}
	}
	var players [connections]*player
	var problems [connections]error
	var wg sync.WaitGroup
	for i := range players {
		c := &clerk{places: o.places, player: player{place: o.place, rand: rand.New(rand.NewPCG(o.seed, uint64(3+i))), started: map[xid.ID]bool{},
			owner: store.Owner{ID: xid.New("prc"), Host: fmt.Sprint("host", i), BootID: "boot", PID: 1, Started: 1}}}
		players[i] = &c.player
		wg.Go(func() { problems[i] = c.play(ctx) })
	}
	wg.Wait()
	if err := errors.Join(problems[:]...); err != nil {
		return err
	}
	if _, err := p.SweepBudgets(ctx); err != nil {
		return err
	}
	all := officeLaws()
	maps.Copy(all, moneyLaws)
	for _, o.place = range o.places {
		if err := o.lawful(ctx, all); err != nil {
			return fmt.Errorf("as they stop: %w", err)
		}
	}
	for _, o.place = range o.places {
		if err := errors.Join(o.unblock(ctx), o.freeMoney(ctx), o.drain(ctx, players[:])); err != nil {
			return err
		}
	}
	for _, o.place = range o.places {
		if err := errors.Join(o.lawful(ctx, all), o.lawful(ctx, ends)); err != nil {
			return err
		}
	}
	return nil
}

// open makes a workspace with a project and some tasks.
func (o *office) open(ctx context.Context, p *program, n uint64) (err error) {
	s := randomSettings(rand.New(rand.NewPCG(o.seed, 1+n)))
	s.windowed = false
	if o.place, err = newPlace(ctx, p, s); err != nil {
		return err
	}
	o.places = append(o.places, o.place)
	project := xid.New("prj")
	if _, err := o.CreateProject(ctx, store.CreateProject{WorkspaceID: o.workspace, ID: project, Name: "project"}); err != nil {
		return err
	}
	o.projects = append(o.projects, project)
	for i := range 5 {
		if err := o.addTask(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (o *office) addTask(ctx context.Context, i int) error {
	in := store.CreateTask{WorkspaceID: o.workspace, Title: fmt.Sprint("task ", i+1), RequiresApproval: i%3 == 0}
	if i%2 == 1 {
		in.ProjectID = o.projects[0]
	}
	if i > 0 && i%2 == 0 {
		parent, err := o.allTasks(ctx)
		if err != nil {
			return err
		}
		in.ParentID = parent[0]
	}
	_, _, err := o.CreateTask(ctx, in)
	return err
}

// unblock takes all blockers away, so that nothing waits for what will not come.
func (o *office) unblock(ctx context.Context) error {
	tasks, err := o.allTasks(ctx)
	if err != nil {
		return err
	}
	for _, id := range tasks {
		if _, err := o.SetTaskBlockers(ctx, store.SetTaskBlockers{WorkspaceID: o.workspace, TaskID: id}); allowed(err) != nil {
			return err
		}
	}
	return nil
}

func (w *place) allTasks(ctx context.Context) (list []xid.ID, err error) {
	rows, err := w.db.QueryContext(ctx, `SELECT id FROM tasks WHERE workspace_id = $1 ORDER BY id LIMIT 12`, w.workspace)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id xid.ID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, rows.Err()
}

func (c *clerk) play(ctx context.Context) error {
	for range steps {
		var err error
		c.place = c.places[c.rand.IntN(len(c.places))]
		switch k := c.rand.IntN(100); {
		case k < 33:
			err = c.onTask(ctx)
		case k < 40:
			err = c.onMoney(ctx)
		case k < 50:
			err = c.finishWithActions(ctx)
		default:
			err = c.step(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// onTask does one random thing to a random task.
func (c *clerk) onTask(ctx context.Context) error {
	tasks, err := c.allTasks(ctx)
	if err != nil {
		return err
	}
	task, _ := pick(c.rand, tasks)
	other, _ := pick(c.rand, tasks)
	third, _ := pick(c.rand, tasks)
	agent := c.agents[c.rand.IntN(len(c.agents))]
	switch k := c.rand.IntN(100); {
	case k < 22:
		if c.rand.IntN(6) == 0 {
			agent = ""
		}
		_, _, err = c.AssignTask(ctx, store.AssignTask{WorkspaceID: c.workspace, TaskID: task, AssigneeID: agent})
	case k < 50:
		state := pickState(c.rand)
		_, _, err = c.MoveTask(ctx, store.MoveTask{WorkspaceID: c.workspace, TaskID: task, To: state, Note: "moved"})
	case k < 64:
		var blockers []xid.ID
		for _, id := range []xid.ID{other, third}[:c.rand.IntN(3)] {
			if id != task {
				blockers = append(blockers, id)
			}
		}
		_, err = c.SetTaskBlockers(ctx, store.SetTaskBlockers{WorkspaceID: c.workspace, TaskID: task, BlockedBy: blockers})
	case k < 74:
		_, _, err = c.CommentOnTask(ctx, store.CommentOnTask{WorkspaceID: c.workspace, TaskID: task, UserID: "ann", Body: "look", Mentions: []xid.ID{agent}[:c.rand.IntN(2)]})
	case k < 84:
		_, err = c.QueueRun(ctx, store.QueueRun{WorkspaceID: c.workspace, TaskID: task, AgentID: agent})
	case k < 91:
		_, _, err = c.SetTaskParticipants(ctx, store.SetTaskParticipants{WorkspaceID: c.workspace, TaskID: task,
			Reviewers: domain.To([]xid.ID{agent}[:c.rand.IntN(2)]), Approvers: domain.To([]xid.ID{agent}[:c.rand.IntN(2)])})
	case k < 98:
		err = c.decideAny(ctx, agent)
	default:
		_, _, err = c.ArchiveTask(ctx, c.workspace, task)
	}
	return allowed(err)
}

func pickState(r *rand.Rand) domain.TaskState {
	states := []domain.TaskState{domain.TaskStateTodo, domain.TaskStateInProgress, domain.TaskStateInProgress, domain.TaskStateInReview, domain.TaskStateDone, domain.TaskStateCancelled}
	return states[r.IntN(len(states))]
}

func (c *clerk) decideAny(ctx context.Context, agent xid.ID) error {
	var id xid.ID
	err := c.db.QueryRowContext(ctx, `SELECT coalesce((SELECT id FROM approvals WHERE workspace_id = $1 AND status = 'PENDING' ORDER BY id LIMIT 1), '')`, c.workspace).Scan(&id)
	if err != nil || id == "" {
		return err
	}
	d := store.Decide{WorkspaceID: c.workspace, ApprovalID: id, Status: domain.ApprovalStatusApproved}
	if c.rand.IntN(2) == 0 {
		d.Status = domain.ApprovalStatusRejected
	}
	if c.rand.IntN(3) == 0 {
		d.AgentID = agent
	}
	_, _, err = c.Decide(ctx, d)
	return err
}

// finishWithActions ends an attempt that has started with a result that asks for something.
func (c *clerk) finishWithActions(ctx context.Context) error {
	for i, x := range c.live {
		if !c.started[x.RunID] {
			continue
		}
		c.forget(i)
		agent := string(c.agents[c.rand.IntN(len(c.agents))])
		all := []any{
			map[string]any{"type": "comment", "body": "done"}, map[string]any{"type": "complete_task"},
			map[string]any{"type": "move_task", "state": string(pickState(c.rand))},
			map[string]any{"type": "create_subtask", "title": "part", "assignee": agent}, map[string]any{"type": "request_approval", "question": "May I?"},
			map[string]any{"type": "self_wake", "reason": "again"},
		}
		c.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return c.Finish(ctx, x.Attempt, store.Success{Result: map[string]any{"summary": "done", "actions": all[:1+c.rand.IntN(3)]}, Usage: c.price()})
	}
	return nil
}
