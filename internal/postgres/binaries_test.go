package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// server makes a folder with programs that say they are of a version.
func server(t *testing.T, dir, version string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"postgres", "initdb"} {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", program, version)
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhereTheServersProgramsAreFound(t *testing.T) {
	root := t.TempDir()
	packages := filepath.Join(root, "lib", "*", "bin")
	old := server(t, filepath.Join(root, "lib", "9.6", "bin"), "9.6.24")
	mid := server(t, filepath.Join(root, "lib", "14", "bin"), "14.2")
	newest := server(t, filepath.Join(root, "lib", "100", "bin"), "100.1 (Debian 100.1-1)")
	own := server(t, filepath.Join(root, "own"), "17devel")
	links := filepath.Join(root, "links")
	if err := os.Mkdir(links, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(own, "initdb"), filepath.Join(links, "initdb")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		from  finder
		major int
		want  Binaries
		err   string
	}{
		{"the newest package wins, by number", finder{folders: []string{packages}}, 0, Binaries{newest, 100}, ""},
		{"a link on the path is followed and comes first", finder{path: links, folders: []string{packages}}, 0, Binaries{own, 17}, ""},
		{"a data folder gets the version that made it", finder{path: links, folders: []string{packages}}, 14, Binaries{mid, 14}, ""},
		{"no version for the data folder", finder{folders: []string{packages}}, 16, Binaries{}, "the data folder needs 16"},
		{"only versions that are too old", finder{folders: []string{filepath.Dir(old)}}, 0, Binaries{}, "no PostgreSQL server"},
		{"a folder named by the operator comes before all", finder{bindir: mid, path: links, folders: []string{packages}}, 0, Binaries{mid, 14}, ""},
		{"a wrong folder named by the operator is an error", finder{bindir: links, path: links, folders: []string{packages}}, 0, Binaries{}, "ROUSE_PG_BINDIR=" + links},
		{"an old version named by the operator", finder{bindir: old}, 0, Binaries{}, "holds PostgreSQL 9"},
		{"another version than the data folder's, named", finder{bindir: mid}, 15, Binaries{}, "was made by 15"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.from.find(c.major)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got error %v, want %q", err, c.err)
			}
			if err == nil && got != c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestNoServerNamesTheWaysOut(t *testing.T) {
	_, err := finder{path: t.TempDir(), folders: []string{filepath.Join(t.TempDir(), "*")}}.find(0)
	var none *NoBinariesError
	if !errors.As(err, &none) {
		t.Fatalf("got %v, want a NoBinariesError", err)
	}
	for _, way := range []string{"apt-get install postgresql", "docker compose", "ROUSE_DATABASE_URL", "ROUSE_PG_BINDIR"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("%q does not name %s", err, way)
		}
	}
}

func TestTheServerOfThisMachineIsFound(t *testing.T) {
	b, err := FindBinaries()
	if err != nil {
		t.Fatal(err)
	}
	if b.Major < oldestMajor {
		t.Fatalf("got %+v", b)
	}
}
