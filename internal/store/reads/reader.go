package reads

import (
	"context"
	"errors"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/intercept"
	"rouse.dev/rouse/ent/runattempt"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/ent/taskblocker"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/store/pgtx"
)

// ErrNoPrincipal says that a read came without a caller: a defect of the program, since nothing is read for nobody.
var ErrNoPrincipal = errors.New("no caller in this context: authenticate before reading")

// ErrReadOnly says that somebody tried to write through the API's reader.
var ErrReadOnly = errors.New("this client only reads: write through a method of the store")

// Reader is the client that the API reads through. It refuses every write, and adds the caller's workspace to every
// query. Rows of another workspace do not exist for it (SPEC S2). For an agent, neither do runs of other agents, nor
// tasks that are not linked with its own (SPEC S7.4). This is the one place of these predicates.
func (s *Reads) Reader() *ent.Client {
	reader := pgtx.Client(s.pool)
	reader.Use(func(ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(context.Context, ent.Mutation) (ent.Value, error) { return nil, ErrReadOnly })
	})
	reader.Intercept(intercept.TraverseFunc(withinWorkspace))
	return reader
}

// ownColumn is the column that names the agent of rows with prompts and results, because an agent sees only its own of
// these (SPEC S7.4). It is "" for all other rows.
func ownColumn(q intercept.Query) string {
	switch q.Type() {
	case ent.TypeRun, ent.TypeWakeupRequest, ent.TypeContinuationSummary:
		return "agent_id"
	}
	return ""
}

// taskColumn is the column that names the task of tasks and of what was said about them. It is "" for all other rows.
func taskColumn(q intercept.Query) string {
	switch q.Type() {
	case ent.TypeTask:
		return task.FieldID
	case ent.TypeComment:
		return "task_id"
	}
	return ""
}

// aboutTask lets through what is about a run's task, its children, its parent or the blockers that it had before the run began, or a
// task whose approvals its agent decides. The blockers of a child are not among them, nor those that the agent named by itself,
// in this run or as it made the task: it would read any task by naming it.
func aboutTask(sel *entsql.Selector, column string, caller auth.Principal) *entsql.Predicate {
	id := string(caller.TaskID)
	tasks, parents, links := entsql.Table(task.Table).As("own_child"), entsql.Table(task.Table).As("own_task"), entsql.Table(taskblocker.Table).As("own_blocker")
	children := entsql.Select(tasks.C(task.FieldID)).From(tasks).Where(entsql.EQ(tasks.C(task.FieldParentID), id))
	parent := entsql.Select(parents.C(task.FieldParentID)).From(parents).Where(entsql.EQ(parents.C(task.FieldID), id))
	blockers := entsql.Select(links.C(taskblocker.FieldBlockerID)).From(links).Where(entsql.And(entsql.EQ(links.C(taskblocker.FieldTaskID), id), hadBefore(links, caller), notBlind(links, caller)))
	roles := entsql.Table(task.ApproversTable).As("own_role")
	judged := entsql.Select(roles.C(task.ApproversPrimaryKey[0])).From(roles).Where(entsql.EQ(roles.C(task.ApproversPrimaryKey[1]), string(caller.AgentID)))
	at := sel.C(column)
	return entsql.Or(entsql.EQ(at, id), entsql.In(at, children), entsql.In(at, parent), entsql.In(at, blockers), entsql.In(at, judged))
}

// hadBefore holds of links that were there before the caller's run began: its first attempt. Without one it holds of none.
func hadBefore(links *entsql.SelectTable, caller auth.Principal) *entsql.Predicate {
	attempts := entsql.Table(runattempt.Table).As("own_attempt")
	began := entsql.Select(entsql.Min(attempts.C(runattempt.FieldStartedAt))).From(attempts).Where(entsql.EQ(attempts.C(runattempt.FieldRunID), string(caller.RunID)))
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(links.C(taskblocker.FieldCreatedAt)).WriteString(" < ").Wrap(func(b *entsql.Builder) { b.Join(began) })
	})
}

// notBlind holds of links that somebody else than the caller's agent made, and of those to a sibling of its task: whoever made both
// could read it. guard.NamedBlind says the opposite in SQL.
func notBlind(links *entsql.SelectTable, caller auth.Principal) *entsql.Predicate {
	own, siblings := entsql.Table(task.Table).As("own_again"), entsql.Table(task.Table).As("own_sibling")
	parent := entsql.Select(own.C(task.FieldParentID)).From(own).Where(entsql.EQ(own.C(task.FieldID), string(caller.TaskID)))
	sibling := entsql.Select(siblings.C(task.FieldID)).From(siblings).Where(entsql.In(siblings.C(task.FieldParentID), parent))
	by := links.C(taskblocker.FieldLinkedByID)
	return entsql.Or(entsql.IsNull(by), entsql.NEQ(by, string(caller.AgentID)), entsql.In(links.C(taskblocker.FieldBlockerID), sibling))
}

func withinWorkspace(ctx context.Context, q intercept.Query) error {
	caller, ok := auth.FromContext(ctx)
	if !ok {
		return ErrNoPrincipal
	}
	if caller.IsInstance() {
		return nil
	}
	if caller.Kind == auth.KindRun {
		if column := ownColumn(q); column != "" {
			q.WhereP(func(sel *entsql.Selector) { sel.Where(entsql.EQ(sel.C(column), string(caller.AgentID))) })
		}
		if column := taskColumn(q); column != "" {
			q.WhereP(func(sel *entsql.Selector) { sel.Where(aboutTask(sel, column, caller)) })
		}
	}
	column := "workspace_id"
	switch q.Type() {
	case ent.TypeWorkspace:
		column = workspace.FieldID
	case ent.TypeMutationKey, ent.TypeInstanceFact, ent.TypeWorkspaceLane:
		return fmt.Errorf("%s is not for callers of one workspace", q.Type())
	}
	q.WhereP(func(sel *entsql.Selector) { sel.Where(entsql.EQ(sel.C(column), string(caller.WorkspaceID))) })
	return nil
}
