package postgres_test

import (
	"fmt"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

func TestAStatementThatComesAgainIsPreparedOnce(t *testing.T) {
	db, _ := pgtest.Empty(t)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	prepared := func() (n int) {
		t.Helper()
		if err := conn.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_prepared_statements`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ask := func(query string, want int) {
		t.Helper()
		var got int
		if err := conn.QueryRowContext(t.Context(), query, want).Scan(&got); err != nil || got != want {
			t.Fatalf("%s: %d, %v", query, got, err)
		}
	}
	ask(`SELECT $1::int`, 1)
	if n := prepared(); n != 0 {
		t.Errorf("%d statements are prepared after one call", n)
	}
	for i := range 10 {
		ask(`SELECT $1::int`, i)
	}
	if n := prepared(); n != 1 {
		t.Errorf("%d statements are prepared, want 1", n)
	}
	for i := range 1000 { // each text twice: only so many are kept
		query := fmt.Sprintf(`SELECT $1::int + %d`, i)
		for range 2 {
			var got int
			if err := conn.QueryRowContext(t.Context(), query, 1).Scan(&got); err != nil || got != i+1 {
				t.Fatalf("%s: %d, %v", query, got, err)
			}
		}
	}
	if n := prepared(); n != 150 {
		t.Errorf("%d statements are prepared, want the bound of 150", n)
	}
}

func TestAPreparedStatementSurvivesAChangeOfItsTable(t *testing.T) {
	db, _ := pgtest.Empty(t)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run := func(query string, args ...any) error {
		_, err := conn.ExecContext(t.Context(), query, args...)
		return err
	}
	if err := run(`CREATE TABLE things (a int)`); err != nil {
		t.Fatal(err)
	}
	read := func() error { return run(`SELECT * FROM things WHERE a = $1`, 1) }
	for range 3 {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(`ALTER TABLE things ADD b int`); err != nil {
		t.Fatal(err)
	}
	first := read()
	if err := read(); err != nil {
		t.Errorf("after the change the statement fails for good: %v, then %v", first, err)
	}
}

func TestJSONIsSentAsText(t *testing.T) {
	db, _ := pgtest.Empty(t)
	for range 3 { // plain, then prepared
		var got string
		if err := db.QueryRowContext(t.Context(), `SELECT $1::jsonb ->> 'a'`, []byte(`{"a": "b"}`)).Scan(&got); err != nil || got != "b" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}
