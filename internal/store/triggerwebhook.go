package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// SealedSecret is a webhook's secret as it is stored: sealed for its trigger, with the hint that people see.
type SealedSecret struct{ Sealed, Hint string }

// SecretPlace is what a webhook's secret is sealed for.
func SecretPlace(triggerID xid.ID) string { return domain.SealPlace(triggerID, "secret") }

// NewTriggerID makes the id of a trigger, for a caller that seals its secret before it is made.
func NewTriggerID(kind domain.TriggerKind) xid.ID { return xid.New(triggerPrefix[kind]) }

// publicIDBytes is how many random bytes a public id is.
const publicIDBytes = 24

// newPublicID makes the unguessable part of a webhook's path: 192 random bits.
func newPublicID() string {
	raw := make([]byte, publicIDBytes)
	_, _ = rand.Read(raw) // never fails, or ends the program
	return base64.RawURLEncoding.EncodeToString(raw)
}

// RotateTriggerSecret is a new secret for a webhook. The old one also works until Overlap has passed.
type RotateTriggerSecret struct {
	WorkspaceID, TriggerID xid.ID
	Secret                 SealedSecret
	Overlap                time.Duration
	Idempotency
}

// RotateTriggerSecret gives a webhook a new secret. An older one that still worked beside the present one ends now.
func (s *Routines) RotateTriggerSecret(ctx context.Context, in RotateTriggerSecret) (made Made, err error) {
	if in.Overlap < 0 || in.Overlap > domain.MaxSecretOverlap {
		return Made{}, domain.RefuseField([]string{"overlap"}, domain.UserErrorCodeOutOfRange, "an overlap is PT0S to P7D")
	}
	routineID, err := s.routineOfTrigger(ctx, in.WorkspaceID, in.TriggerID)
	if err != nil {
		return Made{}, err
	}
	err = s.withRoutineOnce(ctx, in.WorkspaceID, routineID, "rotateTriggerSecret", in.Idempotency, &made, func(t *tx, _ lane, r routineRow) (Made, error) {
		row, err := t.lockTrigger(ctx, in.TriggerID)
		if err != nil {
			return Made{}, err
		}
		if row.Kind != domain.TriggerKindWebhook {
			return Made{}, domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeInvalid, "only a webhook trigger has a secret")
		}
		u := t.RoutineTrigger.UpdateOneID(row.ID).AddRevision(1).SetUpdatedAt(t.Now).SetSecretSealed(in.Secret.Sealed).SetSecretHint(in.Secret.Hint).
			SetSecretRotatedAt(t.Now)
		if in.Overlap > 0 && row.SecretSealed != nil {
			u.SetPreviousSecretSealed(*row.SecretSealed).SetPreviousSecretExpiresAt(t.Now.Add(in.Overlap))
		} else {
			u.ClearPreviousSecretSealed().ClearPreviousSecretExpiresAt()
		}
		if err := u.Exec(ctx); err != nil {
			return Made{}, fmt.Errorf("write the new secret: %w", err)
		}
		return Made{ID: row.ID}, t.note(ctx, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeTriggerSecretRotated, by: callerOr(ctx, "routines"),
			summary: "The secret of a webhook was changed.", subjectID: r.id, agentID: r.assigneeID,
			data: map[string]any{"triggerId": row.ID, "routineId": r.id, "overlap": in.Overlap > 0}})
	})
	return made, pgtx.Wrap("rotate a webhook's secret", err)
}

// Webhook is a trigger as a delivery is judged by it. Secrets are sealed for SecretPlace. "" means that there is no
// secret. An older secret is left out once its overlap has ended. Now is the database's clock.
type Webhook struct {
	TriggerID, RoutineID, WorkspaceID xid.ID
	Mode                              domain.SigningMode
	Secret, Previous                  string
	ReplayWindow                      time.Duration
	RequireTimestamp                  bool
	Preset                            domain.WebhookPreset // "": none
	Conditions                        []domain.WebhookCondition
	Now                               time.Time
}

// isPublicID says whether a text has the form of what newPublicID makes. Anybody may send any bytes in its place.
func isPublicID(text string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(raw) == publicIDBytes
}

// Webhook finds the trigger behind a public id; nil when the id is not known.
func (s *Routines) Webhook(ctx context.Context, publicID string) (*Webhook, error) {
	found, err := s.Webhooks(ctx, []string{publicID})
	return found[publicID], err
}

// Webhooks finds the triggers behind many public ids at once; those that there are not are left out.
func (s *Routines) Webhooks(ctx context.Context, publicIDs []string) (map[string]*Webhook, error) {
	const query = `
SELECT t.public_id, t.id, t.routine_id, t.workspace_id, t.signing_mode, coalesce(t.secret_sealed, ''),
  CASE
    WHEN t.previous_secret_expires_at > clock_timestamp() THEN coalesce(t.previous_secret_sealed, '')
    ELSE '' END, t.replay_window_ms, t.require_timestamp, coalesce(t.preset, ''),
  t.conditions, clock_timestamp()
FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
WHERE t.public_id = ANY($1) AND t.kind = 'WEBHOOK' AND t.deleted_at IS NULL AND r.deleted_at IS NULL`
	found := map[string]*Webhook{}
	publicIDs = slices.DeleteFunc(slices.Clone(publicIDs), func(id string) bool { return !isPublicID(id) })
	if len(publicIDs) == 0 {
		return found, nil
	}
	_, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
		var w Webhook
		var publicID string
		var window int64
		var conditions []byte
		if err := rows.Scan(&publicID, &w.TriggerID, &w.RoutineID, &w.WorkspaceID, &w.Mode, &w.Secret, &w.Previous, &window, &w.RequireTimestamp,
			&w.Preset, &conditions, &w.Now); err != nil {
			return struct{}{}, err
		}
		if err := json.Unmarshal(conditions, &w.Conditions); err != nil {
			return struct{}{}, fmt.Errorf("decode the conditions of webhook %s: %w", w.TriggerID, err)
		}
		w.ReplayWindow = time.Duration(window) * time.Millisecond
		found[publicID] = &w
		return struct{}{}, nil
	}, query, pq.Array(publicIDs))
	return found, pgtx.Wrap("look for webhooks", err)
}

// Delivery is a POST that proved itself. Key is the sender's name of the delivery, and Signature a timestamped
// signature; "" when it has none. A delivery is a repetition when either has been seen before. Event is what its sender calls the
// event, and Headers are those that may be told of, by their names in small letters.
type Delivery struct {
	Webhook               *Webhook
	Body                  []byte
	Key, Signature, Event string
	RunID                 xid.ID // of the workspace, whose agent sent it, as it says; "": it does not say
	Headers               map[string]string
}

// Delivered is what became of a delivery. Problem is why nothing fired, for the sender, and Detail for the operator alone.
type Delivered struct {
	Outcome      domain.WebhookOutcome
	Problem      string
	Detail       string
	RoutineRunID xid.ID
	Status       domain.RoutineRunStatus
	AgentID      xid.ID // to route; "": nothing was sent, or it has its run
}

// Deliver fires a routine by a delivery that proved itself, and records the delivery, in one transaction (SPEC S4.9).
// The rate limit, repetitions and the routine's status are decided under its agent's lane, so that deliveries at the
// same moment, in any process, are decided one after the other. When the trigger has been deleted since, the answer is
// a user error. Deliveries that come at once share a transaction.
func (s *Routines) Deliver(ctx context.Context, d Delivery) (Delivered, error) {
	x := &fireCall{FireRoutine: FireRoutine{WorkspaceID: d.Webhook.WorkspaceID, RoutineID: d.Webhook.RoutineID, TriggerID: d.Webhook.TriggerID},
		source: domain.RoutineRunSourceWebhook, delivery: &d}
	if err := s.call(ctx, x); err != nil {
		return Delivered{}, pgtx.Wrap("deliver to a webhook", err)
	}
	x.delivered.AgentID = x.toRoute
	return x.delivered, nil
}

// provide takes the values that a delivery provides out of its body, and those headers that the routine's texts name. What its
// conditions look at besides is no value of the fire.
func (x *fireCall) provide() {
	d := x.delivery
	if d == nil {
		return
	}
	if x.Variables, x.unfit = domain.DeliveryValues(d.Body, d.Event, d.Headers, x.routine.texts()); x.unfit == nil {
		x.filtered = domain.FilterDelivery(d.Webhook.Conditions, domain.ConditionValues(d.Webhook.Conditions, x.Variables, d.Headers))
	}
}

// decideDelivery decides a delivery: what is wrong with it is its outcome. It fires unless there were too many, it repeats an earlier
// one, or the trigger, the routine's status, the backlog, the body or its values forbid it, judged in this order.
func (b *callBatch) decideDelivery(x *fireCall) error {
	if !x.trigger.there {
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeNotFound, "there is no trigger %s in this workspace", x.TriggerID)
	}
	if x.delivered = b.gate(x); x.delivered.Outcome != "" {
		return nil
	}
	if x.filtered != "" {
		x.delivered = Delivered{Outcome: domain.WebhookFiltered, Detail: x.filtered}
		return nil
	}
	values, unfit, err := x.valuesOf(b.Now)
	if err != nil {
		return err
	}
	facts := b.facts(x)
	plan := domain.PlanFire(facts)
	switch {
	case plan.Answer != domain.FireRecord && plan.Problem.Code == domain.UserErrorCodeBacklogFull:
		x.delivered = Delivered{Outcome: domain.WebhookBacklogFull, Problem: plan.Problem.Message}
	case plan.Answer != domain.FireRecord:
		x.delivered = Delivered{Outcome: domain.WebhookRefused, Problem: plan.Problem.Message}
	case unfit != "":
		x.delivered = Delivered{Outcome: domain.WebhookBadBody, Problem: unfit}
	default:
		b.accept(x, facts, plan, values)
		x.delivered = Delivered{Outcome: domain.WebhookAccepted, RoutineRunID: x.id, Status: plan.Status}
	}
	b.remember(x)
	return nil
}

// gate is the outcome of a delivery that is not judged by its content; "": it is.
func (b *callBatch) gate(x *fireCall) Delivered {
	earlier, repeats := b.earlier(x)
	out := Delivered{}
	out.Outcome, out.Problem = domain.GateDelivery(domain.DeliveryFacts{
		Recent: x.trigger.recent + b.recent[x.TriggerID], Repeats: repeats, Enabled: x.trigger.enabled})
	switch out.Outcome {
	case "", domain.WebhookRateLimited: // the first is counted when its content was judged, the other one not at all
		return out
	case domain.WebhookDuplicate:
		out.RoutineRunID, out.Status = earlier.RoutineRunID, earlier.Status
	}
	b.recent[x.TriggerID]++
	return out
}

// earlier is what became of the delivery that this one repeats, if there is one, stored or of the same batch.
func (b *callBatch) earlier(x *fireCall) (of Delivered, repeats bool) {
	if x.trigger.earlier != "" {
		return Delivered{RoutineRunID: x.trigger.earlier, Status: x.trigger.status}, true
	}
	for _, name := range x.repeatedBy() {
		if of, repeats = b.seen[name]; repeats {
			return of, true
		}
	}
	return Delivered{}, false
}

// remember lets later deliveries of the batch find this one.
func (b *callBatch) remember(x *fireCall) {
	b.recent[x.TriggerID]++
	if x.delivered.RoutineRunID == "" {
		return
	}
	for _, name := range x.repeatedBy() {
		b.seen[name] = x.delivered
	}
}

// repeatedBy is what a repetition of a delivery is told by, of its trigger.
func (x *fireCall) repeatedBy() (names []string) {
	if key := x.fireKey(); key != "" {
		names = append(names, string(x.TriggerID)+" key "+key)
	}
	if x.delivery.Signature != "" {
		names = append(names, string(x.TriggerID)+" signature "+x.delivery.Signature)
	}
	return names
}

// valuesOf turns a body into the fire's values; unfit says what is wrong with it (C22).
func (x *fireCall) valuesOf(now time.Time) (values map[string]string, unfit string, err error) {
	if err = x.unfit; err == nil {
		values, err = x.valuesNow(now)
	}
	if unfit = pgtx.UserErrorText(err); unfit != "" {
		return nil, unfit, nil
	}
	return values, "", err
}

// WebhookStatus is the HTTP status that answers an outcome.
func WebhookStatus(o domain.WebhookOutcome) int {
	switch o {
	case domain.WebhookAccepted, domain.WebhookDuplicate, domain.WebhookFiltered:
		return 202
	case domain.WebhookPing, domain.WebhookChallenge:
		return 200
	case domain.WebhookBadBody:
		return 400
	case domain.WebhookRefused:
		return 409
	case domain.WebhookTooLarge:
		return 413
	case domain.WebhookRateLimited, domain.WebhookBacklogFull:
		return 429
	}
	return 401
}

// recordDeliveries appends to the triggers' delivery logs. Of a trigger's deliveries over the rate limit only one a minute is recorded.
func (t *tx) recordDeliveries(ctx context.Context, batch []*fireCall) error {
	type row struct {
		ID        xid.ID `json:"id"`
		Workspace xid.ID `json:"workspace"`
		Trigger   xid.ID `json:"trigger"`
		Fire      xid.ID `json:"fire,omitempty"`
		Status    int    `json:"status"`
		Outcome   string `json:"outcome"`
		Detail    string `json:"detail"`
		Key       string `json:"key,omitempty"`
		Event     string `json:"event"`
	}
	var rows []row
	limited := map[xid.ID]bool{}
	for _, x := range batch {
		out := x.delivered
		if x.delivery == nil || x.err != nil || out.Outcome == domain.WebhookRateLimited && limited[x.TriggerID] {
			continue
		}
		limited[x.TriggerID] = limited[x.TriggerID] || out.Outcome == domain.WebhookRateLimited
		rows = append(rows, row{xid.New("whd"), x.WorkspaceID, x.TriggerID, out.RoutineRunID, WebhookStatus(out.Outcome), string(out.Outcome), cmp.Or(out.Problem, out.Detail), x.delivery.Signature, x.delivery.Event})
	}
	if len(rows) == 0 {
		return nil
	}
	encoded, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode deliveries: %w", err)
	}
	const query = `
-- $1 the deliveries as JSON, $2 now, $3 since when one that was over the limit counts, $4 outcomes of those that
-- fire nothing by design, $5 most of them that are recorded
INSERT INTO webhook_deliveries (id, workspace_id, trigger_id, routine_run_id, status, outcome, detail,
    delivery_key, event, created_at)
SELECT id, workspace, trigger, fire, status, outcome, left(detail, 1000), key, event, $2
FROM json_to_recordset($1) AS n (id text, workspace text, trigger text, fire text, status int, outcome text,
    detail text, key text, event text)
-- of those over the limit one is recorded in a while, or a flood would fill the table
WHERE CASE
  WHEN outcome = 'RATE_LIMITED' THEN NOT EXISTS (
    SELECT 1
    FROM webhook_deliveries d
    WHERE d.trigger_id = n.trigger AND d.outcome = 'RATE_LIMITED' AND d.created_at > $3)
  WHEN outcome = ANY($4) THEN (
    SELECT count(*)
    FROM (
      SELECT 1
      FROM webhook_deliveries d
      WHERE d.trigger_id = n.trigger AND d.outcome = ANY($4) AND d.created_at > $3
      LIMIT $5) few) < $5
  ELSE true END`
	_, err = pgtx.Exec(ctx, t, query, encoded, t.Now, t.Now.Add(-domain.WebhookRateWindow), pgtx.EnumArray(domain.WebhookQuiet), domain.WebhookRateLimit)
	return pgtx.Wrap("record deliveries", err)
}

// QuietDelivery records a delivery that proved itself and fires nothing by design.
func (s *Routines) QuietDelivery(ctx context.Context, w *Webhook, outcome domain.WebhookOutcome, event string) error {
	err := s.inTx(ctx, func(t *tx) error {
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		x := &fireCall{FireRoutine: FireRoutine{WorkspaceID: w.WorkspaceID, RoutineID: w.RoutineID, TriggerID: w.TriggerID},
			delivery: &Delivery{Webhook: w, Event: event}, delivered: Delivered{Outcome: outcome}}
		return t.recordDeliveries(ctx, []*fireCall{x})
	})
	return pgtx.Wrap("note a delivery", err)
}

// quietRejections is how long the feed says nothing more of a webhook that rejects.
const quietRejections = 10 * time.Minute

// RejectDelivery records a POST that did not prove itself; limited says that there were too many within a minute, and
// it was not recorded. The feed has an entry for the first one in a while.
func (s *Routines) RejectDelivery(ctx context.Context, w *Webhook, outcome domain.WebhookOutcome, detail string) (limited bool, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		var inMinute, lately int
		const count = `
-- $1 trigger, $2 outcomes of deliveries that proved nothing, $3 a minute ago, $4 since when they count, $5
-- most of them that count
SELECT count(*) FILTER (WHERE created_at > $3), count(*)
FROM (
  SELECT created_at
  FROM webhook_deliveries
  WHERE trigger_id = $1 AND outcome = ANY($2) AND created_at > $4
  ORDER BY created_at DESC
  LIMIT $5) AS recent`
		err := pgtx.QueryRow(ctx, t, []any{&inMinute, &lately}, count, w.TriggerID, pgtx.EnumArray(domain.WebhookUnverified),
			t.Now.Add(-domain.WebhookRateWindow), t.Now.Add(-quietRejections), domain.WebhookRateLimit)
		if err != nil {
			return fmt.Errorf("count rejected deliveries: %w", err)
		}
		if limited = inMinute >= domain.WebhookRateLimit; limited {
			return nil
		}
		const query = `
INSERT INTO webhook_deliveries (id, workspace_id, trigger_id, status, outcome, detail, created_at)
VALUES ($1, $2, $3, $4, $5, left($6::text, 1000), $7)`
		if err := pgtx.ExecOne(ctx, t, query, xid.New("whd"), w.WorkspaceID, w.TriggerID, WebhookStatus(outcome), string(outcome), detail, t.Now); err != nil {
			return fmt.Errorf("record the delivery: %w", err)
		}
		if lately > 0 {
			return nil
		}
		return t.note(ctx, entry{workspaceID: w.WorkspaceID, code: domain.ActivityCodeWebhookRejected, by: system("webhook"),
			summary:   "A webhook was rejected; the trigger's deliveries say why.",
			subjectID: w.RoutineID, data: map[string]any{"triggerId": w.TriggerID, "routineId": w.RoutineID, "outcome": outcome}})
	})
	return limited, pgtx.Wrap("record a rejected delivery", err)
}
