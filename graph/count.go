package graph

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// countedMost is how many rows of a status are counted.
const countedMost = 10_000

// runCounts counts a workspace's runs by status. A status is written out, because PostgreSQL uses an index of some rows only where it
// sees the condition.
func (r *Resolver) runCounts(ctx context.Context, workspaceID xid.ID, f *model.RunFilter) (*model.RunCounts, error) {
	if err := r.checkRunFilter(ctx, f, nil); err != nil {
		return nil, err
	}
	conditions := []predicate.Run{run.WorkspaceID(workspaceID)}
	if err := r.filterRuns(func(c ...predicate.Run) { conditions = append(conditions, c...) }, f); err != nil {
		return nil, err
	}
	out := &model.RunCounts{}
	err := countBy(ctx, r, run.Table, "status", conditions, &out.Capped, map[domain.RunStatus]*int{
		domain.RunStatusQueued: &out.Queued, domain.RunStatusClaimed: &out.Claimed, domain.RunStatusFinished: &out.Finished,
		domain.RunStatusFailed: &out.Failed, domain.RunStatusCancelled: &out.Cancelled,
	})
	return out, err
}

// taskCounts counts a workspace's tasks by state.
func (r *Resolver) taskCounts(ctx context.Context, workspaceID xid.ID, f *model.TaskFilter) (*model.TaskCounts, error) {
	conditions := []predicate.Task{task.WorkspaceID(workspaceID), task.DeletedAtIsNil()}
	if err := filterTasks(func(c ...predicate.Task) { conditions = append(conditions, c...) }, f); err != nil {
		return nil, err
	}
	out := &model.TaskCounts{}
	err := countBy(ctx, r, task.Table, "state", conditions, &out.Capped, map[domain.TaskState]*int{
		domain.TaskStateTodo: &out.Todo, domain.TaskStateInProgress: &out.InProgress, domain.TaskStateInReview: &out.InReview,
		domain.TaskStateBlocked: &out.Blocked, domain.TaskStateDone: &out.Done, domain.TaskStateCancelled: &out.Cancelled,
	})
	return out, err
}

// countBy counts a table's rows that meet all conditions by the values of a column, in one statement. It is for a workspace that the
// caller sees: the conditions name it.
func countBy[P ~func(*sql.Selector), V ~string](ctx context.Context, r *Resolver, table, column string, conditions []P, capped *bool, into map[V]*int) error {
	counts := sql.Dialect(dialect.Postgres).Select()
	for value := range into {
		of := sql.Dialect(dialect.Postgres).Select("id").From(sql.Table(table)).Limit(countedMost + 1)
		for _, condition := range conditions {
			condition(of)
		}
		of.Where(oneOf(of.C(column), []V{value}, "")[0].condition())
		counts.AppendSelectExprAs(sql.ExprFunc(func(b *sql.Builder) {
			b.WriteString("(SELECT count(*) FROM ").Wrap(func(b *sql.Builder) { b.Join(of) }).WriteString(" AS counted)")
		}), string(value))
	}
	query, args := counts.Query()
	found, err := r.Store.Numbers(ctx, query, args)
	if err != nil {
		return fmt.Errorf("count %s by %s: %w", table, column, err)
	}
	for value, n := range into {
		*n = min(found[string(value)], countedMost)
		*capped = *capped || found[string(value)] > countedMost
	}
	return nil
}
