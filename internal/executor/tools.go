//go:build unix

package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
)

// OwnProgram is the path of the program that runs, for Options.Tools; "" when the system does not tell. A program that was replaced while
// it runs is the new one.
func OwnProgram() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path, " (deleted)")
}

// handing is what an attempt's program is told of servers of the Model Context Protocol.
type handing struct {
	servers []domain.ToolServer
	args    []string
	note    string // why rouse's own is not among them; "" when it is, or is not wanted
	cleanUp func()
}

// toolServers are rouse's own server and those of the executor. Without a run's token there is nothing that rouse's could do.
func (o Options) toolServers(req Request) (h handing) {
	h.cleanUp = func() {}
	has := func(name string) bool {
		return slices.ContainsFunc(req.Environment, func(v Variable) bool { return v.Name == name && v.Value != "" })
	}
	if req.Spec.HandsTools() && o.Tools != "" && has("ROUSE_RUN_TOKEN") {
		if failure := o.mayRunTools(); failure != nil {
			h.note = "the agent's model does not get the tools of its run, because " + failure.Message + "; mcp: false of the executor leaves them out"
		} else {
			h.servers = append(h.servers, domain.ToolServer{Name: domain.RouseTools, Command: []string{o.Tools, "mcp"}, Environment: domain.ToolVariables})
		}
	}
	h.servers = append(h.servers, req.Spec.ToolServers()...)
	return h
}

// mayRunTools says why the agents' account cannot start the server of rouse's tools.
func (o Options) mayRunTools() *Failure {
	_, failure := o.findProgram(o.Tools, "/", "")
	return failure
}

// handTools tells a preset's program of the servers: by arguments and variables, and where it takes neither, by a file of this launch.
func (o Options) handTools(req *Request) handing {
	h := o.toolServers(*req)
	known, ok := preset.Find(req.Spec.Command.Preset)
	if !ok || len(h.servers) == 0 {
		return h
	}
	handed, ok := known.HandTools(h.servers)
	if !ok {
		return h
	}
	h.args = handed.Args
	var variables []Variable
	for name, value := range handed.Environment {
		variables = append(variables, Variable{name, value})
	}
	switch {
	case handed.FileVar == "":
	case os.Geteuid() != 0:
		h.note = "the agent's model does not get the tools of its run, because its program takes such settings from files of root alone, and rouse does not run as root: " +
			"run it as an ACP agent, which is told of them by the protocol"
	default:
		folder, err := o.settingsFolder(req.RunID, req.Attempt, handed.File)
		if err != nil {
			h.note = fmt.Sprintf("the agent's model does not get the tools of its run, because its program could not be told of them by a file below %s: %v", settingsRoot, err)
			break
		}
		h.cleanUp = func() { _ = os.RemoveAll(folder) } // what is left of it is removed with the leftovers of the attempt
		variables = append(variables, Variable{handed.FileVar, filepath.Join(folder, settingsFile)})
	}
	for _, v := range variables {
		if slices.ContainsFunc(req.Environment, func(own Variable) bool { return own.Name == v.Name }) {
			h.note = fmt.Sprintf("the agent's model does not get the tools of its run, because the executor sets %s, by which its program would be told of them", v.Name)
		}
	}
	req.Environment = append(variables, req.Environment...)
	return h
}

// withTools puts arguments before those that an executor adds to its preset's program.
func withTools(given []string, program string, args []string) []string {
	if len(args) == 0 {
		return given
	}
	if len(given) == 0 {
		given = []string{program}
	}
	return append(append([]string{given[0]}, args...), given[1:]...)
}

// acpServers are the servers as an ACP agent is told of them, with the values of their variables. An address is left out where the
// agent does not say that it can; note says so, "" when none is.
func (h handing) acpServers(req Request, hello acp.InitializeResponse) (list []acp.McpServer, note string) {
	value := func(name string) string {
		for _, v := range slices.Backward(req.Environment) {
			if v.Name == name {
				return v.Value
			}
		}
		return ""
	}
	list = []acp.McpServer{}
	var leftOut []string
	for _, s := range h.servers {
		if s.URL == "" {
			server := &acp.McpServerStdio{Name: s.Name, Command: s.Command[0], Args: append([]string{}, s.Command[1:]...), Env: []acp.EnvVariable{}}
			for _, name := range s.Environment {
				server.Env = append(server.Env, acp.EnvVariable{Name: name, Value: value(name)})
			}
			list = append(list, acp.McpServer{Stdio: server})
			continue
		}
		if !hello.AgentCapabilities.McpCapabilities.Http {
			leftOut = append(leftOut, s.Name)
			continue
		}
		server := &acp.McpServerHttpInline{Type: "http", Name: s.Name, Url: s.URL, Headers: []acp.HttpHeader{}}
		for _, header := range s.Headers {
			server.Headers = append(server.Headers, acp.HttpHeader{Name: header.Name, Value: value(header.Variable)})
		}
		list = append(list, acp.McpServer{Http: server})
	}
	if leftOut != nil {
		note = "the agent's model does not get the tools of " + strings.Join(leftOut, ", ") + ", because the agent does not say that it can call servers of tools over HTTP " +
			"(mcpCapabilities.http): give it a program instead (command of mcpServers), or an agent that can"
	}
	return list, note
}

// ownTool says whether a permission is asked for one of rouse's own tools, as agents name them. They act with the run's token, by the
// rules of the run, so that the policy for the agent's own tools does not concern them. A name has to be all of the title: what else is in
// it could be the agent's words.
func ownTool(title string) bool {
	for _, form := range []string{"mcp__rouse__%s", "mcp_rouse_%s", "rouse__%s", "rouse_%s", "rouse.%s", "rouse/%s", "%s (rouse MCP Server)"} {
		before, after, _ := strings.Cut(form, "%s")
		name, found := strings.CutPrefix(title, before)
		if name, ends := strings.CutSuffix(name, after); found && ends && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == "" {
			return true
		}
	}
	return false
}

// tools adds what the doctor and testExecutor say of rouse's tools.
func (p *probe) tools(o Options) {
	if !p.req.Spec.HandsTools() || o.Tools == "" {
		return
	}
	if failure := o.mayRunTools(); failure != nil {
		p.checks = append(p.checks, domain.Check{Name: "tools", Detail: p.req.mask("the agent's model does not get the tools of its run (rouse mcp), because " + failure.Message),
			Hint: "install rouse where " + o.who() + " may run it, e.g. /usr/local/bin, or set mcp: false on the executor"})
		return
	}
	p.pass("tools", "the agent's program is told of the tools of its run ("+strconv.Quote(o.Tools+" mcp")+")")
}
