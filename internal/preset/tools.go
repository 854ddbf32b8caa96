package preset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// Handed is how a program is told of servers of the Model Context Protocol. It holds names of variables, and none of their values.
type Handed struct {
	Args        []string          // right behind the program's own
	Environment map[string]string // those of the executor go before
	File        string            // the text of a file, whose path FileVariable names; "": none
	FileVar     string
}

// HandTools tells the program of servers, for one launch and without a change of the user's own settings. ok is false for a program
// that knows of no such servers.
func (p Preset) HandTools(servers []domain.ToolServer) (h Handed, ok bool) {
	if !domain.PresetTakesTools(p.Name) {
		return Handed{}, false
	}
	if len(servers) == 0 {
		return Handed{}, true
	}
	switch p.Name {
	case "claude":
		return Handed{Args: claudeTools(servers)}, true
	case "codex":
		return Handed{Args: codexTools(servers)}, true
	case "gemini":
		return Handed{File: text(map[string]any{"mcpServers": geminiTools(servers)}), FileVar: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"}, true
	}
	return Handed{Environment: map[string]string{"OPENCODE_CONFIG_CONTENT": text(map[string]any{"mcp": opencodeTools(servers)})}}, true
}

// claudeTools are arguments of Claude Code, which asks nobody whether the servers' tools may be used. With `=` its options take one
// value, whatever follows.
func claudeTools(servers []domain.ToolServer) []string {
	all, allowed := map[string]any{}, []string{}
	for _, s := range servers {
		entry := map[string]any{"type": "http", "url": s.URL, "headers": expand(s.Headers, "${%s}")}
		if s.URL == "" {
			entry = map[string]any{"type": "stdio", "command": s.Command[0], "args": rest(s.Command), "env": expand(itself(s.Environment), "${%s}")}
		}
		all[s.Name] = entry
		allowed = append(allowed, "mcp__"+s.Name)
	}
	return []string{"--mcp-config=" + text(map[string]any{"mcpServers": all}), "--allowedTools=" + strings.Join(allowed, ",")}
}

// codexTools are arguments of codex. Its servers' programs get the variables that are named to it alone.
func codexTools(servers []domain.ToolServer) (args []string) {
	for _, s := range servers {
		entry := fmt.Sprintf("url=%s,env_http_headers=%s", text(s.URL), inlineTable(s.Headers))
		if s.URL == "" {
			entry = fmt.Sprintf("command=%s,args=%s,env_vars=%s", text(s.Command[0]), text(rest(s.Command)), text(append([]string{}, s.Environment...)))
		}
		args = append(args, "-c", "mcp_servers."+s.Name+"={"+entry+`,startup_timeout_sec=60,default_tools_approval_mode="approve"}`)
	}
	return args
}

// inlineTable is a table of TOML on one line.
func inlineTable(headers []domain.ToolHeader) string {
	var members []string
	for _, h := range headers {
		members = append(members, text(h.Name)+"="+text(h.Variable))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// geminiTools are servers as Gemini CLI's settings have them. It uses no tool of a server that is not trusted where nobody can be asked.
func geminiTools(servers []domain.ToolServer) map[string]any {
	all := map[string]any{}
	for _, s := range servers {
		entry := map[string]any{"httpUrl": s.URL, "headers": expand(s.Headers, "${%s}"), "trust": true}
		if s.URL == "" {
			entry = map[string]any{"command": s.Command[0], "args": rest(s.Command), "env": expand(itself(s.Environment), "${%s}"), "trust": true}
		}
		all[s.Name] = entry
	}
	return all
}

func opencodeTools(servers []domain.ToolServer) map[string]any {
	all := map[string]any{}
	for _, s := range servers {
		entry := map[string]any{"type": "remote", "url": s.URL, "headers": expand(s.Headers, "{env:%s}"), "enabled": true}
		if s.URL == "" {
			entry = map[string]any{"type": "local", "command": s.Command, "environment": expand(itself(s.Environment), "{env:%s}"), "enabled": true}
		}
		all[s.Name] = entry
	}
	return all
}

// expand writes each value as the program writes the value of a variable.
func expand(list []domain.ToolHeader, form string) map[string]string {
	all := map[string]string{}
	for _, h := range list {
		all[h.Name] = fmt.Sprintf(form, h.Variable)
	}
	return all
}

// itself are variables that keep their names.
func itself(names []string) (list []domain.ToolHeader) {
	for _, name := range names {
		list = append(list, domain.ToolHeader{Name: name, Variable: name})
	}
	return list
}

func rest(command []string) []string { return slices.Clone(command[1:]) }

// text is a value as JSON, which TOML reads alike for texts and lists of them.
func text(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil { // made of texts, lists and maps of them
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
