package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"rouse.dev/rouse/internal/postgres"
)

var (
	pgbenchRate    = regexp.MustCompile(`tps = ([0-9.]+)`)
	pgbenchLatency = regexp.MustCompile(`latency average = ([0-9.]+) ms`)
)

// FillPgbench makes the tables of PostgreSQL's own benchmark in a database, once for each.
func FillPgbench(t testing.TB, address string) {
	t.Helper()
	runPgbench(t, "-i", "-q", "-s", "10", address)
}

// Pgbench runs PostgreSQL's own benchmark, the script simple-update, for some seconds. It returns its transactions in a second and
// how long one took, in milliseconds.
func Pgbench(t testing.TB, address string, seconds, clients int) (rate, latencyMs float64) {
	t.Helper()
	out := runPgbench(t, "-n", "-b", "simple-update", "-c", strconv.Itoa(clients), "-j", "1", "-M", "prepared", "-T", strconv.Itoa(seconds), address)
	return number(t, pgbenchRate, out), number(t, pgbenchLatency, out)
}

func number(t testing.TB, form *regexp.Regexp, text []byte) float64 {
	t.Helper()
	m := form.FindSubmatch(text)
	if m == nil {
		t.Fatalf("pgbench said %s", text)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatalf("pgbench said %s: %v", text, err)
	}
	return n
}

func runPgbench(t testing.TB, args ...string) []byte {
	t.Helper()
	binaries, err := postgres.FindBinaries()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(binaries.Dir, "pgbench")
	if _, err := os.Stat(name); err != nil {
		name = "pgbench" // some packages have it with the client's programs
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("pgbench %v: %v: %s", args, err, out)
	}
	return out
}
