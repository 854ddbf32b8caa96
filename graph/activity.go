package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/activity"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// pageOfActivity lists the feed, newest first.
func (r *Resolver) pageOfActivity(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int, f *model.ActivityFilter) (*model.ActivityConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	if f != nil {
		if err := checkText("filter.actor", f.Actor); err != nil {
			return nil, err
		}
	}
	q := r.Reader.Activity.Query().Where(activity.WorkspaceID(workspaceID))
	filterActivity(q, f)
	p.branches = branchesOfActivity(f)
	return activityPage(ctx, q, p, ordering{kind: byTime, column: activity.FieldOccurredAt, desc: true})
}

// activityPage reads a page of the feed's entries.
func activityPage(ctx context.Context, q *ent.ActivityQuery, p page, by ordering) (*model.ActivityConnection, error) {
	at := func(x *ent.Activity) ent.Cursor { return ent.Cursor{ID: x.ID, Value: x.OccurredAt} }
	read, err := readPage(ctx, q, p, by, at)
	if err != nil {
		return nil, fmt.Errorf("list activity: %w", err)
	}
	return &model.ActivityConnection{PageInfo: &read.info, TotalCount: read.total, Edges: edges(read.rows, func(x *ent.Activity) *model.ActivityEdge {
		return &model.ActivityEdge{Cursor: at(x), Node: &model.Activity{Activity: x}}
	})}, nil
}

func filterActivity(q *ent.ActivityQuery, f *model.ActivityFilter) {
	if f == nil {
		return
	}
	if f.Code != nil {
		q.Where(activity.CodeIn(f.Code...))
	}
	if f.AgentID != nil {
		q.Where(activity.AgentID(string(*f.AgentID)))
	}
	if f.TaskID != nil {
		q.Where(activity.TaskID(string(*f.TaskID)))
	}
	if f.CausationID != nil {
		q.Where(activity.CausationID(*f.CausationID))
	}
	if f.Since != nil {
		q.Where(activity.OccurredAtGTE(*f.Since))
	}
	if f.Until != nil {
		q.Where(activity.OccurredAtLT(*f.Until))
	}
	if f.RoutineID != nil {
		q.Where(where(`{t}."data" ->> 'routineId' = ? AND {t}."code" IN `+routineCodes, f.RoutineID.String()))
	}
	if f.RunID != nil {
		q.Where(where(`{t}."causation_id" = (SELECT x.causation_id FROM runs x WHERE x.id = ?) AND ({t}."subject_id" = ? OR {t}."data" ->> 'runId' = ?)`,
			f.RunID.String(), f.RunID.String(), f.RunID.String()))
	}
	if f.Actor != nil {
		q.Where(where(`{t}."actor" = ? AND {t}."actor_kind" <> 'SYSTEM'`, *f.Actor))
	}
}

// routineCodes are the codes of entries that name a routine, as the index activities_routine lists them.
const routineCodes = `('ROUTINE_CHANGED', 'ROUTINE_FIRED', 'TRIGGER_CHANGED', 'TRIGGER_SECRET_ROTATED', 'WEBHOOK_REJECTED')`

// member is a text in an entry's data; "" when it has none of the name.
func member(a *ent.Activity, name string) string {
	var data map[string]any
	if json.Unmarshal(a.Data, &data) != nil { // the database holds JSON alone
		return ""
	}
	text, _ := data[name].(string)
	return text
}

// concerns is filterActivity's conditions on what an entry is about and who did it, for one entry. Of a run, it also lets through what
// other chains tell of it.
func concerns(f *model.ActivityFilter, a *ent.Activity) bool {
	return (f.RoutineID == nil || strings.Contains(routineCodes, "'"+string(a.Code)+"'") && member(a, "routineId") == f.RoutineID.String()) &&
		(f.RunID == nil || valueOf(a.SubjectID) == f.RunID.String() || member(a, "runId") == f.RunID.String()) &&
		(f.Actor == nil || a.ActorKind != domain.AuthorKindSystem && a.Actor == *f.Actor)
}

// letsThrough is filterActivity for one entry: a stream reads all of them, so that its position moves past the others.
func letsThrough(f *model.ActivityFilter, a *ent.Activity) bool {
	if f == nil {
		return true
	}
	return (f.Code == nil || slices.Contains(f.Code, a.Code)) &&
		(f.AgentID == nil || valueOf(a.AgentID) == string(*f.AgentID)) &&
		(f.TaskID == nil || valueOf(a.TaskID) == string(*f.TaskID)) &&
		(f.CausationID == nil || a.CausationID == *f.CausationID) &&
		(f.Since == nil || !a.OccurredAt.Before(*f.Since)) &&
		(f.Until == nil || a.OccurredAt.Before(*f.Until)) && concerns(f, a)
}

// activityCursor writes a position in a workspace's log.
func activityCursor(workspaceID xid.ID, at reads.ActivityPosition) ent.Cursor {
	return ent.Cursor{ID: workspaceID, Value: fmt.Sprintf("%d.%s", at.Tx, at.ID)}
}

// activityPosition reads a cursor of the workspace's log.
func activityPosition(c ent.Cursor, workspaceID xid.ID) (reads.ActivityPosition, error) {
	value, _ := c.Value.(string)
	number, id, ok := strings.Cut(value, ".")
	if c.ID != workspaceID || !ok {
		return reads.ActivityPosition{}, badInput("the cursor is none of this workspace's log; take the cursor of an activity or its eventCursor, or begin without one")
	}
	tx, err := strconv.ParseInt(number, 10, 64)
	if _, idErr := xid.Parse(id); err != nil || tx < 0 || strconv.FormatInt(tx, 10) != number || id != "" && idErr != nil {
		return reads.ActivityPosition{}, badInput("the cursor is damaged; take the cursor of an activity or eventCursor as it was sent, or begin without one")
	}
	return reads.ActivityPosition{Tx: tx, ID: xid.ID(id)}, nil
}

// actorOf shows who did something.
func actorOf(ctx context.Context, a *model.Activity) (model.Actor, error) {
	return actorBy(ctx, a.ActorKind, xid.ID(a.Activity.Actor), a.Activity.Actor, "")
}

// actorBy shows an actor: an agent by its id, anybody else by name, with the channel that somebody wrote through.
func actorBy(ctx context.Context, kind domain.AuthorKind, agentID xid.ID, name, channel string) (model.Actor, error) {
	switch kind {
	case domain.AuthorKindAgent:
		row, err := required(ctx, load(ctx).agents, agentID)
		if err != nil {
			return nil, err
		}
		return row, nil
	case domain.AuthorKindUser:
		return &model.UserActor{UserID: name}, nil
	case domain.AuthorKindSystem:
		return &model.SystemActor{Component: name}, nil
	case domain.AuthorKindChannel:
		out := &model.ChannelActor{Channel: channel}
		if name != "" {
			out.Sender = &name
		}
		return out, nil
	}
	return nil, fmt.Errorf("an actor of kind %q has no type in the API", kind)
}

// nameOfUser names the token with which a person acted, for callers who may read. A token that the caller does not see
// has no name.
func nameOfUser(ctx context.Context, userID string) (*string, error) {
	caller, _ := auth.FromContext(ctx)
	if !strings.HasPrefix(userID, "tok_") || !caller.Allows(domain.TokenScopeRead) {
		return nil, nil
	}
	row, err := load(ctx).tokens.Load(ctx, xid.ID(userID))
	if err != nil || row == nil {
		return nil, err
	}
	return &row.Name, nil
}

// recordOf loads what an entry is about, if its id is of one of the prefixes; null for none, and for one that is gone.
func recordOf(ctx context.Context, id *string, prefixes ...string) (ent.Noder, error) {
	subject := xid.ID(valueOf(id))
	if !slices.Contains(prefixes, subject.Prefix()) {
		return nil, nil
	}
	l := load(ctx)
	switch subject.Prefix() {
	case "agt":
		return record(l.agents.Load(ctx, subject))
	case "tsk":
		return record(l.tasks.Load(ctx, subject))
	case "apr":
		return record(l.approvals.Load(ctx, subject))
	case "rtn":
		return record(l.routines.Load(ctx, subject))
	case "rrn":
		return record(l.fires.Load(ctx, subject))
	case "wkp":
		return record(l.wakeups.Load(ctx, subject))
	case "prj":
		return record(l.projects.Load(ctx, subject))
	case "wfl":
		return record(l.workflows.Load(ctx, subject))
	case "wsp":
		return record(l.workspaces.Load(ctx, subject))
	case inboxPrefix:
		return inboxItemOf(ctx, subject)
	case budgetPrefix:
		return record(l.budgets.Load(ctx, subject))
	case channelPrefix:
		return channelNode(ctx, subject)
	}
	return record(l.runs.Load(ctx, subject))
}

func inboxItemOf(ctx context.Context, id xid.ID) (ent.Noder, error) {
	row, err := load(ctx).inboxItems.Load(ctx, id)
	if err != nil || row == nil {
		return nil, err
	}
	return &model.InboxItem{InboxItem: row}, nil
}

// record is a row as an interface: no row is a nil interface, not one that holds a nil pointer.
func record[T any, P interface {
	*T
	ent.Noder
}](row P, err error) (ent.Noder, error) {
	if err != nil || row == nil {
		return nil, err
	}
	return row, nil
}
