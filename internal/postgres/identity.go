package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// Identity names a database so that a copy of its rows has another name. It is the number that PostgreSQL gave the
// cluster when it was made, the number of the database in it, and the port. A copy of the cluster's files keeps the
// first two. An account that may not read the first gets a name without it.
func Identity(ctx context.Context, db *sql.DB) (string, error) {
	const (
		whole   = `SELECT concat_ws('-', (SELECT system_identifier FROM pg_control_system()), oid, current_setting('port')) FROM pg_database WHERE datname = current_database()`
		without = `SELECT concat_ws('-', oid, current_setting('port')) FROM pg_database WHERE datname = current_database()`
	)
	var name string
	err := db.QueryRowContext(ctx, whole).Scan(&name)
	if pq.As(err, pqerror.InsufficientPrivilege, pqerror.UndefinedFunction) != nil {
		err = db.QueryRowContext(ctx, without).Scan(&name)
	}
	if err != nil {
		return "", fmt.Errorf("read the database's identity: %w", err)
	}
	return name, nil
}
