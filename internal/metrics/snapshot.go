package metrics

import (
	"cmp"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// WorkspaceCounters are the counters of one workspace since the process began, and of no other workspace in any form
// (AC-OFFICE-LOOP-LIVENESS-003.5). Lists are sorted; what can happen and has not is in them at 0.
type WorkspaceCounters struct {
	WakeupsCreated         []SourceCount
	RoutineRuns            []RoutineRunCount
	FiresSkipped           []SkippedCount // those that happened
	TriggersClaimed        int64
	RunsClaimed            int64
	AgentLaunches          int64
	LaunchesWithoutSession int64
	TerminalRuns           []ShapeCount
	LastRunAtWriteFailures int64
	SessionWriteFailures   int64
	LivenessReadFailures   int64
	Since                  time.Time
}

// SourceCount counts the wakeups of one source.
type SourceCount struct {
	Source domain.WakeupSource
	Count  int64
}

// RoutineRunCount counts the routine runs of one source and disposition.
type RoutineRunCount struct {
	Source domain.RoutineRunSource
	Status domain.RoutineRunStatus
	Count  int64
}

// SkippedCount counts the routine runs of one source that a policy dropped for one reason.
type SkippedCount struct {
	Source domain.RoutineRunSource
	Reason domain.EndReason
	Count  int64
}

// ShapeCount counts the terminal runs of one shape.
type ShapeCount struct {
	Shape domain.TerminalShape
	Count int64
}

// Workspace reads the counters of one workspace; the empty id has none.
func (c *Counters) Workspace(ws xid.ID) WorkspaceCounters {
	out := WorkspaceCounters{Since: c.startedAt}
	if ws == "" {
		return out // the unattributed ones are the process's
	}
	for key, n := range sorted(filled(c.wakeups.of(ws), domain.WakeupSource("").Values(), nil)) {
		out.WakeupsCreated = append(out.WakeupsCreated, SourceCount{domain.WakeupSource(key[0]), n})
	}
	for key, n := range sorted(filled(c.routineRuns.of(ws), domain.RoutineRunSource("").Values(), domain.RoutineRunStatus("").Values())) {
		out.RoutineRuns = append(out.RoutineRuns, RoutineRunCount{domain.RoutineRunSource(key[0]), domain.RoutineRunStatus(key[1]), n})
	}
	for key, n := range sorted(c.firesSkipped.of(ws)) {
		out.FiresSkipped = append(out.FiresSkipped, SkippedCount{domain.RoutineRunSource(key[0]), domain.EndReason(key[1]), n})
	}
	for key, n := range sorted(filled(c.terminalRuns.of(ws), domain.TerminalShape("").Values(), nil)) {
		out.TerminalRuns = append(out.TerminalRuns, ShapeCount{domain.TerminalShape(key[0]), n})
	}
	out.TriggersClaimed, out.RunsClaimed, out.AgentLaunches = c.triggersClaimed.sum(ws), c.runsClaimed.sum(ws), c.launches.sum(ws)
	out.LaunchesWithoutSession, out.SessionWriteFailures = c.withoutSession.sum(ws), c.sessionFailures.sum(ws)
	out.LastRunAtWriteFailures, out.LivenessReadFailures = c.lastRunAtFailures.sum(ws), c.livenessFailures.sum(ws)
	return out
}

// filled adds the series at 0 that have not been counted yet.
func filled(values map[[2]string]int64, first, second []string) map[[2]string]int64 {
	if second == nil {
		second = []string{""}
	}
	for _, a := range first {
		for _, b := range second {
			values[[2]string{a, b}] += 0
		}
	}
	return values
}

// sorted goes through a family's series by their labels.
func sorted(values map[[2]string]int64) func(func([2]string, int64) bool) {
	keys := make([][2]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return func(yield func([2]string, int64) bool) {
		for _, key := range keys {
			if !yield(key, values[key]) {
				return
			}
		}
	}
}

// Process are the facts of this process, the same for every reader.
type Process struct {
	StartedAt     time.Time
	LastCronTick  *time.Time // nil: none yet
	LastQueuePass *time.Time // nil: none yet
	CronTicks     int64
	// Unattributed are the counts with no known workspace, by name and labels, as `rouse_runs_claimed_total` or
	// `rouse_wakeups_created_total{source="USER"}`.
	Unattributed map[string]int64
}

// Process reads the facts of this process.
func (c *Counters) Process() Process {
	return Process{StartedAt: c.startedAt, LastCronTick: c.lastTick.at(), LastQueuePass: c.lastPass.at(),
		CronTicks: c.cronTicks.sum(""), Unattributed: c.unattributed()}
}

func (c *Counters) unattributed() map[string]int64 {
	out := make(map[string]int64)
	for _, f := range c.families() {
		if f.scope == perProcess {
			continue
		}
		for values, n := range f.of("") {
			name := f.name
			if len(f.labels) > 0 {
				name += "{" + join(f.labels, values[:]) + "}"
			}
			out[name] = n
		}
	}
	return out
}
