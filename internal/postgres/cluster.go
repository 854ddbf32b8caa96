package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/account"
)

// Options say where and how a cluster runs.
type Options struct {
	Dir       string       // the cluster's own folder, made when missing: data/, run/, server.log
	Database  string       // made when missing; "" means rouse
	Log       *slog.Logger // nil means slog.Default()
	Throwaway bool         // for tests: fast, and a crash of the machine loses it
}

// role owns everything in a local cluster.
const role = "rouse"

// port is only the number in the socket's file name; nothing listens on a network.
const port = "5432"

// Cluster is a running PostgreSQL server of ours, started by this process or taken over from one that died.
type Cluster struct {
	options  Options
	dir      string           // absolute Options.Dir
	account  *account.Account // whom the server runs as; nil for our own
	binaries Binaries
	socket   socketFolder
	log      *slog.Logger
	pid      int
	done     chan struct{}
	stopping sync.Mutex
	failure  error // how the server ended; read after done is closed
}

// StartCluster returns a server that answers, with its database made. A folder without a cluster gets one, a server
// left running by a rouse that died is taken over, and a crashed one recovers. The caller holds the data folder
// (LockFolder). As root the server runs under an unprivileged account (account.ForCluster, or the owner of an existing
// cluster); *UnreachableError says that this account cannot reach the folder, *NoBinariesError what to install.
// The server listens on a unix socket in a closed folder, and accepts only root and its own account. It outlives this
// process: Stop ends it, and after kill -9 the next start takes it over.
func StartCluster(ctx context.Context, o Options) (*Cluster, error) {
	c, err := newCluster(o)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	attached, err := c.attach(ctx)
	if err != nil {
		return nil, err
	}
	if attached {
		return c, nil
	}
	if err := c.initialize(ctx); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func newCluster(o Options) (*Cluster, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cluster folder: %w", err)
	}
	if o.Database == "" {
		o.Database = role
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Cluster{options: o, dir: dir, log: o.Log, done: make(chan struct{})}, nil
}

// prepare settles who the server runs as, with which programs and where its socket lies.
func (c *Cluster) prepare() error {
	if err := makeFolder(c.dir); err != nil {
		return err
	}
	var err error
	if c.account, err = owner(c.data()); err != nil {
		return err
	}
	major, err := majorOf(c.data())
	if err != nil {
		return err
	}
	if c.binaries, err = newFinder().find(major); err != nil {
		return err
	}
	if err := c.reachable(); err != nil {
		return err
	}
	if c.socket, err = makeSocketFolder(c.dir, c.account); err != nil {
		return err
	}
	return writeAccess(c.dir, c.account)
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// owner is the account the server must run as: the owner of the data, or the one chosen for a new cluster.
func owner(data string) (*account.Account, error) {
	info, err := os.Lstat(data)
	if errors.Is(err, os.ErrNotExist) {
		return account.ForCluster()
	}
	if err != nil {
		return nil, folderError(data, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() && os.Geteuid() != 0 {
		return nil, nil
	}
	a, err := account.ByUID(stat.Uid)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 || stat.Uid == 0 {
		return nil, fmt.Errorf("the cluster in %s belongs to %s, and PostgreSQL runs only as the owner of its folder and "+
			"never as root; start rouse as the account that made it, or choose another folder with --data-dir", data, a)
	}
	return a, nil
}

// URL is where a database of this cluster is reached: for lib/pq and its Listener.
func (c *Cluster) URL(database string) string {
	query := url.Values{"host": {c.socket.path}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database, RawQuery: query.Encode()}
	return u.String()
}

// PID is the server's process id.
func (c *Cluster) PID() int { return c.pid }

// Done is closed when the server process has ended, by Stop or by itself.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err says how the server ended, once Done is closed. It is nil after a regular stop, whoever asked for it. It is also
// nil for a server that was taken over, because the kernel tells only the process that started it.
func (c *Cluster) Err() error {
	select {
	case <-c.done:
		return c.failure
	default:
		return nil
	}
}

// killGrace is how long the server may take over an immediate shutdown before it is killed.
const killGrace = 5 * time.Second

// Stop ends the server and waits for it. It begins a fast shutdown, which rolls open transactions back and writes
// everything. When ctx is done before, it makes an immediate shutdown, which is an error, and from which the next start
// recovers. Stopping twice, or a server that ended by itself, is fine.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if err := c.end(ctx); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return c.socket.remove()
}

func (c *Cluster) end(ctx context.Context) error {
	if err := c.signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	if err := c.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-time.After(killGrace):
		if err := c.signal(syscall.SIGKILL); err != nil {
			return err
		}
		<-c.done
	}
	return fmt.Errorf("it was ended at once, since it took too long (%w); nothing committed is lost, the next start "+
		"recovers", context.Cause(ctx))
}

// signal sends a signal to the server unless it has ended.
func (c *Cluster) signal(s syscall.Signal) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	if err := syscall.Kill(c.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", c.pid, err)
	}
	return nil
}
