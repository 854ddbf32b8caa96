package domain

import (
	"fmt"
	"strings"
)

// Bounds of what is kept of a run's output, over all its attempts (SPEC S7.6).
const (
	MaxLogLine  = 8 << 10 // bytes
	MaxRunLines = 40_000
	MaxRunBytes = 16 << 20
)

// LogAllowance is what is kept of one attempt's output.
type LogAllowance struct{ Lines, Bytes int64 }

// AttemptLog is the allowance of the next attempt of a run that keeps this much of earlier ones: half of what is left.
// So a run is bounded whatever the number of its attempts, and the first ones have much of it; after very many, only
// the mark is kept.
func AttemptLog(lines, bytes int64) LogAllowance {
	return LogAllowance{Lines: max(MaxRunLines-lines, 0) / 2, Bytes: max(MaxRunBytes-bytes, 2) / 2} // never the zero value
}

// CutMark is the log line that says where output was cut, and how much is kept.
func (a LogAllowance) CutMark() string {
	return fmt.Sprintf("output truncated: this attempt keeps at most %d lines and %d KiB, half of what its run had left of %d lines and %d MiB",
		a.Lines, a.Bytes>>10, MaxRunLines, MaxRunBytes>>20)
}

// LogCut is what the count of an attempt's bytes is once there is a mark.
const LogCut = MaxRunBytes + 1

// BoundLog says how many of the lines that a worker reports are kept, by their numbers and sizes, when bytes of the
// attempt are stored already. Lines that are stored already must not be among them, because their bytes would count
// twice. mark says that the next line is replaced by CutMark. Once there is a mark, bytes is LogCut and nothing more is
// kept.
func (a LogAllowance) BoundLog(numbers []int64, sizes []int, bytes int64) (keep int, mark bool) {
	if bytes >= LogCut {
		return 0, false
	}
	for i, size := range sizes {
		if numbers[i] > a.Lines || bytes+int64(size) > a.Bytes {
			return i, true
		}
		bytes += int64(size)
	}
	return len(sizes), false
}

// LogLineText is a line as it is stored: one line of storable text of at most MaxLogLine bytes.
func LogLineText(s string) string {
	s = strings.NewReplacer("\r", "", "\n", " ").Replace(StorableText(s))
	return CutText(s, MaxLogLine, fmt.Sprintf(" [… cut at %d KiB]", MaxLogLine>>10))
}
