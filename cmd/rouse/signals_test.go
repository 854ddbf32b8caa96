package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

// What a process ignores, the programs that it starts ignore, too. So the tests that change it run before those that run side by side.

func TestAClosedTerminalIsAShutdown(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // else the program inherits that it is ignored, where the tests run under nohup
	defer signal.Stop(heard)
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	if code := p.end(syscall.SIGHUP); code != 0 {
		t.Errorf("exit %d:\n%s", code, p.log)
	}
	if address, running := postgres.RunningURL(data+"/postgres", ""); running {
		t.Errorf("its database still runs at %s", address)
	}
}

func TestAHangUpCountsOnce(t *testing.T) {
	t.Parallel()
	got := make(chan os.Signal, 3)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM} {
		got <- s
	}
	stopping, stop := context.WithCancel(t.Context())
	if !await(got, stopping, nil) || len(got) != 2 {
		t.Fatalf("the first did not count: %d are left", len(got))
	}
	stop()
	if !await(got, stopping, nil) || len(got) != 0 {
		t.Errorf("the second counted: %d are left", len(got))
	}
}

func TestAnIgnoredHangUpStaysIgnored(t *testing.T) { // as nohup makes it
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	stop, hurry, release := signals()
	defer release()
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("it is not ignored any more")
	}
	for _, step := range []struct {
		ctx context.Context
		s   syscall.Signal
	}{{stop, syscall.SIGTERM}, {hurry, syscall.SIGINT}} {
		if err := syscall.Kill(os.Getpid(), step.s); err != nil {
			t.Fatal(err)
		}
		select {
		case <-step.ctx.Done():
		case <-time.After(patience):
			t.Fatalf("%s did not count", step.s)
		}
	}
}

// TestATermForAllEndsAgentsAsTheServerDoes: as a service manager sends it to a whole control group.
func TestATermForAllEndsAgentsAsTheServerDoes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := furnish(office{newJourney(h.start(t)), newWorkshop(t), h})
	a := o.worker("worker")
	o.hold(a)
	o.wake(a)
	run := o.wantWake(a, 1, "USER")
	agents := processesOf(t, run)
	if err := o.program.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server hears of it", patience, func() bool { return strings.Contains(o.program.log.String(), "shutting down") })
	for _, pid := range agents {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
	if code := o.program.wait(); code != 0 {
		t.Errorf("exit %d:\n%s", code, o.log)
	}
	o.letGo(a)
	o.journey = journey{h.start(t), o.workspace}
	eventually(t, "the run ends", patience, func() bool { return o.program.run(run).Status == "FINISHED" })
	if got := o.program.run(run).attempts(); got != "INTERRUPTED SUCCEEDED" {
		t.Errorf("the attempts are %s", got)
	}
}
