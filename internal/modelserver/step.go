package modelserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Kind is what the model does in one answer.
type Kind string

// The kinds of a step, as the prompt writes them.
const (
	Say    Kind = "say"
	Tool   Kind = "tool"
	Status Kind = "status"
	Wait   Kind = "wait"
)

// Step is one answer of the model.
type Step struct {
	Kind       Kind
	Text       string          // of say and of a refusal
	Tool       string          // the tool's name
	Input      json.RawMessage // and what it is called with
	Code       int             // of a refusal
	RetryAfter string
	Headers    []string // name=value, of a refusal
}

// Steps are those that a prompt asks for, in their order.
func Steps(prompt string) (steps []Step) {
	for line := range strings.Lines(prompt) {
		_, rest, marked := strings.Cut(line, "@@")
		if !marked {
			continue
		}
		if step, ok := parseStep(strings.TrimSpace(rest)); ok {
			steps = append(steps, step)
		}
	}
	return steps
}

func parseStep(line string) (Step, bool) {
	kind, rest, _ := strings.Cut(line, " ")
	step := Step{Kind: Kind(kind)}
	switch step.Kind {
	case Say:
		step.Text = strings.ReplaceAll(rest, `\n`, "\n")
	case Tool:
		name, input, _ := strings.Cut(rest, " ")
		step.Tool, step.Input = name, json.RawMessage(input)
		if !json.Valid(step.Input) {
			step.Input = json.RawMessage("{}")
		}
	case Status:
		code, text, _ := strings.Cut(rest, " ")
		step.Code, _ = strconv.Atoi(code)
		for {
			word, after, _ := strings.Cut(text, " ")
			name, value, isHeader := strings.Cut(word, "=")
			if !isHeader {
				break
			}
			if text = after; name == "retry-after" {
				step.RetryAfter = value
			} else {
				step.Headers = append(step.Headers, word)
			}
		}
		step.Text = text
		return step, step.Code >= 400
	case Wait:
	default:
		return Step{}, false
	}
	return step, true
}

// maxBody bounds a request: programs send their instructions and the descriptions of all their tools each time.
const maxBody = 64 << 20

// readBody reads a request, which some programs compress.
func readBody(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return raw, nil
	case "gzip":
		unzip, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("read a request in gzip: %w", err)
		}
		return io.ReadAll(io.LimitReader(unzip, maxBody))
	default:
		return nil, fmt.Errorf("a request in the coding %q cannot be read", coding)
	}
}

// turns are the turns of a message, whose content is a text or a list of parts. What the model says is one turn. What the user says is
// one for each part, because programs put prompts together that no answer has followed.
func turns(model bool, content json.RawMessage) []turn {
	var text string
	if model || json.Unmarshal(content, &text) == nil {
		return []turn{{model, text}}
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return nil
	}
	var all []turn
	for _, p := range parts {
		all = append(all, turn{false, p.Text})
	}
	return all
}
