// Package retry says when a failed run is tried again: after the backoff table, or, when the failure is a rate limit
// that says when it ends, shortly after that (SPEC S8.1, S8.2). It is pure: the instant and the jitter are arguments.
package retry

import (
	"math"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// MaxRetries is how many retries a run gets; the failure after the last one is final.
const MaxRetries = 4

const (
	// margin is added to a reset that a message names, since clocks differ and others wait for it too.
	margin = 30 * time.Second
	// maxJitter is the most that is added to a backoff, as a fraction of it.
	maxJitter = 0.25
	// farthest is the latest reset that is believed. Weekly limits are real; a run parked for longer because of a
	// sentence in an error message would be lost to sight.
	farthest = 8 * 24 * time.Hour
)

var backoff = [MaxRetries]time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour}

// Decision is what becomes of a failed run. RetryCount rises by one either way.
type Decision struct {
	GiveUp        bool               // this failure is final; the other members are zero
	At            time.Time          // when it is due again, always after now
	Source        domain.RetrySource // BACKOFF or RATE_LIMIT_PARSED
	RateLimited   bool               // the message speaks of a rate limit, with a usable reset or without
	ParsedResetAt time.Time          // the reset that the message names, without margin, UTC; zero unless RATE_LIMIT_PARSED
}

// Plan decides about a failure. retryCount is how many retries the run had before it, message the failure's text, jitter
// a random number in [0, 1).
func Plan(now time.Time, retryCount int, message string, jitter float64) Decision {
	if retryCount >= MaxRetries {
		return Decision{GiveUp: true}
	}
	limited := IsRateLimit(message)
	if limited {
		if reset, ok := ResetAt(now, message); ok {
			return Decision{
				At:            reset.Add(margin),
				Source:        domain.RetrySourceRateLimitParsed,
				RateLimited:   true,
				ParsedResetAt: reset,
			}
		}
	}
	return Decision{
		At:          now.Add(delay(retryCount, jitter)),
		Source:      domain.RetrySourceBackoff,
		RateLimited: limited,
	}
}

// delay is the backoff after so many retries, with jitter; a jitter outside [0, 1) counts as the nearest bound.
func delay(retryCount int, jitter float64) time.Duration {
	base := backoff[max(retryCount, 0)]
	if math.IsNaN(jitter) {
		jitter = 0
	}
	fraction := min(max(jitter, 0), math.Nextafter(1, 0)) * maxJitter
	return base + time.Duration(float64(base)*fraction)
}
