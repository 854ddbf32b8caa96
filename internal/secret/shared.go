package secret

import (
	"encoding/base64"
	"fmt"
	"io"
)

// SharedPrefix begins secrets whose rest is the key in base64, as Standard Webhooks have it.
const SharedPrefix = "whsec_"

// NewShared makes a secret for two parties that sign messages to each other: 256 random bits, in the form that senders of
// Standard Webhooks take.
func NewShared(random io.Reader) (String, error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(random, raw); err != nil {
		return String{}, fmt.Errorf("make a shared secret: %w", err)
	}
	return NewString(SharedPrefix + base64.StdEncoding.EncodeToString(raw)), nil
}
