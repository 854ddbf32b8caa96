package domain

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of what is kept of an attempt's output (SPEC S7.6).
const (
	MaxLogLine  = 8 << 10 // bytes
	MaxRunLines = 20_000
	MaxRunBytes = 8 << 20
)

// BoundLog says how many of the lines that a worker reports are kept, when bytes are stored already and the first of them
// has the number first; mark says that a line which tells of the cut stands in the place of the next one. Once there is a
// mark, bytes is beyond MaxRunBytes and nothing more is kept.
func BoundLog(first int64, sizes []int, bytes int64) (keep int, mark bool) {
	if bytes > MaxRunBytes {
		return 0, false
	}
	for i, size := range sizes {
		if first+int64(i) > MaxRunLines || bytes+int64(size) > MaxRunBytes {
			return i, true
		}
		bytes += int64(size)
	}
	return len(sizes), false
}

// LogCutMark is the line that tells of the cut.
var LogCutMark = fmt.Sprintf("output truncated: a run keeps at most %d lines and %d MiB", MaxRunLines, MaxRunBytes>>20)

// StorableText is a text as the database takes it: valid UTF-8 without NUL.
func StorableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// CutText cuts a text to limit bytes at the beginning of a rune, and says so with the mark, which is part of them.
func CutText(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	end := max(limit-len(mark), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// LogLineText is a line as it is stored: one line of storable text of at most MaxLogLine bytes.
func LogLineText(s string) string {
	s = strings.NewReplacer("\r", "", "\n", " ").Replace(StorableText(s))
	return CutText(s, MaxLogLine, fmt.Sprintf(" [… cut at %d KiB]", MaxLogLine>>10))
}
