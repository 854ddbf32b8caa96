//go:build unix

package executor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/git"
)

// gitGrace is how long git may take to end when it is asked to.
const gitGrace = 2 * time.Second

// gitAs calls git as the agents' account, with what the executor's environment says about it, and none of the run's own variables: git
// needs no token.
func (c *launcher) gitAs(o Options, req Request) git.Git {
	base := []Variable{{"GIT_SSH_COMMAND", "ssh -oBatchMode=yes"}, {"GIT_ASKPASS", ""}, {"SSH_ASKPASS", ""}}
	for _, v := range req.Environment {
		if !strings.HasPrefix(v.Name, "ROUSE_") && !git.Foreign(v.Name) {
			base = append(base, v)
		}
	}
	req.ResumeSessionID = ""
	return git.Git{Run: func(ctx context.Context, call git.Command) (git.Output, error) {
		req := req
		req.Environment = base[:len(base):len(base)]
		for _, text := range call.Env {
			name, value, _ := strings.Cut(text, "=")
			req.Environment = append(req.Environment, Variable{name, value})
		}
		l, failure := o.prepareIn(req, call.Argv, func() (string, *Failure) { return cmp.Or(call.Dir, "/"), nil })
		if failure != nil {
			return git.Output{}, failure
		}
		out, failure := c.capture(ctx, l, call.Limit, call.Most)
		if failure != nil {
			return out, failure
		}
		return out, nil
	}}
}

// capture runs a program that answers on standard output, and ends it after a time.
func (c *launcher) capture(ctx context.Context, l launch, limit time.Duration, most int) (git.Output, *Failure) {
	p, failure := c.start(l)
	if failure != nil {
		return git.Output{Code: -1}, failure
	}
	stdout, errors := &bounded{most: most}, newOutput(Request{}, &listener{})
	p.communicate("", errors, func(r io.Reader) { _, _ = io.Copy(stdout, r) }) // the end, or the reader was told to give up
	end := p.supervise(ctx, limits{limit, gitGrace}, nil)
	p.end(c.options.Drain, errors)
	var result Result
	state := c.reap(p, &result)
	out := git.Output{Stdout: stdout.buffer.String(), Cut: stdout.cut, Stderr: errors.errorText(), Code: result.ExitCode}
	switch {
	case end.stopped:
		return out, endedFromOutside(ctx)
	case end.timedOut:
		out.Code, out.Stderr = max(out.Code, 1), fmt.Sprintf("%s\nit did not end within %s and was ended", out.Stderr, limit)
	case state == nil:
		return out, &Failure{Code: domain.RunErrorCodeLaunch, Message: l.program + " hangs in the operating system and could not be ended: look at its disk or network"}
	}
	return out, nil
}

// bounded keeps the first bytes of what is written, and takes the rest.
type bounded struct {
	buffer bytes.Buffer
	most   int
	cut    bool
}

// Write keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	room := max(b.most-b.buffer.Len(), 0)
	b.cut = b.cut || len(p) > room
	b.buffer.Write(p[:min(room, len(p))])
	return len(p), nil
}
