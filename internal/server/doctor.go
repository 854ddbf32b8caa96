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
	"rouse.dev/rouse/internal/doctor"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/worker"
)

// agentLimit bounds how long one agent's executor is looked at.
const agentLimit = 2 * time.Minute

// Finding is one check of the doctor.
type Finding = doctor.Finding

// Doctor examines an installation, beside a running server or without one, and changes nothing in its database. With
// ask it also gives each agent a trivial prompt, which may cost money. It calls tell with each finding as it comes. The
// result says whether all was well.
func Doctor(ctx context.Context, c config.Config, ask bool, log *slog.Logger, tell func(Finding)) bool {
	e := examination{Report: doctor.NewReport(ctx, tell), config: c, log: log, ask: ask}
	e.examine(ctx)
	return e.Well()
}

// examination looks at one installation.
type examination struct {
	*doctor.Report
	config config.Config
	log    *slog.Logger
	ask    bool
}

// examine goes on as long as the next check makes sense.
func (e examination) examine(ctx context.Context) {
	db, err := e.open(ctx)
	if err != nil {
		e.Fail("database", err, "if this is not the server's database, correct --data-dir or "+config.EnvDatabaseURL)
		return
	}
	defer func() {
		if err := db.Close(); err != nil {
			e.FailAnyway("database", err, "see the log of PostgreSQL") // it was to be ended also when the examination was broken off
		}
	}()
	if !e.Database(ctx, db.DB, db.where()) || !e.Migrations(ctx, db.DB) {
		return
	}
	records := db.quietStore()
	standby := e.Servers(db.described(ctx))
	e.Token(ctx, records, db.files.dir)
	key, err := existingKey(e.config, db.files)
	e.SecretKey(ctx, records, db.files.dir, key, err)
	e.Clock(ctx, db.DB)
	e.Snapshots(ctx, records)
	e.Feed(ctx, records)
	e.Loops(ctx, records, standby)
	e.Accounts(e.account(db))
	e.agents(ctx, db, records)
}

// open opens the database that runs. None is started: that would recover it, lock its folder and, on a copy, be a first start.
func (e examination) open(ctx context.Context) (*Database, error) {
	if err := MustExist(e.config); err != nil {
		return nil, err
	}
	f, err := locate(e.config)
	if err != nil {
		return nil, err
	}
	address := e.config.DatabaseURL.Reveal()
	if f.private {
		var running bool
		if address, running = postgres.RunningURL(f.cluster(), ""); !running {
			return nil, fmt.Errorf("the private database of %s does not run, since no rouse does, or this account may not look: the doctor starts none; start `rouse serve` "+
				"(or `rouse serve --standby`, by which no agent is started), and call the doctor beside it, as the same account", f.dir)
		}
	}
	return openDatabase(ctx, f, address, e.log)
}

// where says where the database is, for people.
func (d *Database) where() string {
	if d.files.private {
		return "private, in " + d.files.dir
	}
	return "at " + config.EnvDatabaseURL
}

// described is the servers that work on the database.
func (d *Database) described(ctx context.Context) (all []doctor.Server, err error) {
	names, err := d.servers(ctx)
	for _, name := range names {
		all = append(all, described(name))
	}
	return all, err
}

// account says who agents run as.
func (e examination) account(db *Database) (doctor.Agents, error) {
	agents, err := lookAtAccount(e.config, db.files.dir)
	if err != nil {
		return doctor.Agents{}, err
	}
	cgroups, why := agents.options(e.config, "", "").Containment()
	return doctor.Agents{Name: agents.String(), Claims: agents.claims, Cgroups: cgroups, NoCgroups: why}, nil
}

// agents looks at the executor of each agent that may be woken.
func (e examination) agents(ctx context.Context, db *Database, records *store.Store) {
	t, end, err := e.tester(db, records)
	if err != nil {
		e.Fail("executors", err, "run the doctor as the account that the server runs as, with its --agent-user and --http-allow")
		return
	}
	defer end()
	all, err := records.Reader().Agent.Query().Where(agent.DeletedAtIsNil()).WithWorkspace().Order(agent.ByWorkspaceID(), agent.ByID()).All(auth.WithPrincipal(ctx, auth.Local()))
	if err != nil {
		e.Fail("executors", fmt.Errorf("read the agents: %w", err), "see the log of PostgreSQL")
		return
	}
	if len(all) == 0 {
		e.Pass("executors", "there are no agents yet")
	}
	for _, a := range all {
		e.agent(ctx, t, a)
	}
}

func (e examination) agent(ctx context.Context, t *tester, a *ent.Agent) {
	ctx, cancel := context.WithTimeout(ctx, agentLimit)
	defer cancel()
	w := a.Edges.Workspace
	spec, holder := domain.ResolveExecutor(nil, a.Executor, nil, w.DefaultExecutor), a.ID
	if a.Executor.Kind() == "" {
		holder = w.ID
	}
	for _, c := range t.TestExecutor(ctx, w.ID, a.ID, spec, holder, e.ask) {
		e.Tell(fmt.Sprintf("%s/%s", w.Slug, a.Name), c)
	}
}

// tester makes executors as a server would, and what ends them.
func (e examination) tester(db *Database, records *store.Store) (*tester, func(), error) {
	allowed, err := e.config.AllowedAddresses()
	if err != nil {
		return nil, nil, err
	}
	agents, err := lookAtAccount(e.config, db.files.dir)
	if err != nil {
		return nil, nil, err
	}
	var secrets worker.Opener
	key, keyErr := existingKey(e.config, db.files)
	if secrets, err = secret.NewBox(key); keyErr != nil {
		secrets = lostKey{keyErr}
	} else if err != nil {
		return nil, nil, err
	}
	command := executor.NewCommand(agents.options(e.config, db.files.work(), ""))
	end := func() {
		if err := command.Close(); err != nil {
			e.Fail("executors", err, "look for processes that are left, and end them")
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
