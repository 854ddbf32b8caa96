//go:build ignore

// Command diff writes the versioned migration that leads from the newest migration to ent/schema and beyond.sql:
//
//	go run diff.go NAME
//
// It replays the migrations in an empty database: the one that ROUSE_DEV_DATABASE_URL names, else one of a throw-away
// cluster. `make migration NAME=…` is the usual way to call it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"regexp"
	"time"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	_ "github.com/lib/pq"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/schemadiff"
)

func main() {
	if len(os.Args) != 2 || !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(os.Args[1]) {
		log.Fatal("usage: go run diff.go NAME, where the name says in small_letters what the migration does")
	}
	if err := run(os.Args[1]); errors.Is(err, migrate.ErrNoPlan) {
		log.Print("the migrations already lead to ent/schema: nothing written")
	} else if err != nil {
		log.Fatal(err)
	}
}

func run(name string) error {
	address := os.Getenv("ROUSE_DEV_DATABASE_URL")
	if address == "" {
		throwaway, end, err := startThrowaway()
		if err != nil {
			return err
		}
		defer end()
		address = throwaway
	}
	dir, err := sqltool.NewGooseDir("../internal/store/migrations")
	if err != nil {
		return fmt.Errorf("open migrations: %w", err)
	}
	db, err := sql.Open("postgres", address)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer db.Close()
	plan, err := schemadiff.Missing(context.Background(), db, dir, name)
	if err != nil {
		return fmt.Errorf("find what is missing: %w", err)
	}
	if err := migrate.NewPlanner(nil, dir, migrate.PlanFormat(sqltool.GooseFormatter)).WritePlan(plan); err != nil {
		return fmt.Errorf("write migration: %w", err)
	}
	return nil
}

// startThrowaway gives the address of an empty database, and what ends its server and removes it.
func startThrowaway() (address string, end func(), err error) {
	dir, err := os.MkdirTemp("", "rouse-diff-")
	if err != nil {
		return "", nil, err
	}
	remove := func() {
		if err := os.RemoveAll(dir); err != nil {
			log.Print(err)
		}
	}
	cluster, err := startCluster(dir)
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("start a throw-away database: %w", err)
	}
	return cluster.URL("rouse"), func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := cluster.Stop(ctx); err != nil {
			log.Print(err)
		}
		remove()
	}, nil
}

func startCluster(dir string) (*postgres.Cluster, error) {
	if err := os.Chmod(dir, 0o711); err != nil { // as root, the server runs under another account, which must pass
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return postgres.StartCluster(ctx, postgres.Options{Dir: dir + "/cluster", Log: slog.New(slog.DiscardHandler), Throwaway: true})
}
