package secret

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

func TestASharedSecretHolds256RandomBits(t *testing.T) {
	s, err := NewShared(bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), SharedPrefix))
	if err != nil || !bytes.Equal(raw, bytes.Repeat([]byte{7}, 32)) || s.String() != Redacted {
		t.Errorf("%v, %d bytes", err, len(raw))
	}
	if _, err := NewShared(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("made of too few bytes")
	}
}
