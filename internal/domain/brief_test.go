package domain

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMessagesDoNotRepeatWhatWasSent(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	for name, message := range map[string]string{
		"a quotation":                  fmt.Sprintf("%q is no time zone", long),
		"one that needs escapes":       fmt.Sprintf("%q is no time zone", strings.Repeat("\"\\\n", 5000)),
		"several":                      fmt.Sprintf("use %q, not %q", long, long),
		"a text that is not in quotes": "one of " + long,
		"a quotation without an end":   `"` + long,
	} {
		if got := Brief(message, maxEcho); utf8.RuneCountInString(got) > maxEcho+1 || strings.Count(got, "ä") > maxEcho || !utf8.ValidString(got) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := Brief(fmt.Sprintf("%q is no time zone", long), maxEcho); !strings.HasSuffix(got, `…" is no time zone`) {
		t.Errorf("what is wrong is cut off: %s", got)
	}
	if short := fmt.Sprintf("%q is no time zone", "Europe/Nowhere"); Brief(short, maxEcho) != short {
		t.Error("a short message is changed")
	}
	err := RefuseField([]string{"variables", long}, UserErrorCodeInvalid, "%q is no value", long)
	if text := err.Error(); strings.Count(text, "ä") > 2*maxEcho {
		t.Errorf("a problem repeats %d characters", strings.Count(text, "ä"))
	}
}

func TestOptionsOfASelect(t *testing.T) {
	many := make([]string, maxOptions+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, tt := range []struct {
		name    string
		options []string
		want    string // field and code; "": accepted
	}{
		{"some", []string{"red", "green"}, ""},
		{"as many as there may be", many[:maxOptions], ""},
		{"none", nil, "variables.0.options REQUIRED"},
		{"one more than there may be", many, "variables.0.options TOO_LONG"},
		{"an empty one", []string{"red", ""}, "variables.0.options.1 INVALID"},
		{"one of blanks", []string{" "}, "variables.0.options.0 INVALID"},
		{"one that is too long", []string{strings.Repeat("x", maxOptionRunes+1)}, "variables.0.options.0 TOO_LONG"},
		{"the same twice", []string{"red", "red"}, "variables.0.options.1 TAKEN"},
	} {
		got := ""
		for _, p := range CheckVariables([]RoutineVariable{{Name: "colour", Type: VariableTypeSelect, Options: tt.options}}, false) {
			got = strings.Join(p.Field, ".") + " " + string(p.Code)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
