package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// migrateLockTries bounds, in seconds, how long a start waits for another one's migrations: one try a second.
const migrateLockTries = 600

// NewerDatabaseError says that a newer rouse has changed the database's shape; an older one must not write to it.
type NewerDatabaseError struct {
	Database, Program int64 // versions: the newest migration applied, and the newest this program knows
}

func (e *NewerDatabaseError) Error() string {
	return fmt.Sprintf("the database is newer than this program (its shape is version %d, this program knows %d): start "+
		"the newer rouse that was used last, or restore a backup from before it", e.Database, e.Program)
}

// Migrate brings the database to the shape the files describe, file by file, each in a transaction of its own. Several
// programs may do so at once: one works, the others wait. It returns *NewerDatabaseError when the database is ahead.
func Migrate(ctx context.Context, db *sql.DB, files fs.FS, log *slog.Logger) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, migrateLockTries))
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("migrate the database: read migrations: %w", err)
	}
	done, err := upToDate(ctx, db, provider)
	if err != nil || done {
		return err
	}
	results, err := provider.Up(ctx)
	if partial := (*goose.PartialError)(nil); errors.As(err, &partial) {
		results = partial.Applied
	}
	for _, r := range results {
		log.Info("migrated the database", "file", r.Source.Path, "version", r.Source.Version, "took", r.Duration)
	}
	if err != nil {
		return migrateError(err)
	}
	_, err = upToDate(ctx, db, provider) // a newer program may have been the one we waited for
	return err
}

// Pending counts the migrations that a database lacks, and changes nothing; empty says that it has none at all. It returns
// *NewerDatabaseError when the database is ahead.
func Pending(ctx context.Context, db *sql.DB, files fs.FS) (missing int, empty bool, err error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return 0, false, fmt.Errorf("read migrations: %w", err)
	}
	if done, err := upToDate(ctx, db, provider); err != nil || done {
		return 0, false, err
	}
	applied, err := appliedVersions(ctx, db)
	if err != nil {
		return 0, false, err
	}
	for _, source := range provider.ListSources() {
		if !slices.Contains(applied, source.Version) {
			missing++
		}
	}
	return missing, len(applied) == 0 || slices.Max(applied) == 0, nil // goose's own first row is 0
}

// Version is the newest migration that a database has; 0 when it has none.
func Version(ctx context.Context, db *sql.DB) (int64, error) {
	applied, err := appliedVersions(ctx, db)
	if err != nil || len(applied) == 0 {
		return 0, err
	}
	return slices.Max(applied), nil
}

// upToDate compares the versions applied with those known, in one query: most starts have nothing to do.
func upToDate(ctx context.Context, db *sql.DB, provider *goose.Provider) (bool, error) {
	applied, err := appliedVersions(ctx, db)
	if err != nil {
		return false, err
	}
	var known int64
	missing := false
	for _, source := range provider.ListSources() {
		known = max(known, source.Version)
		missing = missing || !slices.Contains(applied, source.Version)
	}
	if len(applied) > 0 && slices.Max(applied) > known {
		return false, &NewerDatabaseError{Database: slices.Max(applied), Program: known}
	}
	return !missing, nil
}

// appliedVersions reads goose's table; there is none in a new database.
func appliedVersions(ctx context.Context, db *sql.DB) ([]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT version_id FROM goose_db_version WHERE is_applied")
	if pq.As(err, pqerror.UndefinedTable) != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("migrate the database: read its version: %w", err)
	}
	defer rows.Close()
	var versions []int64
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, fmt.Errorf("migrate the database: read its version: %w", err)
		}
		versions = append(versions, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("migrate the database: read its version: %w", err)
	}
	return versions, nil
}

func migrateError(err error) error {
	what := "the files before it are applied, it is not; start again when the cause is gone"
	if pq.As(err, pqerror.InsufficientPrivilege) != nil {
		what = "the user in ROUSE_DATABASE_URL may not create tables: make it the owner of the database"
	}
	if partial := (*goose.PartialError)(nil); errors.As(err, &partial) && partial.Failed != nil {
		return fmt.Errorf("migrate the database: %s: %w; %s", partial.Failed.Source.Path, partial.Err, what)
	}
	return fmt.Errorf("migrate the database: %w; %s", err, what)
}
