// Package worker takes one claimed run from its prompt to its end, as straight code: start, launch, stream the output,
// report (SPEC S6.2, S7). A Pool does so for many runs at once, keeps their leases, and ends a run's processes when its
// lease cannot be kept, when a person cancels it, or when the server stops. What it reports is fenced by the store: a
// report that comes too late changes nothing.
package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Store is what a worker asks of the database.
type Store interface {
	Start(ctx context.Context, a store.Attempt) (*store.Launch, error)
	RecordProcess(ctx context.Context, a store.Attempt, g store.ProcessGroup) error
	RecordSession(ctx context.Context, a store.Attempt, sessionID string) error
	RecordWorkingCopy(ctx context.Context, a store.Attempt, w domain.WorkingCopy) error
	SessionNotStored(workspaceID xid.ID)
	AppendLog(ctx context.Context, a store.Attempt, lines []store.LogLine) error
	Progress(ctx context.Context, a store.Attempt, steps ...map[string]any) error
	Heartbeat(ctx context.Context, attempts []store.Attempt, lease time.Duration) ([]store.AttemptState, error)
	Accept(ctx context.Context, a store.Attempt, in store.Acceptance) error
	CancelRequested(ctx context.Context, runID xid.ID) (bool, error)
	Finish(ctx context.Context, a store.Attempt, ok store.Success) error
	Fail(ctx context.Context, a store.Attempt, f store.Failure) error
	Cancelled(ctx context.Context, a store.Attempt, u store.Unfinished) error
	HandBack(ctx context.Context, a store.Attempt, u store.Unfinished) error
}

// Executor runs one attempt; executor.Registry is the real one.
type Executor interface {
	Run(ctx context.Context, req executor.Request, sink executor.Sink) (executor.Result, error)
}

// Opener turns a sealed value back into plain text; boundTo is the place it was sealed for. secret.Box is the real one.
type Opener interface {
	Open(sealed, boundTo string) (string, error)
}

// Watcher signals that somebody may have asked to cancel a run, so that it is obeyed at once. Signals may be lost: the
// heartbeat finds the cancel too.
type Watcher interface {
	WatchCancel(ctx context.Context, run xid.ID) <-chan struct{}
}

// Options of a Pool. All but Watcher, Prepare and Log are required; Secrets and APIURL are not with Prepare.
type Options struct {
	Store    Store
	Executor Executor
	Secrets  Opener
	Watcher  Watcher       // nil: cancels are found by the heartbeat only
	Slots    int           // runs at once
	Lease    time.Duration // what Claim gave; renewed every quarter of it
	APIURL   string        // ROUSE_API_URL of commands (SPEC S7.4)
	// Prepare makes the executor's request of a launch; nil: from its sealed values, as a process of the server does.
	Prepare func(*store.Launch) (executor.Request, error)
	Log     *slog.Logger
}

// Bounds of the end of a pool.
const (
	handBackGrace = 3 * time.Second  // between TERM and KILL for runs that are handed back
	lastReports   = 10 * time.Second // for reports after the last process ended, when the database is away
	// commonEnd is how much later than an agent this process may learn of a signal that was sent to both.
	commonEnd = time.Second
)

// Pool runs claimed runs in a fixed number of slots.
type Pool struct {
	options Options
	log     *slog.Logger
	freed   chan struct{}

	giveUp     context.Context // ends the retries of reports; the last act of Drain
	giveUpNow  context.CancelFunc
	heartbeats sync.WaitGroup
	stopBeats  context.CancelFunc

	mu       sync.Mutex
	live     map[store.Attempt]*attempt
	closed   bool          // nothing more is to be claimed
	closing  chan struct{} // closed with it
	draining bool
	idle     chan struct{} // closed when draining and nothing is live
}

// New makes a pool and starts its heartbeat. Drain ends it.
func New(o Options) *Pool {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	p := &Pool{options: o, log: o.Log, freed: make(chan struct{}, 1), live: map[store.Attempt]*attempt{}, idle: make(chan struct{}), closing: make(chan struct{})}
	p.giveUp, p.giveUpNow = context.WithCancel(context.Background())
	beats, stop := context.WithCancel(context.Background())
	p.stopBeats = stop
	p.heartbeats.Go(func() { p.heartbeat(beats) })
	return p
}

// Free is the number of runs the pool can take now; 0 once it drains.
func (p *Pool) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining || p.closed {
		return 0
	}
	return max(0, p.options.Slots-len(p.live))
}

// TakeNoMore makes Free 0 from now on. Runs that were claimed already still come, and are executed.
func (p *Pool) TakeNoMore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

// close is called with mu held.
func (p *Pool) close() {
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
}

// endsToo waits a moment for the end of this process.
func (p *Pool) endsToo() bool {
	moment := time.NewTimer(commonEnd)
	defer moment.Stop()
	select {
	case <-p.closing:
		return true
	case <-moment.C:
		return false
	}
}

// Freed has an element after a slot became free.
func (p *Pool) Freed() <-chan struct{} { return p.freed }

// Process takes a claimed run and returns at once; the run goes on when ctx ends. A run that comes once the pool drains is
// handed back before it starts.
func (p *Pool) Process(ctx context.Context, c store.Claimed) {
	a := p.enter(context.WithoutCancel(ctx), c)
	go func() {
		defer p.leave(a)
		p.process(a)
	}()
}

func (p *Pool) enter(ctx context.Context, c store.Claimed) *attempt {
	a := newAttempt(ctx, c, cmp.Or(c.Lease, p.options.Lease))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[a.Attempt] = a
	if p.draining {
		a.stop(stopHandBack())
	}
	return a
}

func (p *Pool) leave(a *attempt) {
	a.release()
	p.mu.Lock()
	delete(p.live, a.Attempt)
	if p.draining && len(p.live) == 0 {
		p.signalIdle()
	}
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// signalIdle is called with mu held; a run that is claimed as the drain begins may make the pool idle twice.
func (p *Pool) signalIdle() {
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// Drain takes no more runs and waits for the live ones. When ctx ends, their process groups are ended and the runs handed
// back, which counts neither as failure nor as abandonment (SPEC S11). It returns when nothing is live; the error says
// how many runs could not be reported and stay with their lease until another start finds them. No Process may follow.
func (p *Pool) Drain(ctx context.Context) error {
	p.mu.Lock()
	p.draining = true
	p.close()
	if len(p.live) == 0 {
		p.signalIdle()
	}
	p.mu.Unlock()
	err := p.await(ctx)
	p.stopBeats()
	p.heartbeats.Wait()
	p.giveUpNow()
	return err
}

func (p *Pool) await(ctx context.Context) error {
	select {
	case <-p.idle:
		return nil
	case <-ctx.Done():
	}
	for _, a := range p.attempts() {
		a.stop(stopHandBack())
	}
	limit := time.AfterFunc(handBackGrace+lastReports, p.giveUpNow)
	defer limit.Stop()
	<-p.idle
	if p.giveUp.Err() != nil {
		return errors.New("some live runs could not be handed back, since the database did not answer; they go on when their lease has run out")
	}
	return nil
}

func (p *Pool) attempts() []*attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*attempt, 0, len(p.live))
	for _, a := range p.live {
		out = append(out, a)
	}
	return out
}
