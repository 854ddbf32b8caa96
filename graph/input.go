package graph

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// keyMax is the most characters of an idempotency key.
const keyMax = 255

// idempotency reads what every creating mutation has: its key, nil without one, and the fingerprint of its input. The
// fingerprint shows when a key is used again with another input. It refuses texts that the database cannot hold.
func idempotency(input any, key *string) (store.Idempotency, error) {
	path := []string{"idempotencyKey"}
	switch {
	case key != nil && *key == "":
		return store.Idempotency{}, domain.RefuseField(path, domain.UserErrorCodeInvalid, "must be 1..%d characters; leave it out to have none", keyMax)
	case key != nil && len([]rune(*key)) > keyMax:
		return store.Idempotency{}, domain.RefuseField(path, domain.UserErrorCodeTooLong, "must be at most %d characters", keyMax)
	}
	tree, err := treeOf(input)
	if err != nil {
		return store.Idempotency{}, err
	}
	r := &inputProblems{}
	r.texts(nil, tree)
	if len(r.list) > 0 {
		return store.Idempotency{}, domain.AsUserError(r.list)
	}
	fingerprint, err := digest(tree)
	return store.Idempotency{Key: valueOf(key), InputDigest: fingerprint}, err
}

// treeOf is an input as JSON values.
func treeOf(input any) (map[string]any, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	return tree, nil
}

// texts notes every text and name that holds NUL, which no column takes.
func (r *inputProblems) texts(path []string, v any) {
	switch v := v.(type) {
	case string:
		if !plain(v) {
			r.add(path, domain.UserErrorCodeInvalid, "must be text without NUL (U+0000)")
		}
	case []any:
		for i, item := range v {
			r.texts(below(path, strconv.Itoa(i)), item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			r.texts(path, name)
			r.texts(below(path, name), v[name])
		}
	}
}

// digest is the fingerprint of an input. The key itself is left out, and so are the values of variables, since a stored
// digest of a short secret could be guessed.
func digest(tree map[string]any) (string, error) {
	delete(tree, "idempotencyKey")
	hideValues(tree)
	text, err := json.Marshal(tree)
	if err != nil {
		return "", fmt.Errorf("digest input: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// hideValues takes the values out of an executor's environment and headers, and the secrets of agent services and
// webhooks, wherever in the input they lie.
func hideValues(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch name {
			case "environment", "headers":
				dropValues(member)
			case "http", "webhook":
				if spec, ok := member.(map[string]any); ok {
					delete(spec, "secret")
				}
			}
			hideValues(member)
		}
	case []any:
		for _, item := range v {
			hideValues(item)
		}
	}
}

func dropValues(list any) {
	pairs, _ := list.([]any)
	for _, v := range pairs {
		if pair, ok := v.(map[string]any); ok {
			delete(pair, "value")
		}
	}
}

// Bounds of the objects that callers give, as JSON text.
const (
	givenBytesMax  = 32 << 10  // what a wake tells its agent: a context, or values of variables
	resultBytesMax = 256 << 10 // the result of a run
)

// checkObject refuses an object whose JSON text is too long.
func checkObject(path []string, object map[string]any, most int) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the length is that of what was sent, more or less
	if err := encoder.Encode(object); err != nil {
		return domain.RefuseField(path, domain.UserErrorCodeInvalid, "must be a JSON object")
	}
	if text.Len() > most {
		return domain.RefuseField(path, domain.UserErrorCodeTooLong, "must be at most %d KiB of JSON; give the agent a place to read the rest", most>>10)
	}
	return nil
}

// checkWorkspace refuses a workspace that the caller does not see.
func (r *Resolver) checkWorkspace(ctx context.Context, id xid.ID) error {
	ok, err := r.Reader.Workspace.Query().Where(workspace.ID(id)).Exist(ctx)
	if err != nil {
		return fmt.Errorf("look for workspace: %w", err)
	}
	if !ok {
		return domain.RefuseField([]string{"workspaceId"}, domain.UserErrorCodeNotFound, "there is no such workspace, or it is not this token's; the query workspaces lists those that there are")
	}
	return nil
}

func declarations(list []*model.RoutineVariableInput) []domain.RoutineVariable {
	out := []domain.RoutineVariable{}
	for _, v := range list {
		out = append(out, domain.RoutineVariable{Name: v.Name, Type: v.Type, Default: v.Default, Required: v.Required, Options: v.Options})
	}
	return out
}

func orTrue(p *bool) bool { return p == nil || *p }

// object reads a stored JSON object; nothing and null are nil.
func object(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("read a stored JSON object: %w", err)
	}
	return out, nil
}

// objectOrEmpty is object for fields that are never null.
func objectOrEmpty(raw json.RawMessage) (map[string]any, error) {
	out, err := object(raw)
	if out == nil {
		out = map[string]any{}
	}
	return out, err
}
