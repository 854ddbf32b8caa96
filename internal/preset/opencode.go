package preset

import (
	"encoding/json"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// opencode reads the events of `opencode run --format json`.
type opencode struct{ state }

type opencodeEvent struct {
	Type      string
	SessionID string `json:"sessionID"`
	Error     either
	Part      struct {
		Text   string
		Tool   string
		Reason string
		State  struct {
			Status, Title, Error string
			Input                json.RawMessage
		}
		Cost   domain.Said
		Tokens struct {
			Input, Output, Reasoning domain.Said
			Cache                    struct{ Read, Write domain.Said }
		}
	}
}

// Read takes one line. Each step tells its own cost, so that they are summed.
func (o *opencode) Read(line []byte) ([]Line, bool) {
	var e opencodeEvent
	if !object(line, &e) {
		return nil, false
	}
	switch e.Type {
	case "text":
		o.session(e.SessionID)
		return o.say(e.Part.Text), true
	case "reasoning":
		o.session(e.SessionID)
		return o.think(e.Part.Text), true
	case "tool_use":
		o.session(e.SessionID)
		line := "uses a tool: " + e.Part.Tool + o.detail(e.Part.State.Input)
		if e.Part.State.Status == "error" {
			line += ": " + o.short(e.Part.State.Error)
		}
		return o.do(line), true
	case "step_start":
		o.session(e.SessionID)
	case "step_finish":
		o.session(e.SessionID)
		o.step(e)
	case "error":
		o.session(e.SessionID)
		o.told.Ended, o.told.Error, o.told.Status = true, e.Error.Text, e.Error.Status
		o.told.LimitedUntil, o.told.LimitedFor = e.Error.Until, e.Error.Wait
		return []Line{{Notice: true, Text: "error: " + strings.ReplaceAll(e.Error.Text, "\n", " ")}}, true
	default:
		return nil, false
	}
	return nil, true
}

func (o *opencode) step(e opencodeEvent) {
	used, t := o.uses(), e.Part.Tokens
	used.Input("tokens.input", t.Input.Value)
	used.Input("tokens.cache.read", t.Cache.Read.Value)
	used.Input("tokens.cache.write", t.Cache.Write.Value)
	used.Output("tokens.output", t.Output.Value)
	used.Output("tokens.reasoning", t.Reasoning.Value)
	used.Cost("cost", e.Part.Cost.Value)
	o.told.Ended = e.Part.Reason != "tool-calls"
}
