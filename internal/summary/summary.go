// Package summary writes what an agent remembers between the fires of a routine (SPEC S9): a short text in four
// sections. The server makes it from stored facts; the agent never does. It is pure: the same input gives the same
// bytes, and whatever the input holds, the text is valid UTF-8 without NUL of at most MaxBytes.
package summary

import (
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Bounds, in bytes unless said otherwise. The sections' bounds add up to less than MaxBytes.
const (
	MaxBytes     = 8192
	maxFocus     = 1800
	maxLines     = 3  // of the focus
	maxBlockers  = 10 // shown
	maxBlocker   = 250
	maxNeed      = 60 // of the name of what a blocker waits for
	maxDecisions = 5  // shown
	maxDecision  = 500
	maxAction    = 500
)

// Input is everything a summary is made of. Texts may be of any size and content.
type Input struct {
	Previous   string     // the summary that this one replaces
	Focus      string     // what the run that ended well was about: the text of its result
	NextAction string     // result.next_action
	RunBefore  Fate       // how the routine's run before this one ended
	Stats      Stats      // of the workspace
	Blockers   []Blocker  // in the order to be shown
	Decisions  []Decision // in any order
}

// Fate is how a run ended.
type Fate string

// FateFailed is that of a run which gave up. The zero value is that of all others, and of none.
const FateFailed Fate = "FAILED"

// Stats are counts of the workspace: its open tasks and budget alerts now, and how runs of the last day ended.
type Stats struct {
	OpenTasks, FinishedRuns, FailedRuns, BudgetAlerts int
}

// Blocker is a task that cannot go on.
type Blocker struct {
	ID, Title string
	Needs     string    // what it waits for; "" when that is not known
	Since     time.Time // zero: not known
}

// Needs names the tasks that a blocker waits for, and how many more there are; "" when it waits for none.
func Needs(titles []string, more int) string {
	for i := range titles {
		titles[i] = cut(oneLine(titles[i]), maxNeed)
	}
	needs := strings.Join(titles, ", ")
	if more > 0 {
		needs += fmt.Sprintf(" and %d more", more)
	}
	return needs
}

// Decision is what one run came to.
type Decision struct {
	At   time.Time
	Text string
}

// The four sections, in their order.
const (
	focusTitle     = "## Active focus"
	blockersTitle  = "## Open blockers"
	decisionsTitle = "## Recent decisions"
	actionTitle    = "## Next action"
)

// Build writes the summary.
func Build(in Input) string {
	parts := []string{
		focusTitle + "\n" + focus(in),
		blockersTitle + "\n" + blockers(in.Blockers),
		decisionsTitle + "\n" + decisions(in.Decisions),
		actionTitle + "\n" + NextAction(in),
	}
	return domain.CutText(strings.Join(parts, "\n\n")+"\n", MaxBytes, "")
}

const (
	noFocus    = "Nothing in particular is being followed yet."
	statsStart = "The workspace: "
)

// focus is what the agent is about, in a few lines: what its run said, else what was known before, else that there is
// nothing; then the workspace in numbers, if there are any.
func focus(in Input) string {
	text := fewLines(in.Focus)
	if text == "" {
		text = fewLines(withoutStats(section(in.Previous, focusTitle)))
	}
	if text == "" {
		text = noFocus
	}
	if line := in.Stats.line(); line != "" {
		text += "\n" + line
	}
	return text
}

// line tells the counts that are not zero.
func (s Stats) line() string {
	var parts []string
	for _, c := range []struct {
		n         int
		one, more string
	}{
		{s.OpenTasks, "open task", "open tasks"}, {s.FinishedRuns, "run finished in the last day", "runs finished in the last day"},
		{s.FailedRuns, "run failed in the last day", "runs failed in the last day"}, {s.BudgetAlerts, "budget alert", "budget alerts"},
	} {
		switch {
		case c.n == 1:
			parts = append(parts, "1 "+c.one)
		case c.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.more))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return statsStart + strings.Join(parts, ", ") + "."
}

// withoutStats takes the numbers of an earlier day out of a focus.
func withoutStats(text string) string {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, statsStart) && line != noFocus {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// section is the body below a title of an earlier summary; "" when it is not there.
func section(text, title string) string {
	_, body, found := strings.Cut("\n"+text, "\n"+title+"\n")
	if !found {
		return ""
	}
	body, _, _ = strings.Cut("\n"+body, "\n## ")
	return strings.TrimSpace(body)
}

func blockers(list []Blocker) string {
	if len(list) == 0 {
		return "None."
	}
	var out []string
	for i, b := range list {
		if i == maxBlockers {
			out = append(out, fmt.Sprintf("- and %d more", len(list)-i))
			break
		}
		line := fmt.Sprintf("%s (%s)", oneLine(b.Title), oneLine(b.ID))
		if b.Needs != "" {
			line += ": needs " + oneLine(b.Needs)
		}
		if !b.Since.IsZero() {
			line += ", since " + day(b.Since)
		}
		out = append(out, "- "+cut(line, maxBlocker))
	}
	return strings.Join(out, "\n")
}

// decisions are the newest five, newest first (C106).
func decisions(list []Decision) string {
	sorted := newestFirst(list)
	var out []string
	for _, d := range sorted[:min(len(sorted), maxDecisions)] {
		out = append(out, "- "+day(d.At)+": "+cut(oneLine(d.Text), maxDecision))
	}
	if len(out) == 0 {
		return "None recorded."
	}
	return strings.Join(out, "\n")
}

// NextAction is the one thing to do on the next wake-up (C104, C105): what the run itself said, else what is most urgent.
func NextAction(in Input) string {
	if said := cut(strings.TrimLeft(oneLine(in.NextAction), "# "), maxAction); said != "" { // never a title
		return said
	}
	switch {
	case len(in.Blockers) > 0:
		return "Resolve open blockers before new work is started."
	case in.RunBefore == FateFailed:
		return "Investigate the previous run failure and see that its work is done."
	case in.Stats.FailedRuns > 0:
		return "Triage recent failed runs and decide which to try again."
	case in.Stats.OpenTasks > 0:
		return "Review the open task queue and see that each task moves."
	}
	return "Continue monitoring."
}
