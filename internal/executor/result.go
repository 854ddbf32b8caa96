//go:build unix

package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// maxResultDepth bounds the nesting of a result object, so that every store and reader can take it.
const maxResultDepth = 64

// parseResult reads a line as the result object of SPEC S7.5: a JSON object with at least one of summary, result,
// message, error, next_action, usage and actions in its right form. An object with a level or a severity is a log record
// that happened to come last, not a result: taking it for one would turn a crash into a success.
func parseResult(line []byte) (map[string]any, bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return nil, false
	}
	object, ok := decodeObject(line)
	if !ok {
		return nil, false
	}
	if object["level"] != nil || object["severity"] != nil {
		return nil, false
	}
	_, hasUsage := object["usage"].(map[string]any)
	return object, hasUsage || hasOutcome(object) || reportedError(object) != ""
}

// longestInteger is how many characters an integer of a result may have to keep all its digits; longer ones are rounded.
const longestInteger = 40

// decodeObject reads exactly one JSON object, not too deep and with numbers that can be stored.
func decodeObject(line []byte) (map[string]any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var object map[string]any
	if decoder.Decode(&object) != nil || tooDeep(object, maxResultDepth) {
		return nil, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || !settleNumbers(object) {
		return nil, false
	}
	return object, true
}

// settleNumbers leaves integers as they were written, since ids lose digits in a float64, and makes the rest float64, in place. It returns
// false for a number that is out of range.
func settleNumbers(v any) bool {
	settle := func(member any, set func(float64)) bool {
		n, ok := member.(json.Number)
		if !ok {
			return settleNumbers(member)
		}
		if len(n) <= longestInteger && !strings.ContainsAny(string(n), ".eE") {
			return true
		}
		f, err := n.Float64()
		set(f)
		return err == nil
	}
	ok := true
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			ok = settle(member, func(f float64) { v[name] = f }) && ok
		}
	case []any:
		for i, member := range v {
			ok = settle(member, func(f float64) { v[i] = f }) && ok
		}
	}
	return ok
}

// number is a number of a result; 0 for anything else.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
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

// reportedError is the error that a result reports as its outcome, or "". That is an error without summary, result or
// message beside it, or anything marked "is_error": true, as some agent command lines write it.
func reportedError(object map[string]any) string {
	text := ""
	switch v := object["error"].(type) {
	case nil:
	case string:
		text = v
	default:
		text = compactJSON(v)
	}
	if object["is_error"] == true {
		return firstText(text, object["result"], object["message"], object["summary"], object["subtype"], "the agent gave no reason")
	}
	for _, name := range []string{"summary", "result", "message"} {
		if object[name] != nil && object[name] != "" {
			return ""
		}
	}
	return text
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

// parseUsage reads usage.input_tokens, usage.output_tokens and usage.cost_usd (or total_cost_usd beside usage). What is
// below nothing, and an absurd cost, counts as not said.
func parseUsage(object map[string]any) *Usage {
	usage, ok := object["usage"].(map[string]any)
	if !ok {
		return nil
	}
	cost, ok := number(usage["cost_usd"])
	if !ok {
		cost, _ = number(object["total_cost_usd"])
	}
	return &Usage{InputTokens: count(usage["input_tokens"]), OutputTokens: count(usage["output_tokens"]), CostUSD: money(cost)}
}

func count(v any) int64 {
	n, _ := number(v)
	return domain.TokenCount(n)
}

func money(v float64) string {
	if v < 0 || v > domain.MaxCostUSD {
		v = 0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
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
