package preset

import (
	"encoding/json"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// gemini reads the events of `gemini --output-format stream-json`.
type gemini struct {
	state
	partial string // words whose line has not ended, at most maxText of them
	message strings.Builder
}

type geminiEvent struct {
	Type       string
	SessionID  string `json:"session_id"`
	Role       string
	Content    string
	Delta      bool
	ToolName   string `json:"tool_name"`
	Parameters json.RawMessage
	Status     string
	Severity   string
	Message    string
	Error      either
	Stats      *struct {
		Input  domain.Said `json:"input_tokens"`
		Output domain.Said `json:"output_tokens"`
	}
}

// Read takes one line.
func (g *gemini) Read(line []byte) ([]Line, bool) {
	var e geminiEvent
	if !object(line, &e) {
		return nil, false
	}
	switch e.Type {
	case "init":
		g.session(e.SessionID)
	case "message":
		if e.Role == "assistant" {
			return g.chunk(e.Content, e.Delta), true
		}
	case "tool_use":
		return append(g.flush(), g.do("uses a tool: "+e.ToolName+g.detail(e.Parameters))...), true
	case "tool_result":
		if e.Status == "error" {
			return append(g.flush(), g.do("the tool failed: "+g.short(e.Error.Text))...), true
		}
	case "error":
		return append(g.flush(), Line{Notice: true, Text: strings.ReplaceAll(e.Severity+": "+e.Message, "\n", " ")}), true
	case "result":
		return g.end(e), true
	default:
		return nil, false
	}
	return nil, true
}

// chunk takes a part of a message; its whole lines are shown.
func (g *gemini) chunk(text string, delta bool) []Line {
	if text == "" {
		return nil
	}
	g.told.Begun = true
	if !delta {
		return append(g.flush(), g.say(text)...)
	}
	if g.message.Len() < maxText {
		g.message.WriteString(text)
		g.told.Text = head(g.message.String())
	}
	text = g.partial + text
	end := strings.LastIndexByte(text, '\n')
	g.partial = head(text[end+1:])
	if end < 0 {
		return nil
	}
	return linesOf(true, "", text[:end])
}

// flush ends a message.
func (g *gemini) flush() []Line {
	text := g.partial
	g.partial = ""
	g.message.Reset()
	if text == "" {
		return nil
	}
	return linesOf(true, "", text)
}

func (g *gemini) end(e geminiEvent) []Line {
	g.told.Ended = true
	if e.Status == "error" {
		g.told.Error = e.Error.Text
	}
	if e.Stats != nil {
		g.used = &domain.Tally{}
		g.used.Input("stats.input_tokens", e.Stats.Input.Value)
		g.used.Output("stats.output_tokens", e.Stats.Output.Value)
	}
	return g.flush()
}
