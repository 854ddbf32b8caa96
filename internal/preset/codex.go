package preset

import (
	"fmt"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// codex reads the events of `codex exec --json`.
type codex struct{ state }

type codexEvent struct {
	Type     string
	ThreadID string `json:"thread_id"`
	Message  string
	Error    either
	Item     codexItem
	Usage    *struct {
		Input  domain.Said `json:"input_tokens"`
		Output domain.Said `json:"output_tokens"`
	}
}

type codexItem struct {
	Type, Text, Command, Status, Server, Tool, Query, Message string
	Output                                                    string `json:"aggregated_output"`
	ExitCode                                                  *int   `json:"exit_code"`
	Changes                                                   []struct{ Path, Kind string }
	Error                                                     either
}

// Read takes one line.
func (c *codex) Read(line []byte) ([]Line, bool) {
	var e codexEvent
	if !object(line, &e) {
		return nil, false
	}
	switch e.Type {
	case "thread.started":
		c.session(e.ThreadID)
	case "item.started":
		return c.started(e.Item), true
	case "item.completed":
		return c.completed(e.Item), true
	case "turn.completed":
		c.told.Ended, c.told.Error = true, ""
		if e.Usage != nil {
			c.used = &domain.Tally{}
			c.used.Input("usage.input_tokens", e.Usage.Input.Value)
			c.used.Output("usage.output_tokens", e.Usage.Output.Value)
			c.used.OfSession() // the thread's, over all its runs
		}
	case "turn.failed":
		c.told.Ended, c.told.Error = true, e.Error.Text
	case "error": // it may go on after one, so that the end of the turn decides
		c.told.Error = e.Message
		return []Line{{Notice: true, Text: "error: " + strings.ReplaceAll(e.Message, "\n", " ")}}, true
	case "turn.started", "item.updated":
	default:
		return nil, strings.HasPrefix(e.Type, "item.") || strings.HasPrefix(e.Type, "turn.")
	}
	return nil, true
}

func (c *codex) started(i codexItem) []Line {
	switch i.Type {
	case "command_execution":
		return c.do("runs: " + c.short(i.Command))
	case "mcp_tool_call":
		return c.do("uses a tool: " + i.Server + "." + i.Tool)
	}
	return nil
}

func (c *codex) completed(i codexItem) []Line {
	switch i.Type {
	case "agent_message":
		return c.say(i.Text)
	case "reasoning":
		return c.think(i.Text)
	case "command_execution":
		return c.ran(i)
	case "mcp_tool_call":
		if i.Status == "failed" {
			return c.do("the tool failed: " + i.Server + "." + i.Tool + ": " + c.short(i.Error.Text))
		}
	case "file_change":
		return c.changed(i)
	case "web_search":
		return c.do("searches the web: " + i.Query)
	case "error": // a warning, mostly: it says nothing about the session
		return []Line{{Text: "error: " + strings.ReplaceAll(i.Message, "\n", " ")}}
	}
	return nil
}

// ran tells of a command that failed or was not allowed, with the last that it printed.
func (c *codex) ran(i codexItem) []Line {
	why := ""
	switch {
	case i.Status == "declined":
		why = "was not allowed to run: "
	case i.ExitCode != nil && *i.ExitCode != 0:
		why = fmt.Sprintf("exit code %d: ", *i.ExitCode)
	case i.Status == "failed":
		why = "failed: "
	default:
		return nil
	}
	text := why + c.short(i.Command)
	if printed := strings.TrimSpace(i.Output); printed != "" {
		text += ": " + c.short(printed[strings.LastIndexByte(printed, '\n')+1:])
	}
	return c.do(text)
}

func (c *codex) changed(i codexItem) []Line {
	var paths []string
	for _, change := range i.Changes {
		paths = append(paths, change.Kind+" "+change.Path)
	}
	what := "changes files: "
	switch i.Status {
	case "failed":
		what = "could not change files: "
	case "declined":
		what = "was not allowed to change files: "
	}
	return c.do(what + c.short(strings.Join(paths, ", ")))
}
