//go:build unix

package executor

import (
	"bytes"
	"regexp"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// resultIn is the result object in a model's last words, else the one on the last line that the agent said. What the model says
// of its use is left out: it does not know it, and its program tells it. A note says when the words hold actions that could not be
// read.
func (o *output) resultIn(words string) (map[string]any, bool) {
	object, ok := lastResult(words)
	if !ok {
		object, ok = parseResult(o.last)
	}
	o.noteLostActions(object, words)
	delete(object, "usage")
	delete(object, "total_cost_usd")
	return object, ok && isResult(object)
}

// noteLostActions says in the log that words hold actions, and that none of them is done, because they are in no result object.
func (o *output) noteLostActions(object map[string]any, words string) {
	if _, listed := object["actions"].([]any); listed || !strings.Contains(words, `"actions"`) {
		return
	}
	o.say(`the agent's last words hold "actions", of which none was done: they are in no JSON object that could be read. The last thing that an agent says is one JSON object with "summary" and "actions", a list.`)
}

// lastResult finds the last result object of SPEC S7.5 in a model's message: on one line or several, in a fence or not, with
// words before and behind. One that stands alone at the end may have any member of a result. One with words around it must say
// more than an object that the model merely quotes: it has a summary, a next action or a list of actions.
func lastResult(words string) (found map[string]any, ok bool) {
	text := []byte(words)
	for at, looked := 0, 0; looked <= mostLooked(len(text)); {
		brace := bytes.IndexByte(text[at:], '{')
		if brace < 0 {
			break
		}
		begin := at + brace
		length, whole := objectLen(text[begin:])
		looked += length
		at = begin + 1
		if !whole {
			continue
		}
		object, read := decodeObject(withoutLineBreaks(text[begin : begin+length]))
		if !read {
			continue
		}
		at = begin + length
		if isResult(object) && (stands(text[:begin], text[at:]) || saysMore(object)) {
			found, ok = object, true
		}
	}
	return found, ok
}

// mostLooked bounds how often the bytes of a message are looked at: a message of braces alone would be looked at from each.
func mostLooked(length int) int { return 16*length + 1<<10 }

// objectLen is the length of what begins like a JSON object, up to the brace that closes it. whole is false when none does.
func objectLen(text []byte) (length int, whole bool) {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(text), false
}

// withoutLineBreaks escapes the line breaks and tabs that models leave in texts, where JSON allows none.
func withoutLineBreaks(object []byte) []byte {
	if !bytes.ContainsAny(object, "\n\r\t") {
		return object
	}
	out, inText := make([]byte, 0, len(object)), false
	for i := 0; i < len(object); i++ {
		c := object[i]
		escaped := map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}[c]
		switch {
		case inText && c == '\\' && i+1 < len(object):
			out = append(out, c, object[i+1])
			i++
			continue
		case c == '"':
			inText = !inText
		case inText && escaped != "":
			out = append(out, escaped...)
			continue
		}
		out = append(out, c)
	}
	return out
}

var (
	fenceBefore = regexp.MustCompile("^(?:(?:```|~~~)[a-zA-Z0-9]*)?[ \t]*$")
	fenceBehind = regexp.MustCompile("^[\\s`~]*$")
)

// stands says whether an object stands alone at the end of a message: on lines of its own, with nothing behind it but the end of its
// fence.
func stands(before, behind []byte) bool {
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	return fenceBefore.Match(domain.Bare(before)) && fenceBehind.Match(domain.Bare(behind))
}

func saysMore(object map[string]any) bool {
	_, hasActions := object["actions"].([]any)
	return hasActions || firstText(object["summary"], object["next_action"]) != ""
}

// wordsWithin is the result object in the last words of a model that a program hands on as the text of its result, as
// `claude -p --output-format json` does; the program's own object when there is none, or when it reports an error.
func wordsWithin(object map[string]any) map[string]any {
	words, isText := object["result"].(string)
	if object["type"] != "result" || !isText || domain.ReportedError(object) != "" {
		return object
	}
	if inner, ok := lastResult(words); ok {
		return inner
	}
	return object
}
