package graph

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// keyMax is the most characters of an idempotency key.
const keyMax = 255

// checkKey checks an idempotency key; nil is none.
func checkKey(key *string) error {
	path := []string{"idempotencyKey"}
	switch {
	case key == nil:
		return nil
	case *key == "" || !plain(*key):
		return domain.RefuseField(path, domain.UserErrorCodeInvalid, "must be 1..%d characters; leave it out to have none", keyMax)
	case len([]rune(*key)) > keyMax:
		return domain.RefuseField(path, domain.UserErrorCodeTooLong, "must be at most %d characters", keyMax)
	}
	return nil
}

// digest is the fingerprint of an input, by which a key used again with another input is found. The key itself is left out,
// and so are the values of variables, since a stored digest of a short secret could be guessed.
func digest(input any) (string, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("digest input: %w", err)
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return "", fmt.Errorf("digest input: %w", err)
	}
	delete(tree, "idempotencyKey")
	hideValues(tree)
	if text, err = json.Marshal(tree); err != nil {
		return "", fmt.Errorf("digest input: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// hideValues takes the values out of every executor's environment.
func hideValues(tree map[string]any) {
	executor, _ := tree["executor"].(map[string]any)
	command, _ := executor["command"].(map[string]any)
	list, _ := command["environment"].([]any)
	for _, v := range list {
		if pair, ok := v.(map[string]any); ok {
			delete(pair, "value")
		}
	}
}

// checkWorkspace refuses a workspace that the caller does not see.
func (r *Resolver) checkWorkspace(ctx context.Context, id xid.ID) error {
	ok, err := r.Reader.Workspace.Query().Where(workspace.ID(id)).Exist(ctx)
	if err != nil {
		return fmt.Errorf("look for workspace: %w", err)
	}
	if !ok {
		return notFound("workspaceId", "workspace")
	}
	return nil
}

// variableTexts are the values of a manual fire: strings as they are, everything else as its JSON text (SPEC S4.8).
func variableTexts(in map[string]any) (map[string]string, error) {
	out := make(map[string]string, len(in))
	for name, v := range in {
		text, ok := v.(string)
		if !ok {
			raw, err := json.Marshal(v)
			if err != nil {
				return nil, fmt.Errorf("write variable %s: %w", name, err)
			}
			text = string(raw)
		}
		if !plain(name) || !plain(text) {
			return nil, domain.RefuseField([]string{"variables"}, domain.UserErrorCodeInvalid, "names and values must be text without NUL")
		}
		out[name] = text
	}
	return out, nil
}

// Most declarations and triggers of one createRoutine.
const (
	declarationsMax = 100
	triggersMax     = 20
)

// triggerSpecs reads the triggers of a new routine.
func triggerSpecs(list []*model.TriggerSpecInput) ([]store.TriggerSpec, error) {
	if len(list) > triggersMax {
		return nil, domain.RefuseField([]string{"triggers"}, domain.UserErrorCodeTooLong, "must be at most %d triggers", triggersMax)
	}
	var out []store.TriggerSpec
	report := &report{}
	for i, t := range list {
		switch {
		case t == nil || !oneMember(t.Schedule != nil, t.Manual != nil):
			report.add([]string{"triggers", strconv.Itoa(i)}, domain.UserErrorCodeInvalid, "set exactly one of schedule and manual")
		case t.Schedule != nil:
			out = append(out, store.TriggerSpec{Kind: domain.TriggerKindSchedule, Cron: t.Schedule.Cron, TimeZone: valueOf(t.Schedule.TimeZone), Enabled: orTrue(t.Schedule.Enabled)})
		default:
			out = append(out, store.TriggerSpec{Kind: domain.TriggerKindManual, Enabled: orTrue(t.Manual.Enabled)})
		}
	}
	return out, domain.AsUserError(report.problems)
}

func declarations(list []*model.RoutineVariableInput) ([]domain.RoutineVariable, error) {
	if len(list) > declarationsMax {
		return nil, domain.RefuseField([]string{"variables"}, domain.UserErrorCodeTooLong, "must be at most %d variables", declarationsMax)
	}
	out := []domain.RoutineVariable{}
	for _, v := range list {
		out = append(out, domain.RoutineVariable{Name: v.Name, Type: v.Type, Default: v.Default, Required: v.Required, Options: v.Options})
	}
	return out, nil
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
