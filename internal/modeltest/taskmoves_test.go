package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/modeltest/model"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// taskMoves are what people and runs do to tasks.
var taskMoves = []move{
	{"create a task", 2, (*sequence).createAny},
	{"assign", 9, (*sequence).assignAny},
	{"assign there and back", 2, (*sequence).assignBack},
	{"move a task", 12, (*sequence).moveAny},
	{"block", 8, (*sequence).blockAny},
	{"end the last two blockers at once", 3, (*sequence).endTwoBlockers},
	{"participants", 6, (*sequence).participateAny},
	{"comment", 8, (*sequence).commentAny},
	{"comment while its run is live", 10, (*sequence).commentOnLive},
	{"queue a run", 4, (*sequence).queueRunAny},
	{"give a project", 3, (*sequence).projectAny},
	{"archive", 1, (*sequence).archiveAny},
	{"decide", 40, (*sequence).decideAny},
	{"finish with a result", 30, (*sequence).finishWithResult},
	{"fail", 8, (*sequence).failAny},
	{"recovery sweep", 5, (*sequence).recoverAll},
}

const maxTasks = 9

func (q *sequence) createAny(ctx context.Context) (bool, error) {
	if len(q.model.Tasks) >= maxTasks {
		return false, nil
	}
	t := &model.Task{State: "TODO", Reviewed: q.rand.IntN(3) == 0}
	in := store.CreateTask{WorkspaceID: q.workspace, Title: "task", RequiresApproval: t.Reviewed}
	if q.rand.IntN(5) == 0 {
		t.Board, in.WorkflowID = true, q.office.board
	}
	if q.rand.IntN(3) == 0 {
		t.Project = 1 + q.rand.IntN(len(q.office.projects))
		in.ProjectID = q.office.projects[t.Project-1]
	}
	if p, ok := pick(q.rand, q.model.Tasks); ok && q.rand.IntN(2) == 0 {
		t.Parent, in.ParentID = p, q.office.tasks[q.number(p)]
		if t.Project == 0 {
			t.Project = p.Project
		}
		t.Board = t.Board || p.Board
	}
	if b, ok := pick(q.rand, q.model.Tasks); ok && q.rand.IntN(4) == 0 {
		t.Blockers, in.BlockedBy = []*model.Task{b}, []xid.ID{q.office.tasks[q.number(b)]}
	}
	if i := q.rand.IntN(4); i > 0 {
		t.Assignee, in.AssigneeID = q.model.Agents[i-1], q.agents[i-1]
	}
	q.note("create task %d: %+v", len(q.model.Tasks)+1, *t)
	q.model.Create(t, model.By{})
	_, _, err := q.CreateTask(ctx, in)
	return true, err
}

// anyTask picks a task by its place in the list, archived ones now and then.
func (q *sequence) anyTask() int {
	i := q.rand.IntN(len(q.model.Tasks))
	if q.model.Tasks[i].Archived && q.rand.IntN(4) > 0 {
		i = q.rand.IntN(len(q.model.Tasks))
	}
	return i
}

func (q *sequence) assignAny(ctx context.Context) (bool, error) {
	return true, q.assign(ctx, q.anyTask(), q.rand.IntN(len(q.agents)+1)-1)
}

// assign gives a task to an agent, -1 for nobody.
func (q *sequence) assign(ctx context.Context, task, agent int) error {
	q.note("assign task %d to agent %d", task+1, agent+1)
	in := store.AssignTask{WorkspaceID: q.workspace, TaskID: q.office.tasks[task]}
	var to *model.Agent
	if agent >= 0 {
		to, in.AssigneeID = q.model.Agents[agent], q.agents[agent]
	}
	done := q.model.Assign(q.model.Tasks[task], to)
	_, _, err := q.AssignTask(ctx, in)
	return agree(done, err)
}

// assignBack is C38: A, B, A.
func (q *sequence) assignBack(ctx context.Context) (bool, error) {
	task, a := q.anyTask(), q.rand.IntN(len(q.agents))
	b := (a + 1) % len(q.agents)
	for _, agent := range []int{a, b, a} {
		if err := q.assign(ctx, task, agent); err != nil {
			return true, err
		}
	}
	return true, nil
}

func (q *sequence) moveAny(ctx context.Context) (bool, error) {
	i, state := q.anyTask(), pickState(q.rand)
	if q.model.Tasks[i].Reviewed && q.rand.IntN(3) > 0 {
		state = domain.TaskStateDone
	}
	q.note("move task %d to %s", i+1, state)
	done := q.model.Move(q.model.Tasks[i], string(state), model.By{})
	_, _, err := q.MoveTask(ctx, store.MoveTask{WorkspaceID: q.workspace, TaskID: q.office.tasks[i], To: state})
	return true, agree(done, err)
}

func (q *sequence) blockAny(ctx context.Context) (bool, error) {
	var blockers []int
	for range q.rand.IntN(3) {
		if b := q.rand.IntN(len(q.model.Tasks)); !slices.Contains(blockers, b) {
			blockers = append(blockers, b)
		}
	}
	return true, q.block(ctx, q.anyTask(), blockers)
}

func (q *sequence) block(ctx context.Context, task int, blockers []int) error {
	q.note("task %d is blocked by %v (from 0)", task+1, blockers)
	in := store.SetTaskBlockers{WorkspaceID: q.workspace, TaskID: q.office.tasks[task]}
	var list []*model.Task
	for _, b := range blockers {
		list, in.BlockedBy = append(list, q.model.Tasks[b]), append(in.BlockedBy, q.office.tasks[b])
	}
	done := q.model.Block(q.model.Tasks[task], list)
	_, err := q.SetTaskBlockers(ctx, in)
	return agree(done, err)
}

// endTwoBlockers is C302: a task waits for two others, both in work where such are found, and both end at one moment.
func (q *sequence) endTwoBlockers(ctx context.Context) (bool, error) {
	var open []int
	for i, t := range q.model.Tasks {
		if !t.Archived && t.State != "DONE" && t.State != "CANCELLED" && !t.Reviewed && !t.Asking() {
			open = append(open, i)
		}
	}
	q.rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	slices.SortStableFunc(open, func(i, j int) int { return btoi(q.worker(j) != nil) - btoi(q.worker(i) != nil) })
	if len(open) < 3 {
		return false, nil
	}
	a, b, task := open[0], open[1], open[len(open)-1]
	if q.model.Tasks[a].Parent != q.model.Tasks[b].Parent && q.model.Tasks[a].Parent != nil && q.model.Tasks[b].Parent != nil {
		return false, nil // two wakes of parents have no order
	}
	if err := q.block(ctx, task, []int{a, b}); err != nil {
		return true, err
	}
	for _, i := range []int{a, b} { // what else waits for one of them would be told in no order
		for j, other := range q.model.Tasks {
			if j != task && slices.Contains(other.Blockers, q.model.Tasks[i]) {
				if err := q.block(ctx, j, nil); err != nil {
					return true, err
				}
			}
		}
	}
	if err := q.compare(ctx); err != nil {
		return true, err
	}
	return true, q.endBoth(ctx, a, b)
}

// endBoth ends two tasks at once, by the runs that hold them where there are such.
func (q *sequence) endBoth(ctx context.Context, a, b int) error {
	ends := make(chan error, 2)
	for _, i := range []int{a, b} {
		if w := q.worker(i); w != nil {
			attempt := w.Attempt
			q.note("run %s ends task %d", w, i+1)
			go func() {
				ends <- q.Finish(ctx, attempt, store.Success{Result: map[string]any{"actions": []any{map[string]any{"type": "complete_task"}}}})
			}()
			continue
		}
		q.note("a person ends task %d", i+1)
		go func() {
			_, _, err := q.MoveTask(ctx, store.MoveTask{WorkspaceID: q.workspace, TaskID: q.office.tasks[i], To: domain.TaskStateDone})
			ends <- err
		}()
	}
	if err := errors.Join(<-ends, <-ends); err != nil {
		return err
	}
	var last xid.ID
	const order = `SELECT subject_id FROM activities WHERE code = 'TASK_CHANGED' AND subject_id IN ($1, $2) ORDER BY id DESC LIMIT 1`
	if err := q.db.QueryRowContext(ctx, order, q.office.tasks[a], q.office.tasks[b]).Scan(&last); err != nil {
		return err
	}
	if last == q.office.tasks[a] {
		a, b = b, a
	}
	for _, i := range []int{a, b} {
		if w := q.worker(i); w != nil {
			q.model.Finish(w.run, model.Act{Kind: "complete_task"})
		} else {
			q.model.Move(q.model.Tasks[i], "DONE", model.By{})
		}
	}
	return nil
}

// worker is the started attempt that holds a task; nil: none does.
func (q *sequence) worker(task int) *attempt {
	for _, a := range q.live() {
		if a.run.Started && a.run.Task == q.model.Tasks[task] && !a.run.CancelAsked {
			return &a
		}
	}
	return nil
}

func (q *sequence) participateAny(ctx context.Context) (bool, error) {
	i := q.anyTask()
	t := q.model.Tasks[i]
	in := store.SetTaskParticipants{WorkspaceID: q.workspace, TaskID: q.office.tasks[i]}
	reviewers, approvers := t.Reviewers, t.Approvers // one list, or the other, or both
	which := q.rand.IntN(3)
	if which != 0 {
		reviewers, in.Reviewers = q.someAgents()
	}
	if which != 1 {
		approvers, in.Approvers = q.someAgents()
	}
	q.note("task %d is reviewed by %v and approved by %v", i+1, in.Reviewers.Or([]xid.ID{"as before"}, nil), in.Approvers.Or([]xid.ID{"as before"}, nil))
	done := q.model.Participants(t, reviewers, approvers)
	_, _, err := q.SetTaskParticipants(ctx, in)
	return true, agree(done, err)
}

// someAgents is a list of agents, for the model and as a change.
func (q *sequence) someAgents() (list []*model.Agent, to domain.Change[[]xid.ID]) {
	var named []xid.ID
	for n, a := range q.model.Agents {
		if q.rand.IntN(3) == 0 {
			list, named = append(list, a), append(named, q.agents[n])
		}
	}
	return list, domain.To(named)
}

func (q *sequence) commentAny(ctx context.Context) (bool, error) {
	return true, q.comment(ctx, q.anyTask())
}

func (q *sequence) comment(ctx context.Context, task int) error {
	in := store.CommentOnTask{WorkspaceID: q.workspace, TaskID: q.office.tasks[task], UserID: "ann", Body: "look"}
	var mentions []*model.Agent
	for n, a := range q.model.Agents {
		if q.rand.IntN(4) == 0 {
			mentions, in.Mentions = append(mentions, a), append(in.Mentions, q.agents[n])
		}
	}
	q.note("comment on task %d, mentioning %v", task+1, in.Mentions)
	done := q.model.Comment(q.model.Tasks[task], mentions)
	_, _, err := q.CommentOnTask(ctx, in)
	return agree(done, err)
}

// commentOnLive comments several times while a run about the task is live, and routes: one run follows.
func (q *sequence) commentOnLive(ctx context.Context) (bool, error) {
	for i, t := range q.model.Tasks {
		w := q.worker(i)
		if w == nil || t.Archived {
			continue
		}
		for range 1 + q.rand.IntN(3) {
			if err := q.comment(ctx, i); err != nil {
				return true, err
			}
		}
		return true, q.route(ctx, slices.Index(q.model.Agents, w.run.Agent))
	}
	return false, nil
}

func (q *sequence) queueRunAny(ctx context.Context) (bool, error) {
	i, agent := q.anyTask(), q.rand.IntN(len(q.agents)+1)-1
	q.note("queue a run of agent %d on task %d", agent+1, i+1)
	in := store.QueueRun{WorkspaceID: q.workspace, TaskID: q.office.tasks[i]}
	var a *model.Agent
	if agent >= 0 {
		a, in.AgentID = q.model.Agents[agent], q.agents[agent]
	}
	done := q.model.QueueRun(q.model.Tasks[i], a)
	_, err := q.QueueRun(ctx, in)
	return true, agree(done, err)
}

func (q *sequence) projectAny(ctx context.Context) (bool, error) {
	i, project := q.anyTask(), q.rand.IntN(len(q.office.projects)+1)
	change := domain.Change[string]{Set: true}
	if project > 0 {
		change = domain.To(string(q.office.projects[project-1]))
	}
	q.note("task %d goes to project %d", i+1, project)
	done := q.model.SetProject(q.model.Tasks[i], project)
	_, err := q.UpdateTask(ctx, store.UpdateTask{WorkspaceID: q.workspace, TaskID: q.office.tasks[i], ProjectID: change})
	return true, agree(done, err)
}

func (q *sequence) archiveAny(ctx context.Context) (bool, error) {
	i := q.anyTask()
	q.note("archive task %d", i+1)
	q.model.Archive(q.model.Tasks[i])
	_, _, err := q.ArchiveTask(ctx, q.workspace, q.office.tasks[i])
	return true, err
}

func (q *sequence) decideAny(ctx context.Context) (bool, error) {
	var asking []int
	for i, t := range q.model.Tasks {
		if t.Asking() {
			asking = append(asking, i)
		}
	}
	i, ok := pick(q.rand, asking)
	if !ok {
		return false, nil
	}
	d := store.Decide{WorkspaceID: q.workspace, Status: domain.ApprovalStatusRejected}
	if q.rand.IntN(2) == 0 {
		d.Status = domain.ApprovalStatusApproved
	}
	var by *model.Agent
	if n := q.rand.IntN(len(q.agents) * 2); n < len(q.agents) {
		by, d.AgentID = q.model.Agents[n], q.agents[n]
	}
	const pending = `SELECT id FROM approvals WHERE task_id = $1 AND completion AND status = 'PENDING'`
	if err := q.db.QueryRowContext(ctx, pending, q.office.tasks[i]).Scan(&d.ApprovalID); err != nil {
		return true, err
	}
	q.note("the completion of task %d is %s by %q", i+1, d.Status, d.AgentID)
	done := q.model.Decide(q.model.Tasks[i], d.Status == domain.ApprovalStatusApproved, by)
	_, _, err := q.Decide(ctx, d)
	return true, agree(done, err)
}

// putToWork routes all that was asked for, and claims and starts what comes up.
func (q *sequence) putToWork(ctx context.Context) (bool, error) {
	for i := range q.agents {
		if err := q.route(ctx, i); err != nil {
			return true, err
		}
	}
	if err := q.claim(ctx, 4); err != nil {
		return true, err
	}
	for _, a := range q.live() {
		if a.run.Started {
			continue
		}
		if err := q.start(ctx, a); err != nil {
			return true, err
		}
	}
	return true, nil
}

// finishWithResult ends a started run with a result that asks for some things, and has its price.
func (q *sequence) finishWithResult(ctx context.Context) (bool, error) {
	a, ok := q.anyLive(true)
	if !ok {
		return false, nil
	}
	var acts []model.Act
	var actions []any
	for range q.rand.IntN(3) {
		act, action := q.anyAct()
		acts, actions = append(acts, act), append(actions, action)
	}
	ok2 := store.Success{Result: map[string]any{"actions": actions}, Usage: q.price(a.run)}
	q.note("finish %s for %d with %v", a, a.run.Spends, actions)
	q.model.Finish(a.run, acts...)
	return true, q.Finish(ctx, a.Attempt, ok2)
}

// price is what an attempt reports to have cost, in the model too.
func (q *sequence) price(run *model.Run) *store.Usage {
	run.Spends = []int{0, 0, 1, 2, 3}[q.rand.IntN(5)] * 250_000
	if run.Spends == 0 {
		return nil
	}
	return &store.Usage{CostUSD: domain.Money(run.Spends).String()}
}

func (q *sequence) anyAct() (model.Act, map[string]any) {
	switch q.rand.IntN(6) {
	case 0:
		return model.Act{Kind: "comment"}, map[string]any{"type": "comment", "body": "done"}
	case 1:
		state := string(pickState(q.rand))
		return model.Act{Kind: "move_task", State: state}, map[string]any{"type": "move_task", "state": state}
	case 2:
		if len(q.model.Tasks) < maxTasks {
			i := q.rand.IntN(len(q.agents))
			return model.Act{Kind: "create_subtask", Assignee: q.model.Agents[i]}, map[string]any{"type": "create_subtask", "title": "part", "assignee": string(q.agents[i])}
		}
	case 3:
		return model.Act{Kind: "self_wake"}, map[string]any{"type": "self_wake", "reason": "again"}
	}
	return model.Act{Kind: "complete_task"}, map[string]any{"type": "complete_task"}
}

func (q *sequence) recoverAll(ctx context.Context) (bool, error) {
	q.note("recovery sweep")
	want := q.model.Recover()
	got, err := q.Recover(ctx)
	got = slices.DeleteFunc(got, func(r store.Recovered) bool { return r.WorkspaceID != q.workspace })
	if err == nil && len(got) != want {
		err = fmt.Errorf("%d tasks were dispatched again, want %d", len(got), want)
	}
	return true, err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
