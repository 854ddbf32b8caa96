package scheduler

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = fmt.Errorf("the database is away: %w", driver.ErrBadConn)

// record is what a fake was asked, in order.
type record struct {
	mu    sync.Mutex
	lines []string
}

func (r *record) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.lines
	r.lines = nil
	return taken
}

// fakeStore is a queue without rules: agents wait to be routed, routing one makes a due run, triggers fire once.
type fakeStore struct {
	record
	mu         sync.Mutex
	offset     time.Duration // of the database's clock from the process's
	away       bool
	unrouted   []xid.ID
	badAgents  map[xid.ID]bool
	due        int       // runs to claim
	claimed    int       // runs claimed so far
	next       time.Time // by the database's clock
	onClaim    func()    // set before the start
	claimError error     // of every claim, beside what it claims
	sweepError error     // of every sweep, beside what it does
	triggers   []store.DueTrigger
	badTrigger map[xid.ID]bool
	agentOf    map[xid.ID]xid.ID
	fired      []time.Time // by the process's clock
	leftovers  []store.Leftover
	uptime     time.Duration
	badRun     xid.ID
	repairs    store.Repairs
	feedHolder store.FeedHolder
	old        int // runs to remove
	resumed    int
	recovered  []store.Recovered
	notices    []store.DueNotice
	watchers   []xid.ID
}

// lock takes the fake's lock and says whether the database is away.
func (f *fakeStore) lock() (unlock func(), err error) {
	f.mu.Lock()
	if f.away {
		err = errAway
	}
	return f.mu.Unlock, err
}

func (f *fakeStore) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeStore) UnroutedAgents(_ context.Context, limit int) ([]xid.ID, error) {
	unlock, err := f.lock()
	defer unlock()
	return slices.Clone(f.unrouted[:min(limit, len(f.unrouted))]), err
}

func (f *fakeStore) Route(_ context.Context, agents ...xid.ID) (n int, err error) {
	for _, agent := range agents {
		routed, e := f.routeOne(agent)
		n, err = n+routed, errors.Join(err, e)
	}
	return n, err
}

func (f *fakeStore) routeOne(agent xid.ID) (int, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("route %s", agent)
	if err != nil || f.badAgents[agent] {
		return 0, fmt.Errorf("route agent %s: %w", agent, errors.Join(err, errors.New("bad agent")))
	}
	i := slices.Index(f.unrouted, agent)
	if i < 0 {
		return 0, nil
	}
	f.unrouted = slices.Delete(f.unrouted, i, i+1)
	f.due++
	return 1, nil
}

func (f *fakeStore) SettleBacklog(context.Context) error {
	unlock, err := f.lock()
	defer unlock()
	f.add("settle")
	return err
}

func (f *fakeStore) OfferToWaiters(context.Context) error {
	unlock, err := f.lock()
	defer unlock()
	f.add("offer")
	return err
}

// runsPerClaim is the most runs of one claim (docs/queue.md rule 3).
const runsPerClaim = 64

func (f *fakeStore) ClaimInto(ctx context.Context, owner store.Owner, room func() int, lease time.Duration) ([]store.Claimed, error) {
	most := min(runsPerClaim, room())
	if f.onClaim != nil { // without the lock: a goroutine that waits for one is not at rest in a bubble
		f.onClaim()
	}
	unlock, err := f.lock()
	defer unlock()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	n := min(most, f.due)
	f.add("claim %d of %d for %s", n, most, lease)
	f.due -= n
	out := make([]store.Claimed, n)
	for i := range out {
		f.claimed++
		out[i].Attempt = store.Attempt{RunID: xid.ID(fmt.Sprintf("run_%d", f.claimed)), Number: 1, Owner: owner.ID}
	}
	return out, f.claimError
}

func (f *fakeStore) NextInstant(context.Context) (at, now time.Time, err error) {
	unlock, err := f.lock()
	defer unlock()
	now = time.Now().Add(f.offset)
	if !f.next.IsZero() && !now.Before(f.next) { // what was parked until then is due
		f.due, f.next = f.due+1, time.Time{}
		return now, now, err
	}
	return f.next, now, err
}

func (f *fakeStore) DueTriggers(_ context.Context, after store.DueTrigger, limit int) ([]store.DueTrigger, error) {
	unlock, err := f.lock()
	defer unlock()
	var due []store.DueTrigger
	for _, t := range f.triggers {
		later := t.NextRunAt.Compare(after.NextRunAt)
		if !t.NextRunAt.After(time.Now().Add(f.offset)) && (later > 0 || later == 0 && t.ID > after.ID) && len(due) < limit {
			due = append(due, t)
		}
	}
	return due, err
}

func (f *fakeStore) FireDue(_ context.Context, triggers ...xid.ID) (agents []xid.ID, err error) {
	for _, id := range triggers {
		woken, e := f.fireOne(id)
		agents, err = append(agents, woken...), errors.Join(err, e)
	}
	return agents, err
}

func (f *fakeStore) fireOne(id xid.ID) ([]xid.ID, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("fire %s", id)
	if err != nil || f.badTrigger[id] {
		return nil, fmt.Errorf("fire trigger %s: %w", id, errors.Join(err, errors.New("bad trigger")))
	}
	f.fired = append(f.fired, time.Now())
	i := slices.IndexFunc(f.triggers, func(t store.DueTrigger) bool { return t.ID == id })
	f.triggers[i].NextRunAt = time.Now().Add(f.offset).Truncate(time.Minute).Add(time.Minute)
	agent := f.agentOf[id]
	if agent == "" {
		return nil, nil
	}
	f.unrouted = append(f.unrouted, agent)
	return []xid.ID{agent}, nil
}

func (f *fakeStore) ArmTriggers(context.Context) (int, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("arm")
	return 0, err
}

func (f *fakeStore) Leases(_ context.Context, notOwner xid.ID, host string) ([]store.Leftover, error) {
	unlock, err := f.lock()
	defer unlock()
	return slices.Clone(f.leftovers), err
}

func (f *fakeStore) Withdraw(_ context.Context, a store.Attempt) (bool, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("withdraw %s", a.RunID)
	f.leftovers = slices.DeleteFunc(f.leftovers, func(l store.Leftover) bool { return l.Attempt == a })
	return true, err
}

func (f *fakeStore) EndAccepted(_ context.Context, a store.Attempt) (bool, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("end accepted %s", a.RunID)
	f.leftovers = slices.DeleteFunc(f.leftovers, func(l store.Leftover) bool { return l.Attempt == a })
	return true, err
}

func (f *fakeStore) Abandon(_ context.Context, a store.Attempt, dead bool) (bool, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("abandon %s dead=%t", a.RunID, dead)
	if a.RunID == f.badRun {
		return false, errors.New("bad run")
	}
	f.leftovers = slices.DeleteFunc(f.leftovers, func(l store.Leftover) bool { return l.Attempt == a })
	return true, err
}

func (f *fakeStore) Uptime(context.Context) (time.Duration, error) {
	unlock, err := f.lock()
	defer unlock()
	return f.uptime, err
}

// TallyShapes finds nothing to count.
func (f *fakeStore) TallyShapes(context.Context) (bool, error) {
	unlock, err := f.lock()
	defer unlock()
	return false, err
}

// TallyCosts finds nothing to add up.
func (f *fakeStore) TallyCosts(context.Context) (bool, error) {
	unlock, err := f.lock()
	defer unlock()
	return false, err
}

func (f *fakeStore) Repair(context.Context) (store.Repairs, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("repair")
	return f.repairs, errors.Join(err, f.sweepError)
}

func (f *fakeStore) FeedHolder(context.Context) (store.FeedHolder, error) {
	unlock, err := f.lock()
	defer unlock()
	return f.feedHolder, err
}

// Prune finds a full batch, then the rest.
func (f *fakeStore) Prune(context.Context, domain.Retention) (domain.Removed, bool, error) {
	unlock, err := f.lock()
	defer unlock()
	if f.old == 0 || err != nil {
		return domain.Removed{}, false, err
	}
	n := min(f.old, 2)
	f.old -= n
	return domain.Removed{Runs: n}, n == 2, f.sweepError
}

// ClaimNotices gives what is due in batches of two.
func (f *fakeStore) ClaimNotices(context.Context, int) ([]store.DueNotice, error) {
	unlock, err := f.lock()
	defer unlock()
	n := min(len(f.notices), 2)
	due := f.notices[:n]
	f.notices = f.notices[n:]
	return due, err
}

func (f *fakeStore) NoticeSent(_ context.Context, d store.DueNotice, sent store.Sent) error {
	unlock, err := f.lock()
	defer unlock()
	f.add("sent %s %v", d.ID, sent.OK)
	return errors.Join(err, f.sweepError)
}

func (f *fakeStore) VerdictWatchers(context.Context) ([]xid.ID, error) {
	unlock, err := f.lock()
	defer unlock()
	return f.watchers, err
}

func (f *fakeStore) TellVerdict(_ context.Context, seen store.VerdictSeen) (int, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("verdict %s %s", seen.WorkspaceID, seen.Verdict)
	return 1, err
}

func (f *fakeStore) SweepBudgets(context.Context) (int, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("budgets")
	return f.resumed, errors.Join(err, f.sweepError)
}

func (f *fakeStore) SchedulerRuns(context.Context) error {
	unlock, err := f.lock()
	defer unlock()
	return err
}

func (f *fakeStore) Recover(context.Context) ([]store.Recovered, error) {
	unlock, err := f.lock()
	defer unlock()
	f.add("recover")
	return f.recovered, errors.Join(err, f.sweepError)
}

// fakeWorker has slots that stay taken until the test frees them.
type fakeWorker struct {
	record
	mu    sync.Mutex
	slots int
	freed chan struct{}
}

func newWorker(slots int) *fakeWorker {
	return &fakeWorker{slots: slots, freed: make(chan struct{}, 1)}
}

func (w *fakeWorker) Free() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots
}

func (w *fakeWorker) Process(ctx context.Context, c store.Claimed) {
	w.mu.Lock()
	w.slots--
	w.mu.Unlock()
	w.add("process %s, context %v", c.RunID, ctx.Err())
}

func (w *fakeWorker) Freed() <-chan struct{} { return w.freed }

func (w *fakeWorker) free(n int) {
	w.mu.Lock()
	w.slots += n
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// fakeHub signals the queue on demand.
type fakeHub struct{ signal chan struct{} }

func newHub() *fakeHub { return &fakeHub{signal: make(chan struct{}, 1)} }

func (h *fakeHub) WatchQueue(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.signal:
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out
}

func (h *fakeHub) publish() {
	select {
	case h.signal <- struct{}{}:
	default:
	}
}

// fakeGroups ends groups, and fails on one.
type fakeGroups struct {
	record *record
	bad    int
}

func (g *fakeGroups) EndLeftover(_ context.Context, l store.Leftover) error {
	g.record.add("end group %d", l.Group.PGID)
	if l.Group.PGID == g.bad {
		return errors.New("the group does not end")
	}
	return nil
}

// journal is a log that tests read while it is written.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.buf.Reset()
	return j.buf.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// house is a scheduler among fakes.
type house struct {
	*Scheduler
	store  *fakeStore
	worker *fakeWorker
	hub    *fakeHub
	log    *journal
}

func newHouse(slots int) *house {
	h := &house{store: &fakeStore{}, worker: newWorker(slots), hub: newHub(), log: &journal{}}
	h.Scheduler = New(Options{Store: h.store, Worker: h.worker, Queue: h.hub, Groups: &fakeGroups{record: &h.store.record},
		Counters: metrics.New(), Owner: store.Owner{ID: "prc_self", Host: "here", BootID: "boot"}, Lease: 20 * time.Second, Log: h.log.logger()})
	return h
}

func (h *house) start(t *testing.T) {
	t.Helper()
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}
