// Package secret keeps secrets secret. Box seals what must be stored and read again. Masker takes known values out of
// text before it is stored. String carries a value through the program without being printed or logged.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// version begins every sealed text: AES-256-GCM with a random 96-bit nonce, "s1.<key id>.<base64url of nonce and ciphertext>".
const version = "s1"

// Reasons why a sealed text cannot be opened; errors.Is tells them apart.
var (
	// ErrMalformed: the text was not made by Seal, or was cut.
	ErrMalformed = errors.New("not a sealed secret")
	// ErrUnknownKey: it was sealed with a key that this server does not have.
	ErrUnknownKey = errors.New("sealed with a key that this server does not have")
	// ErrForged: it was changed, or belongs to another row or field.
	ErrForged = errors.New("sealed secret was changed or belongs elsewhere")
)

// Box seals and opens secrets. It is safe for concurrent use. One key may seal some 2^32 values before its random nonces are likely to
// repeat. Printing a Box shows its key ids.
type Box struct {
	current Key
	ciphers map[string]cipher.AEAD // by key id
}

// NewBox makes a box that seals with current, and opens what current or one of the older keys sealed. So a key can be
// replaced: start with the new key and the old one, open and seal every stored secret again, then drop the old key.
func NewBox(current Key, older ...Key) (*Box, error) {
	box := &Box{current: current, ciphers: map[string]cipher.AEAD{}}
	for _, key := range append([]Key{current}, older...) {
		if key.raw.IsEmpty() {
			return nil, errors.New("make a box for secrets: a key is empty")
		}
		block, err := aes.NewCipher(key.bytes())
		if err != nil {
			return nil, fmt.Errorf("make a box for secrets: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("make a box for secrets: %w", err)
		}
		box.ciphers[key.ID()] = aead
	}
	return box, nil
}

// Seal encrypts plaintext for the place boundTo, which names the row and the field, and must not be empty. Only Open
// with the same place reads it again, so a sealed text that was copied into another row is refused. The result is plain
// ASCII.
func (b *Box) Seal(plaintext, boundTo string) (string, error) {
	if boundTo == "" {
		return "", errors.New("seal a secret: it is bound to no row")
	}
	id := b.current.ID()
	sealed := b.ciphers[id].Seal(nil, nil, []byte(plaintext), additional(id, boundTo))
	return version + "." + id + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open decrypts what Seal made for the same place. Its errors wrap ErrMalformed, ErrUnknownKey or ErrForged and never hold the secret.
func (b *Box) Open(sealed, boundTo string) (string, error) {
	id, body, err := split(sealed)
	if err != nil {
		return "", fmt.Errorf("open a secret: %w", err)
	}
	aead, ok := b.ciphers[id]
	if !ok {
		return "", fmt.Errorf("open a secret: %w: it needs key %s, this server has %v; put the old key back (%s, or %s in the data folder), or enter the secret again",
			ErrUnknownKey, id, b, KeyVariable, KeyFileName)
	}
	if len(body) < aead.Overhead() {
		return "", fmt.Errorf("open a secret: %w: it is cut off; enter the secret again", ErrMalformed)
	}
	plaintext, err := aead.Open(nil, nil, body, additional(id, boundTo))
	if err != nil {
		return "", fmt.Errorf("open a secret: %w; enter the secret again", ErrForged)
	}
	return string(plaintext), nil
}

// NeedsReseal reports whether a sealed text was made with an older key than the current one.
func (b *Box) NeedsReseal(sealed string) bool {
	id, _, err := split(sealed)
	return err == nil && id != b.current.ID()
}

// Format prints the ids of the box's keys, whatever the verb.
func (b *Box) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "key %s", strings.Join(slices.Sorted(maps.Keys(b.ciphers)), ", "))
}

// additional is what GCM authenticates beside the ciphertext.
func additional(id, boundTo string) []byte { return []byte(version + "." + id + "." + boundTo) }

// split takes a sealed text apart and insists on the one spelling Seal gives it.
func split(sealed string) (id string, body []byte, err error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 {
		return "", nil, ErrMalformed
	}
	if parts[0] != version {
		return "", nil, fmt.Errorf("%w of a form this program knows: was it written by a newer version?", ErrMalformed)
	}
	if !isKeyID(parts[1]) {
		return "", nil, ErrMalformed
	}
	body, err = base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || strings.ContainsAny(parts[2], "\r\n") {
		return "", nil, ErrMalformed // the decoder's own error would quote nothing, but says nothing either
	}
	return parts[1], body, nil
}

// isKeyID keeps anything but 8 hex digits out of error texts.
func isKeyID(s string) bool {
	return len(s) == 8 && strings.Trim(s, "0123456789abcdef") == ""
}
