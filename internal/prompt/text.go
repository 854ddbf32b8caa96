package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"rouse.dev/rouse/internal/domain"
)

var cleaner = strings.NewReplacer("\x00", "\uFFFD", "\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// clean makes text storable and readable: valid UTF-8, no NUL, \n for everything that may be shown as a new line.
func clean(s string) string {
	return strings.TrimSpace(cleaner.Replace(strings.ToValidUTF8(s, "\uFFFD")))
}

// oneLine makes a name or title that cannot start a line of its own.
func oneLine(s string) string {
	return bounded(s, maxName, func(s string) string { return blankControls(clean(s)) })
}

// blankControls puts a blank for each control character, line breaks among them.
func blankControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// bounded shapes s into at most limit bytes. Of a huge text only the start is shaped, so its size costs nothing.
func bounded(s string, limit int, shape func(string) string) string {
	start := domain.CutText(s, 2*limit, "")
	shaped := shape(start)
	if len(start) == len(s) {
		return cut(shaped, limit)
	}
	return marked(shaped, limit, len(s))
}

// cut shortens s to at most limit bytes at a rune boundary and says how long it was.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return marked(s, limit, len(s))
}

// cutMark is how a text that was cut says so.
const cutMark = " [… cut, "

func marked(s string, limit, length int) string {
	mark := fmt.Sprintf(cutMark+"%d bytes long]", length)
	return domain.CutText(s, limit-len(mark), "") + mark
}

// quote marks every line of a text that others wrote, so that it cannot pass for a section of the prompt.
func quote(s string, limit int) string {
	return bounded(s, limit, func(s string) string {
		if s = clean(s); s == "" {
			return ""
		}
		return "> " + strings.ReplaceAll(s, "\n", "\n> ")
	})
}

// object shows free-form details as JSON, whose members come sorted. It stays as it is written: < is no \u003c.
func object(v any, limit int) string {
	var raw strings.Builder
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "> (details that cannot be shown)"
	}
	return quote(raw.String(), limit)
}

// both quotes two texts in limit bytes together: one takes what the other leaves of its half.
func both(limit int, a, b func(limit int) string) (string, string) {
	first := a(limit - len(b(limit/2)))
	return first, b(limit - len(first))
}

func quoted(s string) func(int) string { return func(limit int) string { return quote(s, limit) } }

// objectOf shows details, should there be any.
func objectOf(some bool, v any) func(int) string {
	if !some {
		return quoted("")
	}
	return func(limit int) string { return object(v, limit) }
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// named is "name (id)", or the id alone.
func named(name, id string) string {
	name, id = oneLine(name), oneLine(id)
	switch {
	case name == "":
		return id
	case id == "":
		return name
	}
	return fmt.Sprintf("%s (%s)", name, id)
}
