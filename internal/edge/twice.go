package edge

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// twiceError says that an object of a request has two members of one name. Which of them counts is for each reader to choose: a proxy
// in front may have checked the other one.
type twiceError struct{ name string }

// Error names the member where it is one of a request's own: other names are what the caller sent.
func (e *twiceError) Error() string {
	switch e.name {
	case "query", "operationName", "variables", "extensions", "id", "type", "payload":
		return `a JSON object of the request has the member "` + e.name + `" twice: send it once`
	}
	return "a JSON object of the request has a member twice: send each once"
}

// level is an object or a list that is being read.
type level struct {
	object bool
	name   bool            // of an object: the next text is a name
	few    []string        // the names of an object so far
	many   map[string]bool // all of them, once they are more than fewNames
}

// fewNames is how many names are looked through one by one, which is quicker for the objects that requests have.
const fewNames = 16

// checkTwice looks for a member that an object of a JSON text has twice, however deep; nil when there is none. A text that is not
// JSON is for its reader to refuse. Only names are looked at, because whoever reads the text has read, or will read, all else.
func checkTwice(text []byte) error {
	var open []level
	for i := 0; i < len(text); i++ {
		var at *level
		if len(open) > 0 {
			at = &open[len(open)-1]
		}
		switch text[i] {
		case '{':
			open = append(open, level{object: true, name: true})
		case '[':
			open = append(open, level{})
		case '}', ']':
			if at == nil {
				return nil
			}
			open = open[:len(open)-1]
		case ',':
			if at != nil {
				at.name = at.object
			}
		case '"':
			end := i + lengthOfText(text[i:])
			if at != nil && at.name {
				at.name = false
				if name, ok := nameIn(text[i:end]); !ok || at.has(name) {
					return twiceOrNone(name, ok)
				}
			}
			i = end - 1
		}
	}
	return nil
}

func twiceOrNone(name string, isName bool) error {
	if !isName {
		return nil
	}
	return &twiceError{name}
}

// lengthOfText is how many bytes a JSON string at the beginning takes, with its quotes; one that does not end takes all.
func lengthOfText(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(text)
}

// nameIn is the value of a JSON string; false: it is none.
func nameIn(quoted []byte) (name string, ok bool) {
	for _, c := range quoted {
		if c == '\\' || c >= utf8.RuneSelf || c < ' ' {
			return name, json.Unmarshal(quoted, &name) == nil
		}
	}
	if len(quoted) < 2 || quoted[len(quoted)-1] != '"' {
		return "", false
	}
	return string(quoted[1 : len(quoted)-1]), true
}

// has says whether the object has the name already, and takes note of it.
func (l *level) has(name string) bool {
	if l.many != nil {
		there := l.many[name]
		l.many[name] = true
		return there
	}
	if slices.Contains(l.few, name) {
		return true
	}
	if l.few = append(l.few, name); len(l.few) > fewNames {
		l.many = make(map[string]bool, 2*fewNames)
		for _, n := range l.few {
			l.many[n] = true
		}
	}
	return false
}
