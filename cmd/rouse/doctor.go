package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/server"
)

// doctorCommand works beside a running server, too. Run it as the account that the server runs as.
type doctorCommand struct {
	placeFlags
	agentFlags
	HTTPAllow string        `name:"http-allow" env:"ROUSE_HTTP_ALLOW" placeholder:"RANGES" help:"As for serve."`
	SecretKey secret.String `name:"secret-key" hidden:"" env:"ROUSE_SECRET_KEY"`
	Ask       bool          `help:"Also give each agent a trivial prompt and wait for its answer; it may cost money."`
}

// errUnwell is the exit code of a doctor that has found something; what it is has been printed.
var errUnwell = errors.New("something does not work; see the lines marked FAIL")

// Run examines and prints a line for each finding, and below a bad one what to do.
func (d doctorCommand) Run(stdout io.Writer) error {
	c := d.agentFlags.apply(d.config())
	c.HTTPAllow, c.SecretKey = d.HTTPAllow, d.SecretKey
	if err := c.Validate(); err != nil {
		return err
	}
	return interruptible(func(ctx context.Context) error {
		var written error
		well := server.Doctor(ctx, c, d.Ask, logger(c, os.Stderr), func(f server.Finding) {
			if _, err := io.WriteString(stdout, lineOf(f)); err != nil {
				written = err
			}
		})
		switch {
		case written != nil:
			return written
		case ctx.Err() != nil:
			return ctx.Err()
		case !well:
			return errUnwell
		}
		return nil
	})
}

// lineOf is a finding as it is printed. What names of records and agents' programs say reaches no terminal as it is.
func lineOf(f server.Finding) string {
	mark := "FAIL"
	if f.OK {
		mark = "ok"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-5s", mark)
	if f.Subject != "" {
		fmt.Fprintf(&b, "%s: ", domain.Escaped(f.Subject, false))
	}
	fmt.Fprintf(&b, "%s: %s\n", f.Name, strings.ReplaceAll(domain.Escaped(f.Detail, true), "\n", "\n     "))
	if f.Hint != "" {
		fmt.Fprintf(&b, "     → %s\n", domain.Escaped(f.Hint, true))
	}
	return b.String()
}
