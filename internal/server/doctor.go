package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/migrations"
	"rouse.dev/rouse/internal/worker"
)

// maxSkew is how far the database's clock may be from this machine's before schedules and leases surprise people.
const maxSkew = 5 * time.Second

// agentLimit bounds how long one agent's executor is looked at.
const agentLimit = 2 * time.Minute

// Finding is one check of the doctor. Subject is what it is about: "" for the installation, else an agent.
type Finding struct {
	Subject string
	domain.Check
}

// Doctor examines an installation, beside a running server or without one, and changes nothing in its database. With
// ask it also gives each agent a trivial prompt, which may cost money. It calls tell with each finding as it comes. The
// result says whether all was well.
func Doctor(ctx context.Context, c config.Config, ask bool, log *slog.Logger, tell func(Finding)) bool {
	d := &doctor{config: c, log: log, ask: ask, told: tell, well: true, ended: func() bool { return ctx.Err() != nil }}
	d.examine(ctx)
	return d.well
}

type doctor struct {
	config  config.Config
	log     *slog.Logger
	ask     bool
	told    func(Finding)
	well    bool
	standby bool        // all servers that run are on standby
	ended   func() bool // the examination was broken off
}

// tell passes a finding on. Those of an examination that was broken off are none.
func (d *doctor) tell(subject string, c domain.Check) {
	if d.ended() {
		return
	}
	d.well = d.well && c.OK
	d.told(Finding{subject, c})
}

func (d *doctor) pass(name, detail string) {
	d.tell("", domain.Check{Name: name, OK: true, Detail: detail})
}

func (d *doctor) fail(name string, err error, hint string) {
	d.tell("", domain.Check{Name: name, Detail: err.Error(), Hint: hint})
}

// examine goes on as long as the next check makes sense.
func (d *doctor) examine(ctx context.Context) {
	db, err := d.open(ctx)
	if err != nil {
		d.fail("database", err, "if this is not the server's database, correct --data-dir or "+config.EnvDatabaseURL)
		return
	}
	defer func() {
		if err := db.Close(); err != nil {
			d.ended = func() bool { return false } // the database was to be ended all the same
			d.fail("database", err, "see the log of PostgreSQL")
		}
	}()
	if d.database(ctx, db) && d.migrations(ctx, db) {
		d.servers(ctx, db)
		d.secretKey(ctx, db)
		d.clock(ctx, db)
		d.snapshots(ctx, db)
		d.feed(ctx, db)
		d.loops(ctx, db)
		d.accounts(db)
		d.agents(ctx, db)
	}
}

// open opens the database that runs. None is started: that would recover it, lock its folder and, on a copy, be a first start.
func (d *doctor) open(ctx context.Context) (*Database, error) {
	if err := MustExist(d.config); err != nil {
		return nil, err
	}
	f, err := locate(d.config)
	if err != nil {
		return nil, err
	}
	address := d.config.DatabaseURL.Reveal()
	if f.private {
		var running bool
		if address, running = postgres.RunningURL(f.cluster(), ""); !running {
			return nil, fmt.Errorf("the private database of %s does not run, since no rouse does, or this account may not look: the doctor starts none; start `rouse serve` "+
				"(or `rouse serve --standby`, by which no agent is started), and call the doctor beside it, as the same account", f.dir)
		}
	}
	return openDatabase(ctx, f, address, d.log)
}

func (d *doctor) database(ctx context.Context, db *Database) bool {
	var version, name string
	if err := db.DB.QueryRowContext(ctx, "SELECT current_setting('server_version'), current_database()").Scan(&version, &name); err != nil {
		d.fail("database", err, "see the log of PostgreSQL")
		return false
	}
	where := "at " + config.EnvDatabaseURL
	if db.files.private {
		where = "private, in " + db.files.dir
	}
	d.pass("database", fmt.Sprintf("PostgreSQL %s answers (%s, %s)", version, name, where))
	return true
}

func (d *doctor) migrations(ctx context.Context, db *Database) bool {
	missing, _, err := postgres.Pending(ctx, db.DB, migrations.FS)
	_, newer := errors.AsType[*postgres.NewerDatabaseError](err)
	switch {
	case newer:
		d.fail("migrations", err, "call the doctor of that newer program, and give this one no database to serve")
		return false
	case err != nil:
		d.fail("migrations", err, "give the account of "+config.EnvDatabaseURL+" the right to read the tables, or run `rouse migrate` as their owner")
		return false
	case missing > 0:
		d.fail("migrations", fmt.Errorf("the database lacks %d of this program's migrations", missing), "run `rouse migrate`, or start `rouse serve`")
		return false
	}
	d.pass("migrations", "the database has this program's shape")
	return true
}

// clock compares the clocks. The database's is taken to have been read halfway through the query.
func (d *doctor) clock(ctx context.Context, db *Database) {
	before := time.Now()
	var there time.Time
	if err := db.DB.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&there); err != nil {
		d.fail("clock", err, "see the log of PostgreSQL")
		return
	}
	took := time.Since(before)
	skew := there.Sub(before.Add(took / 2)).Round(time.Millisecond)
	if skew.Abs() > maxSkew+took/2 {
		d.fail("clock", fmt.Errorf("the database's clock is %s ahead of this machine's", skew), "let both machines set their clocks by the network (NTP)")
		return
	}
	d.pass("clock", fmt.Sprintf("the database's clock is %s ahead of this machine's", skew))
}

// agents looks at the executor of each agent that may be woken.
func (d *doctor) agents(ctx context.Context, db *Database) {
	records := db.quietStore()
	t, end, err := d.tester(db, records)
	if err != nil {
		d.fail("executors", err, "run the doctor as the account that the server runs as, with its --agent-user and --http-allow")
		return
	}
	defer end()
	all, err := records.Reader().Agent.Query().Where(agent.DeletedAtIsNil()).WithWorkspace().Order(agent.ByWorkspaceID(), agent.ByID()).All(auth.WithPrincipal(ctx, auth.Local()))
	if err != nil {
		d.fail("executors", fmt.Errorf("read the agents: %w", err), "see the log of PostgreSQL")
		return
	}
	if len(all) == 0 {
		d.pass("executors", "there are no agents yet")
	}
	for _, a := range all {
		d.agent(ctx, t, a)
	}
}

func (d *doctor) agent(ctx context.Context, t *tester, a *ent.Agent) {
	ctx, cancel := context.WithTimeout(ctx, agentLimit)
	defer cancel()
	w := a.Edges.Workspace
	spec, holder := domain.ResolveExecutor(nil, a.Executor, nil, w.DefaultExecutor), a.ID
	if a.Executor.Kind() == "" {
		holder = w.ID
	}
	for _, c := range t.TestExecutor(ctx, w.ID, a.ID, spec, holder, d.ask) {
		d.tell(fmt.Sprintf("%s/%s", w.Slug, a.Name), c)
	}
}

// tester makes executors as a server would, and what ends them.
func (d *doctor) tester(db *Database, records *store.Store) (*tester, func(), error) {
	allowed, err := d.config.AllowedAddresses()
	if err != nil {
		return nil, nil, err
	}
	agents, err := lookAtAccount(d.config, db.files.dir)
	if err != nil {
		return nil, nil, err
	}
	var secrets worker.Opener
	key, keyErr := existingKey(d.config, db.files)
	if secrets, err = secret.NewBox(key); keyErr != nil {
		secrets = lostKey{keyErr}
	} else if err != nil {
		return nil, nil, err
	}
	command := executor.NewCommand(agents.options(d.config, db.files.work(), ""))
	end := func() {
		if err := command.Close(); err != nil {
			d.fail("executors", err, "look for processes that are left, and end them")
		}
	}
	return newTester(executor.NewRegistry(command, allowed), secrets, "", records, false), end, nil
}

// existingKey is the key that seals secrets; none is made.
func existingKey(c config.Config, f files) (secret.Key, error) {
	if c.SecretKey.IsEmpty() {
		if _, err := os.Stat(filepath.Join(f.dir, secret.KeyFileName)); errors.Is(err, fs.ErrNotExist) {
			return secret.Key{}, fmt.Errorf("there is no key file in %s and no %s: %w", f.dir, config.EnvSecretKey, fs.ErrNotExist)
		}
	}
	return secret.LoadKey(c.SecretKey.Reveal(), f.dir)
}

// lostKey opens nothing.
type lostKey struct{ cause error }

// Open says why.
func (l lostKey) Open(string, string) (string, error) {
	return "", fmt.Errorf("the key that sealed it is not here: %w", l.cause)
}
