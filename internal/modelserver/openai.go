package modelserver

import (
	"encoding/json"
	"net/http"
	"strings"
)

// chat is OpenAI's Chat Completions: POST /v1/chat/completions.
type chat struct{}

func (chat) name() string { return "chat" }

func (chat) read(body []byte) (a asked, err error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return a, err
	}
	a.model, a.stream = in.Model, in.Stream
	for _, m := range in.Messages {
		if m.Role != "system" && m.Role != "developer" {
			a.turns = append(a.turns, turns(m.Role == "assistant", m.Content)...)
		}
	}
	for _, t := range in.Tools {
		a.tools = append(a.tools, t.Function.Name)
	}
	return a, nil
}

func (chat) answer(w http.ResponseWriter, a asked, step Step) {
	usage := map[string]any{"prompt_tokens": inputTokens, "completion_tokens": outputTokens, "total_tokens": inputTokens + outputTokens, "prompt_tokens_details": map[string]any{"cached_tokens": cachedTokens}}
	message, reason := map[string]any{"role": "assistant", "content": step.Text}, "stop"
	if step.Kind == Tool {
		call := map[string]any{"index": 0, "id": a.id("call_"), "type": "function", "function": map[string]any{"name": step.Tool, "arguments": string(step.Input)}}
		message, reason = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	}
	base := func(object string, choice map[string]any) map[string]any {
		choice["index"] = 0
		return map[string]any{"id": a.id("chatcmpl-"), "object": object, "created": 1, "model": a.model, "choices": []any{choice}}
	}
	if !a.stream {
		whole := base("chat.completion", map[string]any{"message": message, "finish_reason": reason})
		whole["usage"] = usage
		write(w, whole)
		return
	}
	event(w, "", base("chat.completion.chunk", map[string]any{"delta": message, "finish_reason": nil}))
	event(w, "", base("chat.completion.chunk", map[string]any{"delta": map[string]any{}, "finish_reason": reason}))
	last := map[string]any{"id": a.id("chatcmpl-"), "object": "chat.completion.chunk", "created": 1, "model": a.model, "choices": []any{}, "usage": usage}
	event(w, "", last)
	_, _ = w.Write([]byte("data: [DONE]\n\n")) // whoever has gone away needs no end
}

func (chat) refuse(w http.ResponseWriter, step Step) { refuseOpenAI(w, step) }

func refuseOpenAI(w http.ResponseWriter, step Step) {
	kinds := map[int][2]string{401: {"invalid_request_error", "invalid_api_key"}, 402: {"insufficient_quota", "insufficient_quota"}, 429: {"rate_limit_error", "rate_limit_exceeded"}}
	kind, known := kinds[step.Code]
	if !known {
		kind = [2]string{"server_error", "server_error"}
	}
	refusal := map[string]any{"message": step.Text, "type": kind[0], "code": kind[1], "param": nil}
	refuseWith(w, step, map[string]any{}, refusal)
}

// responses is OpenAI's Responses: POST /v1/responses.
type responses struct{}

func (responses) name() string { return "responses" }

func (responses) read(body []byte) (a asked, err error) {
	var in struct {
		Model  string
		Stream bool
		Input  json.RawMessage
		Tools  []struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return a, err
	}
	a.model, a.stream = in.Model, in.Stream
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		a.turns = []turn{{false, text}}
	}
	var items []struct {
		Type, Role string
		Content    json.RawMessage
	}
	if json.Unmarshal(in.Input, &items) == nil {
		for _, i := range items {
			switch {
			case i.Role == "assistant", i.Type == "function_call", i.Type == "custom_tool_call", i.Type == "local_shell_call":
				a.turns = append(a.turns, turns(true, i.Content)...)
			case i.Role == "user":
				a.turns = append(a.turns, turns(false, i.Content)...)
			}
		}
	}
	for _, t := range in.Tools {
		a.tools = append(a.tools, t.Type+":"+t.Name)
		for _, inner := range t.Tools { // of a namespace
			a.tools = append(a.tools, t.Type+":"+t.Name+"/"+inner.Name)
		}
	}
	return a, nil
}

func (responses) answer(w http.ResponseWriter, a asked, step Step) {
	item := map[string]any{"type": "message", "id": a.id("msg_"), "role": "assistant", "status": "completed", "content": []any{map[string]any{"type": "output_text", "text": step.Text, "annotations": []any{}}}}
	if step.Kind == Tool {
		item = map[string]any{"type": "function_call", "id": a.id("fc_"), "call_id": a.id("call_"), "status": "completed", "name": step.Tool, "arguments": string(step.Input)}
		if namespace, name, is := strings.Cut(step.Tool, "/"); is {
			item["namespace"], item["name"] = namespace, name
		}
	}
	usage := map[string]any{"input_tokens": inputTokens, "output_tokens": outputTokens, "total_tokens": inputTokens + outputTokens,
		"input_tokens_details": map[string]any{"cached_tokens": cachedTokens}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}}
	whole := map[string]any{"id": a.id("resp_"), "object": "response", "created_at": 1, "status": "completed", "model": a.model, "output": []any{item}, "usage": usage, "error": nil}
	if !a.stream {
		write(w, whole)
		return
	}
	begun := map[string]any{"id": a.id("resp_"), "object": "response", "created_at": 1, "status": "in_progress", "model": a.model, "output": []any{}}
	event(w, "response.created", map[string]any{"type": "response.created", "sequence_number": 0, "response": begun})
	event(w, "response.output_item.added", map[string]any{"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item})
	event(w, "response.output_item.done", map[string]any{"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item})
	event(w, "response.completed", map[string]any{"type": "response.completed", "sequence_number": 3, "response": whole})
}

func (responses) refuse(w http.ResponseWriter, step Step) { refuseOpenAI(w, step) }
