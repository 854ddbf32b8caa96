package modeltest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	connections = 8
	steps       = 50 // of one sequence
	// The full form, `make test-model`, takes minutes; the other one is part of every test run.
	sequencesFull, sequencesShort = 2000, 160
	officeFull, officeShort       = 1000, 72 // they compare more, and take longer
)

// fullVariable asks for the full form, seedVariable for a sequence that was seen before.
const (
	fullVariable = "ROUSE_MODEL_FULL"
	seedVariable = "ROUSE_MODEL_SEED"
)

func sequences() int {
	if os.Getenv(fullVariable) != "" {
		return sequencesFull
	}
	return sequencesShort
}

// officeSequences is how many sequences are about tasks and money.
func officeSequences() int {
	if os.Getenv(fullVariable) != "" {
		return officeFull
	}
	return officeShort
}

// seed is where the test's random numbers begin. Sequence n uses seed + n: with the seed that a failure printed, the
// first one is the one that failed.
func seed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv(seedVariable); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		return n
	}
	n := uint64(shortSeed)
	if os.Getenv(fullVariable) != "" {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("seeds from %d", n)
	return n
}

// shortSeed makes the short form, which accompanies every change, the same for every change; the full form looks for what
// nobody has seen yet.
const shortSeed = 20261130
