//go:build unix

package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
	"rouse.dev/rouse/internal/preset"
)

// TestPrompt is what an agent is asked to see whether it answers.
const TestPrompt = "This is a test of the connection. Do not use any tool, change nothing and start nothing. Answer with the one word: ready.\n"

// versionLimit bounds how long a program may take to say its version.
const versionLimit = 20 * time.Second

// Probe checks whether the executor of req works here, one thing after the other, and stops at the first that does not.
// With ask it also gives the agent req's prompt, which may cost money. ctx bounds it.
func (r Registry) Probe(ctx context.Context, req Request, ask bool) []domain.Check {
	p := &probe{registry: r, req: req}
	switch kind := req.Spec.Kind(); kind {
	case "":
		p.fail("executor", "none is set for this agent", "set one on the agent, or a default on the workspace")
		return p.checks
	case domain.ExecutorEcho:
		p.checks = append(p.checks, domain.Check{Name: "executor", OK: true, Detail: "echo answers with its prompt; it is no agent", Hint: "set another executor to have real work done"})
	case domain.ExecutorHTTP:
		p.connection(ctx)
	case domain.ExecutorCommand:
		p.program(ctx, req.Spec.Command.Argv, req.Spec.Command.WorkingDirectory)
	case domain.ExecutorACP:
		if _, argv, failure := commandLineOf(req.Spec.ACP); failure != nil {
			p.fail("preset", failure.Message, "use one of these")
		} else {
			p.program(ctx, argv, req.Spec.ACP.WorkingDirectory)
		}
	}
	if ask && !p.failed {
		p.answer(ctx)
	}
	return p.checks
}

// probe collects checks.
type probe struct {
	registry Registry
	req      Request
	checks   []domain.Check
	failed   bool
	folder   string // the agent's own, when it is there
}

func (p *probe) pass(name, detail string) {
	p.checks = append(p.checks, domain.Check{Name: name, OK: true, Detail: p.req.mask(detail)})
}

func (p *probe) fail(name, detail, hint string) {
	p.failed = true
	p.checks = append(p.checks, domain.Check{Name: name, Detail: cutText(p.req.mask(domain.StorableText(detail)), maxTail), Hint: hint})
}

// program looks for the program and the folder, and asks a preset's program for its version.
func (p *probe) program(ctx context.Context, argv []string, folder string) {
	command, ok := p.registry[domain.ExecutorCommand].(*Command)
	if !ok {
		p.fail("program", "this process starts no programs", "ask the process that runs the agents")
		return
	}
	var known *preset.Preset
	if c := p.req.Spec.Command; c != nil && c.Preset != "" {
		found, ok := preset.Find(c.Preset)
		if !ok {
			p.fail("preset", fmt.Sprintf("%q is not known", c.Preset), "use one of "+strings.Join(preset.Names(), ", "))
			return
		}
		known, argv = &found, found.Argv(argv, "")
	}
	o, failure := command.options.of(p.req.WorkspaceID)
	if failure != nil {
		p.fail("account", failure.Message, "see the log of rouse; --agent-uids gives another range, --agent-user one account for all")
		return
	}
	where, later, failure := o.lookAtFolder(folder, p.req.AgentID)
	if failure != nil {
		p.fail("folder", failure.Message, folderHint(folder, o))
		return
	}
	l, failure := o.prepareIn(p.req, argv, func() (string, *Failure) { return where, nil })
	if failure != nil {
		p.fail("program", failure.Message, "it has to be there for "+o.who())
		return
	}
	if later != "" {
		where, l.directory = where+", "+later, "/"
	} else if folder == "" {
		p.folder = where
	}
	p.pass("program", l.program+" in "+where)
	if spec := p.req.Spec.Checkout(); spec != nil {
		p.checkout(ctx, command, o, spec)
	} else if folder != "" {
		p.workFolder(ctx, command, o, where)
	}
	if known != nil && !p.failed {
		p.version(ctx, command, *known, l)
		p.login(ctx, command, *known, l)
	}
	p.tools(o)
}

// login asks a preset's program whether it is logged in, where it can tell at no cost. A program that is not may have a key in the
// executor's environment, of which some programs say nothing here: then the answer tells. So it does for a version without the command.
func (p *probe) login(ctx context.Context, command *Command, known preset.Preset, l launch) {
	if p.failed || len(known.LoginStatus) == 0 {
		return
	}
	req := p.req
	req.Prompt, req.Spec = "", domain.ExecutorSpec{Command: &domain.CommandSpec{
		Argv: append([]string{l.program}, known.LoginStatus...), WorkingDirectory: l.directory, Timeout: versionLimit, Grace: time.Second}}
	result, _ := command.Run(ctx, req, &listener{}) // its exit code is a part of the answer, which its output tells
	switch said := strings.Join(strings.Fields(result.Tail), " "); {
	case strings.Contains(said, `"loggedIn": true`), strings.Contains(said, "Logged in"):
		p.pass("login", "the program says that it is logged in")
	case (strings.Contains(said, `"loggedIn": false`) || strings.Contains(said, "Not logged in")) && !hasKey(req.Environment):
		p.fail("login", "the program says that it is not logged in", "log it in as the account that agents run as (rouse agent-shell --workspace "+
			cmp.Or(p.req.WorkspaceID.String(), "SLUG")+"), or give it its key in the executor's environment")
	}
}

// hasKey says whether an environment seems to hold a key for a model's provider.
func hasKey(environment []Variable) bool {
	return slices.ContainsFunc(environment, func(v Variable) bool {
		return v.Value != "" && !strings.HasPrefix(v.Name, "ROUSE_") && (strings.HasSuffix(v.Name, "_KEY") || strings.HasSuffix(v.Name, "_TOKEN"))
	})
}

func folderHint(folder string, o Options) string {
	if folder != "" {
		return fmt.Sprintf("make it, let %s enter each folder on the way (chmod o+x), or change workingDirectory of the executor", o.who())
	}
	return "agents' folders belong to the account that the server's agents run as: call the doctor as the account that the server runs as, with its --agent-user, --agent-uids and --data-dir; " +
		"if that account has changed, give it the folder (chown -R); or set workingDirectory of the executor"
}

func (p *probe) version(ctx context.Context, command *Command, known preset.Preset, l launch) {
	req := p.req
	req.Prompt, req.Spec = "", domain.ExecutorSpec{Command: &domain.CommandSpec{
		Argv: append([]string{l.program}, known.Version...), WorkingDirectory: l.directory, Timeout: versionLimit, Grace: time.Second}}
	said := &listener{}
	if _, err := command.Run(ctx, req, said); err != nil {
		p.fail("version", err.Error(), "see "+known.Documentation+" for how to install it")
		return
	}
	p.pass("version", cmp.Or(said.first(), "it printed nothing"))
}

// connection connects to an agent service, without asking it anything.
func (p *probe) connection(ctx context.Context) {
	service, ok := p.registry[domain.ExecutorHTTP].(*HTTP)
	u, err := url.Parse(p.req.Spec.HTTP.URL)
	if !ok || err != nil {
		p.fail("connection", "this process calls no services, or the url is none", "correct the executor's url")
		return
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80")
	conn, err := service.allow.Dial(outbound.WithScheme(ctx, p.req.Spec.HTTP.URL), "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		c := &httpCall{req: p.req}
		p.fail("connection", c.connectionFailure(err).Message, connectionHint(err))
		return
	}
	p.pass("connection", "connected to "+conn.RemoteAddr().String())
	_ = conn.Close() // nothing was said on it
}

// connectionHint is what to do about a service that could not be reached.
func connectionHint(err error) string {
	var refused *outbound.RefusedAddress
	var dns *net.DNSError
	switch {
	case errors.As(err, &refused) && refused.Plain:
		return "let the executor's url begin with https"
	case errors.As(err, &refused):
		return fmt.Sprintf("start rouse, and the doctor, with --http-allow %s (ROUSE_HTTP_ALLOW), or correct the executor's url", refused.Prefix())
	case errors.As(err, &dns):
		return "correct the executor's url, or this machine's name service"
	}
	return "see whether the service runs, and whether this machine may reach it"
}

// answer gives the agent the prompt.
func (p *probe) answer(ctx context.Context) {
	executor, err := p.registry.Find(p.req.Spec)
	if err != nil {
		p.fail("answer", err.Error(), "")
		return
	}
	req := p.req
	req.Test = true
	if c, a := req.Spec.Command, req.Spec.ACP; c != nil && c.WorkingDirectory == "" || a != nil && a.WorkingDirectory == "" {
		folder, remove, err := p.place()
		if err != nil {
			p.fail("answer", "there is no folder to ask the agent in: "+err.Error(), "see whether the temporary folder (TMPDIR) can be written")
			return
		}
		defer remove()
		req = req.in(folder)
	}
	began, said := time.Now(), &listener{}
	result, err := executor.Run(ctx, req, said)
	switch {
	case err == nil && result.Accepted != nil: // a service that accepts has shown that it works
		p.pass("answer", "the service accepted the run")
	case errors.Is(err, context.DeadlineExceeded):
		p.fail("answer", "there was no answer in the time that there was; what it said so far: "+cmp.Or(said.first(), "nothing"), "an agent that needs longer is tested by waking it")
	case err != nil:
		p.fail("answer", err.Error(), "run it by hand as the account that agents run as (rouse agent-shell --workspace "+cmp.Or(p.req.WorkspaceID.String(), "SLUG")+"); it may have to be logged in there, or need a key in its environment")
	default:
		p.pass("answer", fmt.Sprintf("after %s: %s", time.Since(began).Round(time.Millisecond), cmp.Or(answerOf(result.Object), said.first(), "it ended well and printed nothing")))
	}
}

// place is where the agent is asked: its own folder as it is, or, since its first run alone makes that, one that goes again.
func (p *probe) place() (folder string, remove func(), err error) {
	command, ok := p.registry[domain.ExecutorCommand].(*Command)
	if p.folder != "" || !ok {
		return p.folder, func() {}, nil
	}
	folder, err = os.MkdirTemp("", "rouse-test-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) } // what is left of it is in the way of nobody
	o, failure := command.options.of(p.req.WorkspaceID)
	if failure != nil {
		remove()
		return "", nil, failure
	}
	if err := o.own(folder); err != nil {
		remove()
		return "", nil, err
	}
	return folder, remove, nil
}

// answerOf is the text of a result, on one line.
func answerOf(object map[string]any) string {
	text := firstText(object["summary"], object["result"], object["message"])
	return cutText(strings.Join(strings.Fields(text), " "), 200)
}

// listener is a sink that keeps the first lines.
type listener struct {
	mu    sync.Mutex
	lines []string

	answered bool // the first line is one of standard output
}

// Process takes note of nothing: what is probed is ended before Probe returns.
func (l *listener) Process(ProcessGroup) error { return nil }

// Session takes note of nothing.
func (l *listener) Session(string) error { return nil }

// WorkingCopy takes note of nothing.
func (l *listener) WorkingCopy(domain.WorkingCopy) error { return nil }

// Progress takes note of nothing.
func (l *listener) Progress(map[string]any) {}

// Line keeps the first lines, those of standard output before those of standard error: a version comes on the one, and
// warnings on the other.
func (l *listener) Line(stream domain.LogStream, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text = strings.TrimSpace(text)
	switch {
	case text == "":
	case stream == domain.LogStreamStdout && !l.answered:
		l.lines, l.answered = append([]string{text}, l.lines...), true
	case len(l.lines) < 3:
		l.lines = append(l.lines, text)
	}
}

func (l *listener) first() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return ""
	}
	return cutText(l.lines[0], 200)
}
