package domain

import (
	"encoding/json"
	"reflect"
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
		got := ResultSummary(test.object)
		cut := strings.HasSuffix(got, "[… cut; the result has all of it]")
		if len(got) > maxSummary || !utf8.ValidString(got) || cut == test.whole {
			t.Errorf("%s: %d bytes, cut %v", name, len(got), cut)
		}
	}
}

func TestTheSummaryOfAResult(t *testing.T) {
	for _, c := range []struct{ name, object, want string }{
		{"the summary goes first", `{"summary":"s","result":"r","message":"m"}`, "s"},
		{"then the result", `{"result":"r","message":"m"}`, "r"},
		{"an empty summary is none", `{"summary":"","message":"m"}`, "m"},
		{"a result that is no text is none", `{"result":{"a":1}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ResultSummary(decoded(t, c.object)); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestTheSessionOfAResult(t *testing.T) {
	for _, c := range []struct{ name, object, want string }{
		{"a name is taken", `{"session_id":"abc-1"}`, "abc-1"},
		{"one with a line break is none", `{"session_id":"a\nb"}`, ""},
		{"one that is too long is none", `{"session_id":"` + strings.Repeat("x", MaxSessionID+1) + `"}`, ""},
		{"a number is none", `{"session_id":7}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ResultSession(decoded(t, c.object)); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
	if ResultSession(map[string]any{"session_id": "a\xff"}) != "" {
		t.Error("one that is no UTF-8 is taken")
	}
}

func TestAResultIsCleanedAndMasked(t *testing.T) {
	mask := func(s string) string { return strings.NewReplacer("hunter2", "***", "81745023", "***").Replace(s) }
	in := map[string]any{"a hunter2": []any{"x\x00y", "hunter2", 3, true, nil}, "b": map[string]any{"c": "\xff", "81745023": 1.5},
		"numbers": []any{json.Number("81745023"), 81745023, int64(81745023), 81745023.0, json.Number("1817450234"), json.Number("81745"), int64(7)}}
	got := CleanResult(in, mask)
	want := map[string]any{"a ***": []any{"x\uFFFDy", "***", 3, true, nil}, "b": map[string]any{"c": "\uFFFD", "***": 1.5},
		"numbers": []any{"***", "***", "***", "***", "1***4", json.Number("81745"), int64(7)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
	if in["a hunter2"].([]any)[1] != "hunter2" {
		t.Error("the result was changed in place")
	}
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestASecretNumberIsMaskedHoweverItIsSpelled(t *testing.T) { // SPEC S7.6: the database writes it out
	mask := func(text string) string { return strings.ReplaceAll(text, "827364554671", "***") }
	for spelled, want := range map[string]any{
		"827364554671": "***", "8.27364554671e11": "***", "8.27364554671E+11": "***", "82736455467100e-2": "***00e-2", "8273645546.71e2": "***",
		"8.27364554671e12": "***0", "8.27364554671e10": json.Number("8.27364554671e10"), "1e999999999": json.Number("1e999999999"), "1e5": json.Number("1e5"),
	} {
		if got := CleanResult(json.Number(spelled), mask); got != want {
			t.Errorf("%s: got %v, want %v", spelled, got, want)
		}
	}
}
