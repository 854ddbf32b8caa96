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
	{"Claude: a date that is too far", "2026-01-15T10:00:00Z", "Weekly limit reached ∙ resets Oct 14, 3pm", ""},
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
	{"try again at a date that is too far", "2026-01-15T10:00:00Z", "usage limit, try again at Dec 1st, 2026 3:05 AM.", ""},
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

	// SPEC S8.2: the words, with blanks of any kind.
	{"usage limit with lines", "2026-01-15T10:00:00Z", "usage_limit_reached", ""},
	{"session limit with dashes", "2026-01-15T10:00:00Z", "SESSION-LIMIT reached", ""},
	{"daily limit", "2026-01-15T10:00:00Z", "You have reached your daily limit", ""},
	{"weekly limit", "2026-01-15T10:00:00Z", "weekly_limit: resets after 8h44m7s", "2026-01-15T18:44:37Z"},
	{"too many requests with dashes", "2026-01-15T10:00:00Z", "error too-many-requests", ""},
	{"quota exceeded in capitals", "2026-01-15T10:00:00Z", "QUOTA_EXCEEDED", ""},
	{"quota exhausted", "2026-01-15T10:00:00Z", "You have exhausted your daily quota on this model", ""},
	{"capacity exhausted", "2026-01-15T10:00:00Z", "You have exhausted your capacity on this model. Your quota will reset after 2h3m4s.", "2026-01-15T12:03:34Z"},
	{"ratelimit in one word", "2026-01-15T10:00:00Z", "openai.RateLimitError: slow down", ""},
	{"a status of its own", "2026-01-15T10:00:00Z", "status=429", ""},
	{"a limit over two lines", "2026-01-15T10:00:00Z", "rate\nlimit\n\tresets at\n4:00 PM", "2026-01-15T16:00:30Z"},

	// The end, in each form.
	{"resets after", "2026-01-15T10:00:00Z", "rate limit, resets after 90s", "2026-01-15T10:02:00Z"},
	{"reset after", "2026-01-15T10:00:00Z", "rate limit; reset after 1h", "2026-01-15T11:00:30Z"},
	{"try again in days", "2026-01-15T10:00:00Z", "usage limit: try again in 2 days", "2026-01-17T10:00:30Z"},
	{"a date with a zone", "2026-12-01T10:00:00Z", "weekly limit · resets Dec 3, 5:36am (America/New_York)", "2026-12-03T10:36:30Z"},
	{"a date with a year", "2026-12-01T10:00:00Z", "usage limit, try again at Dec 2nd, 2026 12:27 AM.", "2026-12-02T00:27:30Z"},
	{"a date after noon", "2026-12-01T10:00:00Z", "usage limit, try again at Dec 2nd, 2026 12:27 PM.", "2026-12-02T12:27:30Z"},
	{"a date in words", "2026-12-01T10:00:00Z", "weekly limit, resets on December 3 at 5pm", "2026-12-03T17:00:30Z"},
	{"a date of the next year", "2026-12-30T10:00:00Z", "weekly limit, resets Jan 2, 9:00", "2027-01-02T09:00:30Z"},
	{"a day of the week", "2026-01-15T10:00:00Z", "weekly limit, resets Saturday at 9am", "2026-01-17T09:00:30Z"},
	{"today's day of the week", "2026-01-15T08:00:00Z", "weekly limit, resets Thursday at 9am", "2026-01-15T09:00:30Z"},
	{"a day of the week that is a week off", "2026-01-15T10:00:00Z", "weekly limit, resets Thursday at 9am", "2026-01-22T09:00:30Z"},
	{"a day of the week with its zone", "2026-01-15T10:00:00Z", "weekly limit resets on Friday, 9am (Europe/Berlin)", "2026-01-16T08:00:30Z"},
	{"the end before the words", "2026-01-15T10:00:00Z", "Try again in 5 minutes: rate limit", "2026-01-15T10:05:30Z"},
	{"the end just within reach", "2026-01-15T10:00:00Z", "rate limit" + strings.Repeat(" x", 99) + " try again in 5 minutes", "2026-01-15T10:05:30Z"},
	{"the end beyond reach", "2026-01-15T10:00:00Z", "rate limit" + strings.Repeat(" x", 120) + " try again in 5 minutes", ""},
	{"an end beyond reach, and one within", "2026-01-15T10:00:00Z", "Retry-After: 5" + strings.Repeat(" x", 120) + " rate limit, try again in 7 minutes", "2026-01-15T10:07:30Z"},
	{"a date that is past", "2026-12-03T10:00:00Z", "usage limit, try again at Dec 2nd, 2026 12:27 AM.", ""},
	{"a date that is none", "2026-12-01T10:00:00Z", "usage limit, resets Dec 42, 5am", ""},
	{"a month that is none", "2026-12-01T10:00:00Z", "usage limit, resets Decade 3, 5am", ""},
	{"eight days are believed", "2026-01-15T10:00:00Z", "usage limit: try again in 8 days", "2026-01-23T10:00:30Z"},
	{"nine are not", "2026-01-15T10:00:00Z", "usage limit: try again in 9 days", ""},

	// As Claude Code 2.1.332, codex 0.171.0 and Gemini CLI 0.61.0 say it.
	{"Claude: a week's limit", "2026-11-30T17:00:00Z", "You've hit your weekly limit · resets Dec 3, 5:36am (UTC)", "2026-12-03T05:36:30Z"},
	{"Claude: a session's limit", "2026-11-30T17:00:00Z", "You've hit your session limit · resets 3pm (America/Los_Angeles)", "2026-11-30T23:00:30Z"},
	{"Claude: a refused request", "2026-11-30T17:00:00Z", "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.", ""},
	{"codex: a date", "2026-11-30T17:00:00Z", "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at Dec 3rd, 2026 5:10 AM.", "2026-12-03T05:10:30Z"},
	{"codex: later", "2026-11-30T17:00:00Z", "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again later.", ""},
	{"codex: too many", "2026-11-30T17:00:00Z", "exceeded retry limit, last status: 429 Too Many Requests", ""},
	{"codex: what the server says", "2026-11-30T17:00:00Z", `{"type":"usage_limit_reached","plan_type":"plus","resets_in_seconds":90000}`, "2026-12-01T18:00:30Z"},
	{"Gemini: a day's quota", "2026-11-30T17:00:00Z", "You have exhausted your daily quota on this model. Your quota will reset after 8h44m7s.", "2026-12-01T01:44:37Z"},
	{"Gemini: a day's quota in other words", "2026-11-30T17:00:00Z", "exceeded your daily quota, reset after 8h44m7s", "2026-12-01T01:44:37Z"},
	{"Gemini: a minute's quota", "2026-11-30T17:00:00Z", "You exceeded your current quota, please check your plan and billing details. Please retry in 21.5s.", "2026-11-30T17:00:51.5Z"},
	{"a status in a list", "2026-11-30T17:00:00Z", `{"codes":[429,500]}`, ""},
	{"a status after a colon", "2026-11-30T17:00:00Z", "status:429", ""},
	{"a status at the end of a sentence", "2026-11-30T17:00:00Z", "it answered 429. Then it ended.", ""},

	// What is no limit.
	{"lines", "2026-11-30T17:00:00Z", "see lines 418-429; the job may be tried again, retry at 3:05 PM", "-"},
	{"lines that begin so", "2026-11-30T17:00:00Z", "see lines 429-440", "-"},
	{"a version", "2026-11-30T17:00:00Z", "version 1.429 is broken", "-"},
	{"a version that begins so", "2026-11-30T17:00:00Z", "version 429.1 is broken", "-"},
	{"a number with a comma", "2026-11-30T17:00:00Z", "1,429 files", "-"},
	{"codex: a key", "2026-11-30T17:00:00Z", "unexpected status 401 Unauthorized: Incorrect API key provided", "-"},
	{"codex: no plan", "2026-11-30T17:00:00Z", "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.", "-"},
	{"Claude: an overload", "2026-11-30T17:00:00Z", "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.", "-"},
	{"Gemini: an overload", "2026-11-30T17:00:00Z", "The model is overloaded. Please try again later.", "-"},
	{"a context limit", "2026-01-15T10:00:00Z", "prompt is too long: 210000 tokens, the context limit is 200000", "-"},
	{"a limit of turns", "2026-01-15T10:00:00Z", "error_max_turns: the limit of turns was reached", "-"},
	{"a time limit", "2026-01-15T10:00:00Z", "time limit exceeded", "-"},
	{"a memory limit", "2026-01-15T10:00:00Z", "memory limit of 512 MiB exceeded", "-"},
	{"a limit of files", "2026-01-15T10:00:00Z", "too many open files", "-"},
	{"too many arguments", "2026-01-15T10:00:00Z", "too many arguments", "-"},
	{"requests that are many", "2026-01-15T10:00:00Z", "handled many requests", "-"},
	{"not logged in", "2026-01-15T10:00:00Z", "Invalid API key · Please run /login", "-"},
	{"no credit", "2026-01-15T10:00:00Z", "Your credit balance is too low to access the API", "-"},
	{"a server's error", "2026-01-15T10:00:00Z", "500 Internal Server Error", "-"},
	{"a gateway's error", "2026-01-15T10:00:00Z", "502 Bad Gateway, try again in 30 seconds", "-"},
	{"not available", "2026-01-15T10:00:00Z", "503 Service Unavailable", "-"},
	{"429 in a longer number", "2026-01-15T10:00:00Z", "request 4290 failed", "-"},
	{"429 at the end of a number", "2026-01-15T10:00:00Z", "port 1429 is taken", "-"},
	{"429 in a word", "2026-01-15T10:00:00Z", "commit a429f is broken", "-"},
	{"429 in a name", "2026-01-15T10:00:00Z", "test_429_is_retried failed", "-"},
	{"a rate alone", "2026-01-15T10:00:00Z", "the sample rate is not supported", "-"},
	{"a rate of limited use", "2026-01-15T10:00:00Z", "frame rate is limited", "-"},
	{"a limit alone", "2026-01-15T10:00:00Z", "limit: 20", "-"},
	{"a quota alone", "2026-01-15T10:00:00Z", "disk quota of the account", "-"},
	{"exhausted alone", "2026-01-15T10:00:00Z", "all retries are exhausted", "-"},
	{"exhausted, and a quota far away", "2026-01-15T10:00:00Z", "memory exhausted" + strings.Repeat(" x", 60) + " quota", "-"},
	{"capacity alone", "2026-01-15T10:00:00Z", "at full capacity", "-"},
	{"a reset of the connection", "2026-01-15T10:00:00Z", "read: connection reset by peer", "-"},
	{"a reset at a time", "2026-01-15T10:00:00Z", "the counter resets at 4:00 AM", "-"},
	{"a wait", "2026-01-15T10:00:00Z", "lock is held, retry after 60", "-"},
	{"a password's reset", "2026-01-15T10:00:00Z", "password reset required", "-"},
	{"a session that ended", "2026-01-15T10:00:00Z", "No conversation found with session ID: abc", "-"},
	{"usage of a program", "2026-01-15T10:00:00Z", "usage: agent [--limit N]", "-"},
	{"a weekly report", "2026-01-15T10:00:00Z", "weekly report failed", "-"},
	{"a stack", "2026-01-15T10:00:00Z", "panic: index out of range [4] with length 3", "-"},
	{"a refusal", "2026-01-15T10:00:00Z", "permission denied", "-"},
	{"a name that is not known", "2026-01-15T10:00:00Z", "dial tcp: lookup api.example.com: no such host", "-"},
	{"a migration", "2026-01-15T10:00:00Z", "migrate limits table: exit code 1", "-"},
	{"a corporate limit", "2026-01-15T10:00:00Z", "corporate limit of the proxy", "-"},
	{"a card", "2026-01-15T10:00:00Z", "the card's spending limit is reached", "-"},
	{"a window of context", "2026-01-15T10:00:00Z", "input exceeds the limit of the model's window", "-"},
	{"a hostname", "2026-01-15T10:00:00Z", "host rates.example.com is not reachable", "-"},
	{"an argument", "2026-01-15T10:00:00Z", "unknown flag: --limit", "-"},
	{"a wrong password", "2026-01-15T10:00:00Z", "authentication failed for the proxy", "-"},
	{"a reset of settings", "2026-01-15T10:00:00Z", "settings reset at 4:00 AM failed", "-"},
	{"prorated", "2026-01-15T10:00:00Z", "prorated limits do not apply", "-"},
	{"too many, and requests later", "2026-01-15T10:00:00Z", "too many open pull requests", "-"},
	{"a merge", "2026-01-15T10:00:00Z", "merge conflict in README.md", "-"},
	{"a compile error", "2026-01-15T10:00:00Z", "main.go:42:9: undefined: limit", "-"},
	{"a syntax error", "2026-01-15T10:00:00Z", "SyntaxError: unexpected token in JSON at position 12", "-"},
	{"out of disk", "2026-01-15T10:00:00Z", "no space left on device", "-"},
	{"a broken pipe", "2026-01-15T10:00:00Z", "write |1: broken pipe", "-"},
	{"a killed process", "2026-01-15T10:00:00Z", "signal: killed", "-"},
	{"a lock that timed out", "2026-01-15T10:00:00Z", "could not lock config file, try again in a moment", "-"},
	{"a payment", "2026-01-15T10:00:00Z", "402 Payment Required", "-"},
	{"an unknown model", "2026-01-15T10:00:00Z", "model not found: gpt-9", "-"},
}

func TestPlanReadsMessages(t *testing.T) {
	none := 0
	for _, c := range messages {
		if c.due == "-" {
			none++
		}
	}
	if len(messages) < 120 || 3*none < len(messages) {
		t.Errorf("%d messages, of which %d are no limit", len(messages), none)
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
			got := Plan(now, Counts{}, Evidence{Words: c.message}, 0)
			if !got.At.Equal(want.At) || got.Source != want.Source || got.RateLimited != want.RateLimited || !got.ParsedResetAt.Equal(want.ParsedResetAt) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if counted := (Counts{Retries: 1}); !got.RateLimited && got.Counts != counted {
				t.Errorf("counted as %+v", got.Counts)
			}
			if counted := (Counts{Limits: 1, LimitedSince: now}); got.RateLimited && got.Counts != counted {
				t.Errorf("counted as %+v", got.Counts)
			}
		})
	}
}

// Data goes before words, and is believed for longer.
func TestEvidenceAsData(t *testing.T) {
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		evidence Evidence
		due      time.Duration // 0: none is parsed
		limited  bool
	}{
		{"a status of 429", Evidence{Limited: true}, 0, true},
		{"a status of 429, and words that say until when", Evidence{Limited: true, Words: "429, try again in 5 minutes"}, 5 * time.Minute, true},
		{"a wait without any word", Evidence{After: time.Hour}, time.Hour, true},
		{"a wait goes before words", Evidence{After: time.Hour, Words: "rate limit, try again in 5 minutes"}, time.Hour, true},
		{"35 days", Evidence{After: farthestData}, farthestData, true},
		{"more than that", Evidence{After: farthestData + 1}, 0, true},
		{"more than that, and words", Evidence{After: farthestData + 1, Words: "rate limit, try again in 5 minutes"}, 5 * time.Minute, true},
		{"a time of day of the machine's zone", Evidence{Words: "session limit, resets at 3pm", Zone: berlin}, 4 * time.Hour, true},
		{"a date of the machine's zone", Evidence{Words: "session limit, resets Jan 16, 3pm", Zone: berlin}, 28 * time.Hour, true},
		{"a zone that is named goes before it", Evidence{Words: "session limit, resets at 3pm UTC", Zone: berlin}, 5 * time.Hour, true},
		{"nothing", Evidence{}, 0, false},
	} {
		got := Plan(now, Counts{}, c.evidence, 0)
		want := now.Add(2 * time.Minute)
		if c.due > 0 {
			want = now.Add(c.due + margin)
		}
		if got.RateLimited != c.limited || !got.At.Equal(want) || (got.Source == domain.RetrySourceRateLimitParsed) != (c.due > 0) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// A limit is no failure: it is counted by itself, and ends a run by its own bounds.
func TestLimitsAreCountedByThemselves(t *testing.T) {
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	since := now.Add(-time.Hour)
	limit, crash := Evidence{Limited: true}, Evidence{Words: "crash"}
	for _, c := range []struct {
		name     string
		before   Counts
		evidence Evidence
		want     Counts
		giveUp   bool
	}{
		{"the first limit", Counts{Retries: 2}, limit, Counts{2, 1, now}, false},
		{"the next one", Counts{2, 1, since}, limit, Counts{2, 2, since}, false},
		{"after the last retry", Counts{MaxRetries, 1, since}, limit, Counts{MaxRetries, 2, since}, false},
		{"the 39th", Counts{0, 38, since}, limit, Counts{0, 39, since}, false},
		{"the 40th", Counts{0, 39, since}, limit, Counts{0, 40, since}, true},
		{"just below 35 days", Counts{0, 3, now.Add(time.Second - longestLimiting)}, limit, Counts{0, 4, now.Add(time.Second - longestLimiting)}, false},
		{"35 days", Counts{0, 3, now.Add(-longestLimiting)}, limit, Counts{0, 4, now.Add(-longestLimiting)}, true},
		{"a failure ends the row", Counts{1, 30, since}, crash, Counts{Retries: 2}, false},
		{"the last failure", Counts{MaxRetries, 30, since}, crash, Counts{Retries: MaxRetries}, true},
	} {
		if got := Plan(now, c.before, c.evidence, 0); got.Counts != c.want || got.GiveUp != c.giveUp {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	for limits, base := range []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour, 2 * time.Hour, 2 * time.Hour} {
		if got := Plan(now, Counts{Limits: limits, LimitedSince: since}, limit, 0); got.At.Sub(now) != base {
			t.Errorf("after %d limits that say no end it waits %s", limits, got.At.Sub(now))
		}
	}
}

func TestBackoffGrowsAndGivesUp(t *testing.T) { // C80, C81
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	for count, base := range []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		for _, jitter := range []float64{0, 0.5, 0.999999, 1, 7, -1, math.NaN(), math.Inf(1)} {
			got := Plan(now, Counts{Retries: count}, Evidence{Words: "crash"}, jitter)
			if wait := got.At.Sub(now); got.GiveUp || wait < base || wait >= base+base/4 {
				t.Errorf("retry %d, jitter %v: waits %s", count, jitter, wait)
			}
		}
	}
	if got := Plan(now, Counts{Retries: 4}, Evidence{Words: "crash"}, 0.5); !got.GiveUp || !got.At.IsZero() {
		t.Errorf("fifth failure: %+v", got)
	}
}

func FuzzPlan(f *testing.F) {
	for i, c := range messages {
		f.Add(int64(1_768_471_200+i*3601), i%5, i%41, c.message, float64(i)/70)
	}
	f.Fuzz(func(t *testing.T, unix int64, retries, limits int, words string, jitter float64) {
		now := time.Unix(unix%(1<<34), 0)
		got := Plan(now, Counts{Retries: retries, Limits: min(limits, MaxLimits)}, Evidence{Words: words}, jitter)
		switch {
		case !got.RateLimited && got.GiveUp != (retries >= MaxRetries):
			t.Fatalf("gives up: %t after %d retries", got.GiveUp, retries)
		case got.RateLimited && got.GiveUp != (limits+1 >= MaxLimits):
			t.Fatalf("gives up: %t after %d limits", got.GiveUp, limits)
		case got.GiveUp:
		case !got.At.After(now), got.At.After(now.Add(farthest + margin)):
			t.Fatalf("%q at %s: due %s", words, now, got.At)
		case (got.Source == domain.RetrySourceRateLimitParsed) == got.ParsedResetAt.IsZero():
			t.Fatalf("%q: %+v", words, got)
		}
	})
}
