//go:build unix

package executor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signRequest signs a request in both forms that rouse's own webhooks take (SPEC S4.9): X-Rouse-Signature, and the triple of
// Standard Webhooks, which libraries of many languages verify. Its id names the attempt: the same one twice is the same call.
func signRequest(h http.Header, req Request, now time.Time, body []byte) {
	timestamp, id := strconv.FormatInt(now.Unix(), 10), fmt.Sprintf("%s/%d", req.RunID, req.Attempt)
	h.Set("X-Rouse-Timestamp", timestamp)
	h.Set("X-Rouse-Signature", "sha256="+sign(req.Secret, timestamp, body))
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(digest(standardKey(req.Secret), id+"."+timestamp+".", body)))
}

// sign is the HMAC-SHA256 of "timestamp.body" in hexadecimal digits.
func sign(secret, timestamp string, body []byte) string {
	return hex.EncodeToString(digest([]byte(secret), timestamp+".", body))
}

func digest(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	return mac.Sum(nil)
}

// standardKey is the key of a secret in Standard Webhooks: what follows whsec_ in base64, or a secret of another form as it is, which
// its libraries are given in base64.
func standardKey(secret string) []byte {
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(key) > 0 {
			return key
		}
	}
	return []byte(secret)
}
