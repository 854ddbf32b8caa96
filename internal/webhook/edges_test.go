package webhook

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// The time of a signature is a number of Unix seconds within the window, and nothing else.
func TestTheTimeOfASignature(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for stamp, c := range map[string]struct {
		now  time.Time
		want domain.WebhookOutcome
	}{
		"0": {at(10), domain.WebhookAccepted}, "1000": {at(1060), domain.WebhookAccepted}, "1001": {at(1062), domain.WebhookClockSkew}, "1060": {at(1000), domain.WebhookAccepted},
		"1062": {at(1001), domain.WebhookClockSkew}, "-1": {at(0), domain.WebhookClockSkew}, "": {at(0), domain.WebhookClockSkew}, "x": {at(0), domain.WebhookClockSkew}, "5.5": {at(5), domain.WebhookClockSkew},
		fmt.Sprint(int64(1) << 40): {at(1 << 40), domain.WebhookAccepted}, fmt.Sprint(int64(1)<<40 + 1): {at(1 << 40), domain.WebhookClockSkew},
	} {
		got := Policy{Window: time.Minute, Now: c.now}.timely(stamp, "x-time", "s")
		if got.Outcome != c.want || (got.Signature != "") != (c.want == domain.WebhookAccepted) {
			t.Errorf("%q at %d: %+v, want %s", stamp, c.now.Unix(), got, c.want)
		}
	}
}

// Of the signatures of Standard Webhooks those of version 1 count, whatever stands beside them.
func TestTheSignaturesOfStandardWebhooks(t *testing.T) {
	p := Policy{Mode: domain.SigningModeHMACSHA256, Secrets: []string{"0123456789abcdef"}, Window: time.Minute, Now: now}
	good := base64.StdEncoding.EncodeToString(digest("0123456789abcdef", "id."+fmt.Sprint(now.Unix())+".{}"))
	for signatures, want := range map[string]domain.WebhookOutcome{
		"v1," + good: domain.WebhookAccepted, "v2," + good: domain.WebhookBadSignature, good: domain.WebhookBadSignature, "v1," + good + "!": domain.WebhookBadSignature, "v1,!!! v1," + good: domain.WebhookAccepted,
		"v1,!!!": domain.WebhookBadSignature, "v2,x v1,eA==": domain.WebhookBadSignature,
	} {
		got := Verify(p, header("webhook-id", "id", "webhook-timestamp", fmt.Sprint(now.Unix()), "webhook-signature", signatures), []byte("{}"))
		if got.Outcome != want {
			t.Errorf("%.20q: %+v, want %s", signatures, got, want)
		}
	}
	for id, message := range map[string]string{"": "." + fmt.Sprint(now.Unix()) + ".{}", "a.b": "a.b." + fmt.Sprint(now.Unix()) + ".{}"} {
		h := header("webhook-timestamp", fmt.Sprint(now.Unix()), "webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(digest("0123456789abcdef", message)))
		if id != "" {
			h.Set("webhook-id", id)
		}
		if got := Verify(p, h, []byte("{}")); got.Outcome != domain.WebhookBadSignature || !strings.Contains(got.Detail, "webhook-id") {
			t.Errorf("with the id %q: %+v", id, got)
		}
	}
}

// What every answer carries, and what one carries that asks for another try.
func TestTheHeadersOfAnswers(t *testing.T) {
	for status, retry := range map[int]string{http.StatusTooManyRequests: "60", http.StatusNotFound: "", http.StatusAccepted: ""} {
		out := httptest.NewRecorder()
		respond(out, status, failure("X", "why"))
		for name, want := range map[string]string{"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Retry-After": retry} {
			if got := out.Header().Get(name); got != want {
				t.Errorf("%d: %s is %q, want %q", status, name, got, want)
			}
		}
		if out.Code != status || !strings.Contains(out.Body.String(), `"why"`) {
			t.Errorf("%d %s", out.Code, out.Body)
		}
	}
	out := httptest.NewRecorder()
	if NotFound(out, "there is none"); out.Code != http.StatusNotFound || !strings.Contains(out.Body.String(), "there is none") {
		t.Errorf("%d %s", out.Code, out.Body)
	}
	var log strings.Builder
	h := New(nil, nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	if h.rejected.length != restFor || h.accepted.length != restFor || h.strangers == nil {
		t.Errorf("triggers over their rate rest for %v and %v", h.rejected.length, h.accepted.length)
	}
	out = httptest.NewRecorder()
	if h.broken(context.Background(), out, "trg_1", fmt.Errorf("torn")); out.Code != http.StatusServiceUnavailable && out.Code != http.StatusInternalServerError || !strings.Contains(log.String(), "torn") {
		t.Errorf("a failure is answered %d, and the log says %s", out.Code, log.String())
	}
	if out.Header().Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
}

// A body of the greatest size is read, and one of a byte more is not.
func TestTheGreatestBody(t *testing.T) {
	for size, want := range map[int]domain.WebhookOutcome{domain.MaxWebhookBody: domain.WebhookAccepted, domain.MaxWebhookBody + 1: domain.WebhookTooLarge} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
		body, got, err := readBody(httptest.NewRecorder(), r)
		if err != nil || got != want || (len(body) == size) != (want == domain.WebhookAccepted) {
			t.Errorf("%d bytes: %s, %d bytes read, %v", size, got, len(body), err)
		}
	}
}
