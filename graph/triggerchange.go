package graph

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/routinetrigger"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// presentTrigger finds a trigger that the caller sees and that is not deleted.
func (r *Resolver) presentTrigger(ctx context.Context, id xid.ID) (*ent.RoutineTrigger, error) {
	t, err := visible(r.Reader.RoutineTrigger.Query().Where(routinetrigger.ID(id), routinetrigger.DeletedAtIsNil()).Only(ctx))
	if err != nil {
		return nil, fmt.Errorf("look for trigger: %w", err)
	}
	if t == nil {
		return nil, notFound("triggerId", "trigger")
	}
	return t, nil
}

// newTrigger is a trigger to make, and its secret if it has one, to be shown once.
type newTrigger struct {
	spec   store.TriggerSpec
	secret string
}

// triggerSpecs reads the triggers of a new routine.
func (r *Resolver) triggerSpecs(list []*model.TriggerSpecInput) (specs []store.TriggerSpec, secrets []*model.TriggerSecret, err error) {
	secrets = []*model.TriggerSecret{}
	var problems []error
	for i, in := range list {
		t, err := r.triggerSpec(in, []string{"triggers", strconv.Itoa(i)})
		problems = append(problems, err)
		specs = append(specs, t.spec)
		if t.secret != "" {
			secrets = append(secrets, &model.TriggerSecret{TriggerID: t.spec.ID, Secret: t.secret})
		}
	}
	return specs, secrets, joinProblems(problems...)
}

// triggerSpec reads one trigger at a path of the input. The secret of a webhook is sealed here, for the id it will have.
func (r *Resolver) triggerSpec(in *model.TriggerSpecInput, path []string) (newTrigger, error) {
	switch {
	case in == nil || !oneMember(in.Schedule != nil, in.Webhook != nil, in.Manual != nil):
		return newTrigger{}, domain.RefuseField(path, domain.UserErrorCodeInvalid, "set exactly one of schedule, webhook and manual")
	case in.Schedule != nil:
		return newTrigger{spec: scheduleSpec(in.Schedule)}, nil
	case in.Manual != nil:
		return newTrigger{spec: store.TriggerSpec{Kind: domain.TriggerKindManual, Enabled: orTrue(in.Manual.Enabled)}}, nil
	}
	hook := in.Webhook
	t := newTrigger{spec: store.TriggerSpec{ID: store.NewTriggerID(domain.TriggerKindWebhook), Kind: domain.TriggerKindWebhook, Enabled: orTrue(hook.Enabled),
		SigningMode: hook.SigningMode, ReplayWindow: domain.DefaultReplayWindow, RequireTimestamp: hook.RequireTimestamp,
		Preset: valueOf(hook.Preset), Conditions: conditions(hook.When)}}
	if hook.ReplayWindow != nil {
		t.spec.ReplayWindow = *hook.ReplayWindow
	}
	if hook.SigningMode == domain.SigningModeNone && hook.Secret == nil {
		return t, nil
	}
	if hook.Secret != nil {
		if problem := domain.CheckWebhookSecret(*hook.Secret); problem != nil { // C27
			return newTrigger{}, domain.AsUserError([]domain.FieldError{problem.Under(below(path, "webhook")...)})
		}
	}
	var err error
	t.secret, t.spec.Secret, err = r.sealSecret(t.spec.ID, hook.Secret)
	return t, err
}

// scheduleSpec reads a schedule to make.
func scheduleSpec(in *model.ScheduleSpecInput) store.TriggerSpec {
	return store.TriggerSpec{Kind: domain.TriggerKindSchedule, Cron: valueOf(in.Cron), TimeZone: valueOf(in.TimeZone), Enabled: orTrue(in.Enabled),
		At: wholeMinute(in.At), StartsAt: in.StartsAt, EndsAt: in.EndsAt, Jitter: valueOf(in.Jitter), SkipDates: in.SkipDates, StartDeadline: in.StartDeadline}
}

// wholeMinute is an instant that may be absent as a slot: the minute that begins at it or next.
func wholeMinute(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	minute := at.Truncate(time.Minute)
	if minute.Before(*at) {
		minute = minute.Add(time.Minute)
	}
	return &minute
}

// changeOfDates reads a change of a list.
func changeOfDates(in graphql.Omittable[[]string]) domain.Change[[]string] {
	change := domain.Change[[]string]{Set: in.IsSet()}
	if list := in.Value(); list != nil {
		change.Value = &list
	}
	return change
}

// conditions reads the conditions of a webhook; what is wrong with them the domain says.
func conditions(list []*model.WebhookConditionInput) []domain.WebhookCondition {
	out := []domain.WebhookCondition{}
	for _, c := range list {
		out = append(out, domain.WebhookCondition{Path: c.Path, Header: c.Header, In: c.In, NotIn: c.NotIn, Exists: c.Exists, Matches: c.Matches})
	}
	return out
}

// shownConditions are conditions as the API shows them.
func shownConditions(list []domain.WebhookCondition) []*domain.WebhookCondition {
	out := make([]*domain.WebhookCondition, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

func changeOfConditions(in graphql.Omittable[[]*model.WebhookConditionInput]) domain.Change[[]domain.WebhookCondition] {
	change := domain.Change[[]domain.WebhookCondition]{Set: in.IsSet()}
	if list := in.Value(); list != nil {
		change.Value = new(conditions(list))
	}
	return change
}

// sealSecret seals a webhook's secret for its trigger; nil: a new one.
func (r *Resolver) sealSecret(triggerID xid.ID, given *string) (string, *store.SealedSecret, error) {
	text := valueOf(given)
	if given == nil {
		made, err := secret.NewShared(rand.Reader)
		if err != nil {
			return "", nil, err
		}
		text = made.Reveal()
	}
	sealed, err := r.Sealer.Seal(text, store.SecretPlace(triggerID))
	if err != nil {
		return "", nil, fmt.Errorf("seal the secret of trigger %s: %w", triggerID, err)
	}
	return text, &store.SealedSecret{Sealed: sealed, Hint: domain.SecretHint(text)}, nil
}

func (r *Resolver) createTrigger(ctx context.Context, in model.CreateTriggerInput) (store.Made, string, error) {
	x, err := r.presentRoutine(ctx, in.RoutineID)
	if err != nil {
		return store.Made{}, "", err
	}
	t, specErr := r.triggerSpec(in.Spec, []string{"spec"})
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(specErr, onceErr); err != nil {
		return store.Made{}, "", err
	}
	made, err := r.Store.CreateTrigger(ctx, store.CreateTrigger{WorkspaceID: x.WorkspaceID, RoutineID: x.ID, Spec: t.spec, Idempotency: once})
	if err != nil || made.Replayed {
		t.secret = ""
	}
	return made, t.secret, err
}

// updateTrigger changes a trigger, and routes what slots made that were due before it.
// updateTrigger changes a trigger and returns the wakes of slots that were due before, routed.
func (r *Resolver) updateTrigger(ctx context.Context, in model.UpdateTriggerInput) ([]*ent.WakeupRequest, error) {
	t, err := r.presentTrigger(ctx, in.TriggerID)
	if err != nil {
		return noWakeups(), err
	}
	if err := checkTexts(in); err != nil {
		return noWakeups(), err
	}
	sent, err := r.Store.UpdateTrigger(ctx, store.UpdateTrigger{
		WorkspaceID: t.WorkspaceID, TriggerID: t.ID, ExpectedRevision: in.ExpectedRevision,
		Patch: domain.TriggerPatch{
			Enabled: changeOf(in.Enabled), Cron: changeOf(in.Cron), TimeZone: changeOf(in.TimeZone), SigningMode: changeOf(in.SigningMode),
			ReplayWindow: changeOf(in.ReplayWindow), RequireTimestamp: changeOf(in.RequireTimestamp),
			At: domain.Change[time.Time]{Set: in.At.IsSet(), Value: wholeMinute(in.At.Value())}, StartsAt: changeOf(in.StartsAt), EndsAt: changeOf(in.EndsAt),
			Jitter: changeOf(in.Jitter), SkipDates: changeOfDates(in.SkipDates), StartDeadline: changeOf(in.StartDeadline),
			Preset: changeOf(in.Preset), Conditions: changeOfConditions(in.When),
		},
	})
	if err != nil {
		return noWakeups(), err
	}
	return r.routed(ctx, sent)
}

func (r *Resolver) deleteTrigger(ctx context.Context, in model.DeleteTriggerInput) error {
	t, err := r.presentTrigger(ctx, in.TriggerID)
	if err != nil {
		return err
	}
	return r.Store.DeleteTrigger(ctx, t.WorkspaceID, t.ID)
}

func (r *Resolver) rotateTriggerSecret(ctx context.Context, in model.RotateTriggerSecretInput) (store.Made, string, error) {
	t, err := r.presentTrigger(ctx, in.TriggerID)
	if err != nil {
		return store.Made{}, "", err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return store.Made{}, "", err
	}
	text, sealed, err := r.sealSecret(t.ID, nil)
	if err != nil {
		return store.Made{}, "", err
	}
	overlap := domain.DefaultOverlap
	if in.Overlap != nil {
		overlap = *in.Overlap
	}
	made, err := r.Store.RotateTriggerSecret(ctx, store.RotateTriggerSecret{WorkspaceID: t.WorkspaceID, TriggerID: t.ID, Secret: *sealed, Overlap: overlap, Idempotency: once})
	if err != nil || made.Replayed {
		text = ""
	}
	return made, text, err
}

// shownTrigger reads a trigger as the API shows it.
func (r *Resolver) shownTrigger(ctx context.Context, id xid.ID) (model.Trigger, error) {
	row, err := r.Reader.RoutineTrigger.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read trigger: %w", err)
	}
	return model.TriggerOf(row), nil
}

// routineOf is the routine of a trigger.
func routineOf(t model.Trigger) xid.ID {
	switch t := t.(type) {
	case model.ScheduleTrigger:
		return t.RoutineID
	case model.WebhookTrigger:
		return t.RoutineID
	case model.ManualTrigger:
		return t.RoutineID
	}
	return ""
}

// orNil is nil for "".
func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// deliveriesMost bounds WebhookTrigger.deliveries.
const deliveriesMost = 100

func deliveries(logged []reads.LoggedDelivery, first int) []*model.WebhookDelivery {
	out := []*model.WebhookDelivery{}
	for _, d := range logged[:min(len(logged), first)] {
		out = append(out, &model.WebhookDelivery{ReceivedAt: d.ReceivedAt, Status: d.Status, Outcome: d.Outcome, Detail: orNil(d.Detail), Event: orNil(d.Event), RoutineRunID: d.RoutineRunID})
	}
	return out
}

// sampleCurl is a shell command that fires a webhook with a value for each declared variable; the secret stands in it as
// $SECRET.
func sampleCurl(base string, t *ent.RoutineTrigger, declared []domain.RoutineVariable) string {
	command := "BODY=" + shellQuoted(domain.SampleBody(declared)) + "; "
	proof := ""
	switch mode, preset := valueOf(t.SigningMode), valueOf(t.Preset); {
	case preset != "" && mode != domain.SigningModeNone:
		var prepare string
		prepare, proof = presetProof(preset)
		command += prepare
	case mode == domain.SigningModeBearer:
		command += "SECRET='<secret>'; "
		proof = ` -H "Authorization: Bearer $SECRET"`
	case mode == domain.SigningModeHMACSHA256 && t.RequireTimestamp:
		command += "SECRET='<secret>'; NOW=$(date +%s); "
		proof = ` -H "X-Rouse-Timestamp: $NOW" -H "X-Rouse-Signature: sha256=$(printf %s "$NOW.$BODY" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)"`
	case mode == domain.SigningModeHMACSHA256:
		command += "SECRET='<secret>'; "
		proof = ` -H "X-Signature-256: sha256=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)"`
	}
	return command + "curl -sS -X POST -H 'Content-Type: application/json'" + proof + ` --data-binary "$BODY" ` + base + webhookPath(t)
}

// presetProof is how a shell proves a $BODY as a sender does: what it prepares, and its options for curl.
func presetProof(preset domain.WebhookPreset) (prepare, proof string) {
	const hmac = ` | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)`
	prepare = "SECRET='<secret>'; NOW=$(date +%s); "
	switch preset {
	case domain.WebhookPresetGitHub:
		proof = ` -H "X-GitHub-Event: push" -H "X-Hub-Signature-256: sha256=$(printf %s "$BODY"` + hmac + `"`
	case domain.WebhookPresetGitLab:
		proof = ` -H "X-Gitlab-Event: Push Hook" -H "X-Gitlab-Token: $SECRET"`
	case domain.WebhookPresetStripe:
		proof = ` -H "Stripe-Signature: t=$NOW,v1=$(printf %s "$NOW.$BODY"` + hmac + `"`
	case domain.WebhookPresetSlack:
		proof = ` -H "X-Slack-Request-Timestamp: $NOW" -H "X-Slack-Signature: v0=$(printf %s "v0:$NOW:$BODY"` + hmac + `"`
	case domain.WebhookPresetLinear:
		prepare += `BODY="{\"webhookTimestamp\":${NOW}000}"; `
		proof = ` -H "Linear-Event: Issue" -H "Linear-Signature: $(printf %s "$BODY"` + hmac + `"`
	case domain.WebhookPresetStandard:
		prepare += "ID=msg_$NOW; "
		proof = ` -H "webhook-id: $ID" -H "webhook-timestamp: $NOW" -H "webhook-signature: v1,$(printf %s "$ID.$NOW.$BODY" | openssl dgst -sha256 -hmac "$SECRET" -binary | openssl base64 -A)"`
	}
	return prepare, proof
}

// shellQuoted is a text as one word of a POSIX shell.
func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func webhookPath(t *ent.RoutineTrigger) string {
	return "/api/routine-triggers/" + valueOf(t.PublicID) + "/fire"
}

// facts are the facts from which the state of a trigger follows.
func facts(t *ent.RoutineTrigger) domain.TriggerFacts {
	f := domain.TriggerFacts{Kind: domain.TriggerKindManual, Enabled: t.Enabled, NextRunAt: t.NextRunAt, LastFiredAt: t.LastFiredAt, CreatedAt: t.CreatedAt}
	switch model.TriggerOf(t).(type) {
	case model.ScheduleTrigger:
		_, err := scheduleOf(t)
		f.Kind, f.Invalid, f.Ended = domain.TriggerKindSchedule, err != nil, valueOf(t.Error) == domain.NoSlotLeft
	case model.WebhookTrigger:
		f.Kind = domain.TriggerKindWebhook
	}
	return f
}

// fires says whether the routine of a trigger fires: it is ACTIVE, and its agent is there.
func (r *Resolver) fires(ctx context.Context, routineID xid.ID) (bool, error) {
	x, err := required(ctx, load(ctx).routines, routineID)
	if err != nil || x.Status != domain.RoutineStatusActive || x.DeletedAt != nil {
		return false, err
	}
	assignee, err := linked(ctx, load(ctx).agents, x.AssigneeID)
	return err == nil && assignee != nil && assignee.DeletedAt == nil, err
}

// nextFires is the next n fires of a schedule: the slot that its cursor stands on, and those after it.
func (r *Resolver) nextFires(ctx context.Context, t *ent.RoutineTrigger, n int) ([]time.Time, error) {
	if n < 1 || n > timesMax {
		return nil, badInput("n is 1 to %d, not %d", timesMax, n)
	}
	next := nextFire(t)
	fires, err := r.fires(ctx, t.RoutineID)
	if err != nil || next == nil || !fires {
		return []time.Time{}, err
	}
	schedule, err := scheduleOf(t)
	if err != nil {
		return []time.Time{}, nil // its condition says so
	}
	times := []time.Time{*next}
	for fire := range schedule.Fires(*next) {
		if len(times) >= n {
			break
		}
		times = append(times, fire.Due)
	}
	return times, nil
}
