package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

const shared = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

var now = time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC)

func digest(key, message string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func standard(key, id string, at time.Time, body string) http.Header {
	stamp := fmt.Sprint(at.Unix())
	return header("webhook-id", id, "webhook-timestamp", stamp, "webhook-signature",
		"v1a,xxx v1,"+base64.StdEncoding.EncodeToString(digest(key, id+"."+stamp+"."+body)))
}

// svix renames the headers of Standard Webhooks as Svix has them.
func svix(h http.Header) http.Header {
	renamed := http.Header{}
	for name, values := range h {
		renamed[strings.Replace(name, "Webhook-", "Svix-", 1)] = values
	}
	return renamed
}

func with(h http.Header, pairs ...string) http.Header {
	for name, values := range header(pairs...) {
		h[name] = values
	}
	return h
}

func stamped(key string, at time.Time, body string) http.Header {
	stamp := fmt.Sprint(at.Unix())
	return header("X-Rouse-Timestamp", stamp, "X-Rouse-Signature", "sha256="+hex.EncodeToString(digest(key, stamp+"."+body)))
}

// SPEC S4.9: the signature forms.
func TestVerify(t *testing.T) {
	const (
		body  = `{"branch":"release/2.0"}`
		sum   = "2b0cd3906745954a21e219fca504cc3dca414917550f8f5b152151e1d0520062"
		empty = "3c81cc9496e1c25250f6ccb85f697c1bb623e3480d6538ad8cb6a6648142777d"
	)
	hmac256 := Policy{Mode: domain.SigningModeHMACSHA256, Secrets: []string{"s3cr3t"}, Window: 5 * time.Minute, Now: now}
	strict := hmac256
	strict.RequireTimestamp = true
	rotated := hmac256
	rotated.Secrets = []string{"another one, much longer", "s3cr3t"}
	bearer := Policy{Mode: domain.SigningModeBearer, Secrets: []string{"s3cr3t", "older"}, Now: now}
	whsec := Policy{Mode: domain.SigningModeHMACSHA256, Secrets: []string{shared}, Window: 5 * time.Minute, Now: now}
	decoded := "0123456789abcdef0123456789abcdef"
	versioned, unpadded, garbled := whsec, whsec, whsec
	versioned.Secrets = []string{"v1," + shared}
	unpadded.Secrets = []string{strings.TrimRight(shared, "=")}
	garbled.Secrets = []string{"whsec_no/base64!!"}
	for _, c := range []struct {
		name   string
		policy Policy
		header http.Header
		body   string
		want   domain.WebhookOutcome
	}{
		{"no proof is asked for", Policy{Mode: domain.SigningModeNone}, nil, body, domain.WebhookAccepted},
		{"C23 with the prefix", hmac256, header("X-Signature-256", "sha256="+sum), body, domain.WebhookAccepted},
		{"C23 without it", hmac256, header("X-Signature-256", sum), body, domain.WebhookAccepted},
		{"C23 as GitHub names it", hmac256, header("X-Hub-Signature-256", "sha256="+sum), body, domain.WebhookAccepted},
		{"C23 in upper case", hmac256, header("X-Signature-256", strings.ToUpper(sum)), body, domain.WebhookAccepted},
		{"C24 an empty body", hmac256, header("X-Signature-256", empty), "", domain.WebhookAccepted},
		{"C25 no header", hmac256, nil, body, domain.WebhookNoSignature},
		{"C25 one digit changed", hmac256, header("X-Signature-256", "3"+sum[1:]), body, domain.WebhookBadSignature},
		{"C25 a space in the body", hmac256, header("X-Signature-256", sum), body + " ", domain.WebhookBadSignature},
		{"C25 another secret", hmac256, header("X-Signature-256", hex.EncodeToString(digest("other", body))), body, domain.WebhookBadSignature},
		{"a digest that is cut", hmac256, header("X-Signature-256", sum[:62]), body, domain.WebhookBadSignature},
		{"a digest that is none", hmac256, header("X-Signature-256", strings.Repeat("z", 64)), body, domain.WebhookBadSignature},
		{"the header twice", hmac256, header("X-Signature-256", sum, "X-Signature-256", sum), body, domain.WebhookBadSignature},
		{"the older secret while both work", rotated, header("X-Signature-256", sum), body, domain.WebhookAccepted},
		{"the newer secret while both work", rotated, header("X-Signature-256", hex.EncodeToString(digest("another one, much longer", body))), body, domain.WebhookAccepted},
		{"a timestamp is asked for", strict, header("X-Signature-256", sum), body, domain.WebhookTimestampRequired},
		{"a timestamp is asked for and given", strict, stamped("s3cr3t", now, body), body, domain.WebhookAccepted},
		{"300 seconds late", hmac256, stamped("s3cr3t", now.Add(-300*time.Second), body), body, domain.WebhookAccepted},
		{"301 seconds late", hmac256, stamped("s3cr3t", now.Add(-301*time.Second), body), body, domain.WebhookClockSkew},
		{"301 seconds early", hmac256, stamped("s3cr3t", now.Add(301*time.Second), body), body, domain.WebhookClockSkew},
		{"a timestamp of another message", hmac256, stamped("s3cr3t", now, "x"), body, domain.WebhookBadSignature},
		{"a timestamp that is no number", hmac256, header("X-Rouse-Timestamp", "soon", "X-Rouse-Signature", hex.EncodeToString(digest("s3cr3t", "soon."+body))), body, domain.WebhookClockSkew},
		{"a timestamp that is missing", hmac256, header("X-Rouse-Signature", sum), body, domain.WebhookBadSignature},
		{"a bad timestamped signature beside a good plain one", hmac256, header("X-Rouse-Signature", sum, "X-Signature-256", sum), body, domain.WebhookBadSignature},
		{"Standard Webhooks, the key decoded", whsec, standard(decoded, "msg_1", now, body), body, domain.WebhookAccepted},
		{"Standard Webhooks, another id", whsec, standard(decoded, "msg.1", now, body), body, domain.WebhookBadSignature},
		{"Standard Webhooks, late", whsec, standard(decoded, "msg_1", now.Add(-time.Hour), body), body, domain.WebhookClockSkew},
		{"Standard Webhooks, another key", whsec, standard("x", "msg_1", now, body), body, domain.WebhookBadSignature},
		{"Standard Webhooks, a secret of another form", hmac256, standard("s3cr3t", "msg_1", now, body), body, domain.WebhookAccepted},
		{"Standard Webhooks, the secret as some senders show it", versioned, standard(decoded, "msg_1", now, body), body, domain.WebhookAccepted},
		{"Standard Webhooks, the secret without padding", unpadded, standard(decoded, "msg_1", now, body), body, domain.WebhookAccepted},
		{"Standard Webhooks, a sender that does not decode", whsec, standard(shared, "msg_1", now, body), body, domain.WebhookAccepted},
		{"Standard Webhooks, a stored secret that is no base64", garbled, standard("whsec_no/base64!!", "msg_1", now, body), body, domain.WebhookAccepted},
		{"Svix's names", whsec, svix(standard(decoded, "msg_1", now, body)), body, domain.WebhookAccepted},
		{"Svix's names where a timestamp is asked for", strict, svix(standard("s3cr3t", "msg_1", now, body)), body, domain.WebhookAccepted},
		{"Svix's names, another body", whsec, svix(standard(decoded, "msg_1", now, "{}")), body, domain.WebhookBadSignature},
		{"Svix's names, late", whsec, svix(standard(decoded, "msg_1", now.Add(-time.Hour), body)), body, domain.WebhookClockSkew},
		{"Svix's names, without an id", whsec, with(svix(standard(decoded, "msg_1", now, body)), "svix-id", ""), body, domain.WebhookBadSignature},
		{"both names", whsec, with(standard(decoded, "msg_1", now, body), "svix-signature", "v1,AAAA"), body, domain.WebhookAccepted},
		{"both names, the standard one wrong", whsec, with(svix(standard(decoded, "msg_1", now, body)), "webhook-id", "msg_1", "webhook-signature", "v1,AAAA"), body, domain.WebhookBadSignature},
		{"an id of one name, a signature of the other", whsec, with(header("svix-signature", standard(decoded, "msg_1", now, body).Get("webhook-signature")),
			"webhook-id", "msg_1", "webhook-timestamp", fmt.Sprint(now.Unix())), body, domain.WebhookBadSignature},
		{"a prefix with a blank behind it", hmac256, header("X-Signature-256", "sha256= "+sum), body, domain.WebhookAccepted},
		{"a prefix in upper case", hmac256, header("X-Hub-Signature-256", "SHA256="+strings.ToUpper(sum)), body, domain.WebhookAccepted},
		{"a prefix in both cases, timestamped", hmac256, with(stamped("s3cr3t", now, body), "X-Rouse-Signature", "Sha256= "+strings.TrimPrefix(stamped("s3cr3t", now, body).Get("X-Rouse-Signature"), "sha256=")), body, domain.WebhookAccepted},
		{"a prefix twice", hmac256, header("X-Signature-256", "sha256=sha256="+sum), body, domain.WebhookBadSignature},
		{"a prefix alone", hmac256, header("X-Signature-256", "sha256="), body, domain.WebhookBadSignature},
		{"the prefix of another hash", hmac256, header("X-Signature-256", "sha512="+sum), body, domain.WebhookBadSignature},
		{"the same secret, over the body alone", whsec, header("X-Signature-256", hex.EncodeToString(digest(shared, body))), body, domain.WebhookAccepted},
		{"bearer", bearer, header("Authorization", "Bearer s3cr3t"), body, domain.WebhookAccepted},
		{"bearer in another case", bearer, header("Authorization", "bearer s3cr3t"), body, domain.WebhookAccepted},
		{"bearer, the older secret", bearer, header("Authorization", "Bearer older"), body, domain.WebhookAccepted},
		{"C26 bearer, a wrong secret", bearer, header("Authorization", "Bearer wrong-secret"), body, domain.WebhookBadSignature},
		{"bearer, no header", bearer, nil, body, domain.WebhookNoSignature},
		{"bearer, another scheme", bearer, header("Authorization", "Basic s3cr3t"), body, domain.WebhookBadSignature},
		{"bearer, nothing after it", bearer, header("Authorization", "Bearer "), body, domain.WebhookBadSignature},
		{"C27 an empty secret and no header", Policy{Mode: domain.SigningModeBearer, Secrets: []string{""}}, nil, body, domain.WebhookNoSecret},
		{"C27 an empty secret and an empty proof", Policy{Mode: domain.SigningModeBearer, Secrets: []string{""}}, header("Authorization", "Bearer "), body, domain.WebhookNoSecret},
		{"an empty secret and its digest", Policy{Mode: domain.SigningModeHMACSHA256, Secrets: []string{""}}, header("X-Signature-256", hex.EncodeToString(digest("", body))), body, domain.WebhookNoSecret},
		{"no secret", Policy{Mode: domain.SigningModeHMACSHA256}, header("X-Signature-256", sum), body, domain.WebhookNoSecret},
		{"a mode that is not known", Policy{Mode: "ROT13", Secrets: []string{"s3cr3t"}}, header("X-Signature-256", sum), body, domain.WebhookNoSecret},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Verify(c.policy, c.header, []byte(c.body))
			if got.Outcome != c.want {
				t.Errorf("got %s (%s), want %s", got.Outcome, got.Detail, c.want)
			}
			if (got.Detail == "") != (c.want == domain.WebhookAccepted) {
				t.Errorf("the operator is told %q", got.Detail)
			}
			for _, s := range c.policy.Secrets {
				if s != "" && strings.Contains(got.Detail, s) {
					t.Errorf("the detail gives a secret away: %q", got.Detail)
				}
			}
		})
	}
}

func TestOnlyATimestampedSignatureNamesItself(t *testing.T) {
	p := Policy{Mode: domain.SigningModeHMACSHA256, Secrets: []string{"s3cr3t"}, Window: 5 * time.Minute, Now: now}
	ours, svixs := Verify(p, standard("s3cr3t", "msg_1", now, "a"), []byte("a")), Verify(p, svix(standard("s3cr3t", "msg_1", now, "a")), []byte("a"))
	if ours.Signature == "" || ours.Signature != svixs.Signature {
		t.Errorf("one delivery under both names is %q and %q", ours.Signature, svixs.Signature)
	}
	first, again := Verify(p, stamped("s3cr3t", now, "a"), []byte("a")), Verify(p, stamped("s3cr3t", now, "a"), []byte("a"))
	other := Verify(p, stamped("s3cr3t", now.Add(time.Second), "a"), []byte("a"))
	plain := Verify(p, header("X-Signature-256", hex.EncodeToString(digest("s3cr3t", "a"))), []byte("a"))
	if first.Signature == "" || first.Signature != again.Signature || first.Signature == other.Signature || plain.Signature != "" {
		t.Errorf("C225 signatures %q, %q, %q, %q", first.Signature, again.Signature, other.Signature, plain.Signature)
	}
	long := Verify(p, standard("s3cr3t", strings.Repeat("x", 10_000), now, "a"), []byte("a"))
	if long.Outcome != domain.WebhookAccepted || len(long.Signature) > 100 {
		t.Errorf("a long id gives %s %q", long.Outcome, long.Signature)
	}
}

func TestDeliveryKey(t *testing.T) {
	for want, h := range map[string]http.Header{
		"":                      header("X-Other", "a"),
		"idempotency-key:a":     header("Idempotency-Key", " a ", "webhook-id", "b", "X-GitHub-Delivery", "c"),
		"webhook-id:b":          header("webhook-id", "b", "X-GitHub-Delivery", "c"),
		"webhook-id:d":          header("svix-id", "d", "X-GitHub-Delivery", "c"),
		"webhook-id:e":          header("svix-id", "d", "webhook-id", "e"),
		"x-github-delivery:c-1": header("X-GitHub-Delivery", "c-1"),
	} {
		if got := deliveryKey(h); got != want {
			t.Errorf("%v: %q, want %q", h, got, want)
		}
	}
}

// Whatever is sent: nothing is accepted unless the digest that was sent is the digest of what was sent.
func FuzzVerify(f *testing.F) {
	f.Add("sha256="+hex.EncodeToString(digest("s3cr3t", "a")), "", "", "", "", "a", true)
	f.Add("", "1745571600", "00", "msg_1", "v1,AAAA", "a", false)
	f.Add("", fmt.Sprint(now.Unix()), hex.EncodeToString(digest("s3cr3t", fmt.Sprint(now.Unix())+".a")), "", "", "a", true)
	f.Fuzz(func(t *testing.T, plain, stamp, rouse, id, signatures, body string, require bool) {
		h := header("X-Signature-256", plain, "X-Rouse-Timestamp", stamp, "X-Rouse-Signature", rouse,
			"webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", signatures, "svix-id", id, "svix-timestamp", stamp, "svix-signature", signatures, "Authorization", "Bearer "+plain)
		p := Policy{Mode: domain.SigningModeHMACSHA256, Secrets: []string{"", "s3cr3t"}, Window: time.Minute, RequireTimestamp: require, Now: now}
		v := Verify(p, h, []byte(body))
		if v.Outcome != domain.WebhookAccepted {
			return
		}
		sent := map[string]string{
			hex.EncodeToString(digest("s3cr3t", body)):                                 strings.ToLower(plain),
			hex.EncodeToString(digest("s3cr3t", stamp+"."+body)):                       strings.ToLower(rouse),
			base64.StdEncoding.EncodeToString(digest("s3cr3t", id+"."+stamp+"."+body)): signatures,
		}
		for want, given := range sent {
			if strings.Contains(given, want) {
				return
			}
		}
		t.Errorf("accepted without a proof: %v %q", h, body)
	})
}
