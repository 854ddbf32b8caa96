// Package server puts a rouse process together and takes it apart again (SPEC S11). From settings it makes a database,
// a listener and running loops. It ends them in the opposite order, so that nothing is used after it was closed.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/notify"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/scheduler"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/telemetry"
	"rouse.dev/rouse/internal/webhook"
	"rouse.dev/rouse/internal/worker"
)

// Options are what a process is made from.
type Options struct {
	Config  config.Config // valid (Config.Validate)
	Demo    bool          // make the demo workspace in an empty database even when it is not a private cluster
	Standby bool          // serve the API, and start no loop
	Screen  bool          // Stdout is a terminal, which a person reads and nobody keeps
	Version string
	Stdout  io.Writer // what a person is told at the start
	Log     *slog.Logger
}

// Bounds of the steps of a shutdown that depend on others.
const (
	requestsLimit = 12 * time.Second // for requests under way and sockets; more than a body may take to arrive
	tracesLimit   = 3 * time.Second  // for the last traces
	clusterLimit  = 30 * time.Second // for the private cluster's fast shutdown
)

// Server is one running process.
type Server struct {
	options    Options
	log        *slog.Logger
	files      files
	front      *front
	db         *Database
	identity   string // of the database; a copy has another
	store      *store.Store
	reader     *ent.Client
	box        *secret.Box
	local      auth.Token // of the data folder
	gatekeeper *gatekeeper
	hub        *event.Hub
	counters   *metrics.Counters
	traces     *telemetry.Traces // nil unless a collector is configured
	endDemo    func()            // ends what waits for the demo's end; nil unless the loops run
	command    *executor.Command
	registry   executor.Registry
	sender     *notify.Sender
	agents     agentAccount
	pool       *worker.Pool
	loops      *scheduler.Scheduler
	outage     *outage
	presence   store.Process // as the database is told of it
	failed     chan error    // why the process has to end by itself; capacity 1
}

// Run is a process from start to end. It runs until ctx ends, and then shuts down in order, leaving live attempts the
// configured drain; when hurry ends too, it hands them back at once. The error says why the start failed, why the
// process had to end, or what went wrong at the end. Nothing is logged after it returned.
func Run(ctx, hurry context.Context, o Options) error {
	s := &Server{options: o, log: o.Log, counters: metrics.New(), failed: make(chan error, 1)}
	err := s.start(ctx)
	if err == nil {
		s.announce(ctx)
		s.settleMemory()
		err = s.wait(ctx)
	}
	stopped := s.stop(hurry)
	if errors.Is(err, errInterrupted) && stopped == nil {
		err = nil
	}
	return errors.Join(err, stopped)
}

// errInterrupted is a start that was broken off by a signal.
var errInterrupted = errors.New("interrupted while starting")

// start brings everything up, in order. What it began is in s, for stop to end, also when it fails.
func (s *Server) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.lockFolder, s.listen, s.openDatabase, s.openStore, s.checkAccess, s.prepareAgents, s.makeDemo, s.startLoops, s.serve,
	} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return errInterrupted
			}
			return err
		}
	}
	return nil
}

// wait returns when the process is asked to end, or must.
func (s *Server) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	}
}

// fail ends the process with an error; the first one counts.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

func (s *Server) lockFolder(context.Context) (err error) {
	s.files, err = openFiles(s.options.Config)
	return err
}

func (s *Server) listen(ctx context.Context) (err error) {
	s.front, err = listen(ctx, s.options.Config, s.log)
	return err
}

func (s *Server) openDatabase(ctx context.Context) (err error) {
	s.db, err = openDatabase(ctx, s.files, s.options.Config.DatabaseURL.Reveal(), s.log)
	if err != nil {
		return err
	}
	s.db.watch(s.fail)
	if err := s.db.migrate(ctx); err != nil {
		return err
	}
	if s.identity, err = s.db.identity(ctx); err != nil {
		return err
	}
	return s.db.openPools(ctx)
}

func (s *Server) openStore(ctx context.Context) error {
	key, err := s.loadKey()
	if err != nil {
		return err
	}
	if s.box, err = secret.NewBox(key); err != nil {
		return err
	}
	listener, err := postgres.Named(s.db.URL, processName(s.options.Standby, s.front.open))
	if err != nil {
		return err
	}
	s.hub = event.New(event.HubOptions{URL: listener, DB: s.db.DB, Log: s.log})
	o := store.Options{Events: s.hub, Counters: s.counters, Log: s.log, Jitter: rand.Float64, Reads: s.db.Reads}
	if telemetry.Configured() {
		if s.traces, err = telemetry.Start(ctx, s.options.Version, s.log); err != nil {
			return err
		}
		o.Tracer = s.traces
	}
	s.store = store.New(s.db.DB, o)
	s.reader = s.store.Reader()
	if err := s.bindKey(ctx, key.ID()); err != nil { // before the hub, by whose connection others see a server
		return err
	}
	if err := s.hub.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := s.store.Activate(ctx); err != nil {
		return err
	}
	return s.store.CountFromZero(ctx)
}

// bindKey refuses a key that is not the one which sealed this database's secrets: with it, runs would fail one by one.
func (s *Server) bindKey(ctx context.Context, keyID string) error {
	bound, err := s.store.BindSealingKey(ctx, keyID, false)
	if err != nil || bound == keyID {
		return err
	}
	if s.options.Config.NewSecretKey {
		return s.replaceKey(ctx, keyID, bound)
	}
	return fmt.Errorf("this database's secrets are sealed with key %s, and this process has key %s: give it the same %s as the other processes, "+
		"or put back the file %s; if the key is lost, start once with --new-secret-key and enter the secrets of your agents again",
		bound, keyID, config.EnvSecretKey, filepath.Join(s.files.dir, secret.KeyFileName))
}

// replaceKey goes on with another key. A server that works with the old one would go on sealing with it.
func (s *Server) replaceKey(ctx context.Context, keyID, bound string) error {
	others, err := s.db.serversAtWork(ctx)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return fmt.Errorf("--new-secret-key is refused while other servers work with key %s (%s): give this process their %s, or end all of them first", bound, strings.Join(others, "; "), config.EnvSecretKey)
	}
	_, err = s.store.BindSealingKey(ctx, keyID, true)
	return err
}

// loadKey finds the key that seals secrets. A key file is for what stays on this machine: the private cluster it lies
// beside, or a server that only this machine reaches.
func (s *Server) loadKey() (secret.Key, error) {
	folder := ""
	if s.files.private || s.front.loopback {
		folder = s.files.dir
	}
	return secret.LoadKey(s.options.Config.SecretKey.Reveal(), folder)
}

func (s *Server) startLoops(ctx context.Context) error {
	owner, err := scheduler.ThisProcess()
	if err != nil {
		return err
	}
	owner.BootID = executor.BootOf(owner.BootID, s.identity)
	c := s.options.Config
	allowed, err := c.AllowedAddresses()
	if err != nil {
		return err
	}
	s.command = executor.NewCommand(s.agents.options(c, s.files.work(), s.identity))
	s.registry = executor.NewRegistry(s.command, allowed)
	s.sender = notify.New(notify.Options{Secrets: s.box, Allow: allowed})
	s.pool = worker.New(worker.Options{
		Store: s.store.Attempts, Executor: s.registry, Secrets: s.box, Watcher: s.hub,
		Slots: c.Workers, Lease: c.Lease, APIURL: s.front.url() + graphqlPath, Log: s.log,
	})
	s.loops = scheduler.New(scheduler.Options{
		Store: s.store.Records, Worker: s.pool, Queue: s.hub, Groups: leftovers{s.identity}, Copies: copies{s.command, s.store.Attempts}, Sender: s.sender, Judge: s.store.Reads, Counters: s.counters, Owner: owner, Lease: c.Lease, Keep: c.Retention(), Log: s.log,
	})
	s.presence = store.Process{ID: owner.ID, Host: owner.Host, PID: owner.PID, Version: s.options.Version, Standby: s.options.Standby, Slots: c.Workers}
	if s.options.Standby {
		s.log.Warn("on standby: no schedule fires, no run is started, and none of another process is ended; start without --standby when all is as it should be")
		return nil
	}
	if err := executor.EndOrphanedCgroups(s.identity); err != nil {
		return fmt.Errorf("end what agents of an earlier server left: %w", err)
	}
	if err := s.loops.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.startDemoEnd(ctx)
	return nil
}

func (s *Server) serve(context.Context) error {
	tokens := newLookups(s.store)
	s.front.strangers.Know(tokens.knows)
	s.gatekeeper = &gatekeeper{tokens: tokens, open: s.front.open, sockets: &liveSockets{},
		ending: func() bool { return s.front.leaving.Err() != nil }}
	s.showPresence()
	s.front.logs = &runLogs{gatekeeper: s.gatekeeper, strangers: s.front.strangers, runs: s.reader, logs: s.store, log: s.log}
	s.front.serve(s.newAPI(), webhook.New(s.store.Routines, s.box, s.front.strangers, s.log), s.ready, s.adminPages, s.fail)
	return nil
}

// adminPages is what the listener of --admin-addr shows.
func (s *Server) adminPages(ready func(context.Context) error) http.Handler {
	gate := (&watchers{gatekeeper: s.gatekeeper, strangers: s.front.strangers}).gate
	if s.front.open {
		gate = func(next http.Handler) http.Handler { return s.front.strangers.Handler(edge.LocalOnly(next)) }
	}
	return adminMux(s.front.strangers.Handler, ready, s.counters.Handler(s.gauges()...), gate)
}

// ready reports why the process cannot serve; nil when it can.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- s.db.DB.PingContext(ctx) }() // for a database that hangs the pool waits some seconds longer than its context
	select {
	case err := <-answer:
		if err == nil && s.outage.isFull() {
			return errors.New("the database has no room left: free some on its disk")
		}
		if err == nil {
			return nil
		}
	case <-ctx.Done():
	}
	return errors.New("the database does not answer")
}

// part is one thing that a shutdown ends.
type part struct {
	name string
	end  func() error
}

// stop ends everything that start began, in the order of SPEC S11: claims, intake, sockets, loops, live attempts, reports, hub,
// database, cluster. A part that fails to end does not keep the others from being ended.
func (s *Server) stop(hurry context.Context) error {
	if s.front != nil && s.front.api != nil {
		s.log.Info("shutting down; a second SIGTERM or SIGINT ends live runs at once")
	}
	var failures []error
	for _, p := range s.parts(hurry) {
		began := time.Now()
		if err := p.end(); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", p.name, err))
		}
		s.log.Debug("ended", "part", p.name, "took", time.Since(began))
	}
	return errors.Join(failures...)
}

// parts are the parts that there are, in the order of their end.
func (s *Server) parts(hurry context.Context) []part {
	var parts []part
	add := func(there bool, name string, end func() error) {
		if there {
			parts = append(parts, part{name, end})
		}
	}
	add(s.pool != nil, "claims", func() error { s.pool.TakeNoMore(); return nil }) // a request that hangs must not let runs begin meanwhile
	add(s.front != nil, "intake", func() error { return s.front.narrow(hurry, requestsLimit) })
	add(s.endDemo != nil, "the demo's end", func() error { s.endDemo(); return nil })
	add(s.loops != nil, "loops", func() error { s.loops.Stop(); return nil })
	add(s.pool != nil, "live runs", func() error { return s.drain(hurry) })
	add(s.front != nil, "connections", func() error { return s.front.stop(hurry, requestsLimit) }) // agents report until here
	add(s.command != nil, "executor", func() error { return s.command.Close() })
	add(s.traces != nil, "traces", s.sendLastTraces)
	add(s.presence.ID != "", "presence", s.endPresence)
	add(s.hub != nil, "events", func() error { s.hub.Stop(); return nil })
	add(s.db != nil, "database", func() error { return s.db.close(clusterLimit) })
	add(true, "data folder", func() error { return s.files.release() })
	return parts
}

// sendLastTraces gives the collector a moment. When the collector is away, that is logged, and the shutdown does not
// fail.
func (s *Server) sendLastTraces() error {
	ctx, cancel := context.WithTimeout(context.Background(), tracesLimit)
	defer cancel()
	if err := s.traces.Stop(ctx); err != nil {
		s.log.Warn("the last traces are lost", "error", err)
	}
	return nil
}

// drain waits for live attempts up to the configured time, or until somebody is in a hurry.
func (s *Server) drain(hurry context.Context) error {
	ctx, cancel := context.WithTimeout(hurry, s.options.Config.Drain)
	defer cancel()
	return s.pool.Drain(ctx)
}

// work is the folder that agents work in, one folder each.
func (f files) work() string { return filepath.Join(f.dir, "work") }
