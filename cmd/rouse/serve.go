package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"rouse.dev/rouse/internal/server"
)

type serveCommand struct {
	placeFlags
	serveFlags
	retentionFlags
	Standby bool `help:"Serve the API alone: no schedule fires and no run begins. For a restored copy: pause there what must not go on, then start without this."`
	Demo    bool `help:"Make the demo workspace in an empty database; a private one gets it anyway."`
}

// Run serves until SIGINT or SIGTERM; a second one ends live runs at once, a third the process.
func (s serveCommand) Run(stdout io.Writer) error {
	c := s.retentionFlags.apply(s.serveFlags.apply(s.config()))
	if err := c.Validate(); err != nil {
		return err
	}
	log := logger(c, os.Stderr)
	stop, hurry, release := signals()
	defer release()
	err := server.Run(stop, hurry, server.Options{Config: c, Demo: s.Demo, Standby: s.Standby, Version: version(), Stdout: stdout, Screen: isTerminal(stdout), Log: log})
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// isTerminal says whether a person reads what is written there, and nobody keeps it.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// signals gives a context that ends with the first signal and one that ends with the second. A terminal that is closed may
// hang up more than once, which is no hurry; where a hang-up is ignored (nohup), it stays so.
func signals() (stop, hurry context.Context, release func()) {
	stop, first := context.WithCancel(context.Background())
	hurry, second := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		for _, end := range []context.CancelFunc{first, second} {
			if !await(got, stop, done) {
				return
			}
			end()
		}
		signal.Stop(got) // the third ends the process
	}()
	return stop, hurry, func() { close(done); first(); second() }
}

// interruptible does a task that SIGINT and SIGTERM break off: it still ends what it has started, such as a private database. A third
// signal ends the process at once.
func interruptible(do func(context.Context) error) error {
	stop, _, release := signals()
	defer release()
	err := do(stop)
	if err != nil && stop.Err() != nil {
		return fmt.Errorf("a signal ended this before it was done; call it again: %w", err)
	}
	return err
}

// await waits for a signal that counts; false when done comes first.
func await(got <-chan os.Signal, stopping context.Context, done <-chan struct{}) bool {
	for {
		select {
		case s := <-got:
			if s != syscall.SIGHUP || stopping.Err() == nil {
				return true
			}
		case <-done:
			return false
		}
	}
}

type migrateCommand struct{ placeFlags }

// Run migrates.
func (m migrateCommand) Run() error {
	c := m.config()
	if err := c.Validate(); err != nil {
		return err
	}
	return interruptible(func(ctx context.Context) error { return server.Migrate(ctx, c, logger(c, os.Stderr), os.Stdout) })
}
