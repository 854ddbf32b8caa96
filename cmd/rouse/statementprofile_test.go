package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgprofile"
)

// profileRows is how many statements a profile has.
const profileRows = 60

// startProfiled is start for a server with a database of its own, whose statements are counted where a profile is wanted.
func startProfiled(b *testing.B, data string, args ...string) *program {
	b.Helper()
	p := start(b, data, nil, args...)
	if !pgprofile.Wanted() {
		return p
	}
	p.end(syscall.SIGTERM)
	found, err := filepath.Glob(filepath.Join(data, "postgres", "*", "postgresql.auto.conf"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%d clusters", len(found))
	}
	if err == nil {
		err = pgprofile.Preload(filepath.Dir(found[0]))
	}
	if err != nil {
		b.Fatal(err)
	}
	return start(b, data, nil, args...)
}

// beginProfile forgets what was counted before.
func beginProfile(b *testing.B, db *sql.DB) {
	b.Helper()
	if !pgprofile.Wanted() {
		return
	}
	if err := pgprofile.Begin(b.Context(), db); err != nil {
		b.Fatal(err)
	}
}

// endProfile prints what each of n runs took.
func endProfile(b *testing.B, db *sql.DB, n float64) {
	b.Helper()
	if !pgprofile.Wanted() {
		return
	}
	table, err := pgprofile.Top(b.Context(), db, n, profileRows)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprint(os.Stderr, table) // a benchmark's own log is cut after ten lines
}
