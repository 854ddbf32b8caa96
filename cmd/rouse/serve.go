package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

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
	err := server.Run(stop, hurry, server.Options{Config: c, Demo: s.Demo, Standby: s.Standby, Version: version(), Stdout: stdout, Log: log})
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// signals gives a context that ends with the first signal and one that ends with the second.
func signals() (stop, hurry context.Context, release func()) {
	stop, first := context.WithCancel(context.Background())
	hurry, second := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for _, end := range []context.CancelFunc{first, second} {
			select {
			case <-got:
				end()
			case <-done:
				return
			}
		}
		signal.Stop(got) // the third ends the process
	}()
	return stop, hurry, func() { close(done); first(); second() }
}

type migrateCommand struct{ placeFlags }

// Run migrates.
func (m migrateCommand) Run() error {
	c := m.config()
	if err := c.Validate(); err != nil {
		return err
	}
	return server.Migrate(context.Background(), c, logger(c, os.Stderr))
}
