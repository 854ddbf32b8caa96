package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// A pool of one rouse. PostgreSQL allows 100 connections by default, so several processes fit on one server. None is
// closed for being idle a moment: a new one has to plan every statement and read the catalogue again.
const (
	maxOpenConnections = 20
	connectionLifetime = 30 * time.Minute
	connectionIdleTime = 5 * time.Minute
	// pingTimeout bounds the first connection when ctx does not.
	pingTimeout = 10 * time.Second
)

// sessionSettings hold for every connection. A transaction that a stuck process leaves idle is ended by the server
// before a lease of the default length ends, so that its locks cost nobody a run. The planner is kept on indexes: a queue is empty when it is analysed, and a
// plan made then would scan the whole table later; compiling a plan costs more than any statement of ours.
var sessionSettings = map[string]string{
	"binary_parameters":                   "yes",
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"jit":                                 "off",
	"plan_cache_mode":                     "force_generic_plan",
	"TimeZone":                            "UTC",
	"application_name":                    "rouse",
	"connect_timeout":                     "10",
	"idle_in_transaction_session_timeout": "15s",
}

// isolation is that of every transaction, whatever the address, the database or the account says: they lock a row and then
// read what its former holder committed. A stricter one would refuse that (40001) at every meeting of two.
const isolation = "read committed"

// Open connects to the database at a postgres:// URL with a bounded pool, and proves that it answers. Its errors say
// what to do and never hold the password.
func Open(ctx context.Context, address string) (*sql.DB, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	for name, value := range sessionSettings {
		if !query.Has(name) {
			query.Set(name, value)
		}
	}
	query.Set("default_transaction_isolation", isolation)
	u.RawQuery = query.Encode()
	driver, err := pq.NewConnector(u.String())
	if err != nil {
		return nil, malformed(u, scrub(err, u))
	}
	driver.Dialer(&wireDialer{})
	db := sql.OpenDB(connector{driver, silenceLimit(query.Get("statement_timeout"))})
	db.SetMaxOpenConns(maxOpenConnections)
	db.SetMaxIdleConns(maxOpenConnections)
	db.SetConnMaxLifetime(connectionLifetime)
	db.SetConnMaxIdleTime(connectionIdleTime)
	if err := ping(ctx, db); err != nil {
		return nil, errors.Join(unanswered(u, err), db.Close())
	}
	return db, nil
}

// Named is an address whose connections carry a name, which pg_stat_activity shows as application_name: at most 63 bytes,
// and instead of one that the address has.
func Named(address, name string) (string, error) {
	return with(address, func(query url.Values) { query.Set("application_name", name) })
}

// Bounded is an address whose connections end a statement that takes longer than limit, unless it has a statement_timeout.
// A server that then says nothing for 15 s longer is given up.
func Bounded(address string, limit time.Duration) (string, error) {
	return with(address, func(query url.Values) {
		if !query.Has("statement_timeout") {
			query.Set("statement_timeout", strconv.FormatInt(limit.Milliseconds(), 10))
		}
	})
}

func with(address string, change func(url.Values)) (string, error) {
	u, err := parse(address)
	if err != nil {
		return "", err
	}
	query := u.Query()
	change(query)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// parse checks the form of an address. The parser's own error would repeat the whole of it, password included.
func parse(address string) (*url.URL, error) {
	const want = "it must look like postgres://user:password@host:5432/database?sslmode=disable"
	u, err := url.Parse(address)
	if err != nil {
		why := err
		if parsing := (*url.Error)(nil); errors.As(err, &parsing) {
			why = parsing.Err
		}
		if strings.ContainsAny(why.Error(), `"`) { // quotes a part of the address
			why = errors.New("a part of it is malformed; percent-encode special characters in the password")
		}
		return nil, fmt.Errorf("the database URL (ROUSE_DATABASE_URL) is malformed: %w; %s", why, want)
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("the database URL (ROUSE_DATABASE_URL) does not begin with postgres://; %s", want)
	}
	if u.User == nil && strings.Contains(address, "@") { // what follows the colon looks like a port, but is a password
		return nil, fmt.Errorf("the database URL (ROUSE_DATABASE_URL) is malformed: percent-encode the characters "+
			"/ ? # @ in the password; %s", want)
	}
	return u, nil
}

func malformed(u *url.URL, err error) error {
	return fmt.Errorf("the database URL (ROUSE_DATABASE_URL) for %s is malformed: %w", place(u), err)
}

// scrub takes secrets out of an error's text, should the driver repeat one.
func scrub(err error, u *url.URL) error {
	secrets := []string{u.Query().Get("password"), u.Query().Get("sslkey")}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password, url.QueryEscape(password), url.PathEscape(password))
	}
	text := err.Error()
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// place names a database without its secrets.
func place(u *url.URL) string {
	host := u.Host
	if host == "" {
		host = u.Query().Get("host")
	}
	if host == "" {
		host = "localhost"
	}
	return fmt.Sprintf("database %s at %s", strings.TrimPrefix(u.Path, "/"), host)
}

// ping connects once. A server that is just starting, as under docker compose, is asked again.
func ping(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := db.PingContext(ctx)
		if pq.As(err, pqerror.CannotConnectNow) == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// unanswered says what to do about a database that cannot be used.
func unanswered(u *url.URL, err error) error {
	what := "check ROUSE_DATABASE_URL"
	var network net.Error
	switch {
	case errors.Is(err, pq.ErrSSLNotSupported):
		what = "the server speaks no TLS: add sslmode=disable to ROUSE_DATABASE_URL if the way to it is safe"
	case pq.As(err, pqerror.InvalidPassword, pqerror.InvalidAuthorizationSpecification) != nil:
		what = "check the user and the password in ROUSE_DATABASE_URL"
	case pq.As(err, pqerror.InvalidCatalogName) != nil:
		what = "make the database (createdb), or name another in ROUSE_DATABASE_URL"
	case pq.As(err, pqerror.TooManyConnections) != nil:
		what = "the server has no connection left: end other clients, or raise its max_connections"
	case pq.As(err, pqerror.CannotConnectNow) != nil:
		what = "it is starting or shutting down: try again in a moment"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		what = "nothing listens there: start the database, or check host and port in ROUSE_DATABASE_URL"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network):
		what = "it cannot be reached: check host and port in ROUSE_DATABASE_URL, and the network"
	}
	return fmt.Errorf("cannot use %s: %w; %s", place(u), scrub(err, u), what)
}
