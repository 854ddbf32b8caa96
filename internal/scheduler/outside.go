package scheduler

import (
	"context"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Store is what the loops ask of the store.
type Store interface {
	queue
	triggers
	leases
	notices
	VerdictWatchers(ctx context.Context) ([]xid.ID, error)
	TellVerdict(ctx context.Context, seen store.VerdictSeen) (told int, err error)
	Repair(ctx context.Context) (store.Repairs, error)
	FeedHolder(ctx context.Context) (store.FeedHolder, error)
	Prune(ctx context.Context, r domain.Retention) (removed domain.Removed, more bool, err error)
	TallyShapes(ctx context.Context) (more bool, err error)
	TallyCosts(ctx context.Context) (more bool, err error)
	SweepBudgets(ctx context.Context) (resumed int, err error)
	Recover(ctx context.Context) ([]store.Recovered, error)
	SchedulerRuns(ctx context.Context) error
}

// queue is what the dispatcher asks.
type queue interface {
	router
	clock
	UnroutedAgents(ctx context.Context, limit int) ([]xid.ID, error)
	ClaimInto(ctx context.Context, owner store.Owner, room func() int, lease time.Duration) ([]store.Claimed, error)
	OfferToWaiters(ctx context.Context) error
	SettleBacklog(ctx context.Context) error
}

// router routes what waits for some agents. Its error joins those of the agents that failed.
type router interface {
	Route(ctx context.Context, agents ...xid.ID) (int, error)
}

// clock tells the database's time, and the next instant at which a queued run may become due.
type clock interface {
	NextInstant(ctx context.Context) (at, now time.Time, err error)
}

// triggers is what the cron tick asks.
type triggers interface {
	router
	clock
	DueTriggers(ctx context.Context, after store.DueTrigger, limit int) ([]store.DueTrigger, error)
	// FireDue fires triggers and returns the agents to route. Its error joins those of the triggers that failed.
	FireDue(ctx context.Context, triggers ...xid.ID) ([]xid.ID, error)
	ArmTriggers(ctx context.Context) (int, error)
}

// leases is what the rescue sweep asks.
type leases interface {
	Leases(ctx context.Context, notOwner xid.ID, host string) ([]store.Leftover, error)
	Abandon(ctx context.Context, a store.Attempt, dead bool) (bool, error)
	Withdraw(ctx context.Context, a store.Attempt) (bool, error)
	EndAccepted(ctx context.Context, a store.Attempt) (bool, error)
	Uptime(ctx context.Context) (time.Duration, error)
}

// Worker executes claimed runs.
type Worker interface {
	// Free is how many more runs it takes now.
	Free() int
	// Process takes a claimed run and returns at once. The context carries values only and never ends; the worker alone
	// decides how long the attempt lives. It must not refuse, not even while it is being stopped, because the run is
	// leased to this process: it would wait until that lease runs out.
	Process(ctx context.Context, c store.Claimed)
	// Freed has capacity 1 and signals that Free has risen.
	Freed() <-chan struct{}
}

// QueueWatcher tells when something may be routed or claimed.
type QueueWatcher interface {
	WatchQueue(ctx context.Context) <-chan struct{}
}

// GroupEnder ends what is left of an agent whose owner is gone, and returns when no process of it runs any more. A
// group of another machine or boot is not an error, nor is PGID 0.
type GroupEnder interface {
	EndLeftover(ctx context.Context, l store.Leftover) error
}
