// Package xid makes the ids of every record: a type prefix, an underscore and a UUIDv7 in lower-case Crockford base32
// ("run_01k…"), so that an id names its table and sorts by the time it was made.
package xid

import (
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
)

// bodyLength is the number of base32 characters of a UUID.
const bodyLength = 26

// ID identifies one record. The zero ID means "none".
type ID string

// New makes an id with the given prefix; ids made later in one process sort after those made before.
func New(prefix string) ID {
	return ID(prefix + "_" + strings.ToLower(ulid.ULID(uuid.Must(uuid.NewV7())).String()))
}

// Derived makes the id that stands for a text: the same text gives the same id. It says nothing of when it was made.
func Derived(prefix, text string) ID {
	sum := sha256.Sum256([]byte(text))
	return ID(prefix + "_" + strings.ToLower(ulid.ULID(sum[:16]).String()))
}

// Prefix is the part that names the type, or "" when the id has none.
func (i ID) Prefix() string {
	prefix, _, ok := strings.Cut(string(i), "_")
	if !ok {
		return ""
	}
	return prefix
}

// String is the id as text.
func (i ID) String() string { return string(i) }

// Parse checks that s has the form of an id, which the database takes and a log line shows as it is; it does not look
// whether the record exists.
func Parse(s string) (ID, error) {
	prefix, body, ok := strings.Cut(s, "_")
	if !ok || !isPrefix(prefix) || len(body) != bodyLength {
		return "", fmt.Errorf("%.50q is not an id: want a prefix of small letters, an underscore and %d characters", s, bodyLength)
	}
	if _, err := ulid.ParseStrict(body); err != nil {
		return "", fmt.Errorf("%q is not an id: its second part is no base32", s)
	}
	return ID(s), nil
}

// isPrefix says whether a text can name a type: 1 to 16 small letters.
func isPrefix(text string) bool {
	for i := range len(text) {
		if text[i] < 'a' || text[i] > 'z' {
			return false
		}
	}
	return text != "" && len(text) <= 16
}

// UnmarshalGQL reads an id of the API. It also takes an ID, since entgql's node lookup passes one through again.
func (i *ID) UnmarshalGQL(v any) error {
	switch v := v.(type) {
	case ID:
		*i = v
		return nil
	case string:
		id, err := Parse(v)
		*i = id
		return err
	}
	return errors.New("an id is a text in quotes: send one as the API gave it")
}

// MarshalGQL writes the id as a JSON string; the zero ID is null.
func (i ID) MarshalGQL(w io.Writer) {
	text := "null"
	if i != "" {
		text = strconv.Quote(string(i))
	}
	_, _ = io.WriteString(w, text)
}

// Scan reads the id from a database column; NULL is the zero ID.
func (i *ID) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*i = ""
	case string:
		*i = ID(v)
	case []byte:
		*i = ID(v)
	default:
		return fmt.Errorf("scan id: cannot read a %T", src)
	}
	return nil
}

// Value is the id as a database value; the zero ID is NULL.
func (i ID) Value() (driver.Value, error) {
	if i == "" {
		return nil, nil
	}
	return string(i), nil
}
