//go:build unix

package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/pause"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/worker"
	"rouse.dev/rouse/internal/xid"
)

// Options of a worker.
type Options struct {
	Client    *Client
	Workspace string // id or slug; "": the one that the token belongs to
	Queue     string
	Name      string // by which a person knows it; "": that of its host
	Host      string
	Version   string
	Command   []string      // its own command, for leases that carry none; may be empty
	Timeout   time.Duration // of its own command
	Slots     int           // runs at once
	Dir       string        // where it remembers what runs, for itself alone
	Executor  worker.Executor
	Copies    CopySweeper // of this machine; nil: it makes no working copies
	Ready     func()      // called once the server has answered the first wish for a run; nil: nobody wants to know
	Log       *slog.Logger
}

// Pauses of the loop.
const (
	firstPause = 200 * time.Millisecond
	longPause  = 5 * time.Second
)

// Worker takes runs until it is stopped.
type Worker struct {
	store  *Store
	pool   *worker.Pool
	copies CopySweeper
	ready  func()
	log    *slog.Logger
}

// New makes a worker. It asks the server for the workspace, which shows whether the server is there and accepts the
// token. It also ends what an earlier worker of the folder left.
func New(ctx context.Context, o Options) (*Worker, error) {
	workspace, err := o.Client.workspace(ctx, o.Workspace)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{journal: j, client: o.Client, self: xid.New("wrk"), workspace: workspace, queue: o.Queue, log: o.Log, held: map[store.Attempt]*lease{},
		info: map[string]any{"name": cmp.Or(o.Name, o.Host), "host": o.Host, "version": o.Version}}
	if len(o.Command) > 0 {
		s.command = &domain.CommandSpec{Argv: o.Command, Timeout: o.Timeout, Grace: 10 * time.Second}
	}
	pool := worker.New(worker.Options{Store: s, Executor: o.Executor, Slots: o.Slots, Lease: domain.MinPullLease, Prepare: s.Prepare, Log: o.Log})
	return &Worker{store: s, pool: pool, copies: o.Copies, ready: o.Ready, log: o.Log}, nil
}

// Run takes runs as long as there is a free slot, until ctx ends. A server that is away is asked again. It fails when
// the server refuses the very first request, because nothing will ever come with this token, workspace or queue. It
// also fails, at any time, when the token is no longer valid.
func (w *Worker) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tell := func(err error) { cancel(err) }
	w.store.client.ended.Store(&tell) // a heartbeat may hear it first
	var sweeps sync.WaitGroup
	sweeps.Go(func() { w.sweepCopies(ctx) })
	defer sweeps.Wait()
	defer cancel(nil)
	err := w.take(ctx)
	if cause := context.Cause(ctx); err == nil && errors.Is(cause, ErrTokenEnded) {
		err = cause
	}
	if errors.Is(err, ErrTokenEnded) {
		return fmt.Errorf("%w; its answer: %w", ErrTokenEnded, err)
	}
	return err
}

// take is Run without an eye on the token.
func (w *Worker) take(ctx context.Context) error {
	wait, away, accepted := firstPause, false, false
	for ctx.Err() == nil {
		if w.pool.Free() == 0 {
			select {
			case <-w.pool.Freed():
			case <-ctx.Done():
			}
			continue
		}
		asked := time.Now()
		patience := acquireWait
		if !accepted { // whether runs are given at all is to be known at once
			patience = 0
		}
		got, err := w.store.acquire(ctx, patience)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if _, refused := errors.AsType[*Refused](err); refused && !accepted {
				return err
			}
			if !away {
				w.log.Warn("the server gives no runs; it is asked again", "error", err)
			}
			away = true
			pause.For(ctx, wait)
			wait = min(2*wait, longPause)
			continue
		case away:
			w.log.Info("the server answers again")
		}
		first := !accepted
		wait, away, accepted = firstPause, false, true
		if first && w.ready != nil {
			w.ready()
		}
		if got != nil {
			w.log.Info("run taken", "run_id", got.claimed.RunID, "attempt", got.claimed.Number, "agent_id", got.claimed.AgentID)
			w.pool.Process(ctx, got.claimed)
		} else if !first && time.Since(asked) < time.Second { // it did not wait: it is about to end
			pause.For(ctx, firstPause)
		}
	}
	return nil
}

// Drain waits for live runs; when ctx ends, their agents are ended and the runs given back. The worker is over then.
func (w *Worker) Drain(ctx context.Context) error {
	return errors.Join(w.pool.Drain(ctx), w.store.journal.close())
}

func isFenced(err error) bool { return errors.Is(err, store.ErrFenced) }

// workspace finds the id of a workspace. An id needs no look, since a token with EXECUTE alone may not read.
func (c *Client) workspace(ctx context.Context, name string) (xid.ID, error) {
	if id, err := xid.Parse(name); err == nil {
		return id, nil
	}
	query, variables := `{ workspace { id } }`, map[string]any(nil)
	if name != "" {
		query, variables = `query($slug: String!) { workspace(slug: $slug) { id } }`, map[string]any{"slug": name}
	}
	var out struct{ Workspace *struct{ ID xid.ID } }
	err := c.do(ctx, callLimit, query, variables, &out)
	if _, refused := errors.AsType[*Refused](err); refused {
		return "", fmt.Errorf("%w. Name the workspace by its id (--workspace wsp_…), or give a token that may READ too", err)
	}
	if err != nil {
		return "", fmt.Errorf("ask the server for the workspace: %w", err)
	}
	if out.Workspace == nil {
		return "", fmt.Errorf("there is no workspace %q on that server: name one with --workspace, by slug or id", name)
	}
	return out.Workspace.ID, nil
}
