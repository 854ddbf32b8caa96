// Package retry says when a failed run is tried again (SPEC S8.1, S8.2): after the backoff table, or, when a rate limit
// says when it ends, shortly after that. It is pure: the instant and the jitter are arguments.
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
	// farthestData is the same for a reset that is data and no sentence.
	farthestData = 35 * 24 * time.Hour
)

var backoff = [MaxRetries]time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour}

// Counts are what a run has behind it. A rate limit does not count as a failure. It has a count of its own, which any
// other failure resets.
type Counts struct {
	Retries      int       // after failures
	Limits       int       // rate limits in a row
	LimitedSince time.Time // when the first of them was met; zero without
}

// Bounds of rate limits in a row; then the run ends as after its last retry (SPEC S8.2).
const (
	MaxLimits       = 40
	longestLimiting = 35 * 24 * time.Hour
)

// Decision is what becomes of a failed run.
type Decision struct {
	GiveUp        bool               // this failure is final; At, Source and ParsedResetAt are zero
	At            time.Time          // when it is due again, always after now
	Source        domain.RetrySource // BACKOFF or RATE_LIMIT_PARSED
	RateLimited   bool               // it was a rate limit, with a usable reset or without
	ParsedResetAt time.Time          // the reset that was named, without margin, UTC; zero unless RATE_LIMIT_PARSED
	Counts        Counts             // what the run then has behind it
}

// Evidence is what a failure says about when to try again: as data, which counts first, and in the words of an error.
// An agent's ordinary output is not evidence.
type Evidence struct {
	Words   string
	Zone    *time.Location // of times in Words that name none: of the machine that the agent ran on; nil: UTC
	Limited bool           // data says that it is a rate limit
	After   time.Duration  // not before so much time has passed, as data has it; 0: it does not say
}

// Plan decides about a failure. jitter is a random number in [0, 1).
func Plan(now time.Time, c Counts, e Evidence, jitter float64) Decision {
	if e.Limited || e.After > 0 || IsRateLimit(e.Words) {
		return planLimit(now, c, e, jitter)
	}
	if c.Retries >= MaxRetries {
		return Decision{GiveUp: true, Counts: Counts{Retries: c.Retries}}
	}
	return Decision{At: now.Add(delay(c.Retries, jitter)), Source: domain.RetrySourceBackoff, Counts: Counts{Retries: c.Retries + 1}}
}

func planLimit(now time.Time, c Counts, e Evidence, jitter float64) Decision {
	if c.LimitedSince.IsZero() {
		c.LimitedSince = now
	}
	before := c.Limits
	c.Limits++
	d := Decision{RateLimited: true, Counts: c}
	switch reset, ok := e.reset(now); {
	case c.Limits >= MaxLimits || now.Sub(c.LimitedSince) >= longestLimiting:
		d.GiveUp = true
	case ok:
		d.At, d.Source, d.ParsedResetAt = reset.Add(margin), domain.RetrySourceRateLimitParsed, reset
	default:
		d.At, d.Source = now.Add(delay(min(before, MaxRetries-1), jitter)), domain.RetrySourceBackoff
	}
	return d
}

// reset is the end of the limit: data goes before words.
func (e Evidence) reset(now time.Time) (time.Time, bool) {
	if e.After > 0 && e.After <= farthestData {
		return now.Add(e.After).UTC(), true
	}
	return ResetAt(now, e.Words, e.Zone)
}

// delay is the backoff after that many retries, with jitter. A jitter outside [0, 1) counts as the nearest bound.
func delay(retryCount int, jitter float64) time.Duration {
	base := backoff[max(retryCount, 0)]
	if math.IsNaN(jitter) {
		jitter = 0
	}
	fraction := min(max(jitter, 0), math.Nextafter(1, 0)) * maxJitter
	return base + time.Duration(float64(base)*fraction)
}
