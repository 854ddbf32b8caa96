package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
)

// witness tells of an agent's process, and that it is at work.
type witness struct {
	group executor.ProcessGroup
	works chan struct{}
}

func (w *witness) Process(g executor.ProcessGroup) error { w.group = g; return nil }
func (w *witness) Session(string) error                  { return nil }
func (w *witness) Progress(map[string]any)               {}
func (w *witness) WorkingCopy(domain.WorkingCopy) error  { return nil }
func (w *witness) Line(domain.LogStream, string)         { close(w.works) }

// TestTheServerOfACopyLeavesTheAgentsOfTheOriginalAlone: its rows say the same as those of the database it was copied from.
func TestTheServerOfACopyLeavesTheAgentsOfTheOriginalAlone(t *testing.T) {
	var names [2]string
	for i := range names {
		db, _ := pgtest.NewURL(t)
		var err error
		if names[i], err = (&Database{DB: db, files: files{dir: "/data"}}).identity(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if names[0] == names[1] {
		t.Fatalf("both databases are called %s", names[0])
	}
	original, dup := leftovers{names[0]}, leftovers{names[1]}
	command := executor.NewCommand(agentAccount{}.options(config.Default(), pgtest.Folder(t), original.installation))
	defer func() {
		if err := command.Close(); err != nil {
			t.Error(err)
		}
	}()
	w, ended := &witness{works: make(chan struct{})}, make(chan error, 1)
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		_, err := command.Run(ctx, executor.Request{RunID: "run_1", AgentID: "agt_1", Attempt: 1, Spec: domain.ExecutorSpec{
			Command: &domain.CommandSpec{Argv: []string{"/bin/sh", "-c", "echo works; exec sleep 1000"}, WorkingDirectory: "/", Timeout: time.Minute}}}, w)
		ended <- err
	}()
	<-w.works
	row := store.Leftover{Attempt: store.Attempt{RunID: "run_1", Number: 1},
		Group: store.ProcessGroup{Host: w.group.Host, BootID: w.group.BootID, PGID: w.group.PGID, Started: int64(w.group.StartTime)}}
	unrecorded := row
	unrecorded.Group.PGID, unrecorded.Group.BootID = 0, executor.BootOf(bootOf(t, w.group.BootID, names[0]), names[1])
	for name, l := range map[string]store.Leftover{"as it is": row, "without a group": unrecorded} {
		if err := dup.EndLeftover(t.Context(), l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	survived := errors.New("it has survived the copy")
	stop(survived)
	if err := <-ended; !errors.Is(err, survived) {
		t.Errorf("the agent ended with %v", err)
	}
}

// bootOf is the boot without the installation.
func bootOf(t *testing.T, boot, installation string) string {
	t.Helper()
	if len(boot) <= len(installation) {
		t.Fatalf("%q does not name the installation", boot)
	}
	return boot[:len(boot)-len(installation)-1]
}
