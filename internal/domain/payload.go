package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Payload is what a wakeup request says about its cause: one struct per source, stored as a JSON object and decoded
// once, at the boundary (SPEC S3.1). Its variants are the *Payload structs of this file, as pointers.
type Payload interface {
	// BoundTaskID is the task that the wake is about, or "" for a taskless wake. It decides the scope (SPEC S3.4).
	BoundTaskID() string
}

// RoutinePayload is a routine's fire. The missed_* members speak of slots older than the catch-up cap (SPEC S4.5).
type RoutinePayload struct {
	RoutineID       string            `json:"routine_id"`
	TriggerID       string            `json:"trigger_id,omitempty"` // "" for a manual fire
	RoutineRunID    string            `json:"routine_run_id"`
	Variables       map[string]string `json:"variables,omitempty"`
	Text            string            `json:"text,omitempty"`         // what the routine asked for when it fired; later edits do not change it
	ScheduledFor    time.Time         `json:"scheduled_for,omitzero"` // the slot; zero unless a schedule fired
	MissedTicks     int               `json:"missed_ticks,omitempty"`
	MissedSince     time.Time         `json:"missed_since,omitzero"`      // the oldest missed slot
	MissedTruncated bool              `json:"missed_truncated,omitempty"` // more were missed than were counted
	LateBySeconds   int64             `json:"late_by_seconds,omitempty"`  // behind the slot
	Backfilled      bool              `json:"backfilled,omitempty"`       // a person had the slot fired anew
}

// CommentPayload is a comment on a task.
type CommentPayload struct {
	TaskID    string `json:"task_id"`
	CommentID string `json:"comment_id"`
}

// AgentErrorPayload tells a coordinator that a run of a colleague gave up.
type AgentErrorPayload struct {
	FailedAgentID   string `json:"failed_agent_id"`
	FailedSessionID string `json:"failed_session_id,omitempty"`
	RunID           string `json:"run_id,omitempty"`
	Error           string `json:"error"`
}

// SelfPayload is an agent's request to be woken again.
type SelfPayload struct {
	Reason  string         `json:"reason"`
	Payload map[string]any `json:"payload,omitempty"`
}

// UserPayload is a person's wake or mention.
type UserPayload struct {
	UserID  string         `json:"user_id"`
	Context map[string]any `json:"context,omitempty"`
}

// TaskPayload is an assignment (with its basis) or the end of a task's last open child (without).
type TaskPayload struct {
	TaskID string    `json:"task_id"`
	Basis  WakeBasis `json:"basis,omitempty"`
}

// BlockersPayload tells that no blocker of a task is open any more.
type BlockersPayload struct {
	TaskID             string   `json:"task_id"`
	ResolvedBlockerIDs []string `json:"resolved_blocker_ids"`
}

// ApprovalPayload is the decision on an approval that the agent asked for.
type ApprovalPayload struct {
	ApprovalID   string         `json:"approval_id"`
	Status       ApprovalStatus `json:"status"`
	DecisionNote string         `json:"decision_note"`
}

// BudgetPayload tells a coordinator how much of a budget is spent, in percent; it may exceed 100.
type BudgetPayload struct {
	AgentID   string  `json:"agent_id"`
	BudgetPct float64 `json:"budget_pct"`
}

// BoundTaskID is the commented task.
func (p *CommentPayload) BoundTaskID() string { return p.TaskID }

// BoundTaskID is the assigned task, or the parent of the ended children.
func (p *TaskPayload) BoundTaskID() string { return p.TaskID }

// BoundTaskID is the task that was blocked.
func (p *BlockersPayload) BoundTaskID() string { return p.TaskID }

// BoundTaskID is "": a lightweight fire has no task.
func (p *RoutinePayload) BoundTaskID() string { return "" }

// BoundTaskID is "".
func (p *AgentErrorPayload) BoundTaskID() string { return "" }

// BoundTaskID is "".
func (p *SelfPayload) BoundTaskID() string { return "" }

// BoundTaskID is "".
func (p *UserPayload) BoundTaskID() string { return "" }

// BoundTaskID is "".
func (p *ApprovalPayload) BoundTaskID() string { return "" }

// BoundTaskID is "".
func (p *BudgetPayload) BoundTaskID() string { return "" }

// errNoTask is returned for a task-bound payload that names no task: its scope could not be known.
var errNoTask = errors.New("task_id is missing")

// DecodePayload reads the stored payload of a request of the given source. Members it does not know are ignored, so
// that an older program reads a newer row; empty input is an empty object. It fails for an unknown source, for what is
// not a JSON object, for a task-bound payload without task_id, and for TASK_ASSIGNED without a known basis. Numbers in
// free-form members are json.Number.
func DecodePayload(source WakeupSource, raw []byte) (Payload, error) {
	payload := newPayload(source)
	if payload == nil {
		return nil, fmt.Errorf("decode payload: %q is not a wakeup source", source)
	}
	if err := decodeObject(raw, payload); err != nil {
		return nil, fmt.Errorf("decode %s payload: %w", source, err)
	}
	if err := checkPayload(source, payload); err != nil {
		return nil, fmt.Errorf("decode %s payload: %w", source, err)
	}
	return payload, nil
}

func newPayload(source WakeupSource) Payload {
	switch source {
	case WakeupSourceRoutine:
		return &RoutinePayload{}
	case WakeupSourceComment:
		return &CommentPayload{}
	case WakeupSourceAgentError:
		return &AgentErrorPayload{}
	case WakeupSourceSelf:
		return &SelfPayload{}
	case WakeupSourceUser:
		return &UserPayload{}
	case WakeupSourceTaskAssigned, WakeupSourceTaskChildrenCompleted:
		return &TaskPayload{}
	case WakeupSourceTaskBlockersResolved:
		return &BlockersPayload{}
	case WakeupSourceApprovalResolved:
		return &ApprovalPayload{}
	case WakeupSourceBudgetAlert:
		return &BudgetPayload{}
	}
	return nil
}

func decodeObject(raw []byte, into any) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil
	}
	if raw[0] != '{' {
		return errors.New("want a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows the JSON object")
	}
	return nil
}

func checkPayload(source WakeupSource, payload Payload) error {
	switch p := payload.(type) {
	case *CommentPayload, *BlockersPayload, *TaskPayload:
		if payload.BoundTaskID() == "" {
			return errNoTask
		}
		if t, ok := p.(*TaskPayload); ok && source == WakeupSourceTaskAssigned && !slices.Contains(wakeBasisValues, t.Basis) {
			return fmt.Errorf("basis is %q, want one of %v", t.Basis, wakeBasisValues)
		}
	}
	return nil
}
