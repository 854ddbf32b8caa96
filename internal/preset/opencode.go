package preset

import "encoding/json"

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
		Cost   float64
		Tokens struct {
			Input, Output, Reasoning float64
			Cache                    struct{ Read, Write float64 }
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
		o.told.Error = e.Error.Text
		return []Line{{Text: "error: " + e.Error.Text}}, true
	default:
		return nil, false
	}
	return nil, true
}

func (o *opencode) step(e opencodeEvent) {
	if o.told.Usage == nil {
		o.told.Usage = &Usage{}
	}
	t := e.Part.Tokens
	o.told.Usage.InputTokens += t.Input + t.Cache.Read + t.Cache.Write
	o.told.Usage.OutputTokens += t.Output + t.Reasoning
	o.told.Usage.CostUSD += e.Part.Cost
	o.told.Ended = e.Part.Reason != "tool-calls"
}
