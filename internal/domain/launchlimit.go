package domain

import (
	"fmt"
	"strings"
	"time"
)

// Defaults and bounds of the brake on loops: how many unattended launches an agent may have, in which time.
const (
	DefaultLaunchLimit  = 60
	DefaultLaunchWindow = time.Hour
	maxLaunchLimit      = 100_000
	minLaunchWindow     = time.Second
	maxLaunchWindow     = 7 * 24 * time.Hour
)

// LaunchLimit is how many unattended launches an agent may have in a window.
type LaunchLimit struct {
	Count int
	Per   time.Duration
}

// problems says what is wrong with the limit.
func (l LaunchLimit) problems() (problems []FieldError) {
	if l.Count < 1 || l.Count > maxLaunchLimit {
		problems = append(problems, FieldError{Field: []string{"launchLimit", "count"}, Code: UserErrorCodeOutOfRange,
			Message: "a launch limit is 1 to 100000 launches; null means none; to hold an agent, pause it"})
	}
	if l.Per < minLaunchWindow || l.Per > maxLaunchWindow {
		problems = append(problems, FieldError{Field: []string{"launchLimit", "per"}, Code: UserErrorCodeOutOfRange,
			Message: "the window of a launch limit is PT1S to PT168H"})
	}
	return problems
}

// OrNone is the limit, nil for one of 0 launches, which is none.
func (l LaunchLimit) OrNone() *LaunchLimit {
	if l.Count == 0 {
		return nil
	}
	return &l
}

// LaunchWindow is what an agent's limit leaves of its current window. A window begins with the first unattended launch after the
// last one was over.
type LaunchWindow struct {
	Limit    *LaunchLimit // nil: none
	Since    time.Time    // when the window began; zero: none has
	Launches int          // unattended ones since
}

// At is the window as it is at an instant: one that is over has no launches.
func (w LaunchWindow) At(now time.Time) LaunchWindow {
	if w.Limit != nil && (w.Since.IsZero() || !now.Before(w.Since.Add(w.Limit.Per))) {
		w.Since, w.Launches = time.Time{}, 0
	}
	return w
}

// Full says whether one more unattended launch is one too many, and until when. w is of now.
func (w LaunchWindow) Full() (until time.Time, full bool) {
	if w.Limit == nil || w.Launches < w.Limit.Count {
		return time.Time{}, false
	}
	return w.Since.Add(w.Limit.Per), true
}

// Launch counts an unattended launch at now.
func (w LaunchWindow) Launch(now time.Time) LaunchWindow {
	if w.Since.IsZero() {
		w.Since = now
	}
	w.Launches++
	return w
}

// Unattended says of a wake that neither a person nor a schedule asked for it: a run caused it, or a webhook did.
func Unattended(hops int, webhook bool) bool { return hops > 0 || webhook }

// LaunchLoop is what an agent was launched by most of the unattended launches of a window that is full.
type LaunchLoop struct {
	Source      WakeupSource
	Routine     string // of the routine that fired, by a webhook; "": none
	Own         bool   // earlier runs of the agent itself had caused these
	Times       int    // of this pattern; 0: none was found
	Span        time.Duration
	Limit       LaunchLimit
	Until       time.Time
	CausationID string // of the newest run
}

// loopCauses say what launches an agent, for people.
var loopCauses = map[WakeupSource]string{
	WakeupSourceComment: "comments", WakeupSourceAgentError: "other agents' failures", WakeupSourceSelf: "its own wish", WakeupSourceUser: "mentions",
	WakeupSourceTaskAssigned: "assignments", WakeupSourceTaskBlockersResolved: "ends of blockers", WakeupSourceTaskChildrenCompleted: "ends of subtasks",
	WakeupSourceApprovalResolved: "answers to its questions", WakeupSourceBudgetAlert: "alerts of budgets", WakeupSourceRoutine: "a webhook",
}

// Text is the title and the body of the inbox item about a loop. {agent} stands for the agent's name.
func (l LaunchLoop) Text() (title, body string) {
	cause := loopCauses[l.Source]
	if l.Routine != "" {
		cause = fmt.Sprintf("webhook `%s`", l.Routine)
	}
	verb := "was woken"
	if l.Own || l.Source == WakeupSourceSelf {
		verb = "woke itself"
	}
	title = fmt.Sprintf("`{agent}` %s by %s %d times in %s", verb, cause, l.Times, inWords(l.Span))
	if l.Times == 0 {
		title = "`{agent}` was launched as often as it may be"
	}
	body = fmt.Sprintf("The agent's launchLimit is %d launches in %s that neither a person nor a schedule asked for. Further ones wait (LOOP_BREAKER) until %s. "+
		"If that is no loop, let one go on with retryRun, or raise the limit (updateAgent). If it is one, change what wakes the agent, or hold it (pauseAgent). "+
		"trace(causationId: %q) shows the newest chain.", l.Limit.Count, inWords(l.Limit.Per), l.Until.UTC().Format(time.RFC3339), l.CausationID)
	return title, body
}

// inWords is a length of time for people: its largest units that are whole, "8 min" or "1 h 30 min".
func inWords(d time.Duration) string {
	d = d.Round(time.Second)
	units := []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	var parts []string
	for _, u := range units {
		if n := d / u.length; n > 0 && len(parts) < 2 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			d -= n * u.length
		}
	}
	if len(parts) == 0 {
		return "less than a second"
	}
	return strings.Join(parts, " ")
}
