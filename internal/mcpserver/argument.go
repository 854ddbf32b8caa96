package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kind is what an argument is in JSON.
type kind string

const (
	text   kind = "string"
	truth  kind = "boolean"
	number kind = "number"
	ids    kind = "array" // of texts
	object kind = "object"
)

// argument is one that a tool takes. Its schema has no more than what every model's interface knows: one type, a description, a list
// of values.
type argument struct {
	name        string
	kind        kind
	description string
	required    bool
	values      []string // the only ones; nil: any
	of          *idKind  // it names records of this kind; nil: it names none
}

// idKind is a kind of record that models name by its id.
type idKind struct {
	name, prefix string
	where        string // a model finds the ids
}

var (
	agentID    = &idKind{"an agent", "agt", "list_agents has the ids of your colleagues"}
	taskID     = &idKind{"a task", "tsk", "list_children has the ids of your task's children, and get_task those of its parent and its blockers"}
	approvalID = &idKind{"an approval", "apr", "get_task has the ids of a task's approvals"}
)

// idLength is the length of an id behind its prefix and the underscore.
const idLength = 26

// problem says that a text is no id of the kind.
func (k *idKind) problem(name, id string) []string {
	body, is := strings.CutPrefix(id, k.prefix+"_")
	if is && len(body) == idLength && strings.Trim(body, "0123456789abcdefghijklmnopqrstuvwxyz") == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s has %.80q, which is no id of %s (%s)", name, id, k.name, k.where)}
}

// schemaOf is the JSON Schema of a tool's arguments.
func schemaOf(list []argument) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, a := range list {
		p := map[string]any{"type": string(a.kind), "description": a.description}
		if a.kind == ids {
			p["items"] = map[string]any{"type": string(text)}
		}
		if a.values != nil {
			p["enum"] = a.values
		}
		properties[a.name] = p
		if a.required {
			required = append(required, a.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// arguments are those of one call, checked.
type arguments map[string]any

func (a arguments) text(name string) string { s, _ := a[name].(string); return s }
func (a arguments) truth(name string) bool  { b, _ := a[name].(bool); return b }

func (a arguments) list(name string) []string {
	out := []string{}
	items, _ := a[name].([]any)
	for _, item := range items {
		out = append(out, item.(string)) // checked
	}
	return out
}

// read takes the arguments of a call. Its error names all that is wrong with them, and what the tool takes.
func (t tool) read(raw json.RawMessage) (arguments, error) {
	given := arguments{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, errors.New("its arguments are no JSON object. " + t.takes())
		}
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(t.arguments, func(a argument) bool { return a.name == name })
		switch {
		case i < 0:
			problems = append(problems, fmt.Sprintf("there is no argument %q", name))
		case given[name] == nil: // as if it were left out
			delete(given, name)
		default:
			problems = append(problems, t.arguments[i].check(given[name])...)
		}
	}
	for _, a := range t.arguments {
		if _, is := given[a.name]; a.required && (!is || given[a.name] == "") {
			problems = append(problems, a.name+" is missing")
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s; nothing was done. %s", strings.Join(problems, ", "), t.takes())
	}
	return given, nil
}

func (a argument) check(value any) []string {
	fits := false
	switch v := value.(type) {
	case string:
		if fits = a.kind == text; fits && a.values != nil && !slices.Contains(a.values, v) {
			return []string{fmt.Sprintf("%s is %.80q, and must be one of %s", a.name, v, strings.Join(a.values, ", "))}
		}
		if fits && a.of != nil && v != "" {
			return a.of.problem(a.name, v)
		}
	case bool:
		fits = a.kind == truth
	case float64:
		fits = a.kind == number
	case map[string]any:
		fits = a.kind == object
	case []any:
		fits = a.kind == ids && !slices.ContainsFunc(v, func(item any) bool { _, is := item.(string); return !is })
		if fits && a.of != nil {
			var problems []string
			for _, item := range v {
				problems = append(problems, a.of.problem(a.name, item.(string))...)
			}
			return problems
		}
	}
	if fits {
		return nil
	}
	return []string{fmt.Sprintf("%s must be %s", a.name, a.kind.words())}
}

func (k kind) words() string {
	switch k {
	case truth:
		return "true or false"
	case number:
		return "a number"
	case ids:
		return "a list of texts"
	case object:
		return "an object"
	}
	return "a text"
}

// takes says which arguments the tool has.
func (t tool) takes() string {
	if len(t.arguments) == 0 {
		return "Call " + t.name + " without arguments."
	}
	var list []string
	for _, a := range t.arguments {
		need := "may be left out"
		if a.required {
			need = "required"
		}
		list = append(list, fmt.Sprintf("%s (%s, %s)", a.name, a.kind.words(), need))
	}
	return "Call " + t.name + " with: " + strings.Join(list, ", ") + "."
}
