package domain

import "testing"

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, tt := range []struct {
		name, got, want string
	}{
		{"a text within its limit stays", CutText("größe", 7, "…"), "größe"},
		{"the mark is part of the limit", CutText("abcdefgh", 6, "…"), "abc…"},
		{"no character is split", CutText("aäöü", 4, ""), "aä"},
		{"a mark longer than the limit stands alone", CutText("abc", 2, "…"), "…"},
		{"nothing is left of a text without room", CutText("abc", 0, ""), ""},
		{"the first characters are counted, not bytes", FirstRunes("äöüß", 3), "äöü"},
		{"fewer characters than asked for are all of them", FirstRunes("äö", 3), "äö"},
		{"no character is the empty text", FirstRunes("äö", 0), ""},
		{"a short value is told whole", ClipText("äöü", 3), "äöü"},
		{"a long value is told in part", ClipText("äöüß", 3), "äöü…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("%q, want %q", tt.got, tt.want)
			}
		})
	}
}
