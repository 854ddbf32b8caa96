package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Headers of senders that a preset understands.
const (
	headerGitHubEvent    = "X-Github-Event"
	headerGitLabToken    = "X-Gitlab-Token"
	headerGitLabEvent    = "X-Gitlab-Event"
	headerStripe         = "Stripe-Signature"
	headerSlack          = "X-Slack-Signature"
	headerSlackTimestamp = "X-Slack-Request-Timestamp"
	headerLinear         = "Linear-Signature"
	headerLinearEvent    = "Linear-Event"
	headerLinearDelivery = "Linear-Delivery"
)

// linearWindow is how old a delivery of Linear may be, as Linear asks.
const linearWindow = time.Minute

// maxStripeParts bounds the signatures of one header that are looked at: there is one for each secret of a rotation.
const maxStripeParts = 20

// verifyPreset checks a request as the trigger's sender signs it.
func verifyPreset(p Policy, secrets []string, h http.Header, body []byte) Verdict {
	switch p.Preset {
	case domain.WebhookPresetGitHub:
		return verifyBody(secrets, h, headerHubSignature, body)
	case domain.WebhookPresetGitLab:
		if h.Get(headerStandardSignature) != "" {
			return verifyStandard(p, secrets, standardTriple(h), body)
		}
		return verifyToken(secrets, h.Get(headerGitLabToken), headerGitLabToken)
	case domain.WebhookPresetStripe:
		return verifyStripe(p, secrets, h.Get(headerStripe), body)
	case domain.WebhookPresetSlack:
		return verifySlack(p, secrets, h, body)
	case domain.WebhookPresetLinear:
		return verifyLinear(p, secrets, h, body)
	case domain.WebhookPresetStandard:
		if h.Get(headerStandardSignature) == "" && h.Get(headerSvixSignature) != "" {
			return verifyStandard(p, secrets, svixTriple(h), body)
		}
		if h.Get(headerStandardSignature) == "" {
			return reject(domain.WebhookNoSignature, "no %s header", headerStandardSignature)
		}
		return verifyStandard(p, secrets, standardTriple(h), body)
	}
	return reject(domain.WebhookNoSecret, "the trigger's preset is not known")
}

// verifyBody is a digest over the raw body alone.
func verifyBody(secrets []string, h http.Header, name string, body []byte) Verdict {
	header := h.Get(name)
	switch {
	case header == "":
		return reject(domain.WebhookNoSignature, "no %s header", name)
	case !anyDigest(keysOf(secrets, false), body, hexDigest(header)):
		return reject(domain.WebhookBadSignature, "%s does not match the body", name)
	}
	return Verdict{Outcome: domain.WebhookAccepted}
}

// verifyToken compares a token that is sent as it is.
func verifyToken(secrets []string, token, name string) Verdict {
	switch {
	case token == "":
		return reject(domain.WebhookNoSignature, "no %s header", name)
	case !anySecret(secrets, token):
		return reject(domain.WebhookBadSignature, "the token in %s is another one", name)
	}
	return Verdict{Outcome: domain.WebhookAccepted}
}

// anySecret says whether a text is one of the secrets. Digests are compared, so that neither their lengths nor their beginnings show.
func anySecret(secrets []string, text string) bool {
	given, match := sha256.Sum256([]byte(text)), false
	for _, s := range secrets {
		want := sha256.Sum256([]byte(s))
		match = hmac.Equal(given[:], want[:]) || match
	}
	return match
}

// stripeHeader is what Stripe-Signature says: the time, and the digests of the scheme v1.
type stripeHeader struct {
	timestamp string
	digests   [][]byte
}

// parseStripe reads "t=<seconds>,v1=<hex>,v1=<hex>,v0=<hex>". Other schemes, and digests that are none, are left out.
func parseStripe(header string) stripeHeader {
	var out stripeHeader
	for i, part := range strings.SplitN(header, ",", maxStripeParts+1) {
		if i == maxStripeParts {
			break
		}
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			out.timestamp = value
		case "v1":
			if digest, err := hex.DecodeString(value); err == nil && len(digest) == sha256.Size {
				out.digests = append(out.digests, digest)
			}
		}
	}
	return out
}

// verifyStripe is Stripe-Signature, over "<timestamp>.<body>". The key is the secret's text, whsec_ included.
func verifyStripe(p Policy, secrets []string, header string, body []byte) Verdict {
	if header == "" {
		return reject(domain.WebhookNoSignature, "no %s header", headerStripe)
	}
	sent := parseStripe(header)
	signed, keys := join(sent.timestamp, body), keysOf(secrets, false)
	for _, digest := range sent.digests {
		if anyDigest(keys, signed, digest) {
			return p.timely(sent.timestamp, headerStripe, "stripe:"+sent.timestamp+":"+hex.EncodeToString(digest))
		}
	}
	return reject(domain.WebhookBadSignature, "%s does not match timestamp and body", headerStripe)
}

// verifySlack is X-Slack-Signature, "v0=<hex>" over "v0:<timestamp>:<body>".
func verifySlack(p Policy, secrets []string, h http.Header, body []byte) Verdict {
	header, stamp := h.Get(headerSlack), h.Get(headerSlackTimestamp)
	if header == "" {
		return reject(domain.WebhookNoSignature, "no %s header", headerSlack)
	}
	text, ok := strings.CutPrefix(header, "v0=")
	digest := hexDigest(text)
	message := append([]byte("v0:"+stamp+":"), body...)
	if !ok || !anyDigest(keysOf(secrets, false), message, digest) {
		return reject(domain.WebhookBadSignature, "%s does not match timestamp and body", headerSlack)
	}
	return p.timely(stamp, headerSlackTimestamp, "slack:"+stamp+":"+hex.EncodeToString(digest))
}

// verifyLinear is Linear-Signature over the raw body, whose webhookTimestamp, in milliseconds, is a minute old at most.
func verifyLinear(p Policy, secrets []string, h http.Header, body []byte) Verdict {
	if v := verifyBody(secrets, h, headerLinear, body); v.Outcome != domain.WebhookAccepted {
		return v
	}
	var sent struct {
		At json.Number `json:"webhookTimestamp"`
	}
	_ = json.Unmarshal(body, &sent) // a body that cannot be read has no timestamp
	milliseconds, err := strconv.ParseInt(sent.At.String(), 10, 64)
	if err != nil || milliseconds < 0 {
		return reject(domain.WebhookClockSkew, "the body's webhookTimestamp is not a time in milliseconds")
	}
	p.Window = min(p.Window, linearWindow)
	return p.timely(strconv.FormatInt(milliseconds/1000, 10), "webhookTimestamp", "linear:"+hex.EncodeToString(hexDigest(h.Get(headerLinear))))
}

func standardTriple(h http.Header) triple {
	return triple{h.Get(headerStandardID), h.Get(headerStandardTimestamp), h.Get(headerStandardSignature), "webhook"}
}

func svixTriple(h http.Header) triple {
	return triple{h.Get(headerSvixID), h.Get(headerSvixTimestamp), h.Get(headerSvixSignature), "svix"}
}

// Notice is what a delivery says of itself beside its content. Key is the sender's name of the delivery, Event that of the event; ""
// when it has none. Quiet is the outcome of a delivery that fires nothing by design, and Challenge the text that its sender wants back.
type Notice struct {
	Key, Event string
	Quiet      domain.WebhookOutcome
	Challenge  string
}

// maxChallenge bounds what is sent back to a caller, maxEvent the name of an event, in bytes.
const (
	maxChallenge = 1 << 10
	maxEvent     = 100
)

// noticeOf reads what a delivery that proved itself says of itself.
func noticeOf(preset domain.WebhookPreset, h http.Header, body []byte) Notice {
	n := Notice{Key: deliveryKey(h), Event: h.Get(headerGitHubEvent)}
	switch preset {
	case domain.WebhookPresetGitLab:
		n.Event = h.Get(headerGitLabEvent)
	case domain.WebhookPresetLinear:
		n.Event, n.Key = h.Get(headerLinearEvent), keyed(headerLinearDelivery, h.Get(headerLinearDelivery), n.Key)
	case domain.WebhookPresetStripe, domain.WebhookPresetStandard, domain.WebhookPresetSlack:
		n = n.ofBody(preset, body)
	}
	n.Event = domain.ClipText(domain.StorableText(strings.TrimSpace(n.Event)), maxEvent)
	if h.Get(headerGitHubEvent) == "ping" && (preset == domain.WebhookPresetGitHub || preset == "") {
		n.Quiet = domain.WebhookPing
	}
	return n
}

// ofBody reads what the sender says in the body.
func (n Notice) ofBody(preset domain.WebhookPreset, body []byte) Notice {
	var sent struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		EventID   string `json:"event_id"`
		Challenge string `json:"challenge"`
		Event     struct {
			Type string `json:"type"`
		} `json:"event"`
	}
	if err := json.Unmarshal(body, &sent); err != nil && sent.Type == "" { // a member of another type leaves the others readable
		return n
	}
	n.Event = sent.Type
	switch preset {
	case domain.WebhookPresetStripe:
		n.Key = keyed("stripe", sent.ID, n.Key)
	case domain.WebhookPresetSlack:
		n.Key = keyed("slack", sent.EventID, n.Key)
		if sent.Event.Type != "" {
			n.Event = sent.Event.Type
		}
		if sent.Type == "url_verification" && len(sent.Challenge) <= maxChallenge {
			n.Quiet, n.Challenge = domain.WebhookChallenge, sent.Challenge
		}
	}
	return n
}

// keyed is the key of a delivery by the name that its sender gives it; without one, the key that there is.
func keyed(of, name, otherwise string) string {
	if name = strings.TrimSpace(name); name == "" {
		return otherwise
	}
	return strings.ToLower(of) + ":" + name
}
