package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/server"
)

// pruneCommand works beside a running server, which prunes by itself every ten minutes.
type pruneCommand struct {
	placeFlags
	retentionFlags
	DryRun bool `name:"dry-run" help:"Say what would be removed, and remove nothing."`
}

// Run prints how many rows of each kind were, or would be, removed.
func (p pruneCommand) Run(stdout io.Writer) error {
	c := p.apply(p.config())
	if err := errors.Join(c.Validate(), server.MustExist(c)); err != nil {
		return err
	}
	return interruptible(func(ctx context.Context) error {
		db, err := server.OpenDatabase(ctx, c, logger(c, os.Stderr))
		if err != nil {
			return err
		}
		removed, err := server.Prune(ctx, db, c.Retention(), p.DryRun)
		if err = errors.Join(err, db.Close()); err != nil && removed == (domain.Removed{}) {
			return err
		}
		return errors.Join(err, p.tell(stdout, removed)) // what could not be removed kept nothing else
	})
}

func (p pruneCommand) tell(stdout io.Writer, r domain.Removed) error {
	heading := "REMOVED"
	if p.DryRun {
		heading = "WOULD BE REMOVED"
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "%s\t\t\n", heading) // Flush tells of errors
	for _, line := range []struct {
		what string
		n    int
	}{
		{"runs", r.Runs}, {"requests without a run", r.Requests}, {"activity entries", r.Activities}, {"handled inbox items", r.InboxItems},
		{"webhook deliveries", r.Deliveries}, {"notifications", r.Notifications}, {"tests of notification channels", r.NotificationTests}, {"routine runs", r.RoutineRuns}, {"mutation keys", r.MutationKeys},
	} {
		_, _ = fmt.Fprintf(w, "%s\t%d\t\n", line.what, line.n)
	}
	return w.Flush()
}
