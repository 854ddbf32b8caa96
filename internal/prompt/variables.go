package prompt

import (
	"encoding/json"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// told is from how many bytes on a value that stands in the routine's text is not told again.
const told = 32

// variables are the values of a fire that the routine's text does not tell already. Of a webhook's body either the whole or its
// members are told, and never both.
func variables(values map[string]string, text string) func(limit int) string {
	left := map[string]any{}
	body, isBody := bodyOf(values)
	inText := isBody && strings.Contains(text, values[domain.PayloadVariable])
	for name, value := range values {
		_, member := body[name]
		switch {
		case isBody && name == domain.PayloadVariable, inText && member:
		case len(value) >= told && strings.Contains(text, value):
		default:
			left[name] = shownValue(value)
		}
	}
	if len(left) == 0 {
		return quoted("")
	}
	return func(limit int) string { return object(left, min(limit, maxVariables)) }
}

// bodyOf are the members of a webhook's body, when the values hold each of them beside the whole.
func bodyOf(values map[string]string) (members map[string]json.RawMessage, ok bool) {
	whole, there := values[domain.PayloadVariable]
	if !there || json.Unmarshal([]byte(whole), &members) != nil || members == nil {
		return nil, false
	}
	for name := range members {
		if _, there := values[domain.StorableText(name)]; !there {
			return nil, false
		}
	}
	return members, true
}

// shownValue is a value as it is shown: a list or an object is JSON, not a text of JSON.
func shownValue(value string) any {
	if raw := json.RawMessage(value); len(value) <= maxVariable && (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")) && json.Valid(raw) {
		return raw
	}
	return cut(value, maxVariable)
}
