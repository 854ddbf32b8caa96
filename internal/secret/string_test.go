package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestAStringNeverShows(t *testing.T) {
	const text = "hunter2hunter2"
	hidden := NewString(text)
	type holder struct {
		hidden String
		Hidden String
		Inner  struct{ hidden String }
		Ref    *String
	}
	held := holder{hidden: hidden, Hidden: hidden, Ref: &hidden}
	held.Inner.hidden = hidden

	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		_, _ = fmt.Fprintf(&shown, verb+verb+verb, hidden, held, &held)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("x", "hidden", hidden, "held", held, "ref", &held)
	}
	if err := json.NewEncoder(&shown).Encode(map[string]any{"hidden": hidden, "held": held}); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprint(&shown, fmt.Errorf("x: %v", hidden))
	for _, leak := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), strings.Trim(fmt.Sprint([]byte(text)), "[]")} {
		if strings.Contains(shown.String(), leak) {
			t.Errorf("%q shows in %s", leak, shown.String())
		}
	}
	if hidden.Reveal() != text {
		t.Error("Reveal does not give the text")
	}
}

func TestAnEmptyStringShowsThatItIsEmpty(t *testing.T) {
	for name, empty := range map[string]String{"zero": {}, "made": NewString("")} {
		if !empty.IsEmpty() || empty.Reveal() != "" || fmt.Sprint(empty) != "" {
			t.Errorf("%s: %q", name, fmt.Sprint(empty))
		}
	}
}

func TestAStringIsReadFromText(t *testing.T) {
	var hidden String
	if err := hidden.UnmarshalText([]byte("value")); err != nil || hidden.Reveal() != "value" || fmt.Sprint(hidden) != Redacted {
		t.Errorf("got %q, %v", hidden.Reveal(), err)
	}
}
