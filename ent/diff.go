//go:build ignore

// Command diff writes the versioned migration that leads from the newest migration to ent/schema:
//
//	go run -mod=mod diff.go NAME
//
// It needs an empty database, named by ROUSE_DEV_DATABASE_URL; `make migration NAME=…` starts a throw-away one.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql/schema"
	_ "github.com/lib/pq"

	entmigrate "rouse.dev/rouse/ent/migrate"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run -mod=mod diff.go NAME")
	}
	dir, err := sqltool.NewGooseDir("../internal/store/migrations")
	if err != nil {
		log.Fatalf("open migrations: %v", err)
	}
	err = entmigrate.NamedDiff(context.Background(), os.Getenv("ROUSE_DEV_DATABASE_URL"), os.Args[1],
		schema.WithDir(dir), schema.WithMigrationMode(schema.ModeReplay), schema.WithDialect(dialect.Postgres),
		schema.WithFormatter(sqltool.GooseFormatter), schema.WithErrNoPlan(true),
		schema.WithDropColumn(true), schema.WithDropIndex(true))
	switch {
	case errors.Is(err, migrate.ErrNoPlan):
		log.Print("the migrations already lead to ent/schema: nothing written")
	case err != nil:
		log.Fatalf("write migration: %v", err)
	}
}
