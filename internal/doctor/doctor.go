// Package doctor says of an installation what is well and what is not. Each check names what it looked at, and a failed one says
// what to do. It opens and changes nothing: whoever calls it hands over what is looked at.
package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/migrations"
)

// maxSkew is how far the database's clock may be from this machine's before schedules and leases surprise people.
const maxSkew = 5 * time.Second

// Finding is one check of the doctor. Subject is what it is about: "" for the installation, else a workspace or an agent.
type Finding struct {
	Subject string
	domain.Check
}

// Report passes findings on as they come. It is for one caller at a time.
type Report struct {
	ctx    context.Context // findings of an examination that was broken off are none
	told   func(Finding)
	unwell bool
}

// NewReport makes a report of an examination that ctx can break off.
func NewReport(ctx context.Context, tell func(Finding)) *Report { return &Report{ctx: ctx, told: tell} }

// Well says whether all was well until now.
func (r *Report) Well() bool { return !r.unwell }

// Tell passes a finding on, unless the examination was broken off.
func (r *Report) Tell(subject string, c domain.Check) {
	if r.ctx.Err() == nil {
		r.tell(subject, c)
	}
}

func (r *Report) tell(subject string, c domain.Check) {
	r.unwell = r.unwell || !c.OK
	r.told(Finding{subject, c})
}

// Pass tells of a check of the installation that found all well.
func (r *Report) Pass(name, detail string) {
	r.Tell("", domain.Check{Name: name, OK: true, Detail: detail})
}

// Fail tells of one that did not, and what to do.
func (r *Report) Fail(name string, err error, hint string) {
	r.Tell("", domain.Check{Name: name, Detail: err.Error(), Hint: hint})
}

// FailAnyway is Fail for what counts although the examination was broken off.
func (r *Report) FailAnyway(name string, err error, hint string) {
	r.tell("", domain.Check{Name: name, Detail: err.Error(), Hint: hint})
}

// Database says which database answers; false: none does. where is where it was looked for.
func (r *Report) Database(ctx context.Context, db *sql.DB, where string) bool {
	var version, name string
	if err := db.QueryRowContext(ctx, "SELECT current_setting('server_version'), current_database()").Scan(&version, &name); err != nil {
		r.Fail("database", err, "see the log of PostgreSQL")
		return false
	}
	r.Pass("database", fmt.Sprintf("PostgreSQL %s answers (%s, %s)", version, name, where))
	return true
}

// Migrations says whether the database has this program's shape; false: nothing more can be looked at.
func (r *Report) Migrations(ctx context.Context, db *sql.DB) bool {
	missing, _, err := postgres.Pending(ctx, db, migrations.FS)
	_, newer := errors.AsType[*postgres.NewerDatabaseError](err)
	switch {
	case newer:
		r.Fail("migrations", err, "call the doctor of that newer program, and give this one no database to serve")
		return false
	case err != nil:
		r.Fail("migrations", err, "give the account of "+config.EnvDatabaseURL+" the right to read the tables, or run `rouse migrate` as their owner")
		return false
	case missing > 0:
		r.Fail("migrations", fmt.Errorf("the database lacks %d of this program's migrations", missing), "run `rouse migrate`, or start `rouse serve`")
		return false
	}
	r.Pass("migrations", "the database has this program's shape")
	return true
}

// Clock compares the clocks. The database's is taken to have been read halfway through the query.
func (r *Report) Clock(ctx context.Context, db *sql.DB) {
	before := time.Now()
	var there time.Time
	if err := db.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&there); err != nil {
		r.Fail("clock", err, "see the log of PostgreSQL")
		return
	}
	took := time.Since(before)
	skew := there.Sub(before.Add(took / 2)).Round(time.Millisecond)
	if skew.Abs() > maxSkew+took/2 {
		r.Fail("clock", fmt.Errorf("the database's clock is %s ahead of this machine's", skew), "let both machines set their clocks by the network (NTP)")
		return
	}
	r.Pass("clock", fmt.Sprintf("the database's clock is %s ahead of this machine's", skew))
}
