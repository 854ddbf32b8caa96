package prompt

import (
	"fmt"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// outcomes quote what others said at the end of their runs, in at most limit bytes together.
func outcomes(list []Outcome, limit int) string {
	var parts []string
	for _, o := range list {
		if room := limit/len(list) - headRoom; room >= headRoom {
			parts = append(parts, fmt.Sprintf("%s ended a run about it at %s and said:", o.who(), instant(o.At)), quote(o.Text, min(maxOutcome, room)))
		}
	}
	return lines(parts...)
}

func (o Outcome) who() string {
	who := orElse(named(o.Agent, o.AgentID), "An agent")
	if o.Part != "" {
		who += ", its " + oneLine(o.Part) + ","
	}
	return who
}

// ended lists tasks with what their work came to, which is quoted in at most limit bytes together.
func ended(tasks []TaskRef, limit int) string {
	told := 0
	for _, task := range tasks[:min(len(tasks), maxReferences)] {
		if task.Outcome != nil {
			told++
		}
	}
	return listed(tasks, func(task TaskRef) string {
		if task.Outcome == nil {
			return ""
		}
		room := limit/told - headRoom
		if room < headRoom {
			return ""
		}
		return lines(fmt.Sprintf("  %s said at the end:", task.Outcome.who()), quote(task.Outcome.Text, min(maxOutcome, room)))
	})
}

// firstSentence is the beginning of a text under its headings, on one line of at most maxAbout characters.
func firstSentence(text string) string {
	for line := range strings.Lines(clean(domain.CutText(text, 8*maxAbout, ""))) {
		heading := strings.HasPrefix(line, "#")
		line = strings.TrimSpace(strings.TrimLeft(blankControls(line), "-*> "))
		if line == "" || heading {
			continue
		}
		if end := strings.Index(line, ". "); end >= 0 {
			line = line[:end+1]
		}
		if short := []rune(line); len(short) > maxAbout {
			line = strings.TrimSpace(string(short[:maxAbout])) + "…"
		}
		return line
	}
	return ""
}
