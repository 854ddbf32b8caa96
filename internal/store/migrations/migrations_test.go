package migrations_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql/schema"

	entmigrate "rouse.dev/rouse/ent/migrate"
	"rouse.dev/rouse/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The files are copied, so that a difference is written to a temporary folder and not into the source.
func TestTheMigrationsLeadToTheSchema(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	files, err := sqltool.NewGooseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, url := pgtest.Empty(t)
	err = entmigrate.NamedDiff(t.Context(), url, "missing",
		schema.WithDir(files), schema.WithMigrationMode(schema.ModeReplay), schema.WithDialect(dialect.Postgres),
		schema.WithFormatter(sqltool.GooseFormatter), schema.WithErrNoPlan(true), schema.WithDropColumn(true), schema.WithDropIndex(true))
	if errors.Is(err, migrate.ErrNoPlan) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	added, err := filepath.Glob(filepath.Join(dir, "*_missing.sql"))
	if err != nil || len(added) != 1 {
		t.Fatalf("a difference was found but not written: %v %v", added, err)
	}
	text, err := os.ReadFile(added[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("ent/schema and the migrations differ; run `make migration NAME=…`. What is missing:\n%s", text)
}
