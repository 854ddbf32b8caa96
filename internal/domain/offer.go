package domain

import "time"

// OfferPatience is how long a run that was offered to workers waits for one before it is parked NO_WORKER (SPEC S7.1).
const OfferPatience = 10 * time.Minute

// Bounds of a pull executor: its queue's name in characters, and for how long a worker's sign of life keeps a run.
const (
	MaxQueueName = 64
	MinPullLease = 15 * time.Second
	MaxPullLease = time.Hour
)

// MaxAcquireWait is the longest that a worker may ask to wait for work.
const MaxAcquireWait = 30 * time.Second

// Queue is the queue whose workers execute a spec's runs; "" when they are executed by rouse itself.
func (s *ExecutorSpec) Queue() string {
	if s == nil || s.Pull == nil {
		return ""
	}
	return s.Pull.Queue
}

// AfterOffer decides about an offer that no worker took in time. It waits for a worker, unless a cancel was asked or
// the agent was deleted. It is neither a failure nor an abandonment.
func AfterOffer(cancelRequested, agentDeleted bool) Fate {
	if cancelRequested || agentDeleted {
		return FateCancel
	}
	return FatePark
}
