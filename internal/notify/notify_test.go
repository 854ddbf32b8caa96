package notify

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
	"rouse.dev/rouse/internal/xid"
)

var loopback = outbound.Addresses{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// opener opens "sealed:" texts for one place.
type opener struct{ channel xid.ID }

func (o opener) Open(sealed, place string) (string, error) {
	plain, ok := strings.CutPrefix(sealed, "sealed:")
	if !ok || !strings.HasPrefix(place, string(o.channel)+"/") {
		return "", errors.New("another key")
	}
	return plain, nil
}

const channelID = xid.ID("nch_1")

var notice = domain.Notice{ID: "ntf_1", Event: domain.NotificationEventRunFailed, Kind: domain.InboxKindAgentError, WorkspaceID: "wsp_1", WorkspaceName: "Shop", SubjectID: "run_1",
	Title: "agent.error: a run of Ada gave up", Body: "no way", At: time.Unix(1_700_000_000, 0)}

func sender(roots *x509.CertPool, allow outbound.Addresses) *Sender {
	return New(Options{Secrets: opener{channelID}, Allow: allow, Roots: roots, Now: func() time.Time { return time.Unix(1_614_265_330, 0) }})
}

// received is what a receiver was sent.
type received struct {
	header http.Header
	body   string
}

func receiver(t *testing.T, answer http.HandlerFunc) (url string, got chan received) {
	t.Helper()
	got = make(chan received, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header, string(body)}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func hook(url string) domain.NotificationTarget {
	return domain.NotificationTarget{Webhook: &domain.WebhookTarget{URL: url, Secret: "sealed:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
}

func TestAWebhookIsSignedAsStandardWebhooks(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, answering(204, ""))
	target := hook(url)
	sent := sender(nil, loopback).Send(t.Context(), channelID, target, notice)
	if !sent.OK || sent.Status != 204 || sent.Detail != "" {
		t.Errorf("sent %+v", sent)
	}
	r := <-got
	want := http.Header{}
	outbound.SignStandard(want, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "ntf_1", time.Unix(1_614_265_330, 0), []byte(r.body))
	for name := range want {
		if r.header.Get(name) != want.Get(name) {
			t.Errorf("%s is %q, want %q", name, r.header.Get(name), want.Get(name))
		}
	}
	var body struct {
		Type string
		Data struct{ Title, SubjectID string }
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || body.Type != "run.failed" || body.Data.Title != notice.Title || body.Data.SubjectID != "run_1" || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("body %s, %v", r.body, err)
	}
	if target.Webhook.Secret != "sealed:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" {
		t.Error("the caller's target holds an open secret")
	}
}

func TestPostsByTemplate(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, answering(200, "ok"))
	for name, c := range map[string]struct {
		target domain.NotificationTarget
		want   string
	}{
		"Slack": {domain.NotificationTarget{Slack: &domain.PostTarget{URL: "sealed:" + url + "/services/T0/B0/x"}}, `{"text":"*agent.error: a run of Ada gave up*\nno way"}`},
		"JSON":  {domain.NotificationTarget{JSON: &domain.PostTarget{URL: "sealed:" + url + "/?key=1", Template: `{"m": "{{kind}}: {{body}}"}`}}, `{"m":"AGENT_ERROR: no way"}`},
	} {
		sent := sender(nil, loopback).Send(t.Context(), channelID, c.target, notice)
		if r := <-got; !sent.OK || r.body != c.want || r.header.Get("Webhook-Signature") != "" {
			t.Errorf("%s: %+v, body %s", name, sent, r.body)
		}
	}
}

func TestAnswersOfReceivers(t *testing.T) {
	t.Parallel()
	inner, reached := receiver(t, answering(200, ""))
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
		never  bool
		after  time.Duration
		detail string
	}{
		"a refusal with a reason": {answering(400, "no\n such <b>thing</b>"), 400, false, 0, "answered 400: no such <b>thing</b>"},
		"gone":                    {answering(410, ""), 410, true, 0, "wants no more"},
		"a fault":                 {answering(500, ""), 500, false, 0, "answered 500"},
		"a redirect":              {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner, http.StatusTemporaryRedirect) }, http.StatusTemporaryRedirect, false, 0, "redirects are not followed"},
		"too many, with seconds":  {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "90"); w.WriteHeader(429) }, 429, false, 90 * time.Second, "429"},
		"busy, with a date": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "Thu, 25 Feb 2021 15:03:10 GMT")
			w.WriteHeader(503)
		}, 503, false, time.Minute, "503"},
		"busy, without a sensible": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(503)
		}, 503, false, 0, "503"},
	} {
		url, _ := receiver(t, c.answer)
		sent := sender(nil, loopback).Send(t.Context(), channelID, hook(url), notice)
		if sent.OK || sent.Status != c.status || sent.Never != c.never || sent.After != c.after || !strings.Contains(sent.Detail, c.detail) {
			t.Errorf("%s: %+v", name, sent)
		}
	}
	if len(reached) > 0 {
		t.Error("a redirect was followed")
	}
}

// Nothing that is said of an attempt holds a secret, not even where the receiver repeats it.
func TestNoSecretIsTold(t *testing.T) {
	t.Parallel()
	url, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, "http://"+r.Host+r.URL.String()+" is wrong")
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, ", and so is whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		}
	})
	for name, target := range map[string]domain.NotificationTarget{
		"a repeated address":     {Slack: &domain.PostTarget{URL: "sealed:" + url + "/services/T0/B0/topsecret"}},
		"a repeated secret":      hook(url),
		"nobody there":           {JSON: &domain.PostTarget{URL: "sealed:http://127.0.0.1:1/topsecret"}},
		"an address that is bad": {JSON: &domain.PostTarget{URL: "sealed:http://127.0.0.1:x/topsecret"}},
		"a name of nobody":       {JSON: &domain.PostTarget{URL: "sealed:https://topsecret.invalid/topsecret"}},
		"another key":            {JSON: &domain.PostTarget{URL: "topsecret"}},
	} {
		sent := sender(nil, loopback).Send(t.Context(), channelID, target, notice)
		if sent.OK || sent.Detail == "" || strings.Contains(sent.Detail, "topsecret") || strings.Contains(sent.Detail, "MfKQ9r8") {
			t.Errorf("%s: %+v", name, sent)
		}
	}
}

func TestPrivateAddressesAreNotCalled(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, answering(200, ""))
	for name, target := range map[string]domain.NotificationTarget{
		"a webhook":               hook(url),
		"a name that leads there": hook("http://localhost:" + url[strings.LastIndex(url, ":")+1:]),
		"a mail server":           {Email: &domain.EmailTarget{Host: "127.0.0.1", Port: 25, Security: domain.SMTPSecurityStartTLS, From: "a@example.com", To: []string{"b@example.com"}}},
		"a mail server with TLS":  {Email: &domain.EmailTarget{Host: "127.0.0.1", Port: 465, Security: domain.SMTPSecurityTLS, From: "a@example.com", To: []string{"b@example.com"}}},
	} {
		sent := sender(nil, nil).Send(t.Context(), channelID, target, notice)
		if sent.OK || !strings.Contains(sent.Detail, "--http-allow") || len(got) > 0 {
			t.Errorf("%s: %+v", name, sent)
		}
	}
}
