package secret

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// KeySize is the length of a key in bytes (AES-256).
const KeySize = 32

// Key is a key for a Box. Printing, logging or marshalling one shows its id alone. The zero Key means that there is no
// key.
type Key struct {
	raw String // of KeySize bytes
}

// ParseKey reads a key of 32 bytes written as 64 hex digits or as base64 (either alphabet, padding optional). Its errors never repeat
// the text.
func ParseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	raw, ok := decodeKey(text)
	if !ok {
		return Key{}, fmt.Errorf("want 32 bytes as 64 hex digits or 44 base64 characters, got %d characters that are neither: make one with `openssl rand -base64 32`", len(text))
	}
	if bytes.Count(raw, raw[:1]) == KeySize {
		return Key{}, errors.New("all 32 bytes are equal, which protects nothing: make a key with `openssl rand -base64 32`")
	}
	return newKey(raw), nil
}

func newKey(raw []byte) Key { return Key{raw: NewString(string(raw))} }

// bytes are the key's 32 bytes, or none of the zero Key.
func (k Key) bytes() []byte { return []byte(k.raw.Reveal()) }

func decodeKey(text string) ([]byte, bool) {
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == KeySize {
		return raw, true
	}
	unpadded := strings.TrimRight(text, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := encoding.DecodeString(unpadded); err == nil && len(raw) == KeySize {
			return raw, true
		}
	}
	return nil, false
}

// ID names the key without telling it: 8 hex digits of a hash that only the key can make.
func (k Key) ID() string {
	if k.raw.IsEmpty() {
		return ""
	}
	mac := hmac.New(sha256.New, k.bytes())
	mac.Write([]byte("rouse secret key id"))
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

// text is the key as the key file holds it.
func (k Key) text() string { return base64.StdEncoding.EncodeToString(k.bytes()) }

// Format prints the key's id, whatever the verb.
func (k Key) Format(state fmt.State, _ rune) { _, _ = fmt.Fprintf(state, "key %s", k.ID()) }

// LogValue logs the key's id.
func (k Key) LogValue() slog.Value { return slog.StringValue("key " + k.ID()) }

// MarshalText writes the key's id, so that no encoder writes the key.
func (k Key) MarshalText() ([]byte, error) { return []byte("key " + k.ID()), nil }
