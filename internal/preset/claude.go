package preset

import (
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// claude reads the events of `claude -p --output-format stream-json --verbose`.
type claude struct {
	state
	denied map[string]bool // the uses of tools that were shown as not allowed
}

type claudeEvent struct {
	Type      string
	Subtype   string
	SessionID string          `json:"session_id"`
	Message   json.RawMessage // of the conversation; the words of a system event
	IsError   bool            `json:"is_error"`
	Result    string
	Errors    []either
	RateLimit struct {
		Status   string
		ResetsAt domain.Said // Unix seconds
	} `json:"rate_limit_info"`
	Status  domain.Said `json:"api_error_status"`
	CostUSD domain.Said `json:"total_cost_usd"`
	// Models is the use of all models since the result before. Newer versions tell it. Their total_cost_usd is the session's over all
	// its runs, and usage is that of one model.
	Models json.RawMessage `json:"model_usage_since_last_result"`
	// Refused says of an assistant's message that the program wrote it, because the model's provider refused a request.
	Refused bool `json:"is_api_error_message"`
	// Of a system event that tells of a request that is made again.
	RetryStatus domain.Said `json:"error_status"`
	RetryError  either      `json:"error"`
	Attempt     domain.Said
	MaxRetries  domain.Said `json:"max_retries"`
	// Of one that tells of a use of a tool that was not allowed.
	claudeDenial
	// Denials are all of them, as the result lists them. Older versions tell of them only there.
	Denials []claudeDenial `json:"permission_denials"`
	Usage   *struct {
		Input    domain.Said `json:"input_tokens"`
		Output   domain.Said `json:"output_tokens"`
		Read     domain.Said `json:"cache_read_input_tokens"`
		Creation domain.Said `json:"cache_creation_input_tokens"`
	}
}

type claudeDenial struct {
	ToolName  string `json:"tool_name"`
	ToolUseID string `json:"tool_use_id"`
}

type claudeModelUse struct {
	Input    domain.Said `json:"inputTokens"`
	Output   domain.Said `json:"outputTokens"`
	Read     domain.Said `json:"cacheReadInputTokens"`
	Creation domain.Said `json:"cacheCreationInputTokens"`
	CostUSD  domain.Said `json:"costUSD"`
}

type claudeBlock struct {
	Type, Text, Thinking, Name string
	Input                      json.RawMessage
	IsError                    bool `json:"is_error"`
	Content                    either
}

// content is that of a message of the conversation.
func (e claudeEvent) content() (blocks []claudeBlock) {
	var m struct{ Content json.RawMessage }
	if json.Unmarshal(e.Message, &m) != nil || json.Unmarshal(m.Content, &blocks) != nil {
		return nil
	}
	return blocks
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
		if e.Refused { // the result says it once more
			return nil, true
		}
		return c.blocks(e.content()), true
	case "result":
		c.end(e)
		return c.denials(e.Denials), true
	case "rate_limit_event":
		c.limit(e)
	case "system":
		return c.system(e), true
	case "user":
		return c.toolResults(e.content()), true
	case "stream_event", "tool_progress", "control_request", "control_response":
	default:
		return nil, false
	}
	return nil, true
}

// toolResults tells of tools that failed, or that the agent was not allowed to use.
func (c *claude) toolResults(blocks []claudeBlock) (out []Line) {
	for _, b := range blocks {
		if b.Type == "tool_result" && b.IsError {
			out = append(out, c.do("the tool failed: "+c.short(b.Content.Text))...)
		}
	}
	return out
}

func (c *claude) blocks(blocks []claudeBlock) (out []Line) {
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
	if n, ok := e.Status.Value.(json.Number); ok {
		status, _ := n.Int64() // 0 for what is no status
		c.told.Status = int(status)
	}
	if !c.models(e.Models) {
		c.total(e)
	}
}

// models adds up what the models used since the last result; it is false when the event does not tell it.
func (c *claude) models(raw json.RawMessage) bool {
	var models map[string]claudeModelUse
	if json.Unmarshal(raw, &models) != nil || models == nil {
		return false
	}
	used := c.uses()
	for _, m := range models {
		used.Input("inputTokens", m.Input.Value)
		used.Input("cacheReadInputTokens", m.Read.Value)
		used.Input("cacheCreationInputTokens", m.Creation.Value)
		used.Output("outputTokens", m.Output.Value)
		used.Cost("costUSD", m.CostUSD.Value)
	}
	return true
}

// system tells of a request that the program makes again, because the provider refused it, and of a use of a tool that was not
// allowed; nothing for any other event.
func (c *claude) system(e claudeEvent) []Line {
	switch e.Subtype {
	case "permission_denied":
		return c.denials([]claudeDenial{e.claudeDenial})
	case "api_retry":
	default:
		return nil
	}
	return []Line{{Notice: true, Text: c.short(fmt.Sprintf("the model's provider refused a request (%v %s): try %v of %v follows", e.RetryStatus.Value, e.RetryError.Text, e.Attempt.Value, e.MaxRetries.Value))}}
}

// maxDenied bounds what is kept of denials; those beyond it may be shown twice.
const maxDenied = 1000

// denials tells of uses of tools that were not allowed, each once.
func (c *claude) denials(list []claudeDenial) (out []Line) {
	for _, d := range list {
		if d.ToolName == "" || c.denied[d.ToolUseID] {
			continue
		}
		if c.denied == nil {
			c.denied = map[string]bool{}
		}
		if d.ToolUseID != "" && len(c.denied) < maxDenied {
			c.denied[d.ToolUseID] = true
		}
		out = append(out, c.do("was not allowed to use the tool "+c.short(d.ToolName))...)
	}
	return out
}

// total takes the use of an older version, which tells it for each run.
func (c *claude) total(e claudeEvent) {
	c.used = &domain.Tally{}
	c.used.Cost("total_cost_usd", e.CostUSD.Value)
	if u := e.Usage; u != nil {
		c.used.Input("usage.input_tokens", u.Input.Value)
		c.used.Input("usage.cache_read_input_tokens", u.Read.Value)
		c.used.Input("usage.cache_creation_input_tokens", u.Creation.Value)
		c.used.Output("usage.output_tokens", u.Output.Value)
	}
}
