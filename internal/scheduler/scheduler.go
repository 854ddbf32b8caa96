// Package scheduler runs the loops: the dispatcher, the cron tick, and the sweeps for rescue, repair, budgets, recovery,
// retention and counts (SPEC S4.3, S6.5, S8.4, S8.5, S11). A loop holds no rule: it decides when to look, and calls the store,
// which decides on rows by the database's clock. gocron gives the beat of each loop. A channel of capacity 1 carries
// it, because gocron itself may drop a signal that comes as a pass ends.
package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/lifecycle"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/proc"
	"rouse.dev/rouse/internal/store"
)

// The beats. A signal or a nearer instant makes a pass earlier, nothing makes it later.
const (
	dispatchBeat = 5 * time.Second
	cronBeat     = 5 * time.Second
	rescueBeat   = 5 * time.Second
	repairBeat   = 30 * time.Second
	budgetBeat   = 30 * time.Second
	recoveryBeat = 30 * time.Second
	pruneBeat    = 10 * time.Minute
	tallyBeat    = 15 * time.Second
	copiesBeat   = time.Minute
	noticeBeat   = 5 * time.Second
	verdictBeat  = time.Minute
)

// CopySweeper removes the working copies of this machine that nobody needs any more.
type CopySweeper interface {
	SweepCopies(ctx context.Context) error
}

// Options are what the loops need. All fields but Copies, Sender, Judge and Log are required.
type Options struct {
	Store    Store
	Worker   Worker
	Queue    QueueWatcher
	Groups   GroupEnder
	Copies   CopySweeper // nil: this process makes none
	Sender   Sender      // nil: this process tells nobody
	Judge    Judge       // of verdicts to tell; required with Sender
	Counters *metrics.Counters
	Owner    store.Owner      // this process, as ThisProcess describes it
	Lease    time.Duration    // of the attempts that this process claims
	Keep     domain.Retention // how old history may become
	Log      *slog.Logger     // nil: slog.Default()
}

// Scheduler is all loops of one process.
type Scheduler struct {
	life     lifecycle.Lifecycle
	log      *slog.Logger
	dispatch *loop
	loops    []*loop
	queue    QueueWatcher
	worker   Worker
}

// New makes the loops; nothing runs before Start.
func New(o Options) *Scheduler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	newLoop := func(name string, beat time.Duration, p pass) *loop {
		return &loop{name: name, beat: beat, pass: p, wake: make(chan struct{}, 1), log: o.Log.With("loop", name), counters: o.Counters}
	}
	d := &dispatcher{store: o.Store, worker: o.Worker, owner: o.Owner, lease: o.Lease, counters: o.Counters}
	s := &Scheduler{log: o.Log, queue: o.Queue, worker: o.Worker, dispatch: newLoop("dispatch", dispatchBeat, d.runOnce)}
	c := &cronTick{store: o.Store, counters: o.Counters, dispatch: s.dispatch.Wake}
	r := &rescuer{store: o.Store, groups: o.Groups, owner: o.Owner, lease: o.Lease, log: o.Log, alive: proc.Lives}
	f := &repairer{store: o.Store, log: o.Log}
	b, v, p := &budgetSweep{store: o.Store, log: o.Log}, &recovery{store: o.Store, log: o.Log}, &pruner{store: o.Store, keep: o.Keep, log: o.Log}
	s.loops = []*loop{s.dispatch, newLoop("cron", cronBeat, c.runOnce), newLoop("rescue", rescueBeat, r.runOnce), newLoop("repair", repairBeat, f.runOnce),
		newLoop("budget", budgetBeat, b.runOnce), newLoop("recovery", recoveryBeat, v.runOnce), newLoop("retention", pruneBeat, p.runOnce), newLoop("tally", tallyBeat, (&tallier{store: o.Store}).runOnce), newLoop("presence", domain.SchedulerBeat, presence(o.Store))}
	if o.Copies != nil {
		s.loops = append(s.loops, newLoop("copies", copiesBeat, func(ctx context.Context, _ <-chan struct{}) (time.Duration, error) {
			return 0, o.Copies.SweepCopies(ctx)
		}))
	}
	if o.Sender != nil {
		n := newLoop("notify", noticeBeat, (&notifier{store: o.Store, sender: o.Sender, log: o.Log}).runOnce)
		s.loops = append(s.loops, n, newLoop("verdict", verdictBeat, (&verdictTeller{store: o.Store, judge: o.Judge, wake: n.Wake}).runOnce))
	}
	return s
}

// presence tells the database that a scheduler runs, so that whoever asks why something waits can be told when none does.
func presence(s Store) pass {
	return func(ctx context.Context, _ <-chan struct{}) (time.Duration, error) { return 0, s.SchedulerRuns(ctx) }
}

// State is where the loops stand.
func (s *Scheduler) State() lifecycle.State { return s.life.State() }

// Start runs the loops until Stop, or until ctx ends. The first pass of each comes at once.
func (s *Scheduler) Start(ctx context.Context) error {
	if s.life.State() == lifecycle.Running {
		return nil
	}
	beats, err := s.beats()
	if err != nil {
		return err
	}
	if !s.life.Start(ctx, func(ctx context.Context) { s.run(ctx, beats) }) {
		return shutdown(beats)
	}
	return nil
}

// Stop asks every loop to end and waits until none runs: a pass that runs finishes its step. Nothing is logged after it
// returned. What the loops handed to the worker goes on.
func (s *Scheduler) Stop() { s.life.Stop() }

// beats makes the jobs: fixed ones, that do nothing but wake their loop and so never run long.
func (s *Scheduler) beats() (gocron.Scheduler, error) {
	beats, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		return nil, fmt.Errorf("make the beat of the loops: %w", err)
	}
	for _, l := range s.loops {
		if _, err := beats.NewJob(gocron.DurationJob(l.beat), gocron.NewTask(l.Wake), gocron.WithName(l.name), gocron.WithStartAt(gocron.WithStartImmediately())); err != nil {
			return nil, fmt.Errorf("make the beat of the %s loop: %w", l.name, err)
		}
	}
	return beats, nil
}

func (s *Scheduler) run(ctx context.Context, beats gocron.Scheduler) {
	beats.Start()
	var all sync.WaitGroup
	for _, l := range s.loops {
		all.Go(func() { l.run(ctx) })
	}
	queue, freed := s.queue.WatchQueue(ctx), s.worker.Freed()
	all.Go(func() { s.dispatch.follow(ctx, queue) })
	all.Go(func() { s.dispatch.follow(ctx, freed) })
	all.Wait()
	if err := shutdown(beats); err != nil {
		s.log.Error("the beat of the loops did not stop", "error", err)
	}
}

func shutdown(beats gocron.Scheduler) error {
	if err := beats.Shutdown(); err != nil {
		return fmt.Errorf("stop the beat of the loops: %w", err)
	}
	return nil
}
