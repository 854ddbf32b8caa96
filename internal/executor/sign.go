//go:build unix

package executor

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"rouse.dev/rouse/internal/outbound"
)

// signRequest signs a request in both forms that rouse's own webhooks take (SPEC S4.9): X-Rouse-Signature, and the triple of
// Standard Webhooks, which libraries of many languages verify. Its id names the attempt: the same one twice is the same call.
func signRequest(h http.Header, req Request, now time.Time, body []byte) {
	timestamp, id := strconv.FormatInt(now.Unix(), 10), fmt.Sprintf("%s/%d", req.RunID, req.Attempt)
	h.Set("X-Rouse-Timestamp", timestamp)
	h.Set("X-Rouse-Signature", "sha256="+sign(req.Secret, timestamp, body))
	outbound.SignStandard(h, req.Secret, id, now, body)
}

// sign is the HMAC-SHA256 of "timestamp.body" in hexadecimal digits.
func sign(secret, timestamp string, body []byte) string {
	return hex.EncodeToString(outbound.Digest([]byte(secret), timestamp+".", body))
}
