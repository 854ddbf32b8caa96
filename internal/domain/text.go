package domain

import (
	"strings"
	"unicode/utf8"
)

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

// FirstRunes is the first n characters of a text.
func FirstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// ClipText shortens a value that a caller sent, so that it cannot fill a message. A sign shows where characters were
// left out.
func ClipText(s string, most int) string {
	if first := FirstRunes(s, most); first != s {
		return first + "…"
	}
	return s
}
