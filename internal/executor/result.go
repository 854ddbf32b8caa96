//go:build unix

package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// maxResultDepth bounds the nesting of a result object, so that every store and reader can take it.
const maxResultDepth = 64

// parseResult reads a line as the result object of SPEC S7.5: a JSON object with at least one of summary, result,
// message, error, next_action, usage and actions in its right form. An object with a level or a severity is a log
// record that happened to come last. It is not taken for a result, because that would turn a crash into a success.
func parseResult(line []byte) (map[string]any, bool) {
	line = domain.Bare(line)
	if len(line) == 0 || line[0] != '{' {
		return nil, false
	}
	object, ok := decodeObject(line)
	return object, ok && isResult(object)
}

func isResult(object map[string]any) bool {
	if object["level"] != nil || object["severity"] != nil {
		return false
	}
	_, hasUsage := object["usage"].(map[string]any)
	return hasUsage || hasOutcome(object) || domain.ReportedError(object) != ""
}

// longestInteger is how many characters an integer of a result may have to keep all its digits; longer ones are rounded.
const longestInteger = 40

// decodeObject reads exactly one JSON object, not too deep and with numbers that can be stored. Words that some programs write
// for numbers which JSON does not have, such as NaN, are read as texts.
func decodeObject(line []byte) (map[string]any, bool) {
	object, err := decodeStrict(line)
	if errors.Is(err, errNoJSON) {
		if quoted, changed := quoteNonNumbers(line); changed {
			object, err = decodeStrict(quoted)
		}
	}
	return object, err == nil
}

var (
	errNoJSON  = errors.New("it is no JSON object")
	errTooDeep = fmt.Errorf("it is nested more than %d levels deep", maxResultDepth)
)

func decodeStrict(line []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var object map[string]any
	if decoder.Decode(&object) != nil || object == nil {
		return nil, errNoJSON
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoJSON
	}
	if tooDeep(object, maxResultDepth) {
		return nil, errTooDeep
	}
	settleNumbers(object)
	return object, nil
}

// nonNumber is a word for a number that JSON does not have, where a value may stand.
var nonNumber = regexp.MustCompile(`^-?(NaN|Infinity|inf|nan)\b`)

// quoteNonNumbers makes texts of such words outside of texts.
func quoteNonNumbers(line []byte) (quoted []byte, changed bool) {
	inText := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inText && c == '\\' && i+1 < len(line):
			quoted = append(quoted, c)
			i++
		case c == '"':
			inText = !inText
		case !inText && strings.IndexByte("-NIin", c) >= 0:
			if word := nonNumber.Find(line[i:]); word != nil {
				quoted = append(append(append(quoted, '"'), word...), '"')
				i += len(word) - 1
				changed = true
				continue
			}
		}
		quoted = append(quoted, line[i])
	}
	return quoted, changed
}

// settleNumbers leaves integers as they were written, since ids lose digits in a float64, makes the rest float64, and a text of a
// number that is out of range, in place.
func settleNumbers(v any) {
	settled := func(member any) any {
		n, ok := member.(json.Number)
		if !ok {
			settleNumbers(member)
			return member
		}
		if len(n) <= longestInteger && !strings.ContainsAny(string(n), ".eE") {
			return n
		}
		f, err := n.Float64()
		if err != nil {
			return string(n)
		}
		return f
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = settled(member)
		}
	case []any:
		for i, member := range v {
			v[i] = settled(member)
		}
	}
}

// hasOutcome reports whether a result says what was achieved: only then does it win over the exit code.
func hasOutcome(object map[string]any) bool {
	for _, name := range []string{"summary", "message", "next_action"} {
		if text, ok := object[name].(string); ok && text != "" {
			return true
		}
	}
	_, hasActions := object["actions"].([]any)
	return hasActions || object["result"] != nil
}

func firstText(values ...any) string {
	for _, v := range values {
		if text, ok := v.(string); ok && text != "" {
			return text
		}
	}
	return ""
}

func compactJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// usageOf is what a result object says of the attempt's use; nil when it says nothing.
func usageOf(object map[string]any, mask func(string) string) *Usage {
	return domain.ResultUsage(object).Masked(mask)
}

func tooDeep(v any, left int) bool {
	if left == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if tooDeep(member, left-1) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if tooDeep(element, left-1) {
				return true
			}
		}
	}
	return false
}

// resultMembers are those of which a result object has at least one.
var resultMembers = []string{"summary", "result", "message", "error", "next_action", "usage", "actions"}

// beginsResult reports whether the beginning of a line is that of a result object: one of its own members is named in it.
func beginsResult(start []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(start))
	depth, name := 0, true // within the object, names and values take turns
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth, name = depth+1, true
			continue
		case json.Delim('}'), json.Delim(']'):
			if depth--; depth == 0 {
				return false
			}
			name = true
			continue
		}
		if depth != 1 {
			continue
		}
		text, _ := token.(string)
		switch {
		case name && slices.Contains(resultMembers, text):
			return true
		case name && (text == "level" || text == "severity"): // a log record
			return false
		}
		name = !name
	}
}
