package graph

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/ent/taskblocker"
	"rouse.dev/rouse/ent/wakeuprequest"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// wakeupsShown bounds the wakeups that a mutation lists, and sessionsShown Task.sessions.
const (
	wakeupsShown  = 100
	sessionsShown = 100
)

// presentTask finds a task that the caller sees and may change: a run's token its own alone (SPEC S7.4).
func (r *Resolver) presentTask(ctx context.Context, id xid.ID) (*ent.Task, error) {
	row, err := visible(r.Reader.Task.Query().Where(task.ID(id), task.DeletedAtIsNil()).Only(ctx))
	if err != nil {
		return nil, fmt.Errorf("look for task: %w", err)
	}
	caller, _ := auth.FromContext(ctx)
	if row == nil || caller.Kind == auth.KindRun && caller.TaskID != row.ID {
		return nil, notFound("taskId", "task")
	}
	return row, nil
}

// routed routes requests that a mutation has just made, before it answers, and reads the first of them.
func (r *Resolver) routed(ctx context.Context, requests []xid.ID) ([]*ent.WakeupRequest, error) {
	if err := r.Store.RouteRequests(ctx, requests); err != nil {
		r.Log.WarnContext(ctx, "wakeups not routed at once, the dispatcher will", "error", err)
	}
	return r.wakeups(ctx, requests)
}

// wakeups reads the first of some requests, oldest first; never nil.
func (r *Resolver) wakeups(ctx context.Context, requests []xid.ID) ([]*ent.WakeupRequest, error) {
	if len(requests) == 0 {
		return []*ent.WakeupRequest{}, nil
	}
	list, err := r.Reader.WakeupRequest.Query().Where(wakeuprequest.IDIn(requests[:min(len(requests), wakeupsShown)]...)).
		Order(wakeuprequest.ByRequestedAt(), wakeuprequest.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read wakeups: %w", err)
	}
	return append([]*ent.WakeupRequest{}, list...), nil
}

// noWakeups is what a mutation lists that was refused.
func noWakeups() []*ent.WakeupRequest { return []*ent.WakeupRequest{} }

// changed is what a mutation of a task answers: the task as it is now, what it sent, routed, and what it cancelled.
func (r *Resolver) changed(ctx context.Context, id xid.ID, sent, cancelled []xid.ID, err error) (*ent.Task, []*ent.WakeupRequest, []*ent.WakeupRequest, error) {
	if err != nil {
		return nil, noWakeups(), noWakeups(), err
	}
	wakes, err := r.routed(ctx, sent)
	if err != nil {
		return nil, nil, nil, err
	}
	ended, err := r.wakeups(ctx, cancelled)
	if err != nil {
		return nil, nil, nil, err
	}
	row, err := r.Reader.Task.Get(ctx, id)
	return row, wakes, ended, err
}

// createTask makes a task. Its id is made here, since the values of its executor are sealed for it.
func (r *Resolver) createTask(ctx context.Context, in model.CreateTaskInput) (*ent.Task, []*ent.WakeupRequest, bool, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return nil, noWakeups(), false, err
	}
	parentID, err := childOnly(ctx, in.ParentID)
	if err != nil {
		return nil, noWakeups(), false, err
	}
	id := xid.New("tsk")
	executor, executorErr := newExecutor(in.Executor, []string{"executor"}, id, r.Sealer)
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(executorErr, onceErr); err != nil {
		return nil, noWakeups(), false, err
	}
	mask, err := r.agentMask(ctx)
	if err != nil {
		return nil, noWakeups(), false, err
	}
	made, sent, err := r.Store.CreateTask(ctx, store.CreateTask{
		WorkspaceID: in.WorkspaceID, ID: id, Title: mask(in.Title), Description: mask(valueOf(in.Description)), ProjectID: idOf(in.ProjectID), WorkflowID: idOf(in.WorkflowID),
		ParentID: parentID, AssigneeID: idOf(in.AssigneeID), BlockedBy: in.BlockedByIds, RequiresApproval: valueOf(in.RequiresApproval),
		Executor: executor, Idempotency: once,
	})
	row, wakes, _, err := r.changed(ctx, made.ID, sent, nil, err)
	return row, wakes, made.Replayed, err
}

// childOnly is the parent of a new task: a run's token makes children of its own task alone.
func childOnly(ctx context.Context, given *xid.ID) (xid.ID, error) {
	caller, _ := auth.FromContext(ctx)
	switch {
	case caller.Kind != auth.KindRun:
		return idOf(given), nil
	case caller.TaskID == "":
		return "", domain.RefuseField([]string{"parentId"}, domain.UserErrorCodeInvalidState, "this run has no task, and its token makes children of it alone")
	case given != nil && *given != caller.TaskID:
		return "", notFound("parentId", "task")
	}
	return caller.TaskID, nil
}

func (r *Resolver) updateTask(ctx context.Context, in model.UpdateTaskInput) (row *ent.Task, wakes []*ent.WakeupRequest, done store.TaskUpdated, err error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err != nil {
		return nil, noWakeups(), done, err
	}
	executor, executorErr := changeOfExecutor(in.Executor, []string{"executor"}, x.ID, r.Sealer)
	if err := joinProblems(executorErr, checkTexts(in)); err != nil {
		return nil, noWakeups(), done, err
	}
	done, err = r.Store.UpdateTask(ctx, store.UpdateTask{
		WorkspaceID: x.WorkspaceID, TaskID: x.ID, ExpectedRevision: in.ExpectedRevision, Title: changeOf(in.Title), Description: changeOf(in.Description),
		ProjectID: changeOfID(in.ProjectID), RequiresApproval: changeOf(in.RequiresApproval), Executor: executor,
	})
	row, wakes, _, err = r.changed(ctx, x.ID, done.Sent, nil, err)
	return row, wakes, done, err
}

func (r *Resolver) assignTask(ctx context.Context, in model.AssignTaskInput) (row *ent.Task, wakes, cancelled []*ent.WakeupRequest, err error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err != nil {
		return nil, noWakeups(), noWakeups(), err
	}
	if !in.AssigneeID.IsSet() {
		return nil, noWakeups(), noWakeups(), domain.RefuseField([]string{"assigneeId"}, domain.UserErrorCodeRequired, "say who gets the task, or null for nobody")
	}
	sent, ended, err := r.Store.AssignTask(ctx, store.AssignTask{WorkspaceID: x.WorkspaceID, TaskID: x.ID, AssigneeID: idOf(in.AssigneeID.Value()), ExpectedRevision: in.ExpectedRevision})
	return r.changed(ctx, x.ID, sent, ended, err)
}

func (r *Resolver) moveTask(ctx context.Context, in model.MoveTaskInput) (row *ent.Task, wakes, cancelled []*ent.WakeupRequest, err error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err == nil {
		err = checkTexts(in)
	}
	if err != nil {
		return nil, noWakeups(), noWakeups(), err
	}
	mask, err := r.agentMask(ctx)
	if err != nil {
		return nil, noWakeups(), noWakeups(), err
	}
	sent, ended, err := r.Store.MoveTask(ctx, store.MoveTask{WorkspaceID: x.WorkspaceID, TaskID: x.ID, To: valueOf(in.To), StepID: idOf(in.StepID),
		Note: mask(valueOf(in.Note)), ExpectedRevision: in.ExpectedRevision})
	return r.changed(ctx, x.ID, sent, ended, err)
}

func (r *Resolver) setTaskBlockers(ctx context.Context, in model.SetTaskBlockersInput) (*ent.Task, []*ent.WakeupRequest, error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err != nil {
		return nil, noWakeups(), err
	}
	sent, err := r.Store.SetTaskBlockers(ctx, store.SetTaskBlockers{WorkspaceID: x.WorkspaceID, TaskID: x.ID, BlockedBy: in.BlockedByIds, ExpectedRevision: in.ExpectedRevision})
	row, wakes, _, err := r.changed(ctx, x.ID, sent, nil, err)
	return row, wakes, err
}

func (r *Resolver) setTaskParticipants(ctx context.Context, in model.SetTaskParticipantsInput) (row *ent.Task, wakes, cancelled []*ent.WakeupRequest, err error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err != nil {
		return nil, noWakeups(), noWakeups(), err
	}
	sent, ended, err := r.Store.SetTaskParticipants(ctx, store.SetTaskParticipants{WorkspaceID: x.WorkspaceID, TaskID: x.ID, Reviewers: changeOfList(in.ReviewerIds), Approvers: changeOfList(in.ApproverIds),
		ExpectedRevision: in.ExpectedRevision})
	return r.changed(ctx, x.ID, sent, ended, err)
}

func (r *Resolver) archiveTask(ctx context.Context, in model.ArchiveTaskInput) (row *ent.Task, wakes, cancelled []*ent.WakeupRequest, err error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err != nil {
		return nil, noWakeups(), noWakeups(), err
	}
	sent, ended, err := r.Store.ArchiveTask(ctx, x.WorkspaceID, x.ID)
	return r.changed(ctx, x.ID, sent, ended, err)
}

// queueRun asks for a run by name and routes it before it answers.
func (r *Resolver) queueRun(ctx context.Context, in model.QueueRunInput) (*ent.WakeupRequest, bool, error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err != nil {
		return nil, false, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return nil, false, err
	}
	made, err := r.Store.QueueRun(ctx, store.QueueRun{WorkspaceID: x.WorkspaceID, TaskID: x.ID, AgentID: idOf(in.AgentID), Reason: valueOf(in.Reason), Idempotency: once})
	if err != nil {
		return nil, false, err
	}
	wakes, err := r.routed(ctx, []xid.ID{made.ID})
	if err != nil || len(wakes) == 0 {
		return nil, made.Replayed, err
	}
	return wakes[0], made.Replayed, nil
}

// everyTask is the filter of lists that show archived tasks as well.
var everyTask = &model.TaskFilter{IncludeArchived: new(true)}

func (r *Resolver) pageOfTasks(ctx context.Context, of predicate.Task, f *model.TaskFilter, by *ent.TaskOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.TaskConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	q := r.Reader.Task.Query().Where(of, task.DeletedAtIsNil())
	if err == nil {
		err = filterTasks(func(c ...predicate.Task) { q.Where(c...) }, f)
	}
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = ent.DefaultTaskOrder
	}
	edge := func(x *ent.Task) *ent.TaskEdge { return x.ToEdge(by) }
	read, err := readPage(ctx, q, p, orderedBy(by.Direction, by.Field), func(x *ent.Task) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	return &ent.TaskConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

// filterTasks adds the conditions of f, which may be nil.
func filterTasks(add func(...predicate.Task), f *model.TaskFilter) error {
	if f == nil || f.IncludeArchived == nil || !*f.IncludeArchived {
		add(task.ArchivedAtIsNil())
	}
	if f == nil {
		return nil
	}
	for id, is := range map[*xid.ID]func(xid.ID) predicate.Task{f.WorkflowID: task.WorkflowID, f.StepID: task.StepID} {
		if id != nil {
			add(is(*id))
		}
	}
	add(refersTo(f.ParentID, task.ParentID, task.ParentIDIsNil)...)
	add(refersTo(f.AssigneeID, task.AssigneeID, task.AssigneeIDIsNil)...)
	add(refersTo(f.ProjectID, task.ProjectID, task.ProjectIDIsNil)...)
	if f.State != nil {
		add(task.StateIn(f.State...))
	}
	for _, blocked := range []*bool{f.IsBlocked, f.Blocked} {
		if blocked != nil {
			add(isBlocked(*blocked))
		}
	}
	if f.RequiresApproval != nil {
		add(task.RequiresApproval(*f.RequiresApproval))
	}
	if f.ReviewerID != nil {
		add(where(`{t}."id" IN (SELECT p.task_id FROM task_reviewers p WHERE p.agent_id = ?)`, f.ReviewerID.String()))
	}
	if f.ApproverID != nil {
		add(where(`{t}."id" IN (SELECT p.task_id FROM task_approvers p WHERE p.agent_id = ?)`, f.ApproverID.String()))
	}
	if f.Search != nil && *f.Search != "" {
		add(task.TitleContainsFold(*f.Search))
	}
	return checkText("filter.search", f.Search)
}

// blockersOf are the tasks that a task waits for.
func blockersOf(id xid.ID) predicate.Task {
	return func(s *sql.Selector) {
		links := sql.Table(taskblocker.Table)
		s.Where(sql.In(s.C(task.FieldID), sql.Select(links.C(taskblocker.FieldBlockerID)).From(links).Where(sql.EQ(links.C(taskblocker.FieldTaskID), string(id)))))
	}
}

// blockedBy are the tasks that wait for a task.
func blockedBy(id xid.ID) predicate.Task {
	return func(s *sql.Selector) {
		links := sql.Table(taskblocker.Table)
		s.Where(sql.In(s.C(task.FieldID), sql.Select(links.C(taskblocker.FieldTaskID)).From(links).Where(sql.EQ(links.C(taskblocker.FieldBlockerID), string(id)))))
	}
}

// isBlocked tells tasks with an open blocker from the others.
func isBlocked(want bool) predicate.Task {
	return func(s *sql.Selector) {
		links, blockers := sql.Table(taskblocker.Table), sql.Table(task.Table).As("blocker")
		open := sql.Select(links.C(taskblocker.FieldTaskID)).From(links).Join(blockers).On(blockers.C(task.FieldID), links.C(taskblocker.FieldBlockerID)).
			Where(sql.And(sql.NotIn(blockers.C(task.FieldState), domain.TaskStateDone, domain.TaskStateCancelled),
				sql.IsNull(blockers.C(task.FieldArchivedAt)), sql.IsNull(blockers.C(task.FieldDeletedAt))))
		if want {
			s.Where(sql.In(s.C(task.FieldID), open))
		} else {
			s.Where(sql.NotIn(s.C(task.FieldID), open))
		}
	}
}

// isAutonomous says whether the loop may act on a task (SPEC S5.1).
func isAutonomous(ctx context.Context, x *ent.Task) (bool, error) {
	w, err := required(ctx, load(ctx).workspaces, x.WorkspaceID)
	if err != nil {
		return false, err
	}
	f, err := required(ctx, load(ctx).workflows, x.WorkflowID)
	if err != nil {
		return false, err
	}
	return domain.IsOffice(x.ProjectID != "", x.WorkflowID == w.OfficeWorkflowID, f.Kind), nil
}

// agentsOf loads agents in the order given; those that are gone are left out.
func agentsOf(ctx context.Context, list []xid.ID, err error) ([]*ent.Agent, error) {
	out := []*ent.Agent{}
	if err != nil {
		return out, err
	}
	agents, err := load(ctx).agents.LoadAll(ctx, list)
	for _, a := range agents {
		if a != nil {
			out = append(out, a)
		}
	}
	return out, err
}

// checkoutOf shows which run holds a task; nil when none does.
func checkoutOf(ctx context.Context, x *ent.Task) (*model.TaskCheckout, error) {
	if x.CheckoutRunID == "" || x.CheckoutAt == nil {
		return nil, nil
	}
	holder, err := required(ctx, load(ctx).agents, x.CheckoutAgentID)
	if err != nil {
		return nil, err
	}
	run, err := linked(ctx, load(ctx).runs, x.CheckoutRunID)
	return &model.TaskCheckout{Agent: holder, Since: *x.CheckoutAt, Run: run}, err
}
