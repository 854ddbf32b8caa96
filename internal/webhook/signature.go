package webhook

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

	"rouse.dev/rouse/internal/domain"
)

// Headers by which senders prove themselves and name a delivery.
const (
	headerSignature         = "X-Signature-256"
	headerHubSignature      = "X-Hub-Signature-256"
	headerRouseSignature    = "X-Rouse-Signature"
	headerRouseTimestamp    = "X-Rouse-Timestamp"
	headerStandardID        = "Webhook-Id"
	headerStandardTimestamp = "Webhook-Timestamp"
	headerStandardSignature = "Webhook-Signature"
	headerSvixID            = "Svix-Id" // Svix's names of the same three
	headerSvixTimestamp     = "Svix-Timestamp"
	headerSvixSignature     = "Svix-Signature"
	headerIdempotencyKey    = "Idempotency-Key"
	headerGitHubDelivery    = "X-Github-Delivery"
	headerAuthorization     = "Authorization"
)

// Policy is what a trigger asks of its callers. Secrets are the live one and, while a rotation's overlap lasts, the one
// before; an empty one is never valid. Now is the instant that timestamps are compared with.
type Policy struct {
	Mode             domain.SigningMode
	Preset           domain.WebhookPreset // "": any sender that signs as Mode says
	Secrets          []string
	Window           time.Duration
	RequireTimestamp bool
	Now              time.Time
}

// Verdict is what a request proved. Outcome is ACCEPTED, or why it is not, with a detail for the operator. Signature
// names a timestamped signature that was accepted, so that a replay is known again; "" for the other forms.
type Verdict struct {
	Outcome   domain.WebhookOutcome
	Detail    string
	Signature string
}

func reject(outcome domain.WebhookOutcome, format string, args ...any) Verdict {
	return Verdict{Outcome: outcome, Detail: fmt.Sprintf(format, args...)}
}

// Verify checks a request by its headers and raw body (SPEC S4.9). It is a pure function. Digests are compared in
// constant time, with every secret, so that the time taken tells nothing about them.
func Verify(p Policy, h http.Header, body []byte) Verdict {
	if p.Mode == domain.SigningModeNone {
		return Verdict{Outcome: domain.WebhookAccepted}
	}
	var secrets []string
	for _, s := range p.Secrets {
		if s != "" {
			secrets = append(secrets, s)
		}
	}
	if len(secrets) == 0 {
		return reject(domain.WebhookNoSecret, "the trigger has no secret: rotate it to make one")
	}
	for _, name := range []string{headerAuthorization, headerSignature, headerHubSignature, headerRouseSignature, headerRouseTimestamp,
		headerStandardID, headerStandardTimestamp, headerStandardSignature, headerSvixID, headerSvixTimestamp, headerSvixSignature,
		headerGitLabToken, headerStripe, headerSlack, headerSlackTimestamp, headerLinear} {
		if len(h.Values(name)) > 1 {
			return reject(domain.WebhookBadSignature, "the header %s was sent more than once", name)
		}
	}
	switch {
	case p.Preset != "":
		return verifyPreset(p, secrets, h, body)
	case p.Mode == domain.SigningModeBearer:
		return verifyBearer(secrets, h)
	case p.Mode == domain.SigningModeHMACSHA256:
		return verifyHMAC(p, secrets, h, body)
	}
	return reject(domain.WebhookNoSecret, "the trigger's signing mode is not known")
}

func verifyBearer(secrets []string, h http.Header) Verdict {
	header := h.Get(headerAuthorization)
	if header == "" {
		return reject(domain.WebhookNoSignature, "no Authorization header")
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return reject(domain.WebhookBadSignature, "the Authorization header is not of the form Bearer <secret>")
	}
	if !anySecret(secrets, strings.TrimSpace(token)) {
		return reject(domain.WebhookBadSignature, "the bearer secret is another one")
	}
	return Verdict{Outcome: domain.WebhookAccepted}
}

// verifyHMAC takes the first form that is there, the stronger ones first.
func verifyHMAC(p Policy, secrets []string, h http.Header, body []byte) Verdict {
	switch {
	case h.Get(headerStandardSignature) != "":
		return verifyStandard(p, secrets, standardTriple(h), body)
	case h.Get(headerSvixSignature) != "":
		return verifyStandard(p, secrets, svixTriple(h), body)
	case h.Get(headerRouseSignature) != "":
		return verifyTimestamped(p, secrets, h, body)
	}
	header, name := h.Get(headerSignature), headerSignature
	if header == "" {
		header, name = h.Get(headerHubSignature), headerHubSignature
	}
	switch {
	case header == "":
		return reject(domain.WebhookNoSignature, "no signature header")
	case p.RequireTimestamp:
		return reject(domain.WebhookTimestampRequired, "%s has no timestamp, and the trigger asks for one", name)
	}
	if !anyDigest(keysOf(secrets, false), body, hexDigest(header)) {
		return reject(domain.WebhookBadSignature, "%s does not match the body", name)
	}
	return Verdict{Outcome: domain.WebhookAccepted}
}

// verifyTimestamped is X-Rouse-Signature over "<timestamp>.<body>".
func verifyTimestamped(p Policy, secrets []string, h http.Header, body []byte) Verdict {
	stamp := h.Get(headerRouseTimestamp)
	if !anyDigest(keysOf(secrets, false), join(stamp, body), hexDigest(h.Get(headerRouseSignature))) {
		return reject(domain.WebhookBadSignature, "%s does not match timestamp and body", headerRouseSignature)
	}
	return p.timely(stamp, headerRouseTimestamp, "rouse:"+stamp+":"+hex.EncodeToString(hexDigest(h.Get(headerRouseSignature))))
}

// triple is what the headers of Standard Webhooks say: under that prefix of their names.
type triple struct{ id, timestamp, signatures, prefix string }

// verifyStandard is the triple of Standard Webhooks: signatures "v1,<base64>", separated by blanks, over
// "<id>.<timestamp>.<body>". The key is what follows whsec_ in base64, or the secret's text: a secret
// of another form has no other key, and there are senders that do not decode theirs.
func verifyStandard(p Policy, secrets []string, sent triple, body []byte) Verdict {
	if sent.id == "" || strings.Contains(sent.id, ".") {
		return reject(domain.WebhookBadSignature, "%s-id is missing, or holds a dot", sent.prefix)
	}
	signed, keys := join(sent.id, join(sent.timestamp, body)), keysOf(secrets, true)
	for item := range strings.FieldsSeq(sent.signatures) {
		version, text, _ := strings.Cut(item, ",")
		digest, err := base64.StdEncoding.DecodeString(text)
		if version != "v1" || err != nil {
			continue
		}
		if anyDigest(keys, signed, digest) {
			return p.timely(sent.timestamp, sent.prefix+"-timestamp", "standard:"+sent.id+":"+sent.timestamp)
		}
	}
	return reject(domain.WebhookBadSignature, "%s-signature does not match id, timestamp and body", sent.prefix)
}

// timely checks the timestamp of a signature that matches: Unix seconds, at most the window away from now.
func (p Policy) timely(stamp, header, signature string) Verdict {
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return reject(domain.WebhookClockSkew, "%s is not a time in Unix seconds", header)
	}
	skew := p.Now.Sub(time.Unix(seconds, 0))
	if skew.Abs() > p.Window {
		return reject(domain.WebhookClockSkew, "clock skew %d s, and the trigger accepts %d s", int64(skew/time.Second), int64(p.Window/time.Second))
	}
	return Verdict{Outcome: domain.WebhookAccepted, Signature: fingerprint(signature)}
}

// fingerprint shortens what names a signature to what a column takes.
func fingerprint(signature string) string {
	sum := sha256.Sum256([]byte(signature))
	return "signature:" + hex.EncodeToString(sum[:])
}

// keysOf are the keys that secrets stand for: their texts; decoded: the keys of Standard Webhooks as well.
func keysOf(secrets []string, decoded bool) [][]byte {
	var keys [][]byte
	for _, s := range secrets {
		if key, _ := domain.StandardWebhookKey(s); decoded && key != nil {
			keys = append(keys, key)
		}
		keys = append(keys, []byte(s))
	}
	return keys
}

// anyDigest says whether the digest is that of the message under any of the keys.
func anyDigest(keys [][]byte, message, digest []byte) bool {
	match := false
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write(message)
		match = hmac.Equal(mac.Sum(nil), digest) || match
	}
	return match
}

// hexDigest reads a digest in hex, with "sha256=" before it in any case or not; nil when the text is not a digest.
func hexDigest(header string) []byte {
	const prefix = "sha256="
	text := strings.TrimSpace(header)
	if len(text) > len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
		text = strings.TrimSpace(text[len(prefix):])
	}
	digest, err := hex.DecodeString(text)
	if err != nil || len(digest) != sha256.Size {
		return nil
	}
	return digest
}

// join puts a dot between a prefix and a message.
func join(prefix string, message []byte) []byte {
	out := make([]byte, 0, len(prefix)+1+len(message))
	return append(append(append(out, prefix...), '.'), message...)
}

// deliveryKey is what the sender calls this delivery: the first of the names that are there; "" when there is none. Svix's
// name of an id is another spelling of the standard one: a sender that begins to use it sends nothing twice.
func deliveryKey(h http.Header) string {
	for _, header := range []struct{ name, called string }{
		{headerIdempotencyKey, headerIdempotencyKey}, {headerStandardID, headerStandardID}, {headerSvixID, headerStandardID}, {headerGitHubDelivery, headerGitHubDelivery},
	} {
		if v := strings.TrimSpace(h.Get(header.name)); v != "" {
			return strings.ToLower(header.called) + ":" + v
		}
	}
	return ""
}
