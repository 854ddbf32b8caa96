package domain

import "bytes"

// Bare is a line of a program's output without what a terminal would obey before and behind its text: a byte order mark,
// escape sequences (colours, window titles, links), control characters and blanks. Programs write such things before a line
// that is meant for other programs. What stands between two parts of the text stays.
func Bare(line []byte) []byte {
	line = afterControls(line)
	if len(line) > 0 && line[0] != '{' { // a line that was begun anew, as a progress bar does
		if at := bytes.LastIndexByte(bytes.TrimRight(line, "\r"), '\r'); at >= 0 {
			line = afterControls(line[at+1:])
		}
	}
	if end := bytes.LastIndexByte(line, '}') + 1; end > 0 && len(afterControls(line[end:])) == 0 {
		line = line[:end]
	}
	return line
}

// afterControls is what follows the controls that a line begins with.
func afterControls(line []byte) []byte {
	for len(line) > 0 {
		n := controlLen(line)
		if n == 0 {
			break
		}
		line = line[n:]
	}
	return line
}

const (
	escape = 0x1b
	bell   = 0x07
)

// controlLen is the length of the mark, escape sequence, control character or blank that a line begins with; 0 when it begins
// with none, or with a sequence that has no end.
func controlLen(line []byte) int {
	switch {
	case bytes.HasPrefix(line, []byte("\ufeff")):
		return len("\ufeff")
	case line[0] == escape && len(line) > 1:
		return sequenceLen(line, 1, line[1])
	case line[0] == 0xc2 && len(line) > 1 && line[1] >= 0x80 && line[1] < 0xa0: // such a sequence begins with one character, too
		return sequenceLen(line, 1, line[1]-0x40)
	case line[0] <= ' ' || line[0] == 0x7f:
		return 1
	}
	return 0
}

// sequenceLen is the length of an escape sequence whose kind stands at a place; 0 when it has no end.
func sequenceLen(line []byte, at int, kind byte) int {
	rest := line[at+1:]
	switch kind {
	case '[': // parameters, then one letter or sign
		n := spanLen(rest, 0x20, 0x3f)
		if n < len(rest) && rest[n] >= 0x40 && rest[n] <= 0x7e {
			n++
		}
		return at + 1 + n
	case ']', 'P', 'X', '^', '_': // a text, until it is ended
		for i, c := range rest {
			switch {
			case c == bell, c == 0x9c && i > 0 && rest[i-1] == 0xc2:
				return at + 1 + i + 1
			case c == '\\' && i > 0 && rest[i-1] == escape:
				return at + 1 + i + 1
			}
		}
		return 0
	}
	if line[0] != escape { // a control character of its own
		return at + 1
	}
	n := spanLen(line[at:], 0x20, 0x2f)
	return min(at+n+1, len(line))
}

// spanLen is how many of the first bytes lie between two.
func spanLen(text []byte, from, to byte) int {
	for i, c := range text {
		if c < from || c > to {
			return i
		}
	}
	return len(text)
}
