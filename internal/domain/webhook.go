package domain

import (
	"encoding/base64"
	"strings"
	"time"
)

// WebhookOutcome is what became of a POST to a webhook, as the operator sees it.
type WebhookOutcome string

const (
	WebhookAccepted          WebhookOutcome = "ACCEPTED"           // it fired
	WebhookDuplicate         WebhookOutcome = "DUPLICATE"          // it had fired before
	WebhookFiltered          WebhookOutcome = "FILTERED"           // a condition of the trigger does not hold
	WebhookPing              WebhookOutcome = "PING"               // the sender asks whether the webhook is there
	WebhookChallenge         WebhookOutcome = "CHALLENGE"          // the sender asks for its own text
	WebhookNoSignature       WebhookOutcome = "NO_SIGNATURE"       // the proof is missing
	WebhookBadSignature      WebhookOutcome = "BAD_SIGNATURE"      // the proof is wrong
	WebhookClockSkew         WebhookOutcome = "CLOCK_SKEW"         // its timestamp is outside of the window
	WebhookTimestampRequired WebhookOutcome = "TIMESTAMP_REQUIRED" // the trigger takes timestamped signatures only
	WebhookNoSecret          WebhookOutcome = "NO_SECRET"          // the trigger has no usable secret
	WebhookTooLarge          WebhookOutcome = "TOO_LARGE"          // the body is too large
	WebhookBadBody           WebhookOutcome = "BAD_BODY"           // the body or its values are not what the routine takes
	WebhookRefused           WebhookOutcome = "REFUSED"            // the trigger or its routine does not fire
	WebhookBacklogFull       WebhookOutcome = "BACKLOG_FULL"       // the agent has too many queued runs
	WebhookRateLimited       WebhookOutcome = "RATE_LIMITED"       // too many in a minute
)

// Bounds of webhooks (SPEC S4.9).
const (
	WebhookRateLimit  = 60 // proven deliveries a minute and trigger; as many that prove nothing are recorded
	WebhookRateWindow = time.Minute
	MaxWebhookBody    = 256 << 10
	MaxSecretOverlap  = 7 * 24 * time.Hour
	DefaultOverlap    = 24 * time.Hour
	minWebhookSecret  = 16
	maxWebhookSecret  = 256
	minStandardKey    = 16 // bytes
	secretHintLength  = 4
)

// WebhookVerified lists the outcomes of deliveries that proved themselves. Only these count for the rate limit, because
// strangers must not be able to use up a sender's limit.
var WebhookVerified = []WebhookOutcome{WebhookAccepted, WebhookDuplicate, WebhookBadBody, WebhookRefused, WebhookBacklogFull}

// WebhookQuiet lists the outcomes of deliveries that proved themselves and fire nothing by design. They use up no limit, and of a
// trigger's so many a minute are recorded.
var WebhookQuiet = []WebhookOutcome{WebhookFiltered, WebhookPing, WebhookChallenge}

// WebhookUnverified lists the outcomes of deliveries that did not.
var WebhookUnverified = []WebhookOutcome{WebhookNoSignature, WebhookBadSignature, WebhookClockSkew, WebhookTimestampRequired, WebhookNoSecret, WebhookTooLarge}

// CheckWebhookSecret says what is wrong with a secret that a person chose: it goes into headers, and must not be guessed.
func CheckWebhookSecret(secret string) *FieldError {
	code, message := UserErrorCode(""), ""
	switch key, standard := StandardWebhookKey(secret); {
	case len(secret) < minWebhookSecret:
		code, message = UserErrorCodeInvalid, "a secret has at least 16 characters: choose a longer one, or leave it out to have one made"
	case len(secret) > maxWebhookSecret:
		code, message = UserErrorCodeTooLong, "a secret has at most 256 characters"
	case !isVisible(secret):
		code, message = UserErrorCodeInvalid, "a secret is visible ASCII characters without blanks"
	case standard && key == nil:
		code, message = UserErrorCodeInvalid, "a secret that begins with whsec_ goes on with a key in base64, and this one does not: copy it again, or leave it out to have one made"
	case standard && len(key) < minStandardKey:
		code, message = UserErrorCodeInvalid, "the key behind whsec_ has at least 16 bytes: choose a longer one, or leave it out to have one made"
	default:
		return nil
	}
	return &FieldError{Field: []string{"secret"}, Code: code, Message: message}
}

// StandardWebhookKey is the key of a secret in the form of Standard Webhooks: what follows whsec_, or v1,whsec_ as some
// senders show it, in base64. The key is nil when the text is not base64. standard is false for a secret of another
// form.
func StandardWebhookKey(secret string) (key []byte, standard bool) {
	text, standard := strings.CutPrefix(strings.TrimPrefix(secret, "v1,"), "whsec_")
	if !standard {
		return nil, false
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil, true
	}
	return key, true
}

func isVisible(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// SecretHint is the last four characters of a secret, by which a person tells it from another.
func SecretHint(secret string) string {
	if len(secret) < minWebhookSecret {
		return ""
	}
	return secret[len(secret)-secretHintLength:]
}
