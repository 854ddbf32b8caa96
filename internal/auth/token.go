// Package auth says who a caller is and what it may do: tokens and their digests, and the Principal that an authenticated request
// carries. It knows neither HTTP nor the database.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"strings"

	"rouse.dev/rouse/internal/secret"
)

// The marks that tokens begin with, so that a leaked one is recognised wherever it lies.
const (
	apiMark = "rse_" // API tokens, of a workspace or of the instance
	runMark = "rsr_" // run tokens, of one attempt (SPEC S7.4)

	leaseMark = "rsl_" // lease tokens: a worker's proof that an attempt is its own (SPEC S7.1)
)

const (
	randomBytes   = 32 // of a new token: 256 bits
	newBodyLength = 43 // base62 digits that hold them
	maxBodyLength = 86
	shownLength   = 8 // characters of the body that Prefix shows; 208 bits stay hidden
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Why a token or an Authorization header was refused; errors.Is tells them apart.
var (
	// ErrNoToken: the caller sent none.
	ErrNoToken = errors.New("no token was sent: send the header `Authorization: Bearer rse_…`; the file token of the data folder has one")
	// ErrMalformedToken: what was sent has not the form of a token.
	ErrMalformedToken = errors.New("this is no token of rouse: want `Bearer`, a space, and rse_ or rsr_ with at least 43 letters and digits")
)

// Token is a bearer token. Printing, logging or marshalling one shows its Prefix; Reveal gives the text. The zero Token
// means that there is no token.
type Token struct{ text secret.String }

// NewToken makes an API token of 256 bits from random (crypto/rand.Reader).
func NewToken(random io.Reader) (Token, error) { return newToken(apiMark, random) }

// NewRunToken makes a run token of 256 bits from random (crypto/rand.Reader).
func NewRunToken(random io.Reader) (Token, error) { return newToken(runMark, random) }

// NewLeaseToken makes a lease token of 256 bits from random (crypto/rand.Reader).
func NewLeaseToken(random io.Reader) (Token, error) { return newToken(leaseMark, random) }

func newToken(mark string, random io.Reader) (Token, error) {
	raw := make([]byte, randomBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return Token{}, fmt.Errorf("make a token: read random bytes: %w", err)
	}
	return Token{secret.NewString(mark + encodeBase62(raw))}, nil
}

// encodeBase62 writes 32 bytes as one number of 43 digits, so that every bit counts and every token is as long.
func encodeBase62(raw []byte) string {
	number, base, digit := new(big.Int).SetBytes(raw), big.NewInt(int64(len(base62))), new(big.Int)
	text := make([]byte, newBodyLength)
	for i := len(text) - 1; i >= 0; i-- {
		number.DivMod(number, base, digit)
		text[i] = base62[digit.Int64()]
	}
	return string(text)
}

// ParseToken checks that text has the form of a token: rse_, rsr_ or rsl_ and 43 to 86 letters, digits, "-" or "_". So a token made elsewhere
// may be set at the first start (ROUSE_BOOTSTRAP_TOKEN), e.g. "rse_" and the output of `openssl rand -hex 32`. It does not look whether
// the token exists. Its error never repeats the text.
func ParseToken(text string) (Token, error) {
	if text == "" {
		return Token{}, ErrNoToken
	}
	body, ok := cutMark(text)
	if !ok || len(body) < newBodyLength || len(body) > maxBodyLength || !isBody(body) {
		return Token{}, ErrMalformedToken
	}
	return Token{secret.NewString(text)}, nil
}

func cutMark(text string) (body string, ok bool) {
	for _, mark := range []string{apiMark, runMark, leaseMark} {
		if body, ok = strings.CutPrefix(text, mark); ok {
			return body, true
		}
	}
	return "", false
}

func isBody(body string) bool {
	for i := range len(body) {
		if strings.IndexByte(base62+"-_", body[i]) < 0 {
			return false
		}
	}
	return true
}

// IsRun reports whether this is a run token.
func (t Token) IsRun() bool { return strings.HasPrefix(t.Reveal(), runMark) }

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.text.IsEmpty() }

// Reveal is the token's text, to be shown once to whoever asked for it.
func (t Token) Reveal() string { return t.text.Reveal() }

// Prefix is the token's beginning, 12 characters, which is stored beside the digest to find a leaked token by.
func (t Token) Prefix() string {
	if t.IsZero() {
		return ""
	}
	return t.Reveal()[:len(apiMark)+shownLength]
}

// Format prints the prefix, whatever the verb.
func (t Token) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, t.redacted()) }

// LogValue logs the prefix.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.redacted()) }

// MarshalText writes the prefix, so that no encoder writes the token.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.redacted()), nil }

func (t Token) redacted() string {
	if t.IsZero() {
		return ""
	}
	return t.Prefix() + secret.Redacted
}

// Digest is what is stored of a token: SHA-256 of its text. A slow hash would add nothing to 256 random bits.
type Digest [sha256.Size]byte

// Digest is the digest to store, and to look the token up by.
func (t Token) Digest() Digest { return sha256.Sum256([]byte(t.Reveal())) }

// Equal compares with a stored digest in constant time. A lookup by digest tells an attacker nothing about tokens, but whoever holds
// two digests should compare them here.
func (d Digest) Equal(stored []byte) bool { return subtle.ConstantTimeCompare(d[:], stored) == 1 }

// Bytes is the digest as it is stored.
func (d Digest) Bytes() []byte { return d[:] }

// String is the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }
