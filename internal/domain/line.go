package domain

import (
	"strconv"
	"strings"
	"unicode"
)

// lineProblem is what is said of a name that is not one line of printable text.
const lineProblem = "is one line of printable text: leave out line breaks, control characters, and characters that change the direction of text"

// OneLine says whether a text is one line of printable text, as names and titles must be. A terminal then obeys no part
// of it, and shows every part in its order. Joiners are in it, since scripts and emoji need them.
func OneLine(text string) bool { return strings.IndexFunc(text, isUnprintable) < 0 }

// isUnprintable is true for control characters, line separators, characters that change the direction of text, and
// bytes that are not text. The joiners and variation selectors of scripts and emoji are printable.
func isUnprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == '\uFEFF'
}

// NotOneLine is the problem of a field whose text is not one line of printable text; nil when it is.
func NotOneLine(what, text string, field ...string) []FieldError {
	if OneLine(text) {
		return nil
	}
	return []FieldError{{Field: field, Code: UserErrorCodeInvalid, Message: what + " " + lineProblem}}
}

// onOneLine makes one line of printable text of any text, with a blank where something else stood.
func onOneLine(text string) string {
	return strings.TrimSpace(strings.Join(strings.FieldsFunc(text, isUnprintable), " "))
}

// Escaped makes a text safe for a terminal. What is not printable is written as in a Go string; line breaks may be
// kept. Rows may hold names from before they were held to one line, and others' programs say anything.
func Escaped(text string, keepLines bool) string {
	var out strings.Builder
	for _, r := range text {
		if !isUnprintable(r) || keepLines && r == '\n' {
			out.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return out.String()
}

// CheckName trims a record's name and adds what is wrong with it to problems.
func CheckName(name string, problems []FieldError) (string, []FieldError) {
	return checkLine(name, "name", "a name", "give it a name", maxName, problems)
}

// ChangedName is a record's name after a change, and what is wrong with it. A name that the change leaves as it is may
// be older than the rules. It must not stop the rest of the change.
func ChangedName(old string, change Change[string]) (string, []FieldError) {
	name := change.Or(old, "")
	if name == old {
		return old, nil
	}
	return CheckName(name, nil)
}

func checkTitle(title string, problems []FieldError) (string, []FieldError) {
	return checkLine(title, "title", "a title", "give the task a title", MaxTaskTitle, problems)
}

// checkLine trims a name or title and adds what is wrong with it to problems.
func checkLine(text, field, what, give string, longest int, problems []FieldError) (string, []FieldError) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		problems = append(problems, FieldError{Field: []string{field}, Code: UserErrorCodeRequired, Message: give})
	case len([]rune(text)) > longest:
		problems = append(problems, FieldError{Field: []string{field}, Code: UserErrorCodeTooLong, Message: what + " has at most " + strconv.Itoa(longest) + " characters"})
	}
	return text, append(problems, NotOneLine(what, text, field)...)
}

// withoutField leaves out the problems of a field.
func withoutField(problems []FieldError, field string) (left []FieldError) {
	for _, p := range problems {
		if len(p.Field) != 1 || p.Field[0] != field {
			left = append(left, p)
		}
	}
	return left
}
