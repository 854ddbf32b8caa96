package graph

import (
	"context"
	"errors"
	"reflect"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/activity"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/liveness"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// CodeLivenessUnreadable says that an input of the verdict could not be read; extensions.input names it.
const CodeLivenessUnreadable = "LIVENESS_UNREADABLE"

// livenessBeat is how often a stream of verdicts looks.
const livenessBeat = 5 * time.Second

// loopLiveness reads a workspace's verdict with its evidence.
func (r *Resolver) loopLiveness(ctx context.Context, workspaceID xid.ID) (*model.LoopLiveness, error) {
	out, err := r.readLiveness(ctx, workspaceID)
	if unreadable, ok := errors.AsType[*reads.UnreadableError](err); ok {
		return nil, r.unreadable(ctx, workspaceID, unreadable)
	}
	return out, err
}

// followedLiveness is loopLiveness for a stream, which an outage does not end: the database may come back (SPEC S8.6).
func (r *Resolver) followedLiveness(ctx context.Context, workspaceID xid.ID) (*model.LoopLiveness, error) {
	out, err := r.readLiveness(ctx, workspaceID)
	if unreadable, ok := errors.AsType[*reads.UnreadableError](err); ok && !unreadable.Outage() {
		return nil, r.unreadable(ctx, workspaceID, unreadable)
	}
	return out, err
}

// unreadable is the error that a reader gets when an input cannot be read.
func (r *Resolver) unreadable(ctx context.Context, workspaceID xid.ID, err *reads.UnreadableError) error {
	r.Log.ErrorContext(ctx, "liveness not readable", "workspace_id", workspaceID, "input", err.Input, "error", err)
	return &Error{Code: CodeLivenessUnreadable, Message: "an input of the verdict cannot be read, so there is none; the server's log has the cause",
		Extensions: map[string]any{"input": err.Input}}
}

func (r *Resolver) readLiveness(ctx context.Context, workspaceID xid.ID) (*model.LoopLiveness, error) {
	l, err := r.Store.Liveness(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	out := &model.LoopLiveness{
		Verdict: l.Verdict, Hold: l.Hold, EvaluatedAt: l.EvaluatedAt, ActivatedAt: l.ActivatedAt, EligibleTriggerCount: l.EligibleTriggers, Triggers: triggerEvidence(l.Triggers),
		StuckRuns: runEvidence(l.StuckRuns, l.EvaluatedAt), SilentSuccesses: runEvidence(l.SilentSuccesses, l.EvaluatedAt), Gates: gateEvidence(l.Gates, l.EvaluatedAt),
		TerminalShapes: shapeCounts(l.Shapes), Thresholds: &model.LoopThresholds{OverdueGrace: liveness.OverdueGrace, StrandedGrace: liveness.StrandedGrace,
			QueuedGrace: liveness.QueuedGrace, ClaimedGrace: liveness.ClaimedGrace, Window: liveness.Window},
	}
	if r.Process != nil {
		out.LastTickAt = r.Process().LastCronTickAt
	}
	return out, nil
}

func triggerEvidence(e reads.TriggerEvidence) *model.LoopTriggerEvidenceList {
	out := &model.LoopTriggerEvidenceList{Rows: []*model.LoopTriggerEvidence{}, Cap: liveness.Cap, Capped: e.Total > len(e.Rows), Total: e.Total}
	for _, t := range e.Rows {
		out.Rows = append(out.Rows, &model.LoopTriggerEvidence{TriggerID: t.ID, Condition: t.Condition, NextFireAt: t.NextRunAt, ClaimInstant: t.ClaimInstant, LateBy: t.LateBy})
	}
	return out
}

func runEvidence(e reads.RunEvidence, now time.Time) *model.LoopRunEvidenceList {
	out := &model.LoopRunEvidenceList{Rows: []*model.LoopRunEvidence{}, Cap: liveness.Cap, Capped: e.Total > len(e.Rows), Total: e.Total}
	for _, x := range e.Rows {
		out.Rows = append(out.Rows, &model.LoopRunEvidence{RunID: x.ID, Condition: x.Condition, Since: x.Since, Age: now.Sub(x.Since)})
	}
	return out
}

func gateEvidence(e reads.GateEvidence, now time.Time) *model.LoopGateEvidenceList {
	out := &model.LoopGateEvidenceList{Rows: []*model.LoopGateEvidence{}, Cap: liveness.Cap, Capped: e.Total > len(e.Rows), Total: e.Total}
	for _, x := range e.Rows {
		out.Rows = append(out.Rows, &model.LoopGateEvidence{RoutineRunID: x.ID, TaskID: x.TaskID, RunID: x.RunID, Condition: x.Condition, Fires: x.Fires, Since: x.Since, Age: now.Sub(x.Since)})
	}
	return out
}

// shapeCounts lists every shape, in the order of the enum.
func shapeCounts(counts map[domain.TerminalShape]int) []*model.TerminalShapeCount {
	var out []*model.TerminalShapeCount
	for _, name := range domain.TerminalShape("").Values() {
		shape := domain.TerminalShape(name)
		out = append(out, &model.TerminalShapeCount{Shape: shape, Count: counts[shape]})
	}
	return out
}

// streamLiveness sends a workspace's verdict at once and then at each change.
func (r *Resolver) streamLiveness(ctx context.Context, workspaceID xid.ID) (<-chan *model.LoopLiveness, error) {
	return streamState(ctx, r, workspaceID, state[model.LoopLiveness]{"verdict", livenessBeat, r.followedLiveness, sameLiveness})
}

// sameLiveness says whether only time has passed between two verdicts. A change of the number of runs that ended well
// is not sent.
func sameLiveness(a, b *model.LoopLiveness) bool {
	x, y := timeless(*a), timeless(*b)
	return reflect.DeepEqual(x, y)
}

func timeless(l model.LoopLiveness) model.LoopLiveness {
	l.EvaluatedAt, l.LastTickAt, l.TerminalShapes = time.Time{}, nil, nil
	triggers := *l.Triggers
	triggers.Rows = nil
	for _, row := range l.Triggers.Rows {
		x := *row
		x.LateBy = 0
		triggers.Rows = append(triggers.Rows, &x)
	}
	gates := *l.Gates
	gates.Rows = nil
	for _, row := range l.Gates.Rows {
		x := *row
		x.Age = 0
		gates.Rows = append(gates.Rows, &x)
	}
	l.Gates = &gates
	l.Triggers, l.StuckRuns, l.SilentSuccesses = &triggers, ageless(l.StuckRuns), ageless(l.SilentSuccesses)
	return l
}

func ageless(list *model.LoopRunEvidenceList) *model.LoopRunEvidenceList {
	out := *list
	out.Rows = nil
	for _, row := range list.Rows {
		x := *row
		x.Age = 0
		out.Rows = append(out.Rows, &x)
	}
	return &out
}

// counters shows a workspace's counters.
func (r *Resolver) counters(workspaceID xid.ID) *model.WorkspaceCounters {
	c := r.Store.Counters(workspaceID)
	out := &model.WorkspaceCounters{
		TriggersClaimed: int(c.TriggersClaimed), RunsClaimed: int(c.RunsClaimed), AgentLaunches: int(c.AgentLaunches),
		LaunchesWithoutSession: int(c.LaunchesWithoutSession), LastRunAtWriteFailures: int(c.LastRunAtWriteFailures),
		SessionWriteFailures: int(c.SessionWriteFailures), LivenessReadFailures: int(c.LivenessReadFailures), Since: c.Since,
	}
	for _, x := range c.WakeupsCreated {
		out.WakeupsCreated = append(out.WakeupsCreated, &model.SourceCount{Source: x.Source, Count: int(x.Count)})
	}
	out.RoutineRunsSkipped = []*model.SkippedRunCount{}
	for _, x := range c.FiresSkipped {
		out.RoutineRunsSkipped = append(out.RoutineRunsSkipped, &model.SkippedRunCount{Source: x.Source, Reason: x.Reason, Count: int(x.Count)})
	}
	for _, x := range c.RoutineRuns {
		out.RoutineRuns = append(out.RoutineRuns, &model.RoutineRunCount{Source: x.Source, Status: x.Status, Count: int(x.Count)})
	}
	for _, x := range c.TerminalRuns {
		out.TerminalRuns = append(out.TerminalRuns, &model.TerminalShapeCount{Shape: x.Shape, Count: int(x.Count)})
	}
	return out
}

// trace finds the rows of a chain; nil when no row has its id.
func (r *Resolver) trace(ctx context.Context, workspaceID, causationID xid.ID) (*model.Trace, error) {
	found, err := r.Store.Trace(ctx, workspaceID, causationID)
	if err != nil || found == nil {
		return nil, err
	}
	return &model.Trace{CausationID: causationID, WorkspaceID: workspaceID, RoutineRunID: found.RoutineRunID, RequestIDs: found.RequestIDs, RunIDs: found.RunIDs,
		TaskIDs: found.TaskIDs, Truncated: found.Truncated}, nil
}

// present loads rows in the order of their ids, and leaves out those that are gone by then.
func present[T any](ctx context.Context, l loader[*T], ids []xid.ID) ([]*T, error) {
	list := []*T{}
	rows, err := l.LoadAll(ctx, ids)
	for _, row := range rows {
		if row != nil {
			list = append(list, row)
		}
	}
	return list, err
}

// pageOfTrace lists the entries of a chain, oldest first.
func (r *Resolver) pageOfTrace(ctx context.Context, t *model.Trace, after *ent.Cursor, first *int) (*model.ActivityConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	q := r.Reader.Activity.Query().Where(activity.WorkspaceID(t.WorkspaceID), activity.CausationID(t.CausationID))
	return activityPage(ctx, q, p, ordering{kind: byTime, column: activity.FieldOccurredAt, desc: false})
}
