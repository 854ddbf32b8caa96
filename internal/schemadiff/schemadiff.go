// Package schemadiff finds what the migrations still lack of the schema that the program is written for: ent/schema, and
// beyond.sql for what ent cannot say. `make migration` writes it down, and a test of the migrations wants nothing to be found.
package schemadiff

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/postgres"
	"ariga.io/atlas/sql/schema"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	entschema "entgo.io/ent/dialect/sql/schema"

	entmigrate "rouse.dev/rouse/ent/migrate"
)

// beyond is executed after ent's tables are made.
//
//go:embed beyond.sql
var beyond string

// Missing compares the migrations of a folder with the schema, in an empty database whose schema "public" is made anew twice.
// It returns migrate.ErrNoPlan when they lead to it.
func Missing(ctx context.Context, db *sql.DB, dir migrate.Dir, name string) (*migrate.Plan, error) {
	driver, err := postgres.Open(db)
	if err != nil {
		return nil, fmt.Errorf("open the database of the comparison: %w", err)
	}
	if err := refuseFilled(ctx, driver); err != nil {
		return nil, err
	}
	is, err := made(ctx, db, driver, func() error { return replay(ctx, driver, dir) })
	if err != nil {
		return nil, fmt.Errorf("apply the migrations: %w", err)
	}
	wanted, err := made(ctx, db, driver, func() error { return build(ctx, db) })
	if err != nil {
		return nil, fmt.Errorf("make the schema of ent/schema and beyond.sql: %w", err)
	}
	wanted.Attrs = is.Attrs // comments and the like of the schema itself
	changes, err := driver.SchemaDiff(is, wanted)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	if len(changes) == 0 {
		return nil, migrate.ErrNoPlan
	}
	plan, err := driver.PlanChanges(ctx, name, changes, func(o *migrate.PlanOptions) { o.SchemaQualifier = new(string) })
	if err != nil {
		return nil, fmt.Errorf("plan what is missing: %w", err)
	}
	return plan, nil
}

func refuseFilled(ctx context.Context, driver migrate.Driver) error {
	found, err := driver.InspectSchema(ctx, "public", nil)
	if err != nil {
		return fmt.Errorf("look at the database of the comparison: %w", err)
	}
	if len(found.Tables) > 0 {
		return fmt.Errorf("the database of the comparison has tables, %s for one, which would be removed: name an empty one", found.Tables[0].Name)
	}
	return nil
}

// made describes what a function makes of an empty schema, which is empty again afterwards.
func made(ctx context.Context, db *sql.DB, driver migrate.Driver, do func() error) (*schema.Schema, error) {
	err := do()
	var found *schema.Schema
	if err == nil {
		found, err = driver.InspectSchema(ctx, "public", nil)
	}
	_, cleaned := db.ExecContext(ctx, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	return found, errors.Join(err, cleaned)
}

func replay(ctx context.Context, driver migrate.Driver, dir migrate.Dir) error {
	files, err := migrate.NewExecutor(driver, dir, &migrate.NopRevisionReadWriter{})
	if err != nil {
		return err
	}
	if err := files.ExecuteN(ctx, 0); !errors.Is(err, migrate.ErrNoPendingFiles) {
		return err
	}
	return nil
}

// build makes the types of closed sets of values, then ent's tables, then what ent cannot say.
func build(ctx context.Context, db *sql.DB) error {
	for _, t := range enumTypes() {
		if _, err := db.ExecContext(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if err := entmigrate.NewSchema(entsql.OpenDB(dialect.Postgres, db)).Create(ctx); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, beyond)
	return err
}

// enumTypes are the statements that make the native types which columns of ent/schema name, in the order of their names.
func enumTypes() (out []string) {
	values := map[string][]string{}
	for _, table := range entmigrate.Tables {
		for _, column := range table.Columns {
			if name := nativeType(column); name != "" {
				values[name] = column.Enums
			}
		}
	}
	for name, list := range values {
		out = append(out, `CREATE TYPE `+name+` AS ENUM ('`+strings.Join(list, `', '`)+`')`)
	}
	slices.Sort(out)
	return out
}

func nativeType(c *entschema.Column) string {
	if len(c.Enums) == 0 {
		return ""
	}
	return c.SchemaType[dialect.Postgres]
}
