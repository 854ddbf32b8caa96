package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// slackBody is the body of the example that Slack publishes.
const slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

// vector is a signed delivery. GitHub, Slack and Standard Webhooks publish theirs; those of Stripe and Linear were signed with
// openssl as their pages say, because they publish none with its secret.
type vector struct {
	name    string
	preset  domain.WebhookPreset
	secret  string
	at      int64
	headers map[string]string
	body    string
}

var vectors = []vector{
	{"GitHub's example", domain.WebhookPresetGitHub, "It's a Secret to Everybody", 1, map[string]string{
		"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}, "Hello, World!"},
	{"a token of GitLab", domain.WebhookPresetGitLab, "a token of GitLab's page", 1, map[string]string{"X-Gitlab-Token": "a token of GitLab's page"}, "{}"},
	{"a signing token of GitLab is Standard Webhooks", domain.WebhookPresetGitLab, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330, map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330", "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, `{"test": 2432232314}`},
	{"a delivery of Stripe", domain.WebhookPresetStripe, "whsec_test_secret_0123456789", 1492774577, map[string]string{
		"Stripe-Signature": "t=1492774577,v1=0000000000000000000000000000000000000000000000000000000000000000,v1=3be8139e2196a580f0d81a26f1eb02bfcd64b7493309c1cec7252c5393de673d,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"},
		`{"id":"evt_1","type":"invoice.paid"}`},
	{"Slack's example", domain.WebhookPresetSlack, "8f742231b10e8888abcd99yyyzzz85a5", 1531420618, map[string]string{
		"X-Slack-Request-Timestamp": "1531420618", "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"}, slackBody},
	{"a delivery of Linear", domain.WebhookPresetLinear, "lin_wh_0123456789abcdef", 1676056940, map[string]string{
		"Linear-Signature": "6d8eb4c3cc78637220f51cc18f9730665c8d031a253ba41f5a3b443e2f1cbdc7"}, `{"action":"create","type":"Issue","webhookTimestamp":1676056940508}`},
	{"the example of Standard Webhooks", domain.WebhookPresetStandard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330, map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330", "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, `{"test": 2432232314}`},
}

func (v vector) header() http.Header {
	h := http.Header{}
	for name, value := range v.headers {
		h.Set(name, value)
	}
	return h
}

func (v vector) policy() Policy {
	return Policy{Mode: domain.SigningModeHMACSHA256, Preset: v.preset, Secrets: []string{v.secret}, Window: 5 * time.Minute, Now: time.Unix(v.at, 0)}
}

// Each preset takes what its sender signs, and nothing that differs from it in one thing.
func TestPresetsTakeWhatTheirSendersSign(t *testing.T) {
	for _, v := range vectors {
		p := v.policy()
		if got := Verify(p, v.header(), []byte(v.body)); got.Outcome != domain.WebhookAccepted {
			t.Errorf("%s: %+v", v.name, got)
		}
		p.Secrets = []string{"another secret of them", v.secret}
		if got := Verify(p, v.header(), []byte(v.body)); got.Outcome != domain.WebhookAccepted {
			t.Errorf("%s, while a secret is rotated: %+v", v.name, got)
		}
		p.Secrets = []string{"another secret of them"}
		if got := Verify(p, v.header(), []byte(v.body)); got.Outcome != domain.WebhookBadSignature {
			t.Errorf("%s, with another secret: %+v", v.name, got)
		}
		if got := Verify(v.policy(), http.Header{}, []byte(v.body)); got.Outcome != domain.WebhookNoSignature {
			t.Errorf("%s, without a header: %+v", v.name, got)
		}
		if _, token := v.headers["X-Gitlab-Token"]; !token {
			if got := Verify(v.policy(), v.header(), []byte(v.body+" ")); got.Outcome != domain.WebhookBadSignature {
				t.Errorf("%s, with another body: %+v", v.name, got)
			}
		}
	}
}

// Senders that sign a time are held to it: Linear to a minute, the others to the trigger's window. A repetition is known again.
func TestPresetsRefuseWhatIsOld(t *testing.T) {
	for _, v := range vectors {
		timed := v.preset != domain.WebhookPresetGitHub && v.headers["X-Gitlab-Token"] == ""
		window := 5 * time.Minute
		if v.preset == domain.WebhookPresetLinear {
			window = time.Minute
		}
		for _, late := range []time.Duration{window, window + 2*time.Second, -window - 2*time.Second} {
			p := v.policy()
			p.Now = p.Now.Add(late)
			want := domain.WebhookAccepted
			if timed && late.Abs() > window {
				want = domain.WebhookClockSkew
			}
			if got := Verify(p, v.header(), []byte(v.body)); got.Outcome != want || (got.Signature != "") != (timed && want == domain.WebhookAccepted) {
				t.Errorf("%s, %s later: %+v, want %s", v.name, late, got, want)
			}
		}
	}
	linear := vectors[5]
	linear.body, linear.headers = `{}`, map[string]string{"Linear-Signature": "9e4749e9af94e08e34f898dbee13d463eb6d4eab27826923e029041c73e78325"}
	if got := Verify(linear.policy(), linear.header(), []byte(linear.body)); got.Outcome != domain.WebhookClockSkew {
		t.Errorf("a delivery of Linear without a time: %+v", got)
	}
}

func TestWhatADeliverySaysOfItself(t *testing.T) {
	for _, c := range []struct {
		name    string
		preset  domain.WebhookPreset
		headers map[string]string
		body    string
		want    Notice
	}{
		{"GitHub names event and delivery in headers", domain.WebhookPresetGitHub, map[string]string{"X-GitHub-Event": "issues", "X-GitHub-Delivery": "72d3162e"}, `{}`, Notice{Key: "x-github-delivery:72d3162e", Event: "issues"}},
		{"GitHub's ping fires nothing", domain.WebhookPresetGitHub, map[string]string{"X-GitHub-Event": "ping"}, `{"zen":"x"}`, Notice{Event: "ping", Quiet: domain.WebhookPing}},
		{"nor does it without a preset", "", map[string]string{"X-GitHub-Event": "ping"}, `{}`, Notice{Event: "ping", Quiet: domain.WebhookPing}},
		{"an event that another sender calls ping is one", domain.WebhookPresetGitLab, map[string]string{"X-GitHub-Event": "ping", "X-Gitlab-Event": "Push Hook"}, `{}`, Notice{Event: "Push Hook"}},
		{"GitLab names a delivery by its key", domain.WebhookPresetGitLab, map[string]string{"X-Gitlab-Event": "Issue Hook", "Idempotency-Key": "f5e5"}, `{}`, Notice{Key: "idempotency-key:f5e5", Event: "Issue Hook"}},
		{"Stripe names both in the body", domain.WebhookPresetStripe, nil, `{"id":"evt_1","type":"invoice.paid"}`, Notice{Key: "stripe:evt_1", Event: "invoice.paid"}},
		{"Slack names the event within the body's", domain.WebhookPresetSlack, nil, `{"type":"event_callback","event_id":"Ev08","event":{"type":"app_mention"}}`, Notice{Key: "slack:Ev08", Event: "app_mention"}},
		{"Slack wants its challenge back", domain.WebhookPresetSlack, nil, `{"type":"url_verification","challenge":"3eZb"}`, Notice{Event: "url_verification", Quiet: domain.WebhookChallenge, Challenge: "3eZb"}},
		{"a challenge that is too long is none", domain.WebhookPresetSlack, nil, `{"type":"url_verification","challenge":"` + strings.Repeat("x", maxChallenge+1) + `"}`, Notice{Event: "url_verification"}},
		{"what asks as Slack does is an event of others", domain.WebhookPresetStandard, map[string]string{"webhook-id": "msg_1"}, `{"type":"url_verification","challenge":"x"}`, Notice{Key: "webhook-id:msg_1", Event: "url_verification"}},
		{"Linear names both in headers", domain.WebhookPresetLinear, map[string]string{"Linear-Event": "Issue", "Linear-Delivery": "234d1a4e"}, `{}`, Notice{Key: "linear-delivery:234d1a4e", Event: "Issue"}},
		{"a body that cannot be read names nothing", domain.WebhookPresetStripe, nil, `[1]`, Notice{}},
		{"members of other types are no names", domain.WebhookPresetStripe, nil, `{"id":7,"type":"a.b"}`, Notice{Event: "a.b"}},
	} {
		h := http.Header{}
		for name, value := range c.headers {
			h.Set(name, value)
		}
		if got := noticeOf(c.preset, h, []byte(c.body)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// No header and no body makes the parsers panic, and nobody is let in by another secret.
func FuzzPresets(f *testing.F) {
	for i, v := range vectors {
		for _, value := range v.headers {
			f.Add(i, value, v.body)
		}
	}
	presets := domain.WebhookPreset("").Values()
	f.Fuzz(func(t *testing.T, n int, header, body string) {
		preset := domain.WebhookPreset(presets[(n%len(presets)+len(presets))%len(presets)])
		h := http.Header{}
		for _, name := range []string{headerHubSignature, headerGitLabToken, headerStripe, headerSlack, headerSlackTimestamp, headerLinear, headerStandardID, headerStandardTimestamp, headerStandardSignature} {
			h.Set(name, header)
		}
		p := Policy{Mode: domain.SigningModeHMACSHA256, Preset: preset, Secrets: []string{"nobody knows this secret"}, Window: time.Minute, Now: time.Unix(1, 0)}
		if got := Verify(p, h, []byte(body)); got.Outcome == domain.WebhookAccepted && !strings.Contains(header, "nobody knows") {
			t.Errorf("%s took %q over %q", preset, header, body)
		}
		if n := noticeOf(preset, h, []byte(body)); len(n.Challenge) > maxChallenge || len(n.Event) > 4*maxEvent {
			t.Errorf("a notice without bounds: %+v", n)
		}
		if got := parseStripe(header); len(got.digests) > maxStripeParts {
			t.Errorf("%d digests", len(got.digests))
		}
	})
}
