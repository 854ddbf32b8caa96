package domain

import "time"

// lossWaits are how long a run waits after each loss of the process that ran it. A process that restarts is back by
// then. A run that brings its process down does not take the others along more than a few times.
var lossWaits = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}

// MaxLosses is how often the process of a launched run may be lost before the run fails (SPEC S8.4).
var MaxLosses = len(lossWaits) + 1

// Fate is what becomes of a run whose attempt ended without success.
type Fate string

// The fates.
const (
	FateRequeue Fate = "REQUEUE" // due again, as the next attempt
	FateRetry   Fate = "RETRY"   // parked until its retry
	FateFail    Fate = "FAIL"    // gives up and escalates
	FateCancel  Fate = "CANCEL"  // a cancel was asked, which ends it instead
	FatePark    Fate = "PARK"    // waits for a worker to ask
	FateAsk     Fate = "ASK"     // goes on for its grace: who has it is asked to end it
)

// LossFacts is an attempt whose process was lost. Losses are those of the run before it, since a person's last retry.
type LossFacts struct {
	Launched        bool // an agent may have been at work
	Losses          int
	CancelRequested bool
}

// Loss is what becomes of the run: its losses now, and how long it waits when it is tried again.
type Loss struct {
	Fate   Fate
	Losses int
	Wait   time.Duration // of RETRY
}

// AfterLoss decides about a run whose process was lost. An attempt that had not launched does not count, because it
// cannot have brought the process down (SPEC S8.4).
func AfterLoss(f LossFacts) Loss {
	switch {
	case f.CancelRequested:
		return Loss{Fate: FateCancel, Losses: f.Losses}
	case !f.Launched:
		return Loss{Fate: FateRequeue, Losses: f.Losses}
	case f.Losses+1 >= MaxLosses:
		return Loss{Fate: FateFail, Losses: f.Losses + 1}
	}
	return Loss{Fate: FateRetry, Losses: f.Losses + 1, Wait: lossWaits[f.Losses]}
}

// AfterFailure decides about a run whose attempt failed; giveUp is the retry policy's word.
func AfterFailure(giveUp, permanent, cancelRequested bool) Fate {
	switch {
	case cancelRequested:
		return FateCancel
	case giveUp || permanent:
		return FateFail
	}
	return FateRetry
}
