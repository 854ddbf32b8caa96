package server

import (
	"context"
	"fmt"
	"os"
	"strings"

	"rouse.dev/rouse/internal/tokenfile"
	"rouse.dev/rouse/internal/xid"
)

// announce tells the person at the terminal what there is now. It goes to standard output, because it is not a log.
func (s *Server) announce(ctx context.Context) {
	echo, err := demoAgentID(ctx, s.reader)
	if err != nil {
		s.log.Warn("the demo's agent could not be looked up", "error", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rouse %s is ready.\n\n", s.options.Version)
	fmt.Fprintf(&b, "  GraphiQL   %s/%s\n", s.front.url(), s.fragment())
	fmt.Fprintf(&b, "  API        %s%s\n", s.front.url(), graphqlPath)
	if s.front.webhooks != nil {
		fmt.Fprintf(&b, "  Webhooks   %s\n", s.front.webhookURL())
	}
	if s.front.admin != nil {
		fmt.Fprintf(&b, "  Metrics    http://%s/metrics\n", s.front.admin.Addr())
	}
	fmt.Fprintf(&b, "  Token      %s\n", s.describeToken())
	fmt.Fprintf(&b, "  Data       %s\n", s.describeData())
	fmt.Fprintf(&b, "  Agents     run as %s, in %s\n", s.agents, s.files.work())
	fmt.Fprintf(&b, "  Process    %d\n", os.Getpid())
	fmt.Fprintf(&b, "\n%s\n", s.curl(echo))
	if echo != "" && !s.options.Standby {
		fmt.Fprintf(&b, "\nThe demo's routine %q fires each minute; it is paused an hour after it was made.\n", demoRoutine)
	}
	fmt.Fprintf(&b, "\nCtrl-C stops it.\n")
	_, _ = fmt.Fprint(s.options.Stdout, b.String()) // nobody is told anything when the terminal is gone
}

// fragment is what the console's address ends in: on a terminal the token, which the page takes out of its address and no
// browser sends. Elsewhere what is printed is kept, and so the token is not.
func (s *Server) fragment() string {
	if !s.options.Screen || s.front.open {
		return ""
	}
	return "#token=" + s.local.Reveal()
}

func (s *Server) describeToken() string {
	path := tokenfile.Path(s.files.dir)
	if s.front.open {
		return "none is asked (--auth none): every process of this machine, agents too, can do everything; for programs that send one: " + path
	}
	return path
}

func (s *Server) describeData() string {
	if !s.files.private {
		return "in the database of ROUSE_DATABASE_URL; files in " + s.files.dir
	}
	return fmt.Sprintf("%s (private PostgreSQL, process %d)", s.files.dir, s.db.PID())
}

// curl is a command that can be pasted into a shell. It wakes the demo's agent, or asks for the version when there is
// no demo. The header comes by a pipe, since other accounts of this machine, such as the agents', see the arguments of
// each process.
func (s *Server) curl(echo xid.ID) string {
	what, operation := "Ask something", "{ process { version } }"
	if echo != "" {
		what = "Wake the demo agent"
		operation = `mutation { wakeAgent(input: {agentId: \"` + echo.String() + `\", userId: \"me\"}) { wakeupRequest { id status } userErrors { message } } }`
	}
	return fmt.Sprintf("%s:\n\n  sed 's/^/Authorization: Bearer /' %s |\n    curl -sS %s%s -H @- -H 'Content-Type: application/json' \\\n    -d '{\"query\": \"%s\"}'",
		what, quoted(tokenfile.Path(s.files.dir)), s.front.url(), graphqlPath, operation)
}

// quoted is a path as a shell reads it.
func quoted(path string) string {
	if strings.IndexFunc(path, func(r rune) bool { return !strings.ContainsRune("/._-+@:", r) && !isPlain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func isPlain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
