package secret

import (
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
)

// MinMaskLength is the length in bytes from which a value is masked. Shorter values ("1", "true", "prod", "8080") occur
// in any text by chance. Masking them would ruin the output and hide nothing, because their places would give them
// away.
const MinMaskLength = 6

// hashLength is how many bytes a pattern is found by; no pattern is shorter.
const hashLength = 4

// Masker replaces known secret values in text by "***". It knows the values themselves, each line of a value of several
// lines, and their forms in base64 (at any offset, as in basic authentication), in URLs and in JSON. It is immutable
// and safe for concurrent use; a nil Masker changes nothing.
//
// It sees one text at a time, so give it whole lines, and mask before cutting: half a secret is not found.
type Masker struct {
	patterns map[uint32][]string // by their first bytes, longest first
	filter   [1 << 10]uint64     // one bit per hash of first bytes, to pass over most positions at once
}

// ownID is an id of a record of ours: no secret, and what an agent acts on.
var ownID = regexp.MustCompile(`^(agt|apr|prj|rtn|run|tsk|wsp)_0[0-9a-hjkmnp-tv-z]{25}$`)

// NewMasker makes a masker of values; those shorter than MinMaskLength are left out, and so are ids of records.
func NewMasker(values ...string) *Masker {
	m := &Masker{patterns: map[uint32][]string{}}
	seen := map[string]bool{}
	for _, value := range values {
		if len(value) < MinMaskLength || ownID.MatchString(value) {
			continue
		}
		for _, pattern := range forms(value) {
			if !seen[pattern] {
				seen[pattern] = true
				m.add(pattern)
			}
		}
	}
	for _, patterns := range m.patterns {
		slices.SortFunc(patterns, func(a, b string) int { return len(b) - len(a) })
	}
	return m
}

func (m *Masker) add(pattern string) {
	first := firstBytes(pattern)
	m.patterns[first] = append(m.patterns[first], pattern)
	word, bit := filterPosition(first)
	m.filter[word] |= bit
}

// Mask is the text with every secret replaced. Secrets that overlap or touch become one "***". A text without any comes back as it is,
// without an allocation.
func (m *Masker) Mask(text string) string {
	if m == nil || len(m.patterns) == 0 {
		return text
	}
	var out strings.Builder
	copied := 0 // text up to here is in out
	for start, end := m.next(text, 0); start >= 0; start, end = m.next(text, end) {
		if copied == 0 || start > copied {
			out.WriteString(text[copied:start])
			out.WriteString(Redacted)
		}
		copied = end
	}
	if copied == 0 {
		return text
	}
	out.WriteString(text[copied:])
	return out.String()
}

// next finds the first stretch at or after from that secrets cover, with all that overlap; start is -1 when there is none.
func (m *Masker) next(text string, from int) (start, end int) {
	start = -1
	var first uint32 // the hashLength bytes that end at i, the earliest lowest, as firstBytes reads them
	for i := from; i < len(text); i++ {
		first = first>>8 | uint32(text[i])<<24
		begin := i - (hashLength - 1)
		if start >= 0 && begin >= end {
			break
		}
		word, bit := filterPosition(first)
		if m.filter[word]&bit == 0 || begin < from {
			continue
		}
		if length := m.match(text[begin:], first); length > 0 {
			if start < 0 {
				start = begin
			}
			end = max(end, begin+length)
		}
	}
	return start, end
}

// match is the length of the longest secret that text begins with, or 0.
func (m *Masker) match(text string, first uint32) int {
	for _, pattern := range m.patterns[first] {
		if strings.HasPrefix(text, pattern) {
			return len(pattern)
		}
	}
	return 0
}

func firstBytes(s string) uint32 {
	return binary.LittleEndian.Uint32([]byte(s[:hashLength]))
}

// filterPosition spreads first bytes over the filter's 2^16 bits (Knuth's multiplicative hash).
func filterPosition(first uint32) (word int, bit uint64) {
	hash := first * 2654435761 >> 16
	return int(hash >> 6), 1 << (hash & 63)
}
