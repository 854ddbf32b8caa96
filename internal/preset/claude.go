package preset

import (
	"encoding/json"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// claude reads the events of `claude -p --output-format stream-json --verbose`.
type claude struct{ state }

type claudeEvent struct {
	Type      string
	Subtype   string
	SessionID string `json:"session_id"`
	Message   struct{ Content json.RawMessage }
	IsError   bool `json:"is_error"`
	Result    string
	Errors    []either
	RateLimit struct {
		Status   string
		ResetsAt domain.Said // Unix seconds
	} `json:"rate_limit_info"`
	CostUSD domain.Said `json:"total_cost_usd"`
	Usage   *struct {
		Input    domain.Said `json:"input_tokens"`
		Output   domain.Said `json:"output_tokens"`
		Read     domain.Said `json:"cache_read_input_tokens"`
		Creation domain.Said `json:"cache_creation_input_tokens"`
	}
}

type claudeBlock struct {
	Type, Text, Thinking, Name string
	Input                      json.RawMessage
}

// Read takes one line.
func (c *claude) Read(line []byte) ([]Line, bool) {
	var e claudeEvent
	if !object(line, &e) || e.Type == "" {
		return nil, false
	}
	c.session(e.SessionID)
	switch e.Type {
	case "assistant":
		return c.blocks(e.Message.Content), true
	case "result":
		c.end(e)
	case "rate_limit_event":
		c.limit(e)
	case "system", "user", "stream_event", "tool_progress", "control_request", "control_response":
	default:
		return nil, false
	}
	return nil, true
}

func (c *claude) blocks(content json.RawMessage) (out []Line) {
	var blocks []claudeBlock
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, c.say(b.Text)...)
		case "thinking":
			out = append(out, c.think(b.Thinking)...)
		case "tool_use":
			out = append(out, c.do("uses a tool: "+b.Name+c.detail(b.Input))...)
		}
	}
	return out
}

// limit notes until when a limit holds that was met. A limit that only comes near does not count.
func (c *claude) limit(e claudeEvent) {
	at, ok := e.RateLimit.ResetsAt.Value.(json.Number)
	seconds, err := at.Int64()
	if c.told.LimitedUntil = (time.Time{}); e.RateLimit.Status == "rejected" && ok && err == nil {
		c.told.LimitedUntil = time.Unix(seconds, 0)
	}
}

// end takes the last event: its subtype is success, or names what broke the work off.
func (c *claude) end(e claudeEvent) {
	c.told.Ended = true
	if e.Result != "" && !e.IsError {
		c.told.Begun, c.told.Text = true, head(e.Result)
	}
	if e.IsError || e.Subtype != "success" {
		c.told.Error = e.Result
		for _, problem := range e.Errors {
			c.told.Error = problem.Text
		}
		if c.told.Error == "" {
			c.told.Error = e.Subtype
		}
	}
	c.used = &domain.Tally{}
	c.used.Cost("total_cost_usd", e.CostUSD.Value)
	if u := e.Usage; u != nil {
		c.used.Input("usage.input_tokens", u.Input.Value)
		c.used.Input("usage.cache_read_input_tokens", u.Read.Value)
		c.used.Input("usage.cache_creation_input_tokens", u.Creation.Value)
		c.used.Output("usage.output_tokens", u.Output.Value)
	}
}
