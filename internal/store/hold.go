package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// HoldAgent names an agent to hold, and a person's remark about it, at most 1000 characters.
type HoldAgent struct {
	WorkspaceID, AgentID xid.ID
	Note                 string
}

// PauseAgent holds an agent for a person: what is queued, and what comes, ends without a launch (SPEC S6.2), a run that
// has started goes on. A paused agent stays so; a stopped one is a user error.
func (s *Queue) PauseAgent(ctx context.Context, in HoldAgent) error {
	return pgtx.Wrap("pause agent", s.changeHold(ctx, in, func(t *tx, h domain.AgentHold) (domain.AgentHold, []domain.FieldError) {
		return h.Pause(domain.AgentPauseReasonUser, t.Now)
	}))
}

// StopAgent switches an agent off. To the queue this is a pause that only ResumeAgent ends.
func (s *Queue) StopAgent(ctx context.Context, in HoldAgent) error {
	return pgtx.Wrap("stop agent", s.changeHold(ctx, in, func(t *tx, h domain.AgentHold) (domain.AgentHold, []domain.FieldError) { return h.Stop(t.Now), nil }))
}

func (s *Queue) changeHold(ctx context.Context, in HoldAgent, decide func(*tx, domain.AgentHold) (domain.AgentHold, []domain.FieldError)) error {
	if err := checkNote(in.Note); err != nil {
		return err
	}
	return s.withAgent(ctx, in.WorkspaceID, in.AgentID, func(t *tx, l lane) error {
		now, err := t.readHold(ctx, in.AgentID)
		if err != nil {
			return err
		}
		next, problems := decide(t, now)
		if err := domain.AsUserError(problems); err != nil || next.Same(now) {
			return err
		}
		if err := t.writeHold(ctx, l, next); err != nil {
			return err
		}
		return t.noteHold(ctx, l, next, in.Note)
	})
}

// noteHold says in the feed that an agent is held. To be stopped has no code of its own.
func (t *tx) noteHold(ctx context.Context, l lane, h domain.AgentHold, note string) error {
	e := entry{workspaceID: l.workspaceID, code: domain.ActivityCodeAgentPaused, by: callerOr(ctx, "budget"), summary: "The agent was paused.",
		subjectID: l.agentID, agentID: l.agentID}
	data := map[string]any{"status": h.Status}
	if h.PauseReason != nil {
		data["pauseReason"] = *h.PauseReason
	}
	if h.Status == domain.AgentStatusStopped {
		e.code, e.summary = domain.ActivityCodeAgentChanged, "The agent was stopped."
	}
	if note != "" {
		data["note"] = note
	}
	e.data = data
	return t.note(ctx, e)
}

// Resumed is what a resume sends again: the requests of its first step, oldest first, and how many there are at most.
type Resumed struct {
	Requests []xid.ID
	Count    int
}

// details are what the feed tells of it.
func (r Resumed) details() map[string]any {
	return map[string]any{"resent": r.Count, "resentRequestIds": append([]xid.ID{}, firstListed(r.Requests)...)}
}

// ResumeAgent lets a held agent go on, and sends again the requests that its hold dropped and that are not stale (SPEC
// S6.3). They are the same rows, unrouted, at their places in the order. The first of them go at once; SettleBacklog
// sends the rest step by step. What the hold has not dropped yet stays queued. Nothing is returned when nothing was
// held.
func (s *Queue) ResumeAgent(ctx context.Context, workspaceID, agentID xid.ID) (resumed Resumed, err error) {
	err = s.withAgent(ctx, workspaceID, agentID, func(t *tx, l lane) error {
		resumed = Resumed{}
		now, err := t.readHold(ctx, agentID)
		if err != nil || !now.Held() {
			return err
		}
		if resumed, err = t.resume(ctx, l, now); err != nil {
			return err
		}
		return t.note(ctx, entry{workspaceID: l.workspaceID, code: domain.ActivityCodeAgentResumed, by: callerOr(ctx, "budget"),
			summary: "The agent was resumed.", subjectID: agentID, agentID: agentID, data: withWas(resumed.details(), now)})
	})
	return resumed, pgtx.Wrap("resume agent", err)
}

// withWas adds why the agent was held; a stop has no reason of its own.
func withWas(data map[string]any, was domain.AgentHold) map[string]any {
	data["was"] = string(was.Status)
	if was.PauseReason != nil {
		data["was"] = string(*was.PauseReason)
	}
	return data
}

// resume ends a hold. The lane is locked. A resume that an earlier hold interrupted goes on from where it was.
func (t *tx) resume(ctx context.Context, l lane, now domain.AgentHold) (Resumed, error) {
	var from resendFrom
	const place = `SELECT coalesce(resend_from, paused_at), resend_after FROM agent_lanes WHERE agent_id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&from.at, &from.id}, place, l.agentID); err != nil {
		return Resumed{}, fmt.Errorf("read since when the agent is held: %w", err)
	}
	var done Resumed
	if from.at != nil {
		next, sent, err := t.resendDropped(ctx, l, from)
		if err != nil {
			return Resumed{}, err
		}
		left, err := t.left(ctx, l, next)
		if err != nil {
			return Resumed{}, err
		}
		done = Resumed{Requests: sent, Count: len(sent) + left}
	}
	if err := t.writeHold(ctx, l, now.Resume()); err != nil {
		return Resumed{}, err
	}
	return done, t.fixHead(ctx, l)
}

func (t *tx) readHold(ctx context.Context, agentID xid.ID) (h domain.AgentHold, err error) {
	const query = `SELECT status, pause_reason, paused_at FROM agent_lanes WHERE agent_id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&h.Status, &h.PauseReason, &h.Since}, query, agentID); err != nil {
		return h, fmt.Errorf("read whether the agent is held: %w", err)
	}
	return h, nil
}

func (t *tx) writeHold(ctx context.Context, l lane, h domain.AgentHold) error {
	const query = `UPDATE agent_lanes SET status = $2, pause_reason = $3, paused_at = $4 WHERE agent_id = $1`
	if err := pgtx.ExecOne(ctx, t, query, l.agentID, h.Status, h.PauseReason, h.Since); err != nil {
		return fmt.Errorf("write whether the agent is held: %w", err)
	}
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	return nil
}

// withAgent runs f with the lane of an agent held that is in the workspace and not deleted; else it is a user error.
func (s *Queue) withAgent(ctx context.Context, workspaceID, agentID xid.ID, f func(*tx, lane) error) error {
	return s.inTx(ctx, func(t *tx) error {
		if err := t.checkAgent(ctx, workspaceID, agentID, []string{"agentId"}); err != nil { // no lane of a stranger is locked
			return err
		}
		l, err := t.lockLane(ctx, agentID)
		if err != nil {
			return err
		}
		if err := t.checkAgent(ctx, workspaceID, agentID, []string{"agentId"}); err != nil { // deleted while this waited
			return err
		}
		return f(t, l)
	})
}

// checkNote refuses a remark that is too long.
func checkNote(note string) error {
	if len([]rune(note)) > 1000 {
		return domain.RefuseField([]string{"note"}, domain.UserErrorCodeTooLong, "a note has at most 1000 characters")
	}
	return nil
}
