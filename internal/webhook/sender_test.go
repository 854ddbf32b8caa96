package webhook

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// gitHub signs a delivery as GitHub does.
func gitHub(event, delivery, body string) http.Header {
	h := header("X-Hub-Signature-256", "sha256="+hex.EncodeToString(digest(testSecret, body)))
	h.Set("X-GitHub-Event", event)
	h.Set("X-GitHub-Delivery", delivery)
	return h
}

// A webhook of GitHub fires for the events that its conditions name, fills parts of the body and headers in, and is quiet about the
// rest: it is logged, answered well, and uses up no limit.
func TestAWebhookOfGitHubFiresForWhatItsConditionsName(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeHMACSHA256, testSecret, func(r *store.CreateRoutine) {
		r.Description = "{{header.X-GitHub-Event}} {{webhook.event}}: {{issue.title}} [{{issue.labels.0.name}}] {{issue.nope}}"
		r.Triggers[0].Preset = domain.WebhookPresetGitHub
		r.Triggers[0].Conditions = []domain.WebhookCondition{{Header: new("X-GitHub-Event"), In: []string{"issues"}}, {Path: new("action"), Matches: new("^(opened|reopened)$")},
			{Header: new("User-Agent"), Exists: new(true)}}
	})
	const opened = `{"action":"opened","issue":{"title":"It breaks","labels":[{"name":"bug"}]}}`
	if status, a := w.post(h.path, `{"zen":"x"}`, gitHub("ping", "1", `{"zen":"x"}`)); status != 200 || a.Disposition != "PING" || a.RoutineRunID != "" || a.Error != nil {
		t.Errorf("a ping: %d %+v", status, a)
	}
	for i := range 2 * domain.WebhookRateLimit {
		const closed = `{"action":"closed"}`
		if status, a := w.post(h.path, closed, gitHub("issues", fmt.Sprint("closed", i), closed)); status != 202 || a.Disposition != "FILTERED" || a.RoutineRunID != "" || a.Error != nil {
			t.Fatalf("what no condition names, %d: %d %+v", i, status, a)
		}
	}
	if n := w.count(`SELECT count(*) FROM webhook_deliveries WHERE outcome IN ('FILTERED', 'PING')`); n != domain.WebhookRateLimit {
		t.Errorf("%d quiet deliveries are logged, want %d", n, domain.WebhookRateLimit)
	}
	if n := w.count(`SELECT count(*) FROM webhook_deliveries WHERE outcome = 'FILTERED' AND event = 'issues' AND status = 202 AND detail LIKE 'condition 2 does not hold: action does not match %'`); n != domain.WebhookRateLimit-1 {
		t.Errorf("%d deliveries say which condition does not hold", n)
	}
	if status, a := w.post(h.path, opened, gitHub("issues", "2", opened)); status != 202 || a.Disposition != string(domain.RoutineRunStatusEnqueued) {
		t.Fatalf("what the conditions name: %d %+v", status, a)
	}
	if n := w.count(`SELECT count(*) FROM wakeup_requests WHERE payload ->> 'text' = 'issues issues: It breaks [bug] {{issue.nope}}'`); n != 1 {
		t.Errorf("%d requests have the parts filled in", n)
	}
	if n := w.count(`SELECT count(*) FROM routine_runs, jsonb_object_keys(variables) AS name WHERE name LIKE 'header.%'`); n != 1 {
		t.Errorf("a fire keeps %d headers, want the one that its text names", n)
	}
	if status, a := w.post(h.path, opened, gitHub("issues", "2", opened)); status != 202 || !a.Deduplicated {
		t.Errorf("the same delivery again: %d %+v", status, a)
	}
	if status, _ := w.post(h.path, opened, signed("another secret of enough length", opened)); status != 401 {
		t.Errorf("another's signature: %d", status)
	}
}

// Slack's challenge is answered once it is proved, and its events fire once each.
func TestAWebhookOfSlackAnswersTheChallenge(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeHMACSHA256, testSecret, func(r *store.CreateRoutine) { r.Triggers[0].Preset = domain.WebhookPresetSlack })
	sign := func(body, secret string) http.Header {
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		out := header("X-Slack-Signature", "v0="+hex.EncodeToString(digest(secret, "v0:"+stamp+":"+body)))
		out.Set("X-Slack-Request-Timestamp", stamp)
		return out
	}
	const challenge = `{"token":"t","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}`
	if status, a := w.post(h.path, challenge, sign(challenge, testSecret)); status != 200 || a.Challenge != "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P" || a.RoutineRunID != "" {
		t.Errorf("the challenge: %d %+v", status, a)
	}
	if status, a := w.post(h.path, challenge, sign(challenge, "a secret of somebody else")); status != 401 || a.Challenge != "" {
		t.Errorf("a challenge that proves nothing: %d %+v", status, a)
	}
	const event = `{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}`
	_, a := w.post(h.path, event, sign(event, testSecret))
	_, b := w.post(h.path, event, sign(event, testSecret))
	if a.RoutineRunID == "" || b.RoutineRunID != a.RoutineRunID || !b.Deduplicated {
		t.Errorf("an event and its repetition: %+v, %+v", a, b)
	}
	if got, want := w.outcomes(h), "CHALLENGE 200, BAD_SIGNATURE 401, ACCEPTED 202, DUPLICATE 202"; got != want {
		t.Errorf("the log is %s, want %s", got, want)
	}
}
