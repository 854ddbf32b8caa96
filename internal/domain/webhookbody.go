package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// PayloadVariable holds the whole body of a webhook.
const PayloadVariable = "payload"

// WebhookValues turns the body of a webhook into values. The members of its JSON object are the values; a member that
// is not a string becomes its JSON text. "payload" is the whole body, even when a member has that name. An empty body
// has no values. Anything else is a UserError, which the endpoint answers with 400 and nothing fired (SPEC S4.8, C21,
// C22).
func WebhookValues(body []byte) (map[string]string, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return map[string]string{}, nil
	}
	if isForm(body) {
		return nil, Refuse(UserErrorCodeInvalid, "the body is a form, and a webhook takes a JSON object: choose application/json as the content type where it is sent")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, Refuse(UserErrorCodeInvalid, "the body is no JSON object: send one such as {\"branch\": \"main\"}, or nothing")
	}
	values := make(map[string]string, len(members)+1)
	for name, raw := range members {
		values[StorableText(name)] = StorableText(jsonText(raw))
	}
	values[PayloadVariable] = StorableText(string(body))
	return values, nil
}

// formNames is what the name of a form's first field is made of.
var formNames = regexp.MustCompile(`^[\w.~%+*\[\]-]+=`)

// isForm says whether a body is an HTML form, as GitHub sends webhooks unless told otherwise: "payload=%7B…".
func isForm(body []byte) bool { return formNames.Match(body) || bytes.HasPrefix(body, []byte("--")) }

// ProvidedValues turns the variables of a manual fire into values, as WebhookValues does with members.
func ProvidedValues(object map[string]any) (map[string]string, error) {
	values := make(map[string]string, len(object))
	for name, member := range object {
		var raw bytes.Buffer
		encoder := json.NewEncoder(&raw)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(member); err != nil {
			return nil, fmt.Errorf("write variable %q as JSON: %w", name, err)
		}
		values[StorableText(name)] = StorableText(jsonText(raw.Bytes()))
	}
	return values, nil
}

// jsonText is a string's content, and the compact JSON of anything else.
func jsonText(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil { // cannot be: it was read as JSON
		return string(raw)
	}
	return compact.String()
}

// SampleBody is a webhook body that gives every declared variable a value of its type: its default, else an example.
func SampleBody(declared []RoutineVariable) string {
	members := make([]string, len(declared))
	for i, v := range declared {
		members[i] = jsonString(v.Name) + ":" + v.sample()
	}
	return "{" + strings.Join(members, ",") + "}"
}

// sample is an example of the variable's values, as JSON.
func (v RoutineVariable) sample() string {
	value := map[VariableType]string{VariableTypeText: "value", VariableTypeNumber: "1", VariableTypeBoolean: "true"}[v.Type]
	if v.Type == VariableTypeSelect && len(v.Options) > 0 {
		value = v.Options[0]
	}
	if v.Default != nil {
		value = *v.Default
	}
	plain := v.Type == VariableTypeBoolean || v.Type == VariableTypeNumber
	if plain && json.Valid([]byte(value)) { // +5 and 007 are numbers for people, and no JSON
		return value
	}
	return jsonString(value)
}

// jsonString is a JSON string in which < and & stand as they are.
func jsonString(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil { // a string can always be written
		panic("domain: write a string: " + err.Error())
	}
	return strings.TrimSuffix(out.String(), "\n")
}
