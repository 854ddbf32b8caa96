package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest PostgreSQL rouse is tried with.
const oldestMajor = 14

// Binaries is a folder that holds postgres and initdb of one version.
type Binaries struct {
	Dir   string
	Major int // 15 for 15.18
}

// NoBinariesError says that this machine has no PostgreSQL server that would do.
type NoBinariesError struct {
	Looked []string // folders and patterns that were searched
	Found  []string // what was there and would not do, with the reason
}

func (e *NoBinariesError) Error() string {
	var found string
	if len(e.Found) > 0 {
		found = "; found but not usable: " + strings.Join(e.Found, ", ")
	}
	return fmt.Sprintf("no PostgreSQL server (version %d or newer) on this machine: looked in %s%s. Do one of these: "+
		"install it (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql); "+
		"name the folder that holds postgres and initdb in ROUSE_PG_BINDIR; "+
		"name a running database in ROUSE_DATABASE_URL; or start everything with docker compose up",
		oldestMajor, strings.Join(e.Looked, ", "), found)
}

// serverFolders are where packages put the server; a later version in the same pattern is preferred.
var serverFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin",
	"/usr/libexec/postgresql*",
	"/usr/lib/postgresql*/bin",
}

// finder is where to look; tests look elsewhere.
type finder struct {
	bindir  string // ROUSE_PG_BINDIR
	path    string // PATH
	folders []string
}

func newFinder() finder {
	return finder{bindir: os.Getenv("ROUSE_PG_BINDIR"), path: os.Getenv("PATH"), folders: serverFolders}
}

// FindBinaries finds the PostgreSQL server's programs. When ROUSE_PG_BINDIR is set, it looks there and nowhere else.
// Otherwise it looks on the PATH, then where packages put them, newest version first. A *NoBinariesError says what to
// install.
func FindBinaries() (Binaries, error) { return newFinder().find(0) }

// find wants a given major version, or any that is new enough when major is 0. A data folder can only be opened by the
// major version that made it.
func (f finder) find(major int) (Binaries, error) {
	if f.bindir != "" {
		return f.named(major)
	}
	var found []string
	for _, dir := range f.candidates() {
		b, err := inspect(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			found = append(found, err.Error())
		case b.Major < oldestMajor:
			found = append(found, fmt.Sprintf("%s (version %d)", dir, b.Major))
		case major != 0 && b.Major != major:
			found = append(found, fmt.Sprintf("%s (version %d, the data folder needs %d)", dir, b.Major, major))
		default:
			return b, nil
		}
	}
	return Binaries{}, &NoBinariesError{Looked: append([]string{"PATH"}, f.folders...), Found: found}
}

// named is find for an operator's explicit choice: there is no second guess when it is wrong.
func (f finder) named(major int) (Binaries, error) {
	b, err := inspect(f.bindir)
	switch {
	case err != nil:
		return b, fmt.Errorf("ROUSE_PG_BINDIR=%s holds no PostgreSQL server: %w; set it to the folder that holds "+
			"postgres and initdb, such as /usr/lib/postgresql/15/bin, or unset it", f.bindir, err)
	case b.Major < oldestMajor:
		return b, fmt.Errorf("ROUSE_PG_BINDIR=%s holds PostgreSQL %d, and rouse needs %d or newer; name a newer one, "+
			"or unset it", f.bindir, b.Major, oldestMajor)
	case major != 0 && b.Major != major:
		return b, fmt.Errorf("ROUSE_PG_BINDIR=%s holds PostgreSQL %d, and the data folder was made by %d; name that "+
			"version, or choose another folder with --data-dir", f.bindir, b.Major, major)
	}
	return b, nil
}

// candidates lists folders that may hold the server, best first. Links on the PATH are resolved: distributions link
// single programs there, and the others of the same version are beside the true file.
func (f finder) candidates() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(f.path) {
		for _, program := range []string{"postgres", "initdb"} {
			if real, err := filepath.EvalSymlinks(filepath.Join(dir, program)); err == nil && filepath.IsAbs(real) {
				dirs = append(dirs, filepath.Dir(real))
			}
		}
	}
	for _, pattern := range f.folders {
		matches, err := filepath.Glob(pattern)
		if err != nil { // a pattern of ours that is malformed: a mistake in the program
			panic(err)
		}
		slices.SortFunc(matches, newestFirst)
		dirs = append(dirs, matches...)
	}
	return slices.CompactFunc(dirs, func(a, b string) bool { return a == b })
}

var digits = regexp.MustCompile(`\d+`)

// newestFirst compares the numbers in two paths as numbers: 9.6 is older than 15.
func newestFirst(a, b string) int {
	return slices.Compare(numbers(b), numbers(a))
}

func numbers(s string) []int {
	var out []int
	for _, d := range digits.FindAllString(s, -1) {
		n, err := strconv.Atoi(d)
		if err != nil { // too long for a version
			continue
		}
		out = append(out, n)
	}
	return out
}

// inspect reads the version of the server in dir; os.ErrNotExist when a program is missing.
func inspect(dir string) (Binaries, error) {
	for _, program := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return Binaries{}, err
		}
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "-V").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("%s -V: %w", filepath.Join(dir, "postgres"), err)
	}
	n := numbers(string(out))
	if len(n) == 0 {
		return Binaries{}, fmt.Errorf("%s -V says %q, which is no version", filepath.Join(dir, "postgres"), out)
	}
	return Binaries{Dir: dir, Major: n[0]}, nil
}
