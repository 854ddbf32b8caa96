package summary

import (
	"slices"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// headroom is how much of a text is looked at, so that a very long one costs no more than a long one.
const headroom = 16 << 10

func clean(s string) string { return domain.StorableText(domain.CutText(s, headroom, "")) }

// oneLine is a text without line breaks and runs of spaces, so that it cannot look like a section.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

// fewLines is the first lines of a text that are not blank, none of which looks like a title.
func fewLines(s string) string {
	var out []string
	for line := range strings.SplitSeq(clean(s), "\n") {
		line = strings.TrimLeft(strings.Join(strings.Fields(line), " "), "# ")
		if line != "" {
			out = append(out, line)
		}
		if len(out) == maxLines {
			break
		}
	}
	return cut(strings.Join(out, "\n"), maxFocus)
}

func cut(s string, limit int) string { return domain.CutText(s, limit, " […]") }

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// newestFirst sorts decisions that say something; equal instants by their text, so that the order of the input does not matter.
func newestFirst(list []Decision) []Decision {
	var out []Decision
	for _, d := range list {
		if strings.TrimSpace(d.Text) != "" {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b Decision) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text)
	})
	return out
}
