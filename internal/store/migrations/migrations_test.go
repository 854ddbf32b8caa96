package migrations_test

import (
	"errors"
	"testing"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/schemadiff"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTheMigrationsLeadToTheSchema(t *testing.T) {
	files, err := sqltool.NewGooseDir(".")
	if err != nil {
		t.Fatal(err)
	}
	db, _ := pgtest.Empty(t)
	plan, err := schemadiff.Missing(t.Context(), db, files, "missing")
	if errors.Is(err, migrate.ErrNoPlan) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Error("the migrations do not lead to ent/schema and beyond.sql; run `make migration NAME=…`. What is missing:")
	for _, c := range plan.Changes {
		t.Log(c.Cmd)
	}
}
