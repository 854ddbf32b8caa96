package retry

import (
	"math"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// What failures say, and when the run is due again. "" is the backoff of a rate limit, "-" that of any other failure.
var messages = []struct{ name, now, message, due string }{
	{"C73 rate limit", "2026-01-15T10:00:00Z", "rate limit exceeded", ""},
	{"C73 rate_limit", "2026-01-15T10:00:00Z", "error: rate_limit", ""},
	{"C73 a status line", "2026-01-15T10:00:00Z", "429 Too Many Requests", ""},
	{"C73 a quota", "2026-01-15T10:00:00Z", "Quota exceeded for today", ""},
	{"C73 a status behind a slash", "2026-01-15T10:00:00Z", "received HTTP/429", ""},
	{"C73 a timeout", "2026-01-15T10:00:00Z", "connection timed out", "-"},
	{"C73 a word that contains rate", "2026-01-15T10:00:00Z", "unrated content", "-"},
	{"C73 another status", "2026-01-15T10:00:00Z", "error 500", "-"},
	{"C74 a header", "2026-01-15T10:00:00Z", "429 Retry-After: 3600", "2026-01-15T11:00:30Z"},
	{"C74 in words", "2026-01-15T10:00:00Z", "rate limit, retry after 120", "2026-01-15T10:02:30Z"},
	{"C74 without a space", "2026-01-15T10:00:00Z", "429 retry-after:60", "2026-01-15T10:01:30Z"},
	{"Retry-After as an HTTP date", "2026-01-15T10:00:00Z", "429 Too Many Requests; Retry-After: Thu, 15 Jan 2026 12:00:00 GMT", "2026-01-15T12:00:30Z"},
	{"Retry-After as an HTTP date, in JSON", "2026-01-15T10:00:00Z", `429 {"retry-after": "Thu, 15 Jan 2026 12:00:00 GMT"}`, "2026-01-15T12:00:30Z"},
	{"Retry-After as an HTTP date, in lower case", "2026-01-15T10:00:00Z", "429 retry-after: thu, 15 jan 2026 12:00:00 gmt", "2026-01-15T12:00:30Z"},
	{"Retry-After as HTTP wrote dates in 1994", "2026-01-15T10:00:00Z", "429 Retry-After: Thursday, 15-Jan-26 12:00:00 GMT", "2026-01-15T12:00:30Z"},
	{"Retry-After as C writes dates", "2026-01-05T10:00:00Z", "429 Retry-After: Mon Jan  5 12:00:00 2026", "2026-01-05T12:00:30Z"},
	{"a reset as an HTTP date", "2026-01-15T10:00:00Z", "429 x-ratelimit-reset: Thu, 15 Jan 2026 12:00:00 GMT", "2026-01-15T12:00:30Z"},
	{"Retry-After as an HTTP date that is past", "2026-01-15T10:00:00Z", "429 Retry-After: Thu, 15 Jan 2026 09:00:00 GMT", ""},
	{"Retry-After as an HTTP date that there is not", "2026-01-15T10:00:00Z", "429 Retry-After: Thu, 45 Jan 2026 12:00:00 GMT", ""},
	{"Retry-After as an HTTP date in another zone", "2026-01-15T10:00:00Z", "429 Retry-After: Thu, 15 Jan 2026 12:00:00 +0900", ""},
	{"C75 minutes", "2026-01-15T10:00:00Z", "usage limit, try again in 5 minutes", "2026-01-15T10:05:30Z"},
	{"C75 seconds", "2026-01-15T10:00:00Z", "429: try again in 30 seconds", "2026-01-15T10:01:00Z"},
	{"C75 hours", "2026-01-15T10:00:00Z", "429: try again in 2 hours", "2026-01-15T12:00:30Z"},
	{"C76 a time of day", "2026-01-15T03:45:00Z", "rate_limit_error: resets at 4:00 AM", "2026-01-15T04:00:30Z"},
	{"C76 in UTC", "2026-01-15T03:45:00Z", "rate_limit_error: resets at 4:00 AM UTC", "2026-01-15T04:00:30Z"},
	{"C76 24 hours", "2026-01-15T03:45:00Z", "rate limit resets at 04:30", "2026-01-15T04:30:30Z"},
	{"C76 tomorrow", "2026-01-15T03:45:00Z", "rate limit resets at 3:00 AM", "2026-01-16T03:00:30Z"},
	{"C76 reset", "2026-01-15T03:45:00Z", "rate limit, reset at 11:59 PM", "2026-01-15T23:59:30Z"},
	{"C77 Unix seconds", "2025-07-15T23:00:00Z", "rate limit exceeded, reset_time: 1752624000", "2025-07-16T00:00:30Z"},
	{"C77 Unix milliseconds", "2025-07-15T23:00:00Z", "rate limit exceeded, reset_time: 1752624000000", "2025-07-16T00:00:30Z"},
	{"C77 a reset that is past", "2025-07-17T00:00:00Z", "rate limit exceeded, reset_time: 1752624000", ""},
	{"C78 no time", "2026-01-15T10:00:00Z", "429 rate_limit", ""},
	{"C79 after midnight", "2026-01-15T03:45:00Z", "session limit, resets at 12:15 AM", "2026-01-16T00:15:30Z"},
	{"C79 after noon", "2026-01-15T03:45:00Z", "session limit, resets at 12:15 PM", "2026-01-15T12:15:30Z"},
	{"C79 no such time", "2026-01-15T03:45:00Z", "session limit, resets at 25:00", ""},

	{"Claude: the instant behind a bar", "2025-07-15T23:00:00Z", "Claude AI usage limit reached|1752624000", "2025-07-16T00:00:30Z"},
	{"Claude: five hours", "2026-01-15T10:00:00Z", "5-hour limit reached ∙ resets 3pm", "2026-01-15T15:00:30Z"},
	{"Claude: with its zone", "2026-01-15T10:00:00Z", "You've hit your limit · resets 7am (America/New_York)", "2026-01-15T12:00:30Z"},
	{"Claude: session limit", "2026-01-15T10:00:00Z", "You've hit your session limit · resets 3:30pm (Europe/Berlin)", "2026-01-15T14:30:30Z"},
	{"Claude: a date cannot be read", "2026-01-15T10:00:00Z", "Weekly limit reached ∙ resets Oct 14, 3pm", ""},
	{"Anthropic: API error", "2026-01-15T10:00:00Z", `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute"}}`, ""},
	{"Anthropic: headers", "2026-01-15T10:00:00Z", "429 anthropic-ratelimit-requests-reset: 2026-01-15T10:01:00Z", "2026-01-15T10:01:30Z"},
	{"Anthropic: overloaded is no limit", "2026-01-15T10:00:00Z", `529 {"type":"overloaded_error","message":"Overloaded"}`, "-"},
	{"OpenAI: seconds with a fraction", "2026-01-15T10:00:00Z", "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 1.5s.", "2026-01-15T10:00:31.5Z"},
	{"OpenAI: milliseconds", "2026-01-15T10:00:00Z", "Rate limit reached. Please try again in 20ms.", "2026-01-15T10:00:30.02Z"},
	{"OpenAI: a duration", "2026-01-15T10:00:00Z", "Rate limit reached on requests per day (RPD). Please try again in 6m0s.", "2026-01-15T10:06:30Z"},
	{"OpenAI: a longer duration", "2026-01-15T10:00:00Z", "Rate limit reached. Please try again in 7h12m36s. Visit https://platform.example.com", "2026-01-15T17:13:06Z"},
	{"OpenAI: no quota", "2026-01-15T10:00:00Z", "You exceeded your current quota, please check your plan and billing details.", ""},
	{"Codex: days and hours", "2026-01-15T10:00:00Z", "You've hit your usage limit. Upgrade to Pro or try again in 3 days 2 hours 5 minutes.", "2026-01-18T12:05:30Z"},
	{"Codex: JSON with an instant", "2025-07-15T23:00:00Z", `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1752624000}}`, "2025-07-16T00:00:30Z"},
	{"Codex: JSON with a delay", "2026-01-15T10:00:00Z", `usage limit {"resets_in_seconds":600}`, "2026-01-15T10:10:30Z"},
	{"Gemini: retry in", "2026-01-15T10:00:00Z", "RESOURCE_EXHAUSTED: Quota exceeded for metric: generate_content_requests, limit: 20. Please retry in 37.5s.", "2026-01-15T10:01:07.5Z"},
	{"Gemini: retryDelay", "2026-01-15T10:00:00Z", `{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"37s"}]}`, "2026-01-15T10:01:07Z"},
	{"Gemini: status alone", "2026-01-15T10:00:00Z", "[429 Too Many Requests] Resource has been exhausted (e.g. check quota).", ""},
	{"GitHub: primary limit", "2026-01-15T10:00:00Z", "API rate limit exceeded for user ID 12345.", ""},
	{"GitHub: header dump", "2025-07-15T23:00:00Z", "API rate limit exceeded. x-ratelimit-remaining: 0, x-ratelimit-reset: 1752624000", "2025-07-16T00:00:30Z"},
	{"GitHub: secondary limit", "2026-01-15T10:00:00Z", "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", ""},
	{"GitHub: secondary limit with header", "2026-01-15T10:00:00Z", "secondary rate limit\nretry-after: 60\ndate: now", "2026-01-15T10:01:30Z"},

	{"JSON retry_after", "2026-01-15T10:00:00Z", `{"message":"You are being rate limited.","retry_after":64.57,"global":false}`, "2026-01-15T10:01:34.57Z"},
	{"in minutes", "2026-01-15T10:00:00Z", "too many requests, retry after 5 minutes", "2026-01-15T10:05:30Z"},
	{"singular", "2026-01-15T10:00:00Z", "TOO MANY REQUESTS: Try Again In 1 Hour", "2026-01-15T11:00:30Z"},
	{"two units joined by and", "2026-01-15T10:00:00Z", "429, try again in 1 hour and 5 minutes", "2026-01-15T11:05:30Z"},
	{"resets in", "2026-01-15T10:00:00Z", "rate limit resets in 45 minutes", "2026-01-15T10:45:30Z"},
	{"an ISO instant", "2026-01-15T10:00:00Z", "rate limit resets at 2026-01-15T12:30:00+01:00", "2026-01-15T11:30:30Z"},
	{"try again at an ISO instant", "2026-01-15T10:00:00Z", "rate limit exceeded, try again at 2026-01-15T11:30:00Z", "2026-01-15T11:30:30Z"},
	{"until an ISO instant", "2026-01-15T10:00:00Z", "rate limit exceeded until 2026-01-15T11:30:00Z", "2026-01-15T11:30:30Z"},
	{"try again at a time of day", "2026-01-15T10:00:00Z", "You've hit your usage limit. Upgrade, or try again at 3:05 PM.", "2026-01-15T15:05:30Z"},
	{"try again at a day with a time is not guessed", "2026-01-15T10:00:00Z", "usage limit, try again at Dec 1st, 2026 3:05 AM.", ""},
	{"a zone by abbreviation", "2026-01-15T10:00:00Z", "rate limit resets at 4:00 AM PST", "2026-01-15T12:00:30Z"},
	{"an unknown abbreviation is not guessed", "2026-01-15T10:00:00Z", "rate limit resets at 4:00 AM XYZT", ""},
	{"an offset is not guessed", "2026-01-15T10:00:00Z", "rate limit resets at 4:00 AM UTC+2", ""},
	{"an unknown zone", "2026-01-15T10:00:00Z", "rate limit resets at 4:00 AM Mars/Olympus", ""},
	{"a word that is no zone", "2026-01-15T03:00:00Z", "rate limit resets at 4:00 AM today", "2026-01-15T04:00:30Z"},
	{"seconds on the clock", "2026-01-15T03:00:00Z", "rate limit resets at 4:00:15 AM", "2026-01-15T04:00:30Z"},
	{"an hour alone is no time", "2026-01-15T03:00:00Z", "rate limit resets 5 of 10", ""},
	{"a.m. with dots", "2026-01-15T03:00:00Z", "rate limit resets at 4 a.m.", "2026-01-15T04:00:30Z"},
	{"no such half of the day", "2026-01-15T03:00:00Z", "rate limit resets at 16:00 PM", ""},
	{"seconds ago is now", "2026-01-15T04:00:10Z", "rate limit resets at 4:00 AM", "2026-01-15T04:00:30Z"},
	{"a time of day that a clock change removes", "2026-03-08T06:00:00Z", "rate limit resets at 2:30 AM (America/New_York)", "2026-03-09T06:30:30Z"},
	{"further than is believed", "2026-01-15T10:00:00Z", "429 Retry-After: 99999999", ""},
	{"a week is believed", "2026-01-15T10:00:00Z", "weekly limit: try again in 7 days", "2026-01-22T10:00:30Z"},
	{"a number too large for any clock", "2026-01-15T10:00:00Z", "429 Retry-After: " + strings.Repeat("9", 400), ""},
	{"a negative delay", "2026-01-15T10:00:00Z", "429 Retry-After: -5", ""},
	{"no delay at all", "2026-01-15T10:00:00Z", "429 Retry-After: 0", "2026-01-15T10:00:30Z"},
	{"the first time that can be read counts", "2026-01-15T10:00:00Z", "rate limit resets at 99:99, resets at 11:00", "2026-01-15T11:00:30Z"},
	{"a time without a limit", "2026-01-15T10:00:00Z", "disk full, try again in 5 minutes", "-"},
	{"429 inside a number", "2026-01-15T10:00:00Z", "took 14290 ms", "-"},
	{"nothing", "2026-01-15T10:00:00Z", "", "-"},
	{"broken text", "2026-01-15T10:00:00Z", "\xff\xfe429\x00", ""},
	{"the end of a long output", "2026-01-15T10:00:00Z", strings.Repeat("line\n", 100_000) + "429 Retry-After: 60", "2026-01-15T10:01:30Z"},
}

func TestPlanReadsMessages(t *testing.T) {
	if len(messages) < 60 {
		t.Errorf("only %d messages", len(messages))
	}
	for _, c := range messages {
		t.Run(c.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, c.now)
			if err != nil {
				t.Fatal(err)
			}
			want := Decision{At: now.Add(2 * time.Minute), Source: domain.RetrySourceBackoff, RateLimited: c.due != "-"}
			if c.due != "" && c.due != "-" {
				due, err := time.Parse(time.RFC3339, c.due)
				if err != nil {
					t.Fatal(err)
				}
				want = Decision{At: due, Source: domain.RetrySourceRateLimitParsed, RateLimited: true, ParsedResetAt: due.Add(-margin)}
			}
			got := Plan(now, 0, c.message, 0)
			if !got.At.Equal(want.At) || got.Source != want.Source || got.RateLimited != want.RateLimited || !got.ParsedResetAt.Equal(want.ParsedResetAt) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestBackoffGrowsAndGivesUp(t *testing.T) { // C80, C81
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	for count, base := range []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		for _, jitter := range []float64{0, 0.5, 0.999999, 1, 7, -1, math.NaN(), math.Inf(1)} {
			got := Plan(now, count, "crash", jitter)
			if wait := got.At.Sub(now); got.GiveUp || wait < base || wait >= base+base/4 {
				t.Errorf("retry %d, jitter %v: waits %s", count, jitter, wait)
			}
		}
	}
	for _, message := range []string{"crash", "429 Retry-After: 60"} {
		if got := Plan(now, 4, message, 0.5); got != (Decision{GiveUp: true}) {
			t.Errorf("fifth failure %q: %+v", message, got)
		}
	}
}

func FuzzPlan(f *testing.F) {
	for i, c := range messages {
		f.Add(int64(1_768_471_200+i*3601), i%5, c.message, float64(i)/70)
	}
	f.Fuzz(func(t *testing.T, unix int64, count int, message string, jitter float64) {
		now := time.Unix(unix%(1<<34), 0)
		got := Plan(now, count, message, jitter)
		switch {
		case got.GiveUp != (count >= MaxRetries):
			t.Fatalf("gives up: %t after %d retries", got.GiveUp, count)
		case got.GiveUp:
		case !got.At.After(now), got.At.After(now.Add(farthest + margin)):
			t.Fatalf("%q at %s: due %s", message, now, got.At)
		case (got.Source == domain.RetrySourceRateLimitParsed) == got.ParsedResetAt.IsZero():
			t.Fatalf("%q: %+v", message, got)
		}
	})
}
