package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
	names map[string]bool // of an object so far; nil: a list
	value bool            // of an object: a value comes next
}

// checkTwice looks for a member that an object of a JSON text has twice, however deep; nil when there is none. A text that is not
// JSON is for its reader to refuse.
func checkTwice(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) || err != nil {
			return nil
		}
		if twice := descend(&open, token); twice != nil {
			return twice
		}
	}
}

// descend notes a token.
func descend(open *[]level, token json.Token) error {
	var at *level
	if n := len(*open); n > 0 {
		at = &(*open)[n-1]
	}
	switch token {
	case json.Delim('}'), json.Delim(']'):
		*open = (*open)[:len(*open)-1]
		return nil
	}
	if at != nil && at.names != nil {
		if at.value = !at.value; at.value { // it is a name
			name, _ := token.(string)
			if at.names[name] {
				return &twiceError{name}
			}
			at.names[name] = true
			return nil
		}
	}
	switch token {
	case json.Delim('{'):
		*open = append(*open, level{names: map[string]bool{}})
	case json.Delim('['):
		*open = append(*open, level{})
	}
	return nil
}
