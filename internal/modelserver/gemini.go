package modelserver

import (
	"encoding/json"
	"net/http"
)

// gemini is Google's interface: POST /v1beta/models/<model>:generateContent, and :streamGenerateContent.
type gemini struct{}

func (gemini) name() string { return "gemini" }

func (gemini) read(body []byte) (a asked, err error) {
	var in struct {
		Contents []struct {
			Role  string
			Parts []struct{ Text string }
		}
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return a, err
	}
	for _, c := range in.Contents {
		if c.Role == "model" {
			a.turns = append(a.turns, turn{true, ""})
			continue
		}
		for _, p := range c.Parts {
			a.turns = append(a.turns, turn{false, p.Text})
		}
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			a.tools = append(a.tools, f.Name)
		}
	}
	return a, nil
}

func (gemini) answer(w http.ResponseWriter, a asked, step Step) {
	part := map[string]any{"text": step.Text}
	if step.Kind == Tool {
		part = map[string]any{"functionCall": map[string]any{"name": step.Tool, "args": step.Input}}
	}
	whole := map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": map[string]any{"promptTokenCount": inputTokens, "cachedContentTokenCount": cachedTokens, "candidatesTokenCount": outputTokens, "totalTokenCount": inputTokens + outputTokens},
		"modelVersion":  "scripted", "responseId": "r1",
	}
	if a.stream {
		event(w, "", whole)
		return
	}
	write(w, whole)
}

func (gemini) refuse(w http.ResponseWriter, step Step) {
	kinds := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
	kind := kinds[step.Code]
	if kind == "" {
		kind = "INTERNAL"
	}
	refuseWith(w, step, map[string]any{}, map[string]any{"code": step.Code, "message": step.Text, "status": kind})
}
