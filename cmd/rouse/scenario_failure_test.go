package main

import (
	"fmt"
	"strings"
	"time"
)

// failure is a failed run that waits for its retry, or gave up.
type failure struct {
	Status           string
	RetryCount       int
	ScheduledRetryAt *time.Time
	Attempts         []struct{ FinishedAt *time.Time }
	Error            *struct {
		Code             string
		RateLimitResetAt *time.Time
	}
	Task           *struct{ Checkout *struct{ Since string } }
	WakeupRequests struct {
		Edges []struct {
			Node struct {
				ID, Status  string
				RetrySource *string
			}
		}
	}
}

// delay is how long after its last attempt the run is tried again, both by the database's clock.
func (f failure) delay() time.Duration {
	return f.ScheduledRetryAt.Sub(*f.Attempts[len(f.Attempts)-1].FinishedAt)
}

// failed waits until a run has failed n times, or ended; 0 is a rate limit, which is no failure.
func (o office) failed(run string, n int) (f failure) {
	o.t.Helper()
	eventually(o.t, fmt.Sprintf("failure %d", n), patience, func() bool {
		var out struct{ Run failure }
		o.request(`query($id: ID!) { run(id: $id) { status retryCount scheduledRetryAt attempts { finishedAt } error { code rateLimitResetAt }
			task { checkout { since } } wakeupRequests { edges { node { id status retrySource } } } } }`, map[string]any{"id": run}, &out)
		f = out.Run
		return f.Status == "FAILED" || f.Status == "CANCELLED" || f.Status == "QUEUED" && f.RetryCount == n && (n > 0 || f.Error != nil)
	})
	return f
}

// fails is an agent whose command says something on standard error and fails.
func (o office) fails(name, words string) string {
	o.t.Helper()
	return o.script(name, "cat >/dev/null; echo '"+words+"' >&2; exit 1")
}

// S17. Only the form of the words matters, so "4:00 AM" is whatever instant comes next by that clock.
func rateLimit(o office) {
	for words, want := range map[string]time.Duration{
		"rate_limit_error: resets at 4:00 AM UTC": 0,
		"429 rate limit, Retry-After: 3600":       time.Hour + 30*time.Second,
		"rate limit, try again in 5 minutes":      5*time.Minute + 30*time.Second,
	} {
		f := o.failed(o.wake(o.fails(words, words)), 0)
		switch at, got := f.ScheduledRetryAt.UTC(), f.delay(); {
		case f.Error == nil || f.Error.Code != "RATE_LIMITED" || f.Error.RateLimitResetAt == nil:
			o.t.Errorf("%s: %+v", words, f.Error)
		case want == 0 && (at.Format("15:04:05") != "04:00:30" || got <= 0 || got > 24*time.Hour+30*time.Second):
			o.t.Errorf("%s: tried again at %s", words, at)
		case want != 0 && (got-want).Abs() > time.Millisecond:
			o.t.Errorf("%s: tried again after %s, want %s", words, got, want)
		}
		if source := f.WakeupRequests.Edges[0].Node.RetrySource; source == nil || *source != "RATE_LIMIT_PARSED" {
			o.t.Errorf("%s: the backoff table was asked: %+v", words, f.WakeupRequests)
		}
	}
	o.wantLog("retry scheduled", "retry_source=rate_limit_parsed", "parsed_reset_at=", "workspace_id="+o.workspace)
}

// S18. A person's wake makes each retry due at once and leaves the count as it is (SPEC S3.7). The delays have up to a
// quarter of jitter (SPEC S8.1).
func backoff(o office) {
	coordinator := o.coordinator("lead")
	agent := o.fails("unlucky", "read tcp 10.0.0.1:443: i/o timeout")
	run := o.wake(agent)
	for i, base := range []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		f := o.failed(run, i+1)
		if got := f.delay(); got < base || got > base+base/4+time.Millisecond {
			o.t.Errorf("failure %d is tried again after %s, want %s and up to a quarter", i+1, got, base)
		}
		if source := f.WakeupRequests.Edges[0].Node.RetrySource; source == nil || *source != "BACKOFF" {
			o.t.Errorf("failure %d: %+v", i+1, f.WakeupRequests)
		}
		if merged := o.wake(agent); merged != run {
			o.t.Fatalf("the wake went to run %s, want %s", merged, run)
		}
	}
	view := o.end(run)
	if view.Status != "FAILED" || view.attempts() != "FAILED FAILED FAILED FAILED FAILED" {
		o.t.Errorf("%+v", view)
	}
	o.wantEnd(o.failed(run, 5).WakeupRequests.Edges[0].Node.ID, "FAILED", "RETRIES_EXHAUSTED")
	o.wantWake(coordinator, 1, "AGENT_ERROR", "unlucky", "i/o timeout", run)
	var inbox struct {
		Workspace struct {
			Inbox struct {
				Edges []struct {
					Node struct{ Subject struct{ ID string } }
				}
			}
		}
	}
	o.request(`query($w: ID!) { workspace(id: $w) { inbox(filter: {kind: [AGENT_ERROR]}) { edges { node { subject { ... on Run { id } } } } } } }`,
		map[string]any{"w": o.workspace}, &inbox)
	if edges := inbox.Workspace.Inbox.Edges; len(edges) != 1 || edges[0].Node.Subject.ID != run {
		o.t.Errorf("the inbox has %+v", edges)
	}
}

// S20. A reassignment cancels the retry at once; a task that was cancelled cancels it when it comes due.
func cancelledRetries(o office) {
	a, b := o.worker("failing"), o.worker("successor")
	o.write(a+".fail", "")
	task, made := o.create(map[string]any{"title": "Hard", "assigneeId": a})
	o.wantActivity(task, "WAKEUP_RETRY_SCHEDULED")
	o.assignTo(task, b)
	o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "RETRY_STALE_ASSIGNEE")
	o.wantActivity(task, "WAKEUP_RETRY_CANCELLED")
	o.wantWake(b, 1, "TASK_ASSIGNED", "Hard")

	task, made = o.create(map[string]any{"title": "Given up", "assigneeId": a})
	o.wantActivity(task, "WAKEUP_RETRY_SCHEDULED")
	o.move(task, "CANCELLED")
	o.comment(task, "now", a) // somebody waits: the retry is due now
	o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "RETRY_TASK_CANCELLED")
	o.wantActivity(task, "WAKEUP_RETRY_CANCELLED")
	o.wantLog("wakeup_retry_cancelled", "wakeup_id="+made.WakeupRequests[0].ID, "reason=retry_task_cancelled")
	run := o.failed(o.wakeup(made.WakeupRequests[0].ID).Run.ID, 1)
	if run.Task.Checkout != nil {
		o.t.Errorf("the task is still locked: %+v", run.Task.Checkout)
	}
	launches := 0
	for _, woken := range o.woken(a) { // what the person wrote wakes the agent, too
		if woken[0] == "TASK_ASSIGNED" {
			launches++
		}
	}
	if launches != 2 {
		o.t.Errorf("%d launches, want one for each task", launches)
	}
}

// wantLog waits for a line of the program's log that has all of these words.
func (o office) wantLog(words ...string) {
	o.t.Helper()
	eventually(o.t, fmt.Sprintf("a line with %q in the log", words), patience, func() bool {
		for line := range strings.Lines(o.log.String()) {
			found := true
			for _, word := range words {
				found = found && strings.Contains(line, word)
			}
			if found {
				return true
			}
		}
		return false
	})
}
