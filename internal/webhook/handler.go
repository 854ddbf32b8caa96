// Package webhook is the endpoint with which other systems fire routines (SPEC S4.9). It verifies a POST, turns its
// body into values, hands both to one call of the store, and answers. Callers are never told why a proof was not
// accepted; the operator finds the reason in the trigger's deliveries.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/sparing"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Path is the pattern of the endpoint, for a ServeMux.
const Path = "/api/routine-triggers/{public_id}/fire"

const (
	bodyTimeout = 15 * time.Second // for a caller to send its body
	fireTimeout = 30 * time.Second // for the whole answer
	retryAfter  = "60"             // seconds, of answers 429
)

// Opener decrypts what was sealed for a place.
type Opener interface {
	Open(sealed, boundTo string) (string, error)
}

// Handler answers POSTs to webhooks.
type Handler struct {
	store     *store.Routines
	open      Opener
	log       *slog.Logger
	strangers Strangers

	ids      *batch.Lookup[*store.Webhook] // by public id
	places   *places                       // for bodies
	rejected rests                         // triggers over the rate of deliveries that prove nothing
	accepted rests                         // triggers over the rate of those that do
	failures *slog.Logger
}

// New makes a handler; strangers may be nil.
func New(s *store.Routines, open Opener, strangers Strangers, log *slog.Logger) *Handler {
	if strangers == nil {
		strangers = everybody{}
	}
	return &Handler{store: s, open: open, log: log, strangers: strangers, failures: sparing.Log(log), ids: batch.New(idsMost, idsLimit, s.Webhooks), places: newPlaces(),
		rejected: rests{length: restFor}, accepted: rests{length: restFor}}
}

// answer is the body of every answer.
type answer struct {
	RoutineRunID xid.ID   `json:"routineRunId,omitempty"`
	Disposition  string   `json:"disposition,omitempty"` // of the fire, or FILTERED, PING or CHALLENGE of what fires nothing by design
	Deduplicated bool     `json:"deduplicated"`
	Challenge    string   `json:"challenge,omitempty"` // what the sender wants back
	Error        *problem `json:"error,omitempty"`
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ServeHTTP fires the routine behind the path's public id.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		h.strangers.Wait(r.Context())
		w.Header().Set("Allow", http.MethodPost)
		respond(w, http.StatusMethodNotAllowed, failure("METHOD_NOT_ALLOWED", "send a POST"))
		return
	}
	if coding := strings.TrimSpace(r.Header.Get("Content-Encoding")); coding != "" && !strings.EqualFold(coding, "identity") {
		h.strangers.Wait(r.Context())
		w.Header().Set("Accept-Encoding", "identity")
		respond(w, http.StatusUnsupportedMediaType, failure("UNSUPPORTED_MEDIA_TYPE", "the body is compressed, which no webhook reads: send it without Content-Encoding"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), fireTimeout)
	defer cancel()
	trigger, _, err := h.ids.Find(ctx, r.PathValue("public_id"))
	switch {
	case err != nil:
		h.strangers.Wait(ctx)
		h.broken(ctx, w, "", err)
		return
	case trigger == nil:
		h.strangers.Wait(ctx)
		respond(w, http.StatusNotFound, notFound)
		return
	}
	body, outcome, err := h.body(ctx, w, r, trigger)
	if err != nil { // the caller went away, or was too slow
		respond(w, http.StatusRequestTimeout, failure("REQUEST_TIMEOUT", "the body did not come in time"))
		return
	}
	if outcome != domain.WebhookAccepted {
		h.reject(ctx, w, trigger, Verdict{Outcome: outcome, Detail: "the body is larger than 256 KiB"})
		return
	}
	verdict := h.verify(trigger, r.Header, body)
	if verdict.Outcome != domain.WebhookAccepted {
		h.reject(ctx, w, trigger, verdict)
		return
	}
	h.strangers.Proved(ctx, "webhook "+string(trigger.TriggerID))
	if h.accepted.on(trigger.TriggerID) {
		respond(w, http.StatusTooManyRequests, tooMany)
		return
	}
	notice := noticeOf(trigger.Preset, r.Header, body)
	if notice.Quiet != "" {
		h.quiet(ctx, w, trigger, notice)
		return
	}
	h.deliver(ctx, w, store.Delivery{Webhook: trigger, Body: body, Key: notice.Key, Event: notice.Event, Headers: toldHeaders(r.Header), Signature: verdict.Signature, RunID: callingRun(r.Header)})
}

// quiet answers a delivery that fires nothing by design.
func (h *Handler) quiet(ctx context.Context, w http.ResponseWriter, t *store.Webhook, n Notice) {
	if err := h.store.QuietDelivery(ctx, t, n.Quiet, n.Event); err != nil {
		h.broken(ctx, w, t.TriggerID, err)
		return
	}
	respond(w, store.WebhookStatus(n.Quiet), answer{Disposition: string(n.Quiet), Challenge: n.Challenge})
}

// Bounds of the headers that a delivery hands on; what is longer is left out.
const (
	headersMost = 100
	headerBytes = 1 << 10
)

// toldHeaders are the headers of a delivery that texts and conditions may name, by their names in small letters: none that holds a proof.
func toldHeaders(h http.Header) map[string]string {
	told := map[string]string{}
	for name, values := range h {
		if value := strings.Join(values, ", "); len(told) < headersMost && len(value) <= headerBytes && !domain.IsProofHeader(name) {
			told[strings.ToLower(name)] = domain.StorableText(value)
		}
	}
	return told
}

// RunHeader names, in a delivery that an agent sends while it works, the run that it works on (ROUSE_RUN_ID). The fire then goes on
// with the run's chain of causes.
const RunHeader = "X-Rouse-Run-Id"

// callingRun is the run that a delivery names, "" for none. Who made one up joins no chain but that of a run of the same workspace.
func callingRun(header http.Header) xid.ID {
	id, err := xid.Parse(header.Get(RunHeader))
	if err != nil || id.Prefix() != "run" {
		return ""
	}
	return id
}

var notFound = failure("NOT_FOUND", "there is no such webhook")

var tooMany = failure("RATE_LIMITED", "too many deliveries within a minute: try again later")

// body reads the body, once there is a place for one more.
func (h *Handler) body(ctx context.Context, w http.ResponseWriter, r *http.Request, t *store.Webhook) ([]byte, domain.WebhookOutcome, error) {
	if r.ContentLength > domain.MaxWebhookBody {
		return nil, domain.WebhookTooLarge, nil
	}
	free, err := h.places.take(ctx, t.TriggerID)
	if err != nil {
		return nil, "", err
	}
	defer free()
	return readBody(w, r)
}

// NotFound is the answer where no webhook is; why is for the caller.
func NotFound(w http.ResponseWriter, why string) {
	respond(w, http.StatusNotFound, failure("NOT_FOUND", why))
}

// readBody reads at most one byte more than is allowed.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, domain.WebhookOutcome, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // a recorder of tests has none
	body, err := io.ReadAll(io.LimitReader(r.Body, domain.MaxWebhookBody+1))
	if err != nil {
		return nil, "", err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if len(body) > domain.MaxWebhookBody {
		return nil, domain.WebhookTooLarge, nil
	}
	return body, domain.WebhookAccepted, nil
}

// verify opens the trigger's secrets and checks the request with them. A secret that cannot be opened does not count,
// because it was sealed with another key.
func (h *Handler) verify(t *store.Webhook, header http.Header, body []byte) Verdict {
	p := Policy{Mode: t.Mode, Preset: t.Preset, Window: t.ReplayWindow, RequireTimestamp: t.RequireTimestamp, Now: t.Now}
	var closed error
	for _, sealed := range []string{t.Secret, t.Previous} {
		if sealed == "" {
			continue
		}
		text, err := h.open.Open(sealed, store.SecretPlace(t.TriggerID))
		closed = errors.Join(closed, err)
		p.Secrets = append(p.Secrets, text)
	}
	verdict := Verify(p, header, body)
	if verdict.Outcome == domain.WebhookNoSecret && closed != nil {
		h.failures.Error("a webhook's secret cannot be opened; rotate it", "trigger_id", t.TriggerID, "error", closed)
		verdict.Detail = "the trigger's secret was sealed with another key: rotate it"
	}
	return verdict
}

// reject records why and tells the caller nothing but that it was.
func (h *Handler) reject(ctx context.Context, w http.ResponseWriter, t *store.Webhook, v Verdict) {
	h.strangers.Wait(ctx)
	if h.rejected.on(t.TriggerID) {
		respond(w, http.StatusTooManyRequests, tooMany)
		return
	}
	limited, err := h.store.RejectDelivery(ctx, t, v.Outcome, v.Detail)
	switch {
	case err != nil:
		h.broken(ctx, w, t.TriggerID, err)
	case limited:
		h.rejected.begin(t.TriggerID)
		respond(w, http.StatusTooManyRequests, tooMany)
	case v.Outcome == domain.WebhookTooLarge:
		respond(w, http.StatusRequestEntityTooLarge, failure("TOO_LARGE", "the body is larger than 256 KiB"))
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		respond(w, http.StatusUnauthorized, failure("UNAUTHORIZED", "the delivery did not prove itself"))
	}
}

// deliver fires, and routes what was sent before it answers: the fire is committed, so if routing fails, the dispatcher
// does it later.
func (h *Handler) deliver(ctx context.Context, w http.ResponseWriter, d store.Delivery) {
	out, err := h.store.Deliver(ctx, d)
	if _, gone := errors.AsType[*domain.UserError](err); gone {
		respond(w, http.StatusNotFound, notFound)
		return
	}
	if err != nil {
		h.broken(ctx, w, d.Webhook.TriggerID, err)
		return
	}
	if out.AgentID != "" {
		if _, err := h.store.Route(ctx, out.AgentID); err != nil {
			h.log.WarnContext(ctx, "wakeup not routed at once, the dispatcher will", "agent_id", out.AgentID, "error", err)
		}
	}
	if out.Outcome == domain.WebhookRateLimited {
		h.accepted.begin(d.Webhook.TriggerID)
	}
	a := answer{RoutineRunID: out.RoutineRunID, Disposition: string(out.Status), Deduplicated: out.Outcome == domain.WebhookDuplicate}
	if out.Outcome == domain.WebhookFiltered {
		a.Disposition = string(out.Outcome)
	}
	if out.Problem != "" {
		a.Error = &problem{string(out.Outcome), out.Problem}
	}
	respond(w, store.WebhookStatus(out.Outcome), a)
}

// broken is a failure of ours: the log sees the cause.
func (h *Handler) broken(ctx context.Context, w http.ResponseWriter, triggerID xid.ID, err error) {
	h.failures.ErrorContext(ctx, "webhook failed", "trigger_id", triggerID, "error", err)
	w.Header().Set("Retry-After", "5")
	respond(w, http.StatusServiceUnavailable, failure("INTERNAL", "the delivery could not be taken now: send it again"))
}

func failure(code, message string) answer { return answer{Error: &problem{code, message}} }

func respond(w http.ResponseWriter, status int, a answer) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // a caller that went away is no error of ours
}
