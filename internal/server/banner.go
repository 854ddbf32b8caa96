package server

import (
	"context"
	"fmt"
	"os"
	"strings"

	"rouse.dev/rouse/internal/xid"
)

// announce tells the person at the terminal what there is now. It is no log: it goes to standard output.
func (s *Server) announce(ctx context.Context) {
	echo, err := demoAgentID(ctx, s.reader)
	if err != nil {
		s.log.Warn("the demo's agent could not be looked up", "error", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rouse %s is ready.\n\n", s.options.Version)
	fmt.Fprintf(&b, "  GraphiQL   %s/\n", s.front.url())
	fmt.Fprintf(&b, "  API        %s%s\n", s.front.url(), graphqlPath)
	if s.front.admin != nil {
		fmt.Fprintf(&b, "  Metrics    http://%s/metrics\n", s.front.admin.Addr())
	}
	fmt.Fprintf(&b, "  Data       %s\n", s.describeData())
	fmt.Fprintf(&b, "  Agents     run as %s, in %s\n", s.agents, s.files.work())
	fmt.Fprintf(&b, "  Process    %d\n", os.Getpid())
	if echo != "" {
		fmt.Fprintf(&b, "\nWake the demo agent%s:\n\n%s\n", s.tokenHint(), s.wakeCommand(echo))
	}
	fmt.Fprintf(&b, "\nCtrl-C stops it.\n")
	_, _ = fmt.Fprint(s.options.Stdout, b.String()) // nobody is told anything when the terminal is gone
}

func (s *Server) describeData() string {
	if !s.files.private {
		return "in the database of ROUSE_DATABASE_URL; files in " + s.files.dir
	}
	return fmt.Sprintf("%s (private PostgreSQL, process %d)", s.files.dir, s.db.PID())
}

// tokenHint says where the token of the command below comes from.
func (s *Server) tokenHint() string {
	if s.front.loopback {
		return ""
	}
	return ", with a token of yours in ROUSE_TOKEN (rouse token create makes one)"
}

// wakeCommand is a curl that can be pasted into a shell.
func (s *Server) wakeCommand(agent xid.ID) string {
	token := ""
	if !s.front.loopback {
		token = ` -H "Authorization: Bearer $ROUSE_TOKEN"`
	}
	mutation := `mutation { wakeAgent(input: {agentId: \"` + agent.String() + `\", userId: \"me\"}) { wakeupRequest { id status } userErrors { message } } }`
	return fmt.Sprintf("  curl -sS %s%s -H 'Content-Type: application/json'%s \\\n    -d '{\"query\": \"%s\"}'", s.front.url(), graphqlPath, token, mutation)
}
