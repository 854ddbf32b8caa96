// Package metrics counts each step of the loop (SPEC S10.3): each counter is kept once and shown under the same name
// through expvar, Prometheus and the API. Whoever persists a change counts it after the commit, exactly once.
package metrics

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Counters of one process. Those with a workspace take the empty id for an event whose workspace cannot be resolved.
type Counters struct {
	startedAt time.Time
	workspace labels // shown for workspaces; bounded

	wakeups             *family // persisted changes
	routineRuns         *family
	firesSkipped        *family
	triggersClaimed     *family
	runsClaimed         *family
	terminalRuns        *family
	repairs             *family
	launches            *family // events that persist nothing
	withoutSession      *family
	sessionFailures     *family
	lastRunAtFailures   *family
	livenessFailures    *family
	cronTicks           *family
	queuePasses         *family
	loopFailures        *family
	waits, durations    *histogram
	costs, fireLateness *histogram
	lastTick, lastPass  instant
}

// instant is the newest of several instants.
type instant struct{ unixNano atomic.Int64 }

func (i *instant) raise(at time.Time) {
	for n := at.UnixNano(); ; {
		old := i.unixNano.Load()
		if old >= n || i.unixNano.CompareAndSwap(old, n) {
			return
		}
	}
}

// at is nil when there was none.
func (i *instant) at() *time.Time {
	n := i.unixNano.Load()
	if n == 0 {
		return nil
	}
	at := time.Unix(0, n).UTC()
	return &at
}

// New makes the counters of a process that starts now. The newest one made is what expvar shows.
func New() *Counters {
	c := &Counters{
		startedAt:       time.Now().UTC(),
		wakeups:         newFamily("rouse_wakeups_created_total", "Wakeup requests created, by source.", perWorkspace, "source"),
		routineRuns:     newFamily("rouse_routine_runs_total", "Routine runs created, by source and disposition.", perWorkspace, "source", "status"),
		firesSkipped:    newFamily("rouse_routine_runs_skipped_total", "Routine runs that a policy dropped when they fired, by source and reason.", perWorkspace, "source", "reason"),
		triggersClaimed: newFamily("rouse_triggers_claimed_total", "Due triggers claimed by a cron tick.", perWorkspace),
		runsClaimed:     newFamily("rouse_runs_claimed_total", "Runs claimed for execution.", perWorkspace),
		terminalRuns: newFamily("rouse_terminal_runs_total", "Runs that ended, by terminal shape.", perWorkspace, "shape").
			fromZero(string(domain.TerminalShapeSilentSuccess), string(domain.TerminalShapeLaunchedFailed),
				string(domain.TerminalShapeUnlaunchedFailed), string(domain.TerminalShapeUnclassified)),
		repairs:           newFamily("rouse_repairs_total", "Rows that the repair sweep put right.", perProcess, "what"),
		launches:          newFamily("rouse_agent_launches_total", "Agents launched.", perWorkspace),
		withoutSession:    newFamily("rouse_launches_without_session_total", "Launches that yielded no session.", perWorkspace).fromZero(),
		sessionFailures:   newFamily("rouse_session_write_failures_total", "Session ids that could not be stored.", perWorkspace).fromZero(),
		lastRunAtFailures: newFamily("rouse_last_run_at_write_failures_total", "Writes of last_run_at that failed.", perWorkspace).fromZero(),
		livenessFailures:  newFamily("rouse_liveness_read_failures_total", "Liveness reads that could not be served.", perWorkspace).fromZero(),
		cronTicks:         newFamily("rouse_cron_ticks_total", "Cron ticks evaluated.", perProcess).fromZero(),
		queuePasses:       newFamily("rouse_queue_passes_total", "Passes of the dispatcher over the queue.", perProcess).fromZero(),
		loopFailures:      newFamily("rouse_loop_failures_total", "Passes of a loop that failed or panicked.", perProcess, "loop"),
		waits:             newHistogram("rouse_run_wait_seconds", "From a run's request to its first claim.", waitBounds),
		durations:         newHistogram("rouse_run_duration_seconds", "From the start of a run's last attempt to the end of the run.", durationBounds),
		costs:             newHistogram("rouse_attempt_cost_dollars", "What an attempt cost, of those that told a cost.", costBounds),
		fireLateness:      newHistogram("rouse_fire_lateness_seconds", "From the instant that a schedule named to its fire.", lateBounds),
	}
	showInExpvar(c)
	return c
}

// Know names workspaces that exist, so that the series for alarms are shown for them before anything happens in them.
func (c *Counters) Know(workspaces ...xid.ID) {
	for _, ws := range workspaces {
		c.workspace.show(ws.String(), MaxWorkspaces)
	}
}

// families lists every counter.
func (c *Counters) families() []*family {
	return []*family{c.wakeups, c.routineRuns, c.firesSkipped, c.triggersClaimed, c.runsClaimed, c.terminalRuns, c.repairs, c.launches,
		c.withoutSession, c.sessionFailures, c.lastRunAtFailures, c.livenessFailures, c.cronTicks, c.queuePasses, c.loopFailures}
}

// histograms lists every histogram.
func (c *Counters) histograms() []*histogram {
	return []*histogram{c.waits, c.durations, c.costs, c.fireLateness}
}

// WakeupCreated counts a wakeup request that was committed.
func (c *Counters) WakeupCreated(ws xid.ID, source domain.WakeupSource) {
	c.wakeups.add(ws, 1, string(source))
}

// RoutineRun counts a routine run that was committed with this disposition; reason is that of SKIPPED.
func (c *Counters) RoutineRun(ws xid.ID, source domain.RoutineRunSource, status domain.RoutineRunStatus, reason domain.EndReason) {
	c.routineRuns.add(ws, 1, string(source), string(status))
	if reason != "" {
		c.firesSkipped.add(ws, 1, string(source), string(reason))
	}
}

// TriggerClaimed counts a due trigger whose cursor a tick moved.
func (c *Counters) TriggerClaimed(ws xid.ID) { c.triggersClaimed.add(ws, 1) }

// RunClaimed counts a run that was claimed.
func (c *Counters) RunClaimed(ws xid.ID) { c.runsClaimed.add(ws, 1) }

// TerminalRun counts a run that ended.
func (c *Counters) TerminalRun(ws xid.ID, shape domain.TerminalShape) {
	c.terminalRuns.add(ws, 1, string(shape))
}

// RunWaited notes how long a run waited for its first claim.
func (c *Counters) RunWaited(ws xid.ID, wait time.Duration) { c.waits.observe(ws, wait.Seconds()) }

// RunTook notes how long the last attempt of a run that ended took.
func (c *Counters) RunTook(ws xid.ID, took time.Duration) { c.durations.observe(ws, took.Seconds()) }

// AttemptCost notes what an attempt cost, in US dollars.
func (c *Counters) AttemptCost(ws xid.ID, cost domain.Money) {
	c.costs.observe(ws, cost.Dollars())
}

// FireLate notes how long after its instant a schedule fired.
func (c *Counters) FireLate(ws xid.ID, late time.Duration) {
	c.fireLateness.observe(ws, late.Seconds())
}

// Repaired counts n rows that the repair sweep put right; what is one of a few fixed words. Nothing repaired is counted
// too: an alarm needs a series that is there, at 0.
func (c *Counters) Repaired(what string, n int) { c.repairs.add("", int64(n), what) }

// AgentLaunched counts a launch.
func (c *Counters) AgentLaunched(ws xid.ID) { c.launches.add(ws, 1) }

// LaunchWithoutSession counts a launch that yielded no session.
func (c *Counters) LaunchWithoutSession(ws xid.ID) { c.withoutSession.add(ws, 1) }

// SessionWriteFailed counts a session id that could not be stored.
func (c *Counters) SessionWriteFailed(ws xid.ID) { c.sessionFailures.add(ws, 1) }

// LastRunAtWriteFailed counts a failed write of last_run_at.
func (c *Counters) LastRunAtWriteFailed(ws xid.ID) { c.lastRunAtFailures.add(ws, 1) }

// LivenessReadFailed counts a liveness read that could not be served.
func (c *Counters) LivenessReadFailed(ws xid.ID) { c.livenessFailures.add(ws, 1) }

// CronTick counts a tick that read the due triggers, at this instant of the process clock.
func (c *Counters) CronTick(at time.Time) {
	c.cronTicks.add("", 1)
	c.lastTick.raise(at)
}

// QueuePass counts a pass over the queue that was not cut short by an error, at this instant of the process clock.
func (c *Counters) QueuePass(at time.Time) {
	c.queuePasses.add("", 1)
	c.lastPass.raise(at)
}

// LoopFailed counts a pass of the named loop that failed or panicked.
func (c *Counters) LoopFailed(loop string) { c.loopFailures.add("", 1, loop) }

// labels gives each value the label it is shown under, and bounds how many there are: later ones share other.
type labels struct {
	mu    sync.Mutex
	shown map[string]string
}

const (
	// unattributed is the label of an event whose workspace cannot be resolved.
	unattributed = "unattributed"
	// other is the label of what came after the bound was reached.
	other = "other"
	// MaxWorkspaces and maxValues bound the series that are shown.
	MaxWorkspaces = 1000
	maxValues     = 64
)

// show is the label of a value. It never changes once given, so that a shown counter never falls.
func (l *labels) show(value string, most int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, ok := l.shown[value]; ok {
		return label
	}
	if len(l.shown) >= most {
		return other
	}
	if l.shown == nil {
		l.shown = make(map[string]string)
	}
	l.shown[value] = value
	return value
}

// all are the labels given so far, in no order.
func (l *labels) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.shown))
}
