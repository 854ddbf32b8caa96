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
	// A sequence does one thing after the other, so the race detector finds little, and makes it three times as expensive. It
	// watches a few of them, and all those that meet; the others are tested without it (make test-sequences).
	sequencesRaced, officeRaced = 16, 8
	// How many meet.
	sequencesMeet, officeMeet = 96, 48
)

// fullVariable asks for the full form, seedVariable for a sequence that was seen before.
const (
	fullVariable = "ROUSE_MODEL_FULL"
	seedVariable = "ROUSE_MODEL_SEED"
)

// sequences is how many are compared with the model one step after the other, officeSequences how many of those about tasks and money.
func sequences() int       { return howMany(sequencesFull, sequencesShort, sequencesRaced) }
func officeSequences() int { return howMany(officeFull, officeShort, officeRaced) }

// sequencesAtOnce is how many meet, officeAtOnce how many of those about tasks and money: as many under the race detector.
func sequencesAtOnce() int { return howMany(sequencesFull, sequencesMeet, sequencesMeet) }
func officeAtOnce() int    { return howMany(officeFull, officeMeet, officeMeet) }

func howMany(full, short, watched int) int {
	switch {
	case os.Getenv(fullVariable) != "":
		return full
	case raced:
		return watched
	}
	return short
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
