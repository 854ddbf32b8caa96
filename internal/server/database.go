package server

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/migrations"
)

// How a private cluster that ended by itself is started again.
const (
	restartLimit = time.Minute     // for one start, recovery included
	restartTries = 5               // failures in a row before the process gives up
	restartPause = 2 * time.Second // between failures
)

// Database is an open database, with the private cluster that serves it, if there is one.
type Database struct {
	DB    *sql.DB
	Reads *sql.DB // for what the API shows; nil unless a server is open
	URL   string  // holds the password, if there is one

	log      *slog.Logger
	files    files
	release  bool // the folder's lock is ours to release
	stopping chan struct{}
	watching sync.WaitGroup

	mu      sync.Mutex
	cluster *postgres.Cluster // nil for a database elsewhere
}

// OpenDatabase opens the database of a configuration for a short task, such as making a token. It is the database at
// the URL, or the private cluster, which is started when it does not run. When a rouse process holds the folder, its
// database server is used and left running. A database that this program's migrations would change is refused. An empty
// one may be somebody else's, and servers that use another one might not start again after the migrations.
func OpenDatabase(ctx context.Context, c config.Config, log *slog.Logger) (*Database, error) {
	return openShaped(ctx, c, log, false)
}

// OpenOrMakeDatabase is OpenDatabase for what may come before the first server: an empty database is migrated.
func OpenOrMakeDatabase(ctx context.Context, c config.Config, log *slog.Logger) (*Database, error) {
	return openShaped(ctx, c, log, true)
}

func openShaped(ctx context.Context, c config.Config, log *slog.Logger, mayMake bool) (*Database, error) {
	f, address, err := openBeside(c)
	if err != nil {
		return nil, err
	}
	d, err := openDatabase(ctx, f, address, log)
	if err != nil {
		return nil, errors.Join(err, f.release())
	}
	d.release = true
	if err := d.shape(ctx, mayMake); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Migrate brings the database of a configuration to this program's shape, and tells out what there was to do.
func Migrate(ctx context.Context, c config.Config, log *slog.Logger, out io.Writer) error {
	f, address, err := openBeside(c)
	if err != nil {
		return err
	}
	d, err := openDatabase(ctx, f, address, log)
	if err != nil {
		return errors.Join(err, f.release())
	}
	d.release = true
	return errors.Join(d.migrateAndTell(ctx, out), d.Close())
}

func (d *Database) migrateAndTell(ctx context.Context, out io.Writer) error {
	missing, _, err := postgres.Pending(ctx, d.DB, migrations.FS)
	if err != nil {
		return err
	}
	if err := d.migrate(ctx); err != nil {
		return err
	}
	version, err := postgres.Version(ctx, d.DB)
	if err != nil {
		return err
	}
	said := "nothing to do: the database is at version %d already\n"
	if missing > 0 {
		said = "the database is at version %d now\n"
	}
	_, err = fmt.Fprintf(out, said, version)
	return err
}

// shape refuses a database that lacks migrations, or gives them to an empty one that it may make.
func (d *Database) shape(ctx context.Context, mayMake bool) error {
	missing, empty, err := postgres.Pending(ctx, d.DB, migrations.FS)
	switch {
	case err != nil:
		return err
	case empty && mayMake:
		return d.migrate(ctx)
	case empty:
		return errors.New("rouse has nothing in this database yet: correct --data-dir or " + config.EnvDatabaseURL + ", or start `rouse serve` on it once")
	case missing > 0:
		return fmt.Errorf("the database lacks %d of this program's migrations, and this command makes none in a database that is in use: call the program of the version that "+
			"its servers have, or end them, run `rouse migrate` and start the new version; there is no way back but a backup", missing)
	}
	return nil
}

// openBeside is openFiles for a program that may run beside a server: then the address of its cluster is returned. Of a
// folder without a cluster nothing is needed, so it is neither made nor locked.
func openBeside(c config.Config) (files, string, error) {
	f, err := locate(c)
	if err != nil || !f.private {
		return f, c.DatabaseURL.Reveal(), err
	}
	f, err = openFiles(c)
	inUse, ok := errors.AsType[*postgres.FolderInUseError](err)
	if !ok {
		return f, "", err
	}
	address, running := postgres.RunningURL(f.cluster(), "")
	if !running {
		return f, "", fmt.Errorf("%w (its database does not run yet, or not as an account we may look at: try again in a moment, as the same account)", inUse)
	}
	return f, address, nil
}

// openDatabase opens the database at an address, or with none the private cluster of the folder.
func openDatabase(ctx context.Context, f files, address string, log *slog.Logger) (*Database, error) {
	d := &Database{URL: address, log: log, files: f, stopping: make(chan struct{})}
	if address == "" {
		cluster, err := d.startCluster(ctx)
		if err != nil {
			return nil, err
		}
		d.cluster, d.URL = cluster, cluster.URL("rouse")
	}
	db, err := postgres.Open(ctx, d.URL)
	if err != nil {
		return nil, errors.Join(err, d.stopCluster(clusterLimit))
	}
	d.DB = db
	return d, nil
}

func (d *Database) startCluster(ctx context.Context) (*postgres.Cluster, error) {
	return postgres.StartCluster(ctx, postgres.Options{Dir: d.files.cluster(), Log: d.log})
}

func (d *Database) migrate(ctx context.Context) error {
	return postgres.Migrate(ctx, d.DB, migrations.FS, d.log)
}

// statementLimit is how long a statement of a server may take. Operations of the API and passes of loops end sooner, by
// their contexts; should the cancel get lost, a statement must not keep its locks for ever.
const statementLimit = time.Minute

// readConnections bounds the pool that the API's reads share. They may make each other wait, but no lease, claim or report.
const readConnections = 10

// openPools opens the pools of a server, with a limit for each statement. A migration, before it, has none.
func (d *Database) openPools(ctx context.Context) error {
	address, err := postgres.Bounded(d.URL, statementLimit)
	if err != nil {
		return err
	}
	if d.Reads, err = postgres.Open(ctx, address); err != nil {
		return err
	}
	d.Reads.SetMaxOpenConns(readConnections)
	db, err := postgres.Open(ctx, address)
	if err != nil {
		return err
	}
	unbound := d.DB
	d.DB = db
	return unbound.Close()
}

// tryToWrite says whether the database answers and has room to write: a table of this transaction takes some, and goes with it.
func (d *Database) tryToWrite(ctx context.Context) error {
	if err := d.DB.PingContext(ctx); err != nil {
		return err
	}
	tx, err := d.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	const take = `CREATE TEMPORARY TABLE rouse_room ON COMMIT DROP AS SELECT repeat(md5(n::text), 60) AS filling FROM generate_series(1, 40) AS n`
	_, err = tx.ExecContext(ctx, take)
	if postgres.State(err) == "42501" { // this account may make no such table: that it answers is all it can say
		err = nil
	}
	return errors.Join(err, tx.Rollback())
}

// identity tells this database from a copy, also one of its files: a private cluster's copy lies in another folder.
func (d *Database) identity(ctx context.Context) (string, error) {
	name, err := postgres.Identity(ctx, d.DB)
	if err != nil || !d.files.private {
		return name, err
	}
	place := sha256.Sum256([]byte(d.files.dir))
	return name + "-" + hex.EncodeToString(place[:8]), nil
}

// PID is the private cluster's process id; 0 for a database elsewhere.
func (d *Database) PID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cluster == nil {
		return 0
	}
	return d.cluster.PID()
}

// watch starts the private cluster again when it ends by itself. The pool and the hub connect again by themselves,
// because the address stays. When the cluster cannot be started, fail is called.
func (d *Database) watch(fail func(error)) {
	if d.cluster == nil {
		return
	}
	d.watching.Go(func() {
		for d.awaitEnd() {
			if err := d.restart(); err != nil {
				fail(err)
				return
			}
		}
	})
}

// awaitEnd returns true when the cluster has ended by itself.
func (d *Database) awaitEnd() bool {
	d.mu.Lock()
	cluster := d.cluster
	d.mu.Unlock()
	select {
	case <-d.stopping:
		return false
	case <-cluster.Done():
	}
	select {
	case <-d.stopping:
		return false
	default:
	}
	d.log.Warn("the private database server ended by itself and is started again", "error", cluster.Err())
	return true
}

func (d *Database) restart() error {
	var err error
	for range restartTries {
		var cluster *postgres.Cluster
		if cluster, err = d.startOnce(); err == nil {
			return d.adopt(cluster)
		}
		select {
		case <-d.stopping:
			return nil
		case <-time.After(restartPause):
		}
	}
	return fmt.Errorf("the private database server ended and could not be started again: %w", err)
}

func (d *Database) startOnce() (*postgres.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), restartLimit)
	defer cancel()
	go func() {
		select {
		case <-d.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return d.startCluster(ctx)
}

func (d *Database) adopt(cluster *postgres.Cluster) error {
	d.mu.Lock()
	d.cluster = cluster
	d.mu.Unlock()
	if address := cluster.URL("rouse"); address != d.URL {
		return errors.New("the private database server was started again in another place: start rouse again")
	}
	d.log.Info("the private database server runs again", "pid", cluster.PID())
	return nil
}

// Close closes a database of OpenDatabase; a server that was running before stays.
func (d *Database) Close() error {
	err := d.close(clusterLimit)
	if d.release {
		err = errors.Join(err, d.files.release())
	}
	return err
}

func (d *Database) close(limit time.Duration) error {
	close(d.stopping)
	d.watching.Wait()
	var err error
	for _, pool := range []*sql.DB{d.DB, d.Reads} {
		if pool != nil {
			if cut := pool.Close(); !errors.Is(cut, syscall.EPIPE) { // a connection that the database has cut before has no farewell to fail
				err = errors.Join(err, cut)
			}
		}
	}
	return errors.Join(err, d.stopCluster(limit))
}

func (d *Database) stopCluster(limit time.Duration) error {
	d.mu.Lock()
	cluster := d.cluster
	d.mu.Unlock()
	if cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return cluster.Stop(ctx)
}

// quietStore is a store for a command that works beside a server or without one: it wakes nobody, since nobody waits in this process,
// and counts nothing.
func (d *Database) quietStore() *store.Store {
	nobody := event.New(event.HubOptions{Log: slog.New(slog.DiscardHandler)}) // never started
	return store.New(d.DB, store.Options{Events: nobody, Counters: metrics.New(), Log: d.log})
}
