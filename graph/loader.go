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
	"rouse.dev/rouse/ent/link"
	"rouse.dev/rouse/ent/notificationchannel"
	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/project"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/routinerun"
	"rouse.dev/rouse/ent/routinetrigger"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/ent/runattempt"
	"rouse.dev/rouse/ent/runworkingcopy"
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
	ownersOf   loader[[]reads.NumberedOwner] // of the attempts, by run
	copies     loader[*ent.RunWorkingCopy]   // by run, without diffs
	diffs      loader[*ent.RunWorkingCopy]   // by run

	linksOfRun  loader[[]*ent.Link] // by run
	linksOfTask loader[[]*ent.Link] // by task

	wakeupOf   loader[*ent.WakeupRequest] // by routine run
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

	advice  loader[*domain.RoutineAdviceFacts] // by routine
	healths loader[*reads.RoutineHealth]       // by routine
	costs   loader[reads.RoutineCost]          // by routine: of HealthPeriod

	activities loader[*ent.Activity]
	inboxItems loader[*ent.InboxItem]
	channels   loader[*ent.NotificationChannel] // that are not deleted
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
	triggers := func() *ent.RoutineTriggerQuery {
		return db.RoutineTrigger.Query().Where(routinetrigger.DeletedAtIsNil()).Order(routinetrigger.ByCreatedAt(), routinetrigger.ByID())
	}
	channels := func() *ent.NotificationChannelQuery {
		return db.NotificationChannel.Query().Where(notificationchannel.DeletedAtIsNil())
	}
	fires := func() *ent.RoutineRunQuery { return db.RoutineRun.Query().Order(routinerun.ByID()) }
	wakeups := func() *ent.WakeupRequestQuery { return db.WakeupRequest.Query().Order(wakeuprequest.ByID()) }
	steps := func() *ent.WorkflowStepQuery { return db.WorkflowStep.Query().Order(workflowstep.ByPosition()) }
	sessions := func() *ent.TaskSessionQuery {
		return db.TaskSession.Query().Order(tasksession.ByCreatedAt(), tasksession.ByID())
	}
	attempts := func() *ent.RunAttemptQuery {
		return db.RunAttempt.Query().Where(newestAttempts).Order(runattempt.ByRunID(), runattempt.ByNumber())
	}
	copies := func() *ent.RunWorkingCopyQuery { return db.RunWorkingCopy.Query().Order(runworkingcopy.ByID()) }
	links := func() *ent.LinkQuery { return db.Link.Query().Order(link.ByCreatedAt(), link.ByID()) }
	return context.WithValue(ctx, loadersKey{}, &loaders{
		expects: expects,
		head:    sync.OnceValues(func() (reads.ActivityPosition, error) { return r.Store.ActivityHead(ctx) }),
		now:     sync.OnceValues(func() (time.Time, error) { return r.Store.Now(ctx) }),

		// Rows by their own ids.
		activities: rows("activities", db.Activity.Query, activity.IDIn, func(x *ent.Activity) xid.ID { return x.ID }),
		agents:     rows("agents", db.Agent.Query, agent.IDIn, func(x *ent.Agent) xid.ID { return x.ID }),
		approvals:  rows("approvals", db.Approval.Query, approval.IDIn, func(x *ent.Approval) xid.ID { return x.ID }),
		comments:   rows("comments", db.Comment.Query, comment.IDIn, func(x *ent.Comment) xid.ID { return x.ID }),
		fires:      rows("routine runs", db.RoutineRun.Query, routinerun.IDIn, func(x *ent.RoutineRun) xid.ID { return x.ID }),
		inboxItems: rows("inbox items", db.InboxItem.Query, inboxitem.IDIn, func(x *ent.InboxItem) xid.ID { return x.ID }),
		channels:   rows("notification channels", channels, notificationchannel.IDIn, func(x *ent.NotificationChannel) xid.ID { return x.ID }),
		projects:   rows("projects", db.Project.Query, project.IDIn, func(x *ent.Project) xid.ID { return x.ID }),
		routines:   rows("routines", db.Routine.Query, routine.IDIn, func(x *ent.Routine) xid.ID { return x.ID }),
		runs:       rows("runs", db.Run.Query, run.IDIn, func(x *ent.Run) xid.ID { return x.ID }),
		steps:      rows("workflow steps", db.WorkflowStep.Query, workflowstep.IDIn, func(x *ent.WorkflowStep) xid.ID { return x.ID }),
		tasks:      rows("tasks", db.Task.Query, task.IDIn, func(x *ent.Task) xid.ID { return x.ID }),
		tokens:     rows("tokens", db.ApiToken.Query, apitoken.IDIn, func(x *ent.ApiToken) xid.ID { return x.ID }),
		triggers:   rows("triggers", triggers, routinetrigger.IDIn, func(x *ent.RoutineTrigger) xid.ID { return x.ID }),
		wakeups:    rows("wakeup requests", db.WakeupRequest.Query, wakeuprequest.IDIn, func(x *ent.WakeupRequest) xid.ID { return x.ID }),
		workflows:  rows("workflows", db.Workflow.Query, workflow.IDIn, func(x *ent.Workflow) xid.ID { return x.ID }),
		workspaces: rows("workspaces", db.Workspace.Query, workspace.IDIn, func(x *ent.Workspace) xid.ID { return x.ID }),

		// One row for each of what it belongs to.
		budgetOf:   rows("budgets of subjects", db.BudgetPolicy.Query, ofSubjects, func(x *ent.BudgetPolicy) xid.ID { return xid.ID(x.SubjectID) }),
		copies:     newBatch("working copies of runs", r.Store.RunWorkingCopies),
		diffs:      rows("diffs of runs", copies, runworkingcopy.RunIDIn, func(x *ent.RunWorkingCopy) xid.ID { return x.RunID }),
		fireOfTask: rows("fires of tasks", fires, routinerun.TaskIDIn, func(x *ent.RoutineRun) xid.ID { return x.TaskID }),
		wakeupOf:   rows("wakeups of routine runs", wakeups, wakeuprequest.RoutineRunIDIn, func(x *ent.WakeupRequest) xid.ID { return x.RoutineRunID }),

		// All rows of each.
		attemptsOf:  groups("attempts of runs", attempts, runattempt.RunIDIn, func(x *ent.RunAttempt) xid.ID { return x.RunID }),
		linksOfRun:  groups("links of runs", links, link.RunIDIn, func(x *ent.Link) xid.ID { return x.RunID }),
		linksOfTask: groups("links of tasks", links, link.TaskIDIn, func(x *ent.Link) xid.ID { return x.TaskID }),
		sessionsOf:  groups("sessions of tasks", sessions, tasksession.TaskIDIn, func(x *ent.TaskSession) xid.ID { return x.TaskID }),
		stepsOf:     groups("steps of workflows", steps, workflowstep.WorkflowIDIn, func(x *ent.WorkflowStep) xid.ID { return x.WorkflowID }),
		triggersOf:  groups("triggers of routines", triggers, routinetrigger.RoutineIDIn, func(x *ent.RoutineTrigger) xid.ID { return x.RoutineID }),
		summariesOf: newBatch("summaries of routines", grouped(r.readSummaries, routineOfSummary)),

		// What the store reads or works out.
		advice:          newBatch("what to advise of routines", r.Store.RoutineAdvice),
		costs:           newBatch("costs of routines", r.routineCosts),
		healths:         newBatch("health of routines", r.Store.RoutineHealth),
		actionable:      newBatch("counts of tasks", r.Store.ActionableTasks),
		blocked:         newBatch("which tasks are blocked", r.Store.BlockedTasks),
		budgets:         newBatch("budgets", r.budgets),
		contents:        newBatch("run contents", r.Store.RunContents),
		deliveries:      newBatch("deliveries of webhooks", r.deliveriesOf),
		heads:           newBatch("positions", r.heads),
		lanes:           newBatch("lanes", r.Store.Lanes),
		mentionsOf:      newBatch("mentions", r.Store.Mentions),
		ownersOf:        newBatch("owners of attempts", r.Store.AttemptOwners),
		participants:    newBatch("participants", r.Store.Participants),
		scheduled:       newBatch("schedules of agents", r.scheduledAgents),
		waiting:         newBatch("why runs wait", r.waitingOf),
		waitingRequests: newBatch("why requests wait", r.waitingOfRequests),
	})
}

func (r *Resolver) deliveriesOf(ctx context.Context, triggers []xid.ID) (map[xid.ID][]reads.LoggedDelivery, error) {
	return r.Store.Deliveries(ctx, triggers, deliveriesMost)
}

func ofSubjects(ids ...xid.ID) predicate.BudgetPolicy { return budgetpolicy.SubjectIDIn(texts(ids)...) }

// load is the loaders of the response that ctx belongs to.
func load(ctx context.Context) *loaders { return ctx.Value(loadersKey{}).(*loaders) }

// newestAttempts leaves out attempts that Run.attempts does not show, at the database.
func newestAttempts(s *sql.Selector) {
	s.Where(sql.P(func(b *sql.Builder) {
		b.Ident(s.C(runattempt.FieldNumber)).WriteString(" > (SELECT ").Ident(run.FieldAttempt).WriteString(" FROM ").Ident(run.Table).
			WriteString(" AS r WHERE r.").Ident(run.FieldID).WriteString(" = ").Ident(s.C(runattempt.FieldRunID)).WriteString(") - ").Arg(attemptsShown)
	}))
}

// queryOf is what ent's queries for rows of a table have in common; P is the type of the table's conditions.
type queryOf[T, P, Q any] interface {
	Where(...P) Q
	All(context.Context) ([]*T, error)
}

// rows loads one row for each key; of several rows with a key the first counts.
func rows[T, P any, Q queryOf[T, P, Q]](what string, query func() Q, in func(...xid.ID) P, key func(*T) xid.ID) loader[*T] {
	return newBatch(what, func(ctx context.Context, ids []xid.ID) (map[xid.ID]*T, error) {
		list, err := query().Where(in(ids...)).All(ctx)
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

// groups loads all rows with a key, in the order of the query.
func groups[T, P any, Q queryOf[T, P, Q]](what string, query func() Q, in func(...xid.ID) P, key func(*T) xid.ID) loader[[]*T] {
	return newBatch(what, grouped(func(ctx context.Context, ids []xid.ID) ([]*T, error) { return query().Where(in(ids...)).All(ctx) }, key))
}

// grouped sorts what is read by its key, in the order in which it is read.
func grouped[T any](read func(context.Context, []xid.ID) ([]*T, error), key func(*T) xid.ID) func(context.Context, []xid.ID) (map[xid.ID][]*T, error) {
	return func(ctx context.Context, ids []xid.ID) (map[xid.ID][]*T, error) {
		list, err := read(ctx, ids)
		if err != nil {
			return nil, err
		}
		out := make(map[xid.ID][]*T, len(ids))
		for _, row := range list {
			out[key(row)] = append(out[key(row)], row)
		}
		return out, nil
	}
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
