package modelserver

import (
	"encoding/json"
	"net/http"
)

// messages is Anthropic's interface: POST /v1/messages.
type messages struct{}

func (messages) name() string { return "messages" }

func (messages) read(body []byte) (a asked, err error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return a, err
	}
	a.model, a.stream = in.Model, in.Stream
	for _, m := range in.Messages {
		a.turns = append(a.turns, turns(m.Role == "assistant", m.Content)...)
	}
	for _, t := range in.Tools {
		a.tools = append(a.tools, t.Name)
	}
	return a, nil
}

func (messages) answer(w http.ResponseWriter, a asked, step Step) {
	usage := map[string]any{"input_tokens": inputTokens - cachedTokens, "cache_read_input_tokens": cachedTokens, "cache_creation_input_tokens": 0, "output_tokens": outputTokens}
	block, reason := map[string]any{"type": "text", "text": step.Text}, "end_turn"
	if step.Kind == Tool {
		block, reason = map[string]any{"type": "tool_use", "id": a.id("toolu_"), "name": step.Tool, "input": step.Input}, "tool_use"
	}
	message := map[string]any{"id": a.id("msg_"), "type": "message", "role": "assistant", "model": a.model, "content": []any{block}, "stop_reason": reason, "stop_sequence": nil, "usage": usage}
	if !a.stream {
		write(w, message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	event(w, "message_start", map[string]any{"type": "message_start", "message": message})
	start, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": step.Text}
	if step.Kind == Tool {
		start, delta = map[string]any{"type": "tool_use", "id": a.id("toolu_"), "name": step.Tool, "input": map[string]any{}}, map[string]any{"type": "input_json_delta", "partial_json": string(step.Input)}
	}
	event(w, "content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": start})
	event(w, "content_block_delta", map[string]any{"type": "content_block_delta", "index": 0, "delta": delta})
	event(w, "content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
	event(w, "message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	event(w, "message_stop", map[string]any{"type": "message_stop"})
}

func (messages) refuse(w http.ResponseWriter, step Step) {
	kinds := map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
	kind := kinds[step.Code]
	if kind == "" {
		kind = "api_error"
	}
	refuseWith(w, step, map[string]any{"type": "error", "request_id": "req_1"}, map[string]any{"type": kind, "message": step.Text})
}
