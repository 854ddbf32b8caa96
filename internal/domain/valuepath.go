package domain

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// Names that begin a path to something that is no member of a body. A member of such a name is reached below payload.
const (
	headerRoot  = "header"
	webhookRoot = "webhook"
)

// WebhookEventVariable is the name under which the values of a delivery have what its sender calls the event.
const WebhookEventVariable = webhookRoot + ".event"

// maxPathParts bounds how deep a path reaches.
const maxPathParts = 10

// isPath says whether the name of a placeholder is a path: it has parts, and is declared nowhere.
func isPath(name string) bool { return strings.Contains(name, ".") }

// HeaderVariable is the name under which the values of a delivery have a header.
func HeaderVariable(header string) string { return headerRoot + "." + strings.ToLower(header) }

// HeaderOfPath is the header that a path names, as HTTP writes it; "" for another path.
func HeaderOfPath(path string) string {
	if name, ok := strings.CutPrefix(path, headerRoot+"."); ok {
		return textproto.CanonicalMIMEHeaderKey(name)
	}
	return ""
}

// values are the values of a fire, with what was read of their JSON, so that each is read once.
type valueReader struct {
	values map[string]string
	read   map[string]any
}

func newValueReader(values map[string]string) *valueReader {
	return &valueReader{values: values, read: map[string]any{}}
}

// at is the value that a name or a path has: a string as it is, anything else as its JSON text.
func (r *valueReader) at(name string) (string, bool) {
	if value, ok := r.values[name]; ok || !isPath(name) {
		return value, ok
	}
	parts := strings.Split(name, ".")
	if parts[0] == headerRoot {
		value, ok := r.values[strings.ToLower(name)]
		return value, ok
	}
	if parts[0] == webhookRoot || len(parts) > maxPathParts {
		return "", false
	}
	found, ok := walk(r.root(parts[0]), parts[1:])
	if !ok {
		return "", false
	}
	return textOf(found)
}

// root is the value of a name, read as JSON; nil when it is none.
func (r *valueReader) root(name string) any {
	if found, ok := r.read[name]; ok {
		return found
	}
	var found any
	if text := strings.TrimSpace(r.values[name]); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&found) != nil {
			found = nil
		}
	}
	r.read[name] = found
	return found
}

// walk follows members of objects and places of lists.
func walk(at any, parts []string) (any, bool) {
	for _, part := range parts {
		switch here := at.(type) {
		case map[string]any:
			next, ok := here[part]
			if !ok {
				return nil, false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(here) || strconv.Itoa(i) != part {
				return nil, false
			}
			at = here[i]
		default:
			return nil, false
		}
	}
	return at, true
}

func textOf(value any) (string, bool) {
	if text, ok := value.(string); ok {
		return StorableText(text), true
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil { // cannot be: it was read as JSON
		return "", false
	}
	return StorableText(strings.TrimSuffix(out.String(), "\n")), true
}

// DeliveryValues are the values of a delivery: those of its body, what its sender calls the event, and the headers that texts name.
// Nothing in a body stands for a header.
func DeliveryValues(body []byte, event string, headers map[string]string, texts []string) (map[string]string, error) {
	values, err := WebhookValues(body)
	if err != nil {
		return nil, err
	}
	for name := range values {
		if strings.HasPrefix(name, headerRoot+".") || strings.HasPrefix(name, webhookRoot+".") {
			delete(values, name)
		}
	}
	if event != "" {
		values[WebhookEventVariable] = event
	}
	addHeaders(values, headers, NamedHeaders(nil, texts...))
	return values, nil
}

// ConditionValues are the values of a delivery with the headers that conditions look at.
func ConditionValues(list []WebhookCondition, values, headers map[string]string) map[string]string {
	all := maps.Clone(values)
	addHeaders(all, headers, NamedHeaders(list))
	return all
}

func addHeaders(values, headers map[string]string, names []string) {
	for _, name := range names {
		if value, ok := headers[strings.ToLower(name)]; ok {
			values[HeaderVariable(name)] = value
		}
	}
}

// NamedHeaders are the headers that texts and conditions name, as HTTP writes them, those left out that hold a proof.
func NamedHeaders(conditions []WebhookCondition, texts ...string) (names []string) {
	for _, name := range Placeholders(texts...) {
		names = append(names, HeaderOfPath(name))
	}
	for _, c := range conditions {
		if c.Header != nil {
			names = append(names, textproto.CanonicalMIMEHeaderKey(*c.Header))
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || IsProofHeader(name) })
}

// proofHeaders are headers that hold a secret or what is as good as one: nobody is told of them.
var proofHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Gitlab-Token", "X-Api-Key", "X-Auth-Token", "X-Csrf-Token"}

// IsProofHeader says whether a header holds a proof of its sender.
func IsProofHeader(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	lower := strings.ToLower(name)
	return slices.Contains(proofHeaders, name) || strings.Contains(lower, "signature") || strings.Contains(lower, "secret") || strings.Contains(lower, "token") || strings.Contains(lower, "password")
}

// UnresolvedPaths are the paths that texts name and that the values have nothing at, each once, in order of first use.
func UnresolvedPaths(values map[string]string, texts ...string) (paths []string) {
	reader := newValueReader(values)
	for _, name := range Placeholders(texts...) {
		if _, ok := reader.at(name); !ok && isPath(name) {
			paths = append(paths, name)
		}
	}
	return paths
}
