package graph

import (
	"regexp"
	"slices"
	"strconv"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
)

// toolServersMax bounds the servers of tools of an executor, and the headers of each.
const toolServersMax = 20

var toolServerName = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// toolServers are an executor's own servers of the Model Context Protocol. Their secrets are among its variables.
func toolServers(list []*model.McpServerInput) (out []domain.ToolServer) {
	for _, s := range list {
		server := domain.ToolServer{Name: s.Name, Command: s.Command, Environment: s.Environment, URL: valueOf(s.URL)}
		for _, h := range s.Headers {
			server.Headers = append(server.Headers, domain.ToolHeader{Name: h.Name, Variable: h.Variable})
		}
		out = append(out, server)
	}
	return out
}

func checkToolServers(r *inputProblems, list []*model.McpServerInput, variables []*model.NameValueInput, path []string) {
	if len(list) > toolServersMax {
		r.add(path, domain.UserErrorCodeTooLong, "must be at most %d servers", toolServersMax)
		return
	}
	seen := map[string]bool{domain.RouseTools: true}
	for i, s := range list {
		at := below(path, strconv.Itoa(i))
		switch {
		case !toolServerName.MatchString(s.Name):
			r.add(below(at, "name"), domain.UserErrorCodeInvalid, "must be 1 to 32 small letters, digits, - and _")
		case seen[s.Name]:
			r.add(below(at, "name"), domain.UserErrorCodeInvalid, "%s is the name of another server", s.Name)
		}
		seen[s.Name] = true
		if (len(s.Command) == 0) == (s.URL == nil) {
			r.add(at, domain.UserErrorCodeInvalid, "give either the command that starts the server, or its url")
			continue
		}
		if s.URL == nil {
			checkArguments(r, s.Command, below(at, "command"))
		} else {
			checkURL(r, *s.URL, below(at, "url"))
		}
		for j, name := range s.Environment {
			checkOwnVariable(r, name, variables, below(at, "environment", strconv.Itoa(j)))
		}
		checkToolHeaders(r, s, variables, below(at, "headers"))
	}
}

func checkToolHeaders(r *inputProblems, s *model.McpServerInput, variables []*model.NameValueInput, path []string) {
	if len(s.Headers) > toolServersMax || len(s.Headers) > 0 && s.URL == nil {
		r.add(path, domain.UserErrorCodeInvalid, "must be at most %d headers, of a server with a url", toolServersMax)
		return
	}
	for i, h := range s.Headers {
		if !headerName.MatchString(h.Name) {
			r.add(below(path, strconv.Itoa(i), "name"), domain.UserErrorCodeInvalid, "must be the name of an HTTP header, e.g. Authorization")
		}
		checkOwnVariable(r, h.Variable, variables, below(path, strconv.Itoa(i), "variable"))
	}
}

// checkOwnVariable holds that a name is that of a variable of the same executor.
func checkOwnVariable(r *inputProblems, name string, variables []*model.NameValueInput, path []string) {
	if !slices.ContainsFunc(variables, func(v *model.NameValueInput) bool { return v.Name == name }) {
		r.add(path, domain.UserErrorCodeNotFound, "there is no variable %q in the executor's environment: give it there, where its value is stored encrypted", name)
	}
}

// toolServersOf shows servers.
func toolServersOf(list []domain.ToolServer) []*model.McpServer {
	out := make([]*model.McpServer, len(list))
	for i, s := range list {
		server := &model.McpServer{Name: s.Name, Command: append([]string{}, s.Command...), Environment: append([]string{}, s.Environment...), Headers: []*model.McpHeader{}}
		if s.URL != "" {
			server.URL = &s.URL
		}
		for _, h := range s.Headers {
			server.Headers = append(server.Headers, &model.McpHeader{Name: h.Name, Variable: h.Variable})
		}
		out[i] = server
	}
	return out
}
