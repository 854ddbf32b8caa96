package reads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/liveness"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Liveness is the answer to "is the loop of this workspace alive", with its evidence (SPEC S10.1). Every threshold was
// applied to EvaluatedAt. The lists hold at most liveness.Cap rows; Total counts all.
type Liveness struct {
	Verdict          domain.LoopVerdict
	EvaluatedAt      time.Time
	ActivatedAt      *time.Time // nil: not published
	Triggers         TriggerEvidence
	StuckRuns        RunEvidence
	SilentSuccesses  RunEvidence
	Gates            GateEvidence
	Shapes           map[domain.TerminalShape]int // every shape, at 0 too
	EligibleTriggers int
	Hold             *domain.WorkspaceHold // nil: nobody holds the workspace
}

// TriggerEvidence is overdue and stranded triggers, the longest dead first, then by id.
type TriggerEvidence struct {
	Rows  []DeadTrigger
	Total int
}

// DeadTrigger is one of them. NextRunAt is nil for a stranded one.
type DeadTrigger struct {
	ID           xid.ID
	Condition    domain.TriggerCondition
	NextRunAt    *time.Time
	ClaimInstant time.Time
	LateBy       time.Duration
}

// RunEvidence is runs that are evidence. Stuck ones come by their stuck instant, the oldest first, those without one before
// all; silent successes by their end, the newest first; then by id.
type RunEvidence struct {
	Rows  []EvidenceRun
	Total int
}

// EvidenceRun is one of them, with the instant that it is aged by.
type EvidenceRun struct {
	ID        xid.ID
	Condition domain.LoopRunCondition
	Since     time.Time
}

// UnreadableError says which input could not be read, so that there is no verdict (AC-OFFICE-LOOP-LIVENESS-004.10).
type UnreadableError struct {
	Input string // ACTIVATION, TRIGGERS, STUCK_RUNS, SILENT_SUCCESSES, GATES, TERMINAL_SHAPES or ELIGIBLE_TRIGGERS
	cause error
}

// Error names the input and the cause.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read liveness input %s: %v", e.Input, e.cause)
}

// Unwrap is the cause.
func (e *UnreadableError) Unwrap() error { return e.cause }

// Outage says whether the database did not answer, so that a later reading may succeed.
func (e *UnreadableError) Outage() bool {
	return postgres.Away(e.cause) || pgtx.Retryable(e.cause) || errors.Is(e.cause, context.Canceled) || errors.Is(e.cause, context.DeadlineExceeded)
}

// Liveness reads the verdict of a workspace: seven statements that write nothing, in no common transaction. An input that
// cannot be read is counted and an *UnreadableError; a caller who went away is neither.
func (s *Reads) Liveness(ctx context.Context, workspaceID xid.ID) (*Liveness, error) {
	r := livenessRead{q: s.pool, workspaceID: workspaceID}
	for _, input := range []struct {
		name string
		read func(context.Context) error
	}{
		{"ACTIVATION", r.activation}, {"TRIGGERS", r.triggers}, {"STUCK_RUNS", r.stuckRuns}, {"SILENT_SUCCESSES", r.silentSuccesses},
		{"GATES", r.gates}, {"TERMINAL_SHAPES", r.shapes}, {"ELIGIBLE_TRIGGERS", r.eligible},
	} {
		err := input.read(ctx)
		if err != nil && errors.Is(ctx.Err(), context.Canceled) { // nobody waits for it any more, so it has not failed
			return nil, fmt.Errorf("read the verdict for a caller who went away: %w", ctx.Err())
		}
		if err != nil {
			s.counters.LivenessReadFailed(workspaceID)
			return nil, &UnreadableError{Input: input.name, cause: err}
		}
	}
	r.out.Verdict = liveness.Judge(liveness.Facts{ActivatedAt: r.out.ActivatedAt, Held: r.out.Hold != nil, DeadTriggers: r.out.Triggers.Total, StuckRuns: r.out.StuckRuns.Total,
		SilentSuccesses: r.out.SilentSuccesses.Total, Gates: r.out.Gates.Total, EligibleTriggers: r.out.EligibleTriggers})
	return &r.out, nil
}
