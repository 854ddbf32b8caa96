package postgres

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

func migration(sql string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("-- +goose Up\n" + sql + "\n")}
}

func TestMigrations(t *testing.T) {
	c := start(t, filepath.Join(folder(t), "postgres"))
	files := fstest.MapFS{
		"20250101000000_one.sql": migration("CREATE TABLE one (id int); SELECT pg_sleep(0.3);"),
		"20250102000000_two.sql": migration("CREATE TABLE two (id int);"),
	}

	t.Run("two starters at once apply each file once", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 2 {
			db := connect(t, c)
			wg.Go(func() {
				if err := Migrate(t.Context(), db, files, quiet); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var n int
		if err := connect(t, c).QueryRow("SELECT count(*) FROM goose_db_version WHERE version_id > 0").Scan(&n); err != nil || n != 2 {
			t.Fatalf("got %d applied, %v, want 2", n, err)
		}
	})
	t.Run("with nothing to do it takes one query", func(t *testing.T) {
		db := connect(t, c)
		began := time.Now()
		if err := Migrate(t.Context(), db, files, quiet); err != nil {
			t.Fatal(err)
		}
		t.Logf("took %v", time.Since(began))
	})
	t.Run("a database ahead of the program is refused", func(t *testing.T) {
		older := fstest.MapFS{"20250101000000_one.sql": files["20250101000000_one.sql"]}
		err := Migrate(t.Context(), connect(t, c), older, quiet)
		var newer *NewerDatabaseError
		if !errors.As(err, &newer) || newer.Database != 20250102000000 || newer.Program != 20250101000000 {
			t.Fatalf("got %v, want a NewerDatabaseError", err)
		}
	})
	t.Run("a file that fails is named and leaves nothing", func(t *testing.T) {
		broken := fstest.MapFS{"20250103000000_bad.sql": migration("CREATE TABLE three (id int); SELECT nonsense;")}
		for name, f := range files {
			broken[name] = f
		}
		db := connect(t, c)
		err := Migrate(t.Context(), db, broken, quiet)
		if err == nil || !strings.Contains(err.Error(), "20250103000000_bad.sql") {
			t.Fatalf("got %v, want the file's name", err)
		}
		var left bool
		if err := db.QueryRow("SELECT to_regclass('three') IS NOT NULL").Scan(&left); err != nil || left {
			t.Fatalf("a part of the failed file is left: %v, %v", left, err)
		}
		if err := Migrate(t.Context(), db, files, quiet); err != nil {
			t.Fatalf("the database is unusable after a failed file: %v", err)
		}
	})
}
