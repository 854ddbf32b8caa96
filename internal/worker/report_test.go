package worker

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestASummaryIsShortEnoughForARow(t *testing.T) {
	for name, test := range map[string]struct {
		object map[string]any
		whole  bool
	}{
		"8 KiB are kept":                      {map[string]any{"summary": strings.Repeat("x", maxSummary)}, true},
		"one byte more is cut":                {map[string]any{"summary": strings.Repeat("x", maxSummary+1)}, false},
		"a long result is cut between runes":  {map[string]any{"result": "x" + strings.Repeat("é", maxSummary)}, false},
		"a long message is cut between runes": {map[string]any{"message": strings.Repeat("😀", maxSummary)}, false},
	} {
		got := summaryOf(test.object)
		cut := strings.HasSuffix(got, "[… cut; the result has all of it]")
		if len(got) > maxSummary || !utf8.ValidString(got) || cut == test.whole {
			t.Errorf("%s: %d bytes, cut %v", name, len(got), cut)
		}
	}
}
