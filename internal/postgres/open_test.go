package postgres

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestABadURLSaysWhatToDoAndNeverThePassword(t *testing.T) {
	c := start(t, filepath.Join(folder(t), "postgres"))
	closedPort := freePort(t)
	for _, test := range []struct{ name, url, want string }{
		{"empty", "", "does not begin with postgres://"},
		{"another scheme", "mysql://u:s3cr3t@h/d", "does not begin with postgres://"},
		{"a list of settings", "host=/tmp password=s3cr3t", "does not begin with postgres://"},
		{"a bad escape in the password", "postgres://u:s3cr3t%zz@h/d", "malformed"},
		{"a bad escape in the path", "postgres://u:s3cr3t@h/%zz", "malformed"},
		{"a slash in the password", "postgres://u:s3cr3t/x@h/d", "malformed"},
		{"a hash in the password", "postgres://u:s3cr3t#x@h/d", "malformed"},
		{"a slash after digits in the password", "postgres://u:4321/s3cr3t@h/d", "percent-encode"},
		{"a question mark after digits in the password", "postgres://u:4321?s3cr3t@h/d", "percent-encode"},
		{"a space in the password", "postgres://u:s3cr3t x@h/d", "malformed"},
		{"a bad port", "postgres://u:s3cr3t@h:port/d", "malformed"},
		{"a bad TLS mode", "postgres://u:s3cr3t@h/d?sslmode=s3cr3t", "malformed"},
		{"nobody listens", "postgres://u:s3cr3t@" + closedPort + "/d?sslmode=disable", "start the database"},
		{"no socket", "postgres://u:s3cr3t@/d?host=/nowhere&sslmode=disable", "start the database"},
		{"no such host", "postgres://u:s3cr3t@host.invalid/d?sslmode=disable", "cannot be reached"},
		{"no such database", c.URL("absent"), "createdb"},
		{"a user that may not", strings.Replace(c.URL("rouse"), "rouse@", "other:s3cr3t@", 1), "check the user and the password"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			db, err := Open(ctx, test.url)
			if err == nil {
				db.Close()
				t.Fatal("it opened")
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the password leaks: %v", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want it to say %q", err, test.want)
			}
		})
	}
}

// freePort is an address on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func FuzzAURLNeverLeaksItsPassword(f *testing.F) {
	f.Add("postgres://u:", "@h:1/d")
	f.Add("postgres://u:%zz", "@h/d?sslmode=no")
	f.Add("://u:", "@")
	f.Fuzz(func(t *testing.T, before, after string) {
		_, err := parse(before + "s3cr3tpassw0rd" + after)
		if err != nil && strings.Contains(err.Error(), "s3cr3tpassw0rd") {
			t.Fatal(err)
		}
	})
}

func TestTransactionsReadWhatIsCommittedWhateverTheDatabaseSays(t *testing.T) {
	c := start(t, filepath.Join(folder(t), "postgres"))
	for _, address := range []string{c.URL("rouse"), c.URL("rouse") + "&default_transaction_isolation=serializable"} {
		db, err := Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), `ALTER DATABASE rouse SET default_transaction_isolation = 'repeatable read'`); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := db.QueryRowContext(t.Context(), `SHOW transaction_isolation`).Scan(&got); err != nil || got != "read committed" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
