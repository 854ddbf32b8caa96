package graph

import (
	"context"
	"fmt"
	"sync"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/activity"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/apitoken"
	"rouse.dev/rouse/ent/approval"
	"rouse.dev/rouse/ent/budgetpolicy"
	"rouse.dev/rouse/ent/comment"
	"rouse.dev/rouse/ent/inboxitem"
	"rouse.dev/rouse/ent/project"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/routinerun"
	"rouse.dev/rouse/ent/routinetrigger"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/ent/runattempt"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/ent/tasksession"
	"rouse.dev/rouse/ent/wakeuprequest"
	"rouse.dev/rouse/ent/workflow"
	"rouse.dev/rouse/ent/workflowstep"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// loader reads what one level of a response asks for in one statement; see batch.
type loader[T any] = *batch[T]

// attemptsShown bounds Run.attempts.
const attemptsShown = 100

// loaders are the loaders of one response.
type loaders struct {
	workspaces loader[*ent.Workspace]
	agents     loader[*ent.Agent]
	routines   loader[*ent.Routine]
	fires      loader[*ent.RoutineRun]
	triggers   loader[*ent.RoutineTrigger]
	runs       loader[*ent.Run]
	contents   loader[*ent.RunContent]
	lanes      loader[*reads.Lane]
	heads      loader[position]
	triggersOf loader[[]*ent.RoutineTrigger] // by routine
	attemptsOf loader[[]*ent.RunAttempt]     // by run
	wakeupOf   loader[*ent.WakeupRequest]    // by routine run
	wakeups    loader[*ent.WakeupRequest]
	tasks      loader[*ent.Task]
	comments   loader[*ent.Comment]
	approvals  loader[*ent.Approval]
	projects   loader[*ent.Project]
	workflows  loader[*ent.Workflow]
	steps      loader[*ent.WorkflowStep]
	stepsOf    loader[[]*ent.WorkflowStep] // by workflow
	sessionsOf loader[[]*ent.TaskSession]  // by task
	fireOfTask loader[*ent.RoutineRun]     // by the task it made
	mentionsOf loader[[]xid.ID]            // by comment
	blocked    loader[bool]                // by task
	actionable loader[int]                 // by agent

	participants loader[*reads.Participants]            // by task
	head         func() (reads.ActivityPosition, error) // of the log, read once: no later than its first use
	waiting      loader[*domain.Waiting]                // by run

	waitingRequests loader[*domain.Waiting] // by wakeup request

	summariesOf loader[[]*ent.ContinuationSummary] // by routine

	budgets    loader[*model.Budget]
	budgetOf   loader[*ent.BudgetPolicy]      // by what it limits
	deliveries loader[[]reads.LoggedDelivery] // by trigger, newest first
	scheduled  loader[bool]                   // by agent: a schedule targets it

	activities loader[*ent.Activity]
	inboxItems loader[*ent.InboxItem]
	tokens     loader[*ent.ApiToken]

	now     func() (time.Time, error) // by the database's clock, which decides what is due; read once
	expects bool                      // whether rows that were read together are siblings
}

type loadersKey struct{}

// withLoaders gives ctx fresh loaders.
func (r *Resolver) withLoaders(ctx context.Context) context.Context {
	db := r.Reader
	// A mutation reads rows again after its change, so rows that nobody asked for yet must not be read too early.
	expects := graphql.GetOperationContext(ctx).Operation.Operation != ast.Mutation
	return context.WithValue(ctx, loadersKey{}, &loaders{
		workspaces: rows("workspaces", func(ctx context.Context, ids []xid.ID) ([]*ent.Workspace, error) {
			return db.Workspace.Query().Where(workspace.IDIn(ids...)).All(ctx)
		}, func(w *ent.Workspace) xid.ID { return w.ID }),
		agents: rows("agents", func(ctx context.Context, ids []xid.ID) ([]*ent.Agent, error) {
			return db.Agent.Query().Where(agent.IDIn(ids...)).All(ctx)
		}, func(a *ent.Agent) xid.ID { return a.ID }),
		routines: rows("routines", func(ctx context.Context, ids []xid.ID) ([]*ent.Routine, error) {
			return db.Routine.Query().Where(routine.IDIn(ids...)).All(ctx)
		}, func(x *ent.Routine) xid.ID { return x.ID }),
		fires: rows("routine runs", func(ctx context.Context, ids []xid.ID) ([]*ent.RoutineRun, error) {
			return db.RoutineRun.Query().Where(routinerun.IDIn(ids...)).All(ctx)
		}, func(x *ent.RoutineRun) xid.ID { return x.ID }),
		triggers: rows("triggers", func(ctx context.Context, ids []xid.ID) ([]*ent.RoutineTrigger, error) {
			return db.RoutineTrigger.Query().Where(routinetrigger.IDIn(ids...), routinetrigger.DeletedAtIsNil()).All(ctx)
		}, func(x *ent.RoutineTrigger) xid.ID { return x.ID }),
		runs: rows("runs", func(ctx context.Context, ids []xid.ID) ([]*ent.Run, error) {
			return db.Run.Query().Where(run.IDIn(ids...)).All(ctx)
		}, func(x *ent.Run) xid.ID { return x.ID }),
		contents: newBatch("run contents", r.Store.RunContents),
		lanes:    newBatch("lanes", r.Store.Lanes),
		heads:    newBatch("positions", r.heads),
		waiting:  newBatch("why runs wait", r.waitingOf),

		summariesOf:     groups("summaries of routines", r.readSummaries, routineOfSummary),
		waitingRequests: newBatch("why requests wait", r.waitingOfRequests),
		triggersOf: groups("triggers of routines", func(ctx context.Context, ids []xid.ID) ([]*ent.RoutineTrigger, error) {
			return db.RoutineTrigger.Query().Where(routinetrigger.RoutineIDIn(ids...), routinetrigger.DeletedAtIsNil()).Order(routinetrigger.ByCreatedAt(), routinetrigger.ByID()).All(ctx)
		}, func(x *ent.RoutineTrigger) xid.ID { return x.RoutineID }),
		attemptsOf: groups("attempts of runs", func(ctx context.Context, ids []xid.ID) ([]*ent.RunAttempt, error) {
			return db.RunAttempt.Query().Where(runattempt.RunIDIn(ids...), newestAttempts).Order(runattempt.ByRunID(), runattempt.ByNumber()).All(ctx)
		}, func(x *ent.RunAttempt) xid.ID { return x.RunID }),
		wakeups: rows("wakeup requests", func(ctx context.Context, ids []xid.ID) ([]*ent.WakeupRequest, error) {
			return db.WakeupRequest.Query().Where(wakeuprequest.IDIn(ids...)).All(ctx)
		}, func(x *ent.WakeupRequest) xid.ID { return x.ID }),
		tasks: rows("tasks", func(ctx context.Context, ids []xid.ID) ([]*ent.Task, error) {
			return db.Task.Query().Where(task.IDIn(ids...)).All(ctx)
		}, func(x *ent.Task) xid.ID { return x.ID }),
		comments: rows("comments", func(ctx context.Context, ids []xid.ID) ([]*ent.Comment, error) {
			return db.Comment.Query().Where(comment.IDIn(ids...)).All(ctx)
		}, func(x *ent.Comment) xid.ID { return x.ID }),
		approvals: rows("approvals", func(ctx context.Context, ids []xid.ID) ([]*ent.Approval, error) {
			return db.Approval.Query().Where(approval.IDIn(ids...)).All(ctx)
		}, func(x *ent.Approval) xid.ID { return x.ID }),
		projects: rows("projects", func(ctx context.Context, ids []xid.ID) ([]*ent.Project, error) {
			return db.Project.Query().Where(project.IDIn(ids...)).All(ctx)
		}, func(x *ent.Project) xid.ID { return x.ID }),
		workflows: rows("workflows", func(ctx context.Context, ids []xid.ID) ([]*ent.Workflow, error) {
			return db.Workflow.Query().Where(workflow.IDIn(ids...)).All(ctx)
		}, func(x *ent.Workflow) xid.ID { return x.ID }),
		steps: rows("workflow steps", func(ctx context.Context, ids []xid.ID) ([]*ent.WorkflowStep, error) {
			return db.WorkflowStep.Query().Where(workflowstep.IDIn(ids...)).All(ctx)
		}, func(x *ent.WorkflowStep) xid.ID { return x.ID }),
		stepsOf: groups("steps of workflows", func(ctx context.Context, ids []xid.ID) ([]*ent.WorkflowStep, error) {
			return db.WorkflowStep.Query().Where(workflowstep.WorkflowIDIn(ids...)).Order(workflowstep.ByPosition()).All(ctx)
		}, func(x *ent.WorkflowStep) xid.ID { return x.WorkflowID }),
		sessionsOf: groups("sessions of tasks", func(ctx context.Context, ids []xid.ID) ([]*ent.TaskSession, error) {
			return db.TaskSession.Query().Where(tasksession.TaskIDIn(ids...)).Order(tasksession.ByCreatedAt(), tasksession.ByID()).All(ctx)
		}, func(x *ent.TaskSession) xid.ID { return x.TaskID }),
		fireOfTask: rows("fires of tasks", func(ctx context.Context, ids []xid.ID) ([]*ent.RoutineRun, error) {
			return db.RoutineRun.Query().Where(routinerun.TaskIDIn(ids...)).Order(routinerun.ByID()).All(ctx)
		}, func(x *ent.RoutineRun) xid.ID { return x.TaskID }),
		mentionsOf:   newBatch("mentions", r.Store.Mentions),
		blocked:      newBatch("which tasks are blocked", r.Store.BlockedTasks),
		actionable:   newBatch("counts of tasks", r.Store.ActionableTasks),
		participants: newBatch("participants", r.Store.Participants),
		budgets:      newBatch("budgets", r.budgets),
		scheduled:    newBatch("schedules of agents", r.scheduledAgents),
		budgetOf: rows("budgets of subjects", func(ctx context.Context, ids []xid.ID) ([]*ent.BudgetPolicy, error) {
			return db.BudgetPolicy.Query().Where(budgetpolicy.SubjectIDIn(texts(ids)...)).All(ctx)
		}, func(x *ent.BudgetPolicy) xid.ID { return xid.ID(x.SubjectID) }),
		deliveries: newBatch("deliveries of webhooks", func(ctx context.Context, ids []xid.ID) (map[xid.ID][]reads.LoggedDelivery, error) {
			return r.Store.Deliveries(ctx, ids, deliveriesMost)
		}),
		head: sync.OnceValues(func() (reads.ActivityPosition, error) { return r.Store.ActivityHead(ctx) }),
		now:  sync.OnceValues(func() (time.Time, error) { return r.Store.Now(ctx) }),

		expects: expects,
		activities: rows("activities", func(ctx context.Context, ids []xid.ID) ([]*ent.Activity, error) {
			return db.Activity.Query().Where(activity.IDIn(ids...)).All(ctx)
		}, func(x *ent.Activity) xid.ID { return x.ID }),
		inboxItems: rows("inbox items", func(ctx context.Context, ids []xid.ID) ([]*ent.InboxItem, error) {
			return db.InboxItem.Query().Where(inboxitem.IDIn(ids...)).All(ctx)
		}, func(x *ent.InboxItem) xid.ID { return x.ID }),
		tokens: rows("tokens", func(ctx context.Context, ids []xid.ID) ([]*ent.ApiToken, error) {
			return db.ApiToken.Query().Where(apitoken.IDIn(ids...)).All(ctx)
		}, func(x *ent.ApiToken) xid.ID { return x.ID }),
		wakeupOf: rows("wakeups of routine runs", func(ctx context.Context, ids []xid.ID) ([]*ent.WakeupRequest, error) {
			return db.WakeupRequest.Query().Where(wakeuprequest.RoutineRunIDIn(ids...)).Order(wakeuprequest.ByID()).All(ctx)
		}, func(x *ent.WakeupRequest) xid.ID { return x.RoutineRunID }),
	})
}

// load is the loaders of the response that ctx belongs to.
func load(ctx context.Context) *loaders { return ctx.Value(loadersKey{}).(*loaders) }

// newestAttempts leaves out attempts that Run.attempts does not show, at the database.
func newestAttempts(s *sql.Selector) {
	s.Where(sql.P(func(b *sql.Builder) {
		b.Ident(s.C(runattempt.FieldNumber)).WriteString(" > (SELECT ").Ident(run.FieldAttempt).WriteString(" FROM ").Ident(run.Table).
			WriteString(" AS r WHERE r.").Ident(run.FieldID).WriteString(" = ").Ident(s.C(runattempt.FieldRunID)).WriteString(") - ").Arg(attemptsShown)
	}))
}

// rows loads one row for each key; of several rows with a key the first counts.
func rows[T any](what string, read func(context.Context, []xid.ID) ([]*T, error), key func(*T) xid.ID) loader[*T] {
	return newBatch(what, func(ctx context.Context, ids []xid.ID) (map[xid.ID]*T, error) {
		list, err := read(ctx, ids)
		if err != nil {
			return nil, err
		}
		out := make(map[xid.ID]*T, len(list))
		for _, row := range list {
			if out[key(row)] == nil {
				out[key(row)] = row
			}
		}
		return out, nil
	})
}

// groups loads all rows with a key, in the order in which they are read.
func groups[T any](what string, read func(context.Context, []xid.ID) ([]*T, error), key func(*T) xid.ID) loader[[]*T] {
	return newBatch(what, func(ctx context.Context, ids []xid.ID) (map[xid.ID][]*T, error) {
		list, err := read(ctx, ids)
		if err != nil {
			return nil, err
		}
		out := make(map[xid.ID][]*T, len(ids))
		for _, row := range list {
			out[key(row)] = append(out[key(row)], row)
		}
		return out, nil
	})
}

// linked loads what a column refers to; an empty column is null.
func linked[T any](ctx context.Context, l loader[*T], id xid.ID) (*T, error) {
	if id == "" {
		return nil, nil
	}
	return l.Load(ctx, id)
}

// required loads what a NOT NULL column refers to.
func required[T any](ctx context.Context, l loader[*T], id xid.ID) (*T, error) {
	row, err := l.Load(ctx, id)
	if err == nil && row == nil {
		return nil, fmt.Errorf("load %s: a row refers to it and it is not there", id)
	}
	return row, err
}
