package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// noted is who had to wait as a stranger, and who was proved.
type noted struct {
	waits  int
	proved []string
}

func (n *noted) Wait(context.Context)                    { n.waits++ }
func (n *noted) Proved(_ context.Context, caller string) { n.proved = append(n.proved, caller) }

// endpoint is a handler whose strangers and log a test sees.
type endpoint struct {
	*Handler
	met *noted
	log *strings.Builder
}

func (w *world) endpoint() endpoint {
	met, log := &noted{}, &strings.Builder{}
	return endpoint{New(w.store.Routines, w.box, met, slog.New(slog.NewTextHandler(log, nil))), met, log}
}

// send hands a request to the endpoint.
func (e endpoint) send(method, path string, body io.Reader, h http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	for name, values := range h {
		r.Header[name] = values
	}
	mux, out := http.NewServeMux(), httptest.NewRecorder()
	mux.Handle(Path, e)
	mux.ServeHTTP(out, r)
	return out
}

// Who proves nothing waits as a stranger before the answer; who proves itself does not, and the listener is told its name once.
func TestWhoProvesNothingWaits(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeBearer, testSecret, nil)
	good := header("Authorization", "Bearer "+testSecret)
	away := w.endpoint()
	away.ids = batch.New(idsMost, idsLimit, func(context.Context, []string) (map[string]*store.Webhook, error) { return nil, errors.New("away") })
	for name, c := range map[string]struct {
		e            endpoint
		method, path string
		headers      http.Header
		status       int
		says         string // a header of the answer
	}{
		"a GET":                        {w.endpoint(), http.MethodGet, h.path, good, 405, "Allow: POST"},
		"a body that is compressed":    {w.endpoint(), http.MethodPost, h.path, with(header("Content-Encoding", "gzip"), "Authorization", "Bearer "+testSecret), 415, "Accept-Encoding: identity"},
		"an id that is not there":      {w.endpoint(), http.MethodPost, "/api/routine-triggers/unknown/fire", good, 404, ""},
		"another secret":               {w.endpoint(), http.MethodPost, h.path, header("Authorization", "Bearer wrong"), 401, "WWW-Authenticate: Bearer"},
		"a database that is away":      {away, http.MethodPost, h.path, good, 503, "Retry-After: 5"},
		"the secret, which is a proof": {w.endpoint(), http.MethodPost, h.path, good, 202, ""},
	} {
		out := c.e.send(c.method, c.path, strings.NewReader("{}"), c.headers)
		if out.Code != c.status {
			t.Errorf("%s: %d %s, want %d", name, out.Code, out.Body, c.status)
		}
		if key, want, _ := strings.Cut(c.says, ": "); key != "" && out.Header().Get(key) != want {
			t.Errorf("%s: %s is %q, want %q", name, key, out.Header().Get(key), want)
		}
		waits, proved := 1, []string(nil)
		if c.status == 202 {
			waits, proved = 0, []string{"webhook " + h.trigger}
		}
		if c.e.met.waits != waits || !slices.Equal(c.e.met.proved, proved) {
			t.Errorf("%s: it waited %d times and proved %q, want %d and %q", name, c.e.met.waits, c.e.met.proved, waits, proved)
		}
	}
	if !strings.Contains(away.log.String(), "away") {
		t.Errorf("the log does not say that the database is away: %s", away.log)
	}
}

// A body that does not come is answered, and one of the greatest size is taken although its length is announced.
func TestBodiesThatBreakOffAndBodiesOfTheGreatestSize(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeNone, "", nil)
	if out := w.endpoint().send(http.MethodPost, h.path, iotest.ErrReader(io.ErrUnexpectedEOF), nil); out.Code != 408 || !strings.Contains(out.Body.String(), "REQUEST_TIMEOUT") {
		t.Errorf("a body that breaks off: %d %s", out.Code, out.Body)
	}
	whole := `{"branch":"` + strings.Repeat("x", domain.MaxWebhookBody-len(`{"branch":""}`)) + `"}`
	e := w.endpoint()
	for size, want := range map[int]domain.WebhookOutcome{0: domain.WebhookAccepted, 1: domain.WebhookTooLarge} {
		r := httptest.NewRequest(http.MethodPost, h.path, strings.NewReader(whole+strings.Repeat(" ", size)))
		if _, got, err := e.body(t.Context(), httptest.NewRecorder(), r, &store.Webhook{TriggerID: xid.ID(h.trigger)}); got != want || err != nil {
			t.Errorf("%d bytes, announced as %d: %s %v, want %s", domain.MaxWebhookBody+size, r.ContentLength, got, err, want)
		}
	}
}

// What fails behind a proved delivery is answered so that its sender knows whether to send it again.
func TestWhatFailsBehindAProvedDelivery(t *testing.T) {
	refuse := func(w *world, table string) {
		w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused here'; END $$`)
		w.sql(`CREATE TRIGGER refuse BEFORE INSERT ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION refuse()`)
	}
	for name, c := range map[string]struct {
		before func(w *world, h hook)
		status int
		log    string // what it says
	}{
		"the fire cannot be written: nothing was taken, so send it again": {func(w *world, _ hook) { refuse(w, "routine_runs") }, 503, "webhook failed"},
		"the wake cannot be routed at once: the fire is taken":            {func(w *world, _ hook) { refuse(w, "runs") }, 202, "wakeup not routed at once"},
		"the trigger is gone since it was found":                          {func(w *world, h hook) { w.ok(w.store.DeleteTrigger(t.Context(), w.workspace, xid.ID(h.trigger))) }, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h, e := w.hook(domain.SigningModeNone, "", nil), w.endpoint()
			found, err := w.store.Webhook(t.Context(), strings.Split(h.path, "/")[3])
			w.ok(err)
			c.before(w, h)
			out := httptest.NewRecorder()
			e.deliver(t.Context(), out, store.Delivery{Webhook: found, Body: []byte("{}")})
			if out.Code != c.status || !strings.Contains(e.log.String(), c.log) || c.log == "" && e.log.Len() > 0 {
				t.Errorf("%d %s, want %d; the log says %s", out.Code, out.Body, c.status, e.log)
			}
		})
	}
}

// A secret that cannot be opened is told to the operator when it is the only one; beside one that can it is of no matter.
func TestSecretsThatCannotBeOpened(t *testing.T) {
	w := newWorld(t)
	sealed, err := w.box.Seal(testSecret, store.SecretPlace("trg_1"))
	w.ok(err)
	const body, other, none = "{}", "the trigger's secret was sealed with another key: rotate it", "the trigger has no secret: rotate it to make one"
	for name, c := range map[string]struct {
		secret, previous string
		want             Verdict
		logged           bool
	}{
		"it has none":                     {"", "", Verdict{Outcome: domain.WebhookNoSecret, Detail: none}, false},
		"the only one is of another key":  {"s1.torn", "", Verdict{Outcome: domain.WebhookNoSecret, Detail: other}, true},
		"the former one is of another":    {sealed, "s1.torn", Verdict{Outcome: domain.WebhookAccepted}, false},
		"the only one opens":              {sealed, "", Verdict{Outcome: domain.WebhookAccepted}, false},
		"the newer one is of another key": {"s1.torn", sealed, Verdict{Outcome: domain.WebhookAccepted}, false},
	} {
		e := w.endpoint()
		got := e.verify(&store.Webhook{TriggerID: "trg_1", Mode: domain.SigningModeHMACSHA256, Secret: c.secret, Previous: c.previous}, signed(testSecret, body), []byte(body))
		if got != c.want || strings.Contains(e.log.String(), "cannot be opened") != c.logged {
			t.Errorf("%s: %+v, want %+v; the log says %q", name, got, c.want, e.log)
		}
	}
	asks := &store.Webhook{TriggerID: "trg_1", Mode: domain.SigningModeHMACSHA256, Secret: sealed, RequireTimestamp: true}
	if got := w.endpoint().verify(asks, signed(testSecret, body), []byte(body)); got.Outcome != domain.WebhookTimestampRequired {
		t.Errorf("a trigger that asks for a timestamp takes a signature without one: %+v", got)
	}
}

// A signature is of exactly the key that its form means, and is nothing but a digest.
func TestASignatureIsOfOneKeyAndNothingElse(t *testing.T) {
	const body, plain = "{}", "a secret of no form"
	key, _ := domain.StandardWebhookKey(shared)
	policy := func(secret string) Policy {
		return Policy{Mode: domain.SigningModeHMACSHA256, Secrets: []string{secret}, Now: now}
	}
	for name, c := range map[string]struct {
		policy Policy
		h      http.Header
		want   domain.WebhookOutcome
	}{
		"no key is one where a secret has no form":      {policy(plain), standard("", "id", now, body), domain.WebhookBadSignature},
		"the decoded key is for Standard Webhooks only": {policy(shared), signed(string(key), body), domain.WebhookBadSignature},
		"a digest with more behind it is none":          {policy(plain), header("X-Signature-256", signed(plain, body).Get("X-Signature-256")+"zz"), domain.WebhookBadSignature},
		"a digest is one":                               {policy(plain), signed(plain, body), domain.WebhookAccepted},
	} {
		if got := Verify(c.policy, c.h, []byte(body)); got.Outcome != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
	if got := Verify(policy(plain), header("X-Rouse-Signature", "sha256=00"), nil); got.Outcome != domain.WebhookBadSignature {
		t.Errorf("a signature of nothing, without a timestamp: %+v", got)
	}
	late := Policy{Window: 300e9, Now: now}.timely(fmt.Sprint(now.Unix()-301), "x-time", "s")
	if late.Detail != "clock skew 301 s, and the trigger accepts 300 s" {
		t.Errorf("the operator is told %q", late.Detail)
	}
}

// However many triggers are over their rate, so many are remembered, and those before are until then.
func TestTriggersAtRestAreRememberedUpToABound(t *testing.T) {
	r := rests{length: 1 << 50}
	for i := range restsMost + 1 {
		r.begin(xid.ID(fmt.Sprint(i)))
		if len(r.until) > restsMost {
			t.Fatalf("%d are remembered", len(r.until))
		}
		if i == 1 && !r.on("0") {
			t.Fatal("the first is forgotten as the second comes")
		}
	}
}
