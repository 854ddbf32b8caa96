package domain

// MaxAbandonments is how often a run may lose its lease before it counts as poison (SPEC S8.4).
const MaxAbandonments = 3

// Fate is what becomes of a run whose attempt ended without success.
type Fate string

// The fates.
const (
	FateRequeue Fate = "REQUEUE" // due again, as the next attempt
	FateRetry   Fate = "RETRY"   // parked until its retry
	FateFail    Fate = "FAIL"    // gives up and escalates
	FateCancel  Fate = "CANCEL"  // a cancel was asked, which ends it instead
	FatePark    Fate = "PARK"    // waits for a worker to ask
)

// AfterAbandonment decides about a run that has now been abandoned the given number of times.
func AfterAbandonment(abandonments int, cancelRequested bool) Fate {
	switch {
	case cancelRequested:
		return FateCancel
	case abandonments >= MaxAbandonments:
		return FateFail
	}
	return FateRequeue
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
