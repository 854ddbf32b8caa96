package doctor

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
)

// Loops asks of each workspace whether its loop is alive (SPEC S10.4). Only DEAD is unwell: a due trigger did not fire. standby
// says that all servers that run are on standby.
func (r *Report) Loops(ctx context.Context, s *store.Store, standby bool) {
	all, err := s.Reader().Workspace.Query().Order(workspace.ByID()).All(auth.WithPrincipal(ctx, auth.Local()))
	if err != nil {
		r.Fail("loop", fmt.Errorf("read the workspaces: %w", err), "see the log of PostgreSQL")
		return
	}
	for _, w := range all {
		l, err := s.Liveness(ctx, w.ID)
		if err != nil {
			r.Tell(w.Slug, domain.Check{Name: "loop", Detail: err.Error(), Hint: "see the log of PostgreSQL; without this input there is no verdict"})
			continue
		}
		c := loopCheck(l)
		if standby && l.Verdict == domain.LoopVerdictDead {
			c.Hint = "the server is on standby and fires nothing: start it without --standby when it may work"
		}
		r.Tell(w.Slug, c)
		r.advice(ctx, s, w)
		r.channels(ctx, s, w)
	}
}

// loopCheck is a verdict as a finding.
func loopCheck(l *reads.Liveness) domain.Check {
	c := domain.Check{Name: "loop", OK: l.Verdict != domain.LoopVerdictDead, Detail: string(l.Verdict)}
	c.Hint = loopHints[l.Verdict]
	if h := l.Hold; h != nil {
		c.Detail += fmt.Sprintf("; held by %s since %s", h.By, h.Since.UTC().Format("2006-01-02T15:04:05Z"))
		if h.Note != "" {
			c.Detail += fmt.Sprintf(": %q", h.Note)
		}
	}
	if n := l.Triggers.Total; n > 0 {
		first := l.Triggers.Rows[0]
		c.Detail += fmt.Sprintf("; %d due triggers did not fire, %s is %s since %s", n, first.ID, first.Condition, l.EvaluatedAt.Add(-first.LateBy).Format("2006-01-02T15:04:05Z"))
	}
	if n := l.StuckRuns.Total; n > 0 {
		c.Detail += fmt.Sprintf("; %d runs are stuck", n)
	}
	if n := l.SilentSuccesses.Total; n > 0 {
		c.Detail += fmt.Sprintf("; %d runs of the last 24 h say that work was done and have no session", n)
	}
	if n := l.Gates.Total; n > 0 {
		first := l.Gates.Rows[0]
		c.Detail += fmt.Sprintf("; %d fires wait for an earlier one, %d for %s since %s, %s", fires(l.Gates), first.Fires, first.ID,
			first.Since.UTC().Format("2006-01-02T15:04:05Z"), gateTexts[first.Condition])
	}
	return c
}

// gateTexts say of a fire that others wait for why nothing of it is on its way.
var gateTexts = map[domain.LoopGateCondition]string{
	domain.LoopGateConditionNoLiveRun: "whose task has no live run",
	domain.LoopGateConditionRunParked: "whose run is parked",
}

// fires counts those that wait for the fires that are shown.
func fires(e reads.GateEvidence) (n int) {
	for _, g := range e.Rows {
		n += g.Fires
	}
	return n
}

// loopHints say what to do about a verdict; a healthy loop needs nothing.
var loopHints = map[domain.LoopVerdict]string{
	domain.LoopVerdictUnknown:  "start `rouse serve` once: it notes since when ends of runs are judged",
	domain.LoopVerdictHeld:     "a person holds the workspace, so that nothing of it begins: releaseWorkspace lets it go on",
	domain.LoopVerdictNotArmed: "no schedule is enabled, so nothing happens by itself: make a routine with a schedule (createRoutine), or enable a trigger (updateTrigger)",
	domain.LoopVerdictDegraded: "loopLiveness { stuckRuns { rows { run { id waiting { hold until } } } } silentSuccesses { rows { run { id } } } } says which runs, and why they wait; gates { rows { routineRun { id } task { id state } run { id } } } which fires hold others back",
	domain.LoopVerdictDead:     "is `rouse serve` running? its log says why a trigger does not fire; loopLiveness { triggers { rows { trigger { id } lateBy } } } lists them",
}
