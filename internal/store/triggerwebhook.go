package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
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
    ELSE '' END, t.replay_window_ms, t.require_timestamp, clock_timestamp()
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
		if err := rows.Scan(&publicID, &w.TriggerID, &w.RoutineID, &w.WorkspaceID, &w.Mode, &w.Secret, &w.Previous, &window, &w.RequireTimestamp, &w.Now); err != nil {
			return struct{}{}, err
		}
		w.ReplayWindow = time.Duration(window) * time.Millisecond
		found[publicID] = &w
		return struct{}{}, nil
	}, query, pq.Array(publicIDs))
	return found, pgtx.Wrap("look for webhooks", err)
}

// Delivery is a POST that proved itself. Key is the sender's name of the delivery, and Signature a timestamped
// signature; "" when it has none. A delivery is a repetition when either has been seen before.
type Delivery struct {
	Webhook        *Webhook
	Body           []byte
	Key, Signature string
}

// Delivered is what became of a delivery. Problem is why nothing fired, for the sender.
type Delivered struct {
	Outcome      domain.WebhookOutcome
	Problem      string
	RoutineRunID xid.ID
	Status       domain.RoutineRunStatus
	AgentID      xid.ID // to route; "": nothing was sent, or it has its run
}

// Deliver fires a routine by a delivery that proved itself, and records the delivery, in one transaction (SPEC S4.9).
// The rate limit, repetitions and the routine's status are decided under its agent's lane, so that deliveries at the
// same moment, in any process, are decided one after the other. When the trigger has been deleted since, the answer is
// a user error.
func (s *Routines) Deliver(ctx context.Context, d Delivery) (out Delivered, err error) {
	err = s.atRoutineIn(ctx, s.routingTx, d.Webhook.WorkspaceID, d.Webhook.RoutineID, func(t *tx, agentID xid.ID) error {
		_, r, err := t.lockBoth(ctx, d.Webhook.RoutineID, agentID)
		if err != nil {
			return err
		}
		f := firing{tx: t, routine: r, triggerID: d.Webhook.TriggerID, source: domain.RoutineRunSourceWebhook}
		if out, err = f.deliver(ctx, d); err != nil {
			return err
		}
		return t.recordDelivery(ctx, d, out)
	})
	return out, pgtx.Wrap("deliver to a webhook", err)
}

func (f *firing) deliver(ctx context.Context, d Delivery) (Delivered, error) {
	const find = `
SELECT enabled, (
  SELECT count(*)
  FROM webhook_deliveries
  WHERE trigger_id = $1 AND created_at > $2 AND outcome = ANY($3))
FROM routine_triggers WHERE id = $1 AND deleted_at IS NULL`
	var enabled bool
	var recent int
	err := pgtx.QueryRow(ctx, f, []any{&enabled, &recent}, find, f.triggerID, f.Now.Add(-domain.WebhookRateWindow), pgtx.EnumArray(domain.WebhookVerified))
	if err != nil {
		return Delivered{}, pgtx.NotFound(err, []string{"triggerId"}, "trigger", f.triggerID)
	}
	if recent >= domain.WebhookRateLimit {
		return Delivered{Outcome: domain.WebhookRateLimited, Problem: "more than 60 deliveries within a minute: try again later"}, nil
	}
	if earlier, err := f.earlier(ctx, d); err != nil || earlier.RoutineRunID != "" {
		return earlier, err
	}
	if !enabled {
		return Delivered{Outcome: domain.WebhookRefused, Problem: "the trigger is switched off"}, nil
	}
	return f.fireDelivery(ctx, d)
}

// earlier finds the fire that a delivery repeats.
func (f *firing) earlier(ctx context.Context, d Delivery) (Delivered, error) {
	const query = `
SELECT id, status FROM routine_runs WHERE trigger_id = $1 AND fire_key = NULLIF($2, '')
UNION ALL
SELECT r.id, r.status FROM webhook_deliveries d JOIN routine_runs r ON r.id = d.routine_run_id
WHERE d.trigger_id = $1 AND d.delivery_key = NULLIF($3, '') AND d.created_at > $4
LIMIT 1`
	key := ""
	if d.Key != "" {
		key = domain.WebhookFireKey(string(f.routine.id), string(f.triggerID), d.Key)
	}
	out := Delivered{Outcome: domain.WebhookDuplicate}
	err := pgtx.QueryRow(ctx, f, []any{&out.RoutineRunID, &out.Status}, query, f.triggerID, key, d.Signature, f.Now.Add(-2*d.Webhook.ReplayWindow))
	if pgtx.NoRows(err) {
		return Delivered{}, nil
	}
	return out, pgtx.Wrap("look for an earlier delivery", err)
}

// fireDelivery fires unless the routine's status, the body, its values or the backlog forbid it, judged in this order.
func (f *firing) fireDelivery(ctx context.Context, d Delivery) (Delivered, error) {
	values, unfit, err := f.valuesOf(ctx, d.Body)
	if err != nil {
		return Delivered{}, err
	}
	if err := f.readFacts(ctx); err != nil {
		return Delivered{}, err
	}
	f.facts.DeliveryKey = d.Key
	plan := domain.PlanFire(f.facts)
	if plan.Answer != domain.FireRecord {
		out := Delivered{Outcome: domain.WebhookRefused, Problem: plan.Problem.Message}
		if plan.Problem.Code == domain.UserErrorCodeBacklogFull {
			out.Outcome = domain.WebhookBacklogFull
		}
		return out, nil
	}
	if unfit != "" {
		return Delivered{Outcome: domain.WebhookBadBody, Problem: unfit}, nil
	}
	if err := f.record(ctx, plan, values); err != nil {
		return Delivered{}, err
	}
	out := Delivered{Outcome: domain.WebhookAccepted, RoutineRunID: xid.ID(f.facts.RoutineRunID), Status: plan.Status}
	if f.sentUnrouted(f.routine.assigneeID) {
		out.AgentID = f.routine.assigneeID
	}
	return out, nil
}

// valuesOf turns a body into the fire's values; unfit says what is wrong with it (C22).
func (f *firing) valuesOf(ctx context.Context, body []byte) (values map[string]string, unfit string, err error) {
	if f.provided, err = domain.WebhookValues(body); err == nil {
		values, err = f.valuesNow(ctx)
	}
	if unfit = pgtx.UserErrorText(err); unfit != "" {
		return nil, unfit, nil
	}
	return values, "", err
}

// WebhookStatus is the HTTP status that answers an outcome.
func WebhookStatus(o domain.WebhookOutcome) int {
	switch o {
	case domain.WebhookAccepted, domain.WebhookDuplicate:
		return 202
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

// recordDelivery appends to a trigger's delivery log. Of those over the rate limit only one a minute is recorded.
func (t *tx) recordDelivery(ctx context.Context, d Delivery, out Delivered) error {
	const query = `
-- $1 id, $2 workspace, $3 trigger, $4 fire, $5 HTTP status, $6 outcome, $7 detail, $8 key of the delivery, $9
-- now, $10 since when one that was over the limit counts
INSERT INTO webhook_deliveries (id, workspace_id, trigger_id, routine_run_id, status, outcome, detail,
    delivery_key, created_at)
SELECT $1, $2, $3::text, $4::text, $5::int, $6::text, left($7::text, 1000), NULLIF($8::text, ''),
  $9::timestamptz
-- of those over the limit one is recorded in a while, or a flood would fill the table
WHERE $6::text <> 'RATE_LIMITED'
  OR NOT EXISTS (
    SELECT 1
    FROM webhook_deliveries
    WHERE trigger_id = $3::text AND outcome = 'RATE_LIMITED' AND created_at > $10)`
	_, err := pgtx.Exec(ctx, t, query, xid.New("whd"), d.Webhook.WorkspaceID, d.Webhook.TriggerID, pgtx.Nullable(out.RoutineRunID), WebhookStatus(out.Outcome),
		string(out.Outcome), out.Problem, d.Signature, t.Now, t.Now.Add(-domain.WebhookRateWindow))
	return pgtx.Wrap("record the delivery", err)
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
