package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/server"
	"rouse.dev/rouse/internal/xid"
)

// tokenCommand works beside a running server, too.
type tokenCommand struct {
	Create tokenCreate `cmd:"" help:"Make a token and print it; it is shown this once."`
	List   tokenList   `cmd:"" help:"List tokens."`
	Revoke tokenRevoke `cmd:"" help:"End a token now."`
	Rotate tokenRotate `cmd:"" name:"rotate-local" help:"Give the data folder another token, and end the one that it had."`
}

// withExistingTokens is withTokens for what makes no sense without a database that a server has made.
func withExistingTokens(f placeFlags, do func(context.Context, *server.Tokens) error) error {
	if err := server.MustExist(f.config()); err != nil {
		return err
	}
	return openTokens(f, server.OpenDatabase, do)
}

// withTokens opens the database, or makes it.
func withTokens(f placeFlags, do func(context.Context, *server.Tokens) error) error {
	return openTokens(f, server.OpenOrMakeDatabase, do)
}

type opener func(context.Context, config.Config, *slog.Logger) (*server.Database, error)

// openTokens opens the database for one task.
func openTokens(f placeFlags, open opener, do func(context.Context, *server.Tokens) error) error {
	c := f.config()
	if err := c.Validate(); err != nil {
		return err
	}
	return interruptible(func(ctx context.Context) error {
		db, err := open(ctx, c, logger(c, os.Stderr))
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, server.NewTokens(db)), db.Close())
	})
}

type tokenCreate struct {
	placeFlags
	Name      string         `default:"cli" help:"What it is for."`
	Scope     []string       `default:"ADMIN" help:"READ, OPERATE (includes READ), ADMIN (includes both) or EXECUTE (for workers)."`
	Workspace string         `placeholder:"SLUG" help:"Bind it to this workspace, by slug or id; without, it is a token of the instance."`
	Expires   *time.Duration `placeholder:"DURATION" help:"End it after this long, such as 720h; without, it ends when it is revoked."`
}

// Run makes a token. Only the token goes to standard output, so that TOKEN=$(rouse token create) works.
func (t tokenCreate) Run(stdout io.Writer) error {
	in := server.TokenSpec{Name: t.Name, Workspace: t.Workspace}
	if t.Expires != nil {
		if *t.Expires <= 0 {
			return config.Invalid(fmt.Errorf("--expires=%s is no time to come: give a positive duration such as 720h, or leave it out", *t.Expires))
		}
		in.Expires = *t.Expires
	}
	for _, scope := range t.Scope {
		in.Scopes = append(in.Scopes, domain.TokenScope(strings.ToUpper(scope)))
	}
	if err := in.Check(); err != nil {
		return config.Invalid(fmt.Errorf("--scope: %w", err))
	}
	open := withTokens
	if t.Workspace != "" { // there is none of that name in a folder that is new
		open = withExistingTokens
	}
	return open(t.placeFlags, func(ctx context.Context, tokens *server.Tokens) error {
		made, err := tokens.Create(ctx, in)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stderr, t.about(made.ID)) // who reads no errors is told nothing
		_, err = fmt.Fprintln(stdout, made.Text)
		return err
	})
}

// about says what was made: its scopes, whose it is, and until when.
func (t tokenCreate) about(id xid.ID) string {
	of, until := "the instance (all workspaces)", "until it is revoked"
	if t.Workspace != "" {
		of = "the workspace " + t.Workspace
	}
	if t.Expires != nil {
		until = "for " + t.Expires.String()
	}
	return fmt.Sprintf("made %s %q: %s for %s, %s; its text is shown this once", id, t.Name, strings.ToUpper(strings.Join(t.Scope, ", ")), of, until)
}

type tokenList struct{ placeFlags }

// Run lists the tokens, newest first.
func (t tokenList) Run(stdout io.Writer) error {
	return withExistingTokens(t.placeFlags, func(ctx context.Context, tokens *server.Tokens) error {
		rows, err := tokens.List(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ID\tNAME\tPREFIX\tSCOPES\tWORKSPACE\tSTATE") // Flush tells of errors
		for _, r := range rows {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, domain.Escaped(r.Name, false), r.Prefix, r.Scopes, r.Workspace, r.State)
		}
		return w.Flush()
	})
}

type tokenRevoke struct {
	placeFlags
	ID string `arg:"" help:"Id of the token (tok_…), as the list shows it."`
}

// Run revokes a token; sockets opened with it are closed by the server within seconds.
func (t tokenRevoke) Run(stdout io.Writer) error {
	return withExistingTokens(t.placeFlags, func(ctx context.Context, tokens *server.Tokens) error {
		if err := tokens.Revoke(ctx, xid.ID(t.ID)); err != nil {
			return err
		}
		_, err := fmt.Fprintln(stdout, t.ID, "is revoked")
		return err
	})
}

type tokenRotate struct{ placeFlags }

// Run replaces the token in the data folder, beside a running server too; sockets opened with the old one are closed
// within seconds.
func (t tokenRotate) Run(stdout io.Writer) error {
	return withExistingTokens(t.placeFlags, func(ctx context.Context, tokens *server.Tokens) error {
		id, path, err := tokens.RotateLocal(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s holds another token, %s; the one before is revoked\n", path, id)
		return err
	})
}
