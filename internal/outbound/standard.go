package outbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SignStandard signs a request in the form of Standard Webhooks, which libraries of many languages verify. id names the message:
// the same one twice is the same message.
func SignStandard(h http.Header, secret, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(Digest(StandardKey(secret), id+"."+timestamp+".", body)))
}

// Digest is the HMAC-SHA256 of a text and what follows it.
func Digest(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	return mac.Sum(nil)
}

// StandardKey is the key of a secret in Standard Webhooks: what follows whsec_ in base64, or a secret of another form as it is, which
// its libraries are given in base64.
func StandardKey(secret string) []byte {
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(key) > 0 {
			return key
		}
	}
	return []byte(secret)
}
