package secret

import (
	"fmt"
	"log/slog"
)

// Redacted stands where a secret would be.
const Redacted = "***"

// String is a text that must not be shown: printing, logging and marshalling it give "***", or nothing when it is empty. The zero String
// is empty. Compare what Reveal gives, not two Strings.
type String struct {
	value *string // behind a pointer, since fmt prints unexported fields past every method; it does not follow one to a string
}

// NewString hides a text.
func NewString(value string) String { return String{value: &value} }

// Reveal is the text itself; let it go nowhere but where it is needed.
func (s String) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsEmpty reports whether the text is empty.
func (s String) IsEmpty() bool { return s.Reveal() == "" }

// String is the redacted form.
func (s String) String() string {
	if s.IsEmpty() {
		return ""
	}
	return Redacted
}

// Format prints the redacted form, whatever the verb.
func (s String) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, s.String()) }

// LogValue logs the redacted form.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText writes the redacted form, so that no encoder writes the text.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the text from a decoder, such as the one for the environment.
func (s *String) UnmarshalText(text []byte) error {
	*s = NewString(string(text))
	return nil
}
