package graph

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// Bounds of what a worker reports while its agent is at work.
const (
	linesMax         = 500
	progressBytesMax = 16 << 10
)

func (r *Resolver) reportStarted(ctx context.Context, in model.ReportRunStartedInput) (*ent.Run, error) {
	if !domain.SessionIDFits(in.SessionID) {
		return nil, domain.RefuseField([]string{"sessionId"}, domain.UserErrorCodeInvalid, "must be 1 to %d printable characters", domain.MaxSessionID)
	}
	a, err := r.attemptOf(ctx, in.Lease)
	if err != nil {
		return nil, err
	}
	mask, err := r.maskOf(ctx, a.run.ID)
	if err != nil {
		return nil, err
	}
	if mask(in.SessionID) != in.SessionID {
		return nil, domain.RefuseField([]string{"sessionId"}, domain.UserErrorCodeInvalid, "holds a secret of the executor, which would be stored and shown: name the session by another id")
	}
	if err := r.Store.RecordSession(ctx, a.Attempt, in.SessionID); err != nil {
		if !errors.Is(err, store.ErrFenced) { // the launch goes on without it, and nobody tries again
			r.Store.SessionNotStored(a.run.WorkspaceID)
			r.Log.WarnContext(ctx, "a session could not be recorded", "run_id", a.RunID, "attempt", a.Number, "agent_id", a.run.AgentID,
				"workspace_id", a.run.WorkspaceID, "causation_id", a.run.CausationID, "session_id", in.SessionID, "error", err)
		}
		return nil, fenced(err)
	}
	return r.Reader.Run.Get(ctx, a.RunID)
}

func (r *Resolver) reportHeartbeat(ctx context.Context, in model.ReportRunHeartbeatInput) (store.AttemptState, error) {
	a, err := r.attemptOf(ctx, in.Lease)
	if err != nil {
		return store.AttemptState{}, err
	}
	state, err := r.Store.Renew(ctx, a.Attempt)
	return state, fenced(err)
}

// reportProgress stores lines and details, and returns the number of the newest stored line.
func (r *Resolver) reportProgress(ctx context.Context, in model.ReportRunProgressInput) (*int, error) {
	p := &inputProblems{}
	if in.FirstSequence < 1 || in.FirstSequence > 1<<31 {
		p.add([]string{"firstSequence"}, domain.UserErrorCodeOutOfRange, "lines are numbered from 1")
	}
	if len(in.Lines) > linesMax {
		p.add([]string{"lines"}, domain.UserErrorCodeTooLong, "must be at most %d lines; send the rest with the next call", linesMax)
	}
	details, err := json.Marshal(in.Progress)
	if err != nil || len(details) > progressBytesMax {
		p.add([]string{"progress"}, domain.UserErrorCodeTooLong, "must be at most %d KiB", progressBytesMax>>10)
	}
	if err := domain.AsUserError(p.list); err != nil {
		return nil, err
	}
	a, err := r.attemptOf(ctx, in.Lease)
	if err != nil {
		return nil, err
	}
	mask, err := r.maskOf(ctx, a.run.ID)
	if err != nil {
		return nil, err
	}
	var step map[string]any
	if in.Progress != nil {
		step = domain.CleanResult(in.Progress, mask).(map[string]any)
	}
	newest, err := r.Store.ReportProgress(ctx, a.Attempt, step, int64(in.FirstSequence), linesOf(in.Lines, mask))
	return new(int(newest)), fenced(err)
}

func linesOf(lines []*model.RunLogLineInput, mask func(string) string) []store.LogLine {
	now := time.Now().UTC()
	out := make([]store.LogLine, len(lines))
	for i, line := range lines {
		out[i] = store.LogLine{Stream: line.Stream, Text: domain.LogLineText(mask(line.Text)), At: now}
		if line.At != nil && line.At.Before(now) {
			out[i].At = *line.At
		}
	}
	return out
}
