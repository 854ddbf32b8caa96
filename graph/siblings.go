package graph

import (
	"context"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// expectSiblings looks at all rows that are read for a response, and announces to the loaders what the next level may
// ask of them. So a page costs one statement for each kind of thing that it shows, on a busy machine as well.
func expectSiblings(next ent.Querier) ent.Querier {
	return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
		rows, err := next.Query(ctx, q)
		if l, ok := ctx.Value(loadersKey{}).(*loaders); ok && err == nil && l.expects {
			l.expect(rows)
		}
		return rows, err
	})
}

// expect tells the loaders of rows that were read together; other values than lists of rows it leaves alone.
func (l *loaders) expect(rows ent.Value) {
	switch rows := rows.(type) {
	case []*ent.Agent:
		l.expectAgents(rows)
	case []*ent.Run:
		l.expectRuns(rows)
	case []*ent.WakeupRequest:
		l.expectWakeups(rows)
	case []*ent.Routine:
		l.expectRoutines(rows)
	case []*ent.RoutineRun:
		l.expectFires(rows)
	case []*ent.RoutineTrigger:
		l.routines.expect(column(rows, func(x *ent.RoutineTrigger) xid.ID { return x.RoutineID })...)
		l.deliveries.expect(column(rows, func(x *ent.RoutineTrigger) xid.ID { return x.ID })...)
	case []*ent.Task:
		l.expectTasks(rows)
	default:
		l.expectOthers(rows)
	}
}

func (l *loaders) expectAgents(rows []*ent.Agent) {
	ids := column(rows, func(x *ent.Agent) xid.ID { return x.ID })
	l.lanes.expect(ids...)
	l.scheduled.expect(ids...)
	l.actionable.expect(ids...)
	workspaces := column(rows, func(x *ent.Agent) xid.ID { return x.WorkspaceID })
	l.workspaces.expect(workspaces...)
	l.budgetOf.expect(append(ids, workspaces...)...)
	l.agents.expect(column(rows, func(x *ent.Agent) xid.ID { return x.ManagerID })...)
}

func (l *loaders) expectRuns(rows []*ent.Run) {
	l.workspaces.expect(column(rows, func(x *ent.Run) xid.ID { return x.WorkspaceID })...)
	ids := column(rows, func(x *ent.Run) xid.ID { return x.ID })
	l.contents.expect(ids...)
	l.heads.expect(ids...)
	l.attemptsOf.expect(ids...)
	l.ownersOf.expect(ids...)
	l.waiting.expect(column(rows, func(x *ent.Run) xid.ID {
		if runWaits(x) {
			return x.ID
		}
		return ""
	})...)
	l.agents.expect(column(rows, func(x *ent.Run) xid.ID { return x.AgentID })...)
	l.tasks.expect(column(rows, func(x *ent.Run) xid.ID { return x.TaskID })...)
	l.routines.expect(column(rows, func(x *ent.Run) xid.ID { return x.RoutineID })...)
}

func (l *loaders) expectWakeups(rows []*ent.WakeupRequest) {
	l.workspaces.expect(column(rows, func(x *ent.WakeupRequest) xid.ID { return x.WorkspaceID })...)
	l.waitingRequests.expect(column(rows, func(x *ent.WakeupRequest) xid.ID {
		if requestWaits(x) {
			return x.ID
		}
		return ""
	})...)
	l.agents.expect(column(rows, func(x *ent.WakeupRequest) xid.ID { return x.AgentID })...)
	l.runs.expect(column(rows, func(x *ent.WakeupRequest) xid.ID { return x.RunID })...)
	l.tasks.expect(column(rows, func(x *ent.WakeupRequest) xid.ID { return x.TaskID })...)
	l.routines.expect(column(rows, func(x *ent.WakeupRequest) xid.ID { return x.RoutineID })...)
	l.fires.expect(column(rows, func(x *ent.WakeupRequest) xid.ID { return x.RoutineRunID })...)
}

func (l *loaders) expectRoutines(rows []*ent.Routine) {
	ids := column(rows, func(x *ent.Routine) xid.ID { return x.ID })
	l.triggersOf.expect(ids...)
	l.summariesOf.expect(ids...)
	l.advice.expect(ids...)
	l.healths.expect(ids...)
	l.costs.expect(ids...)
	l.workspaces.expect(column(rows, func(x *ent.Routine) xid.ID { return x.WorkspaceID })...)
	l.agents.expect(column(rows, func(x *ent.Routine) xid.ID { return x.AssigneeID })...)
}

func (l *loaders) expectFires(rows []*ent.RoutineRun) {
	l.workspaces.expect(column(rows, func(x *ent.RoutineRun) xid.ID { return x.WorkspaceID })...)
	l.wakeupOf.expect(column(rows, func(x *ent.RoutineRun) xid.ID { return x.ID })...)
	l.routines.expect(column(rows, func(x *ent.RoutineRun) xid.ID { return x.RoutineID })...)
	l.triggers.expect(column(rows, func(x *ent.RoutineRun) xid.ID { return x.TriggerID })...)
	l.tasks.expect(column(rows, func(x *ent.RoutineRun) xid.ID { return x.TaskID })...)
	l.fires.expect(column(rows, func(x *ent.RoutineRun) xid.ID { return x.CoalescedIntoID })...)
}

func (l *loaders) expectTasks(rows []*ent.Task) {
	ids := column(rows, func(x *ent.Task) xid.ID { return x.ID })
	l.participants.expect(ids...)
	l.blocked.expect(ids...)
	l.sessionsOf.expect(ids...)
	l.fireOfTask.expect(ids...)
	l.workspaces.expect(column(rows, func(x *ent.Task) xid.ID { return x.WorkspaceID })...)
	l.workflows.expect(column(rows, func(x *ent.Task) xid.ID { return x.WorkflowID })...)
	l.steps.expect(column(rows, func(x *ent.Task) xid.ID { return x.StepID })...)
	l.projects.expect(column(rows, func(x *ent.Task) xid.ID { return x.ProjectID })...)
	l.tasks.expect(column(rows, func(x *ent.Task) xid.ID { return x.ParentID })...)
	l.runs.expect(column(rows, func(x *ent.Task) xid.ID { return x.CheckoutRunID })...)
	l.agents.expect(append(column(rows, func(x *ent.Task) xid.ID { return x.AssigneeID }), column(rows, func(x *ent.Task) xid.ID { return x.CheckoutAgentID })...)...)
}

// expectOthers announces the records to which these rows refer.
func (l *loaders) expectOthers(rows ent.Value) {
	switch rows := rows.(type) {
	case []*ent.Comment:
		l.mentionsOf.expect(column(rows, func(x *ent.Comment) xid.ID { return x.ID })...)
		l.tasks.expect(column(rows, func(x *ent.Comment) xid.ID { return x.TaskID })...)
		l.agents.expect(column(rows, func(x *ent.Comment) xid.ID { return x.AuthorAgentID })...)
	case []*ent.Approval:
		l.tasks.expect(column(rows, func(x *ent.Approval) xid.ID { return x.TaskID })...)
		l.agents.expect(append(column(rows, func(x *ent.Approval) xid.ID { return x.RequestedByID }), column(rows, func(x *ent.Approval) xid.ID { return x.DecidedByID })...)...)
	case []*ent.TaskSession:
		l.tasks.expect(column(rows, func(x *ent.TaskSession) xid.ID { return x.TaskID })...)
		l.agents.expect(column(rows, func(x *ent.TaskSession) xid.ID { return x.AgentID })...)
	case []*ent.ContinuationSummary:
		l.agents.expect(column(rows, func(x *ent.ContinuationSummary) xid.ID { return x.AgentID })...)
		l.runs.expect(column(rows, func(x *ent.ContinuationSummary) xid.ID { return x.UpdatedByRunID })...)
	case []*ent.Project:
		l.workspaces.expect(column(rows, func(x *ent.Project) xid.ID { return x.WorkspaceID })...)
		l.budgetOf.expect(column(rows, func(x *ent.Project) xid.ID { return x.ID })...)
	case []*ent.Workflow:
		l.workspaces.expect(column(rows, func(x *ent.Workflow) xid.ID { return x.WorkspaceID })...)
		l.stepsOf.expect(column(rows, func(x *ent.Workflow) xid.ID { return x.ID })...)
	case []*ent.Activity:
		l.expectRecords(column(rows, func(x *ent.Activity) xid.ID { return xid.ID(valueOf(x.SubjectID)) }))
		l.expectRecords(column(rows, func(x *ent.Activity) xid.ID { return xid.ID(valueOf(x.TaskID)) }))
		l.agents.expect(column(rows, func(x *ent.Activity) xid.ID {
			if x.ActorKind == domain.AuthorKindAgent {
				return xid.ID(x.Actor)
			}
			return ""
		})...)
	case []*ent.NotificationChannel:
		l.workspaces.expect(column(rows, func(x *ent.NotificationChannel) xid.ID { return x.WorkspaceID })...)
	case []*ent.InboxItem:
		l.expectRecords(column(rows, func(x *ent.InboxItem) xid.ID { return xid.ID(valueOf(x.SubjectID)) }))
	case []*ent.BudgetPolicy:
		l.expectRecords(column(rows, func(x *ent.BudgetPolicy) xid.ID { return xid.ID(x.SubjectID) }))
	}
}

// expectRecords announces records of several kinds, which their ids name.
func (l *loaders) expectRecords(ids []xid.ID) {
	kinds := map[string]interface{ expect(...xid.ID) }{
		"wsp": l.workspaces, "agt": l.agents, "prj": l.projects, "tsk": l.tasks, "apr": l.approvals, "rtn": l.routines,
		"rrn": l.fires, "wkp": l.wakeups, "run": l.runs, budgetPrefix: l.budgets,
		activityPrefix: l.activities, inboxPrefix: l.inboxItems, tokenPrefix: l.tokens, channelPrefix: l.channels,
	}
	byPrefix := map[string][]xid.ID{}
	for _, id := range ids {
		byPrefix[id.Prefix()] = append(byPrefix[id.Prefix()], id)
	}
	for prefix, list := range byPrefix {
		if kind := kinds[prefix]; kind != nil {
			kind.expect(list...)
		}
	}
}

// column is one column of rows.
func column[T any](rows []*T, of func(*T) xid.ID) []xid.ID {
	out := make([]xid.ID, len(rows))
	for i, row := range rows {
		out[i] = of(row)
	}
	return out
}
