package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/routinetrigger"
	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// TriggerSpec is a trigger to make. Cron and TimeZone belong to schedules, TimeZone "" is the workspace's; what follows
// them belongs to webhooks, whose ID is made by the caller, since their secret is sealed for it.
type TriggerSpec struct {
	ID       xid.ID // "": a new one
	Kind     domain.TriggerKind
	Enabled  bool
	Cron     string
	TimeZone string

	At, StartsAt, EndsAt *time.Time
	Jitter               time.Duration
	SkipDates            []string
	StartDeadline        *time.Duration

	SigningMode      domain.SigningMode
	ReplayWindow     time.Duration
	RequireTimestamp bool
	Preset           domain.WebhookPreset // "": none
	Conditions       []domain.WebhookCondition
	Secret           *SealedSecret // nil where no proof is asked for
}

// settings are what a person chose of the trigger.
func (s TriggerSpec) settings() domain.TriggerSettings {
	return domain.TriggerSettings{At: s.At, StartsAt: s.StartsAt, EndsAt: s.EndsAt, Jitter: s.Jitter, SkipDates: s.SkipDates, StartDeadline: s.StartDeadline, Kind: s.Kind, Enabled: s.Enabled, Cron: s.Cron, TimeZone: s.TimeZone, SigningMode: s.SigningMode, ReplayWindow: s.ReplayWindow,
		RequireTimestamp: s.RequireTimestamp, Preset: s.Preset, Conditions: s.Conditions, HasSecret: s.Secret != nil}
}

func (s TriggerSpec) isSchedule() bool { return s.Kind == domain.TriggerKindSchedule }

// triggerPrefix is the id prefix that tells the API which type a trigger is.
var triggerPrefix = map[domain.TriggerKind]string{
	domain.TriggerKindSchedule: "sch", domain.TriggerKindWebhook: "whk", domain.TriggerKindManual: "man",
}

func tooManyTriggers(field string) domain.FieldError {
	return domain.FieldError{Field: []string{field}, Code: domain.UserErrorCodeTooLong, Message: "a routine has at most 50 triggers"}
}

// CreateTrigger is a trigger to add to a routine.
type CreateTrigger struct {
	WorkspaceID, RoutineID xid.ID
	Spec                   TriggerSpec
	Idempotency
}

// CreateTrigger adds a trigger; a schedule is armed from now. What is wrong with it is a problem below "spec".
func (s *Routines) CreateTrigger(ctx context.Context, in CreateTrigger) (made Made, err error) {
	err = s.withRoutineOnce(ctx, in.WorkspaceID, in.RoutineID, "createTrigger", in.Idempotency, &made, func(t *tx, _ lane, r routineRow) (Made, error) {
		if err := r.refuseArchived(); err != nil {
			return Made{}, err
		}
		if in.Spec.isSchedule() {
			if problems := domain.CheckVariables(r.variables, true); len(problems) > 0 {
				return Made{}, domain.RefuseField([]string{"spec", "schedule"}, domain.UserErrorCodeInvalidState, "the routine cannot have a schedule: %s", problems[0].Message)
			}
		}
		triggers, err := pgtx.QueryOne[int](ctx, t, `SELECT count(*) FROM routine_triggers WHERE routine_id = $1 AND deleted_at IS NULL`, in.RoutineID)
		if err != nil {
			return Made{}, fmt.Errorf("count the routine's triggers: %w", err)
		}
		if triggers >= domain.MaxRoutineTriggers {
			return Made{}, domain.AsUserError([]domain.FieldError{tooManyTriggers("routineId")})
		}
		id, err := t.createTrigger(ctx, in.WorkspaceID, in.RoutineID, in.Spec)
		if err != nil {
			return Made{}, under(err, "spec")
		}
		return Made{ID: id}, t.noteTrigger(ctx, r, id, "A trigger was added.", map[string]any{"created": true})
	})
	return made, pgtx.Wrap("create trigger", err)
}

func (t *tx) createTrigger(ctx context.Context, workspaceID, routineID xid.ID, spec TriggerSpec) (xid.ID, error) {
	id := spec.ID
	if id == "" {
		id = NewTriggerID(spec.Kind)
	}
	create := t.RoutineTrigger.Create().SetID(id).SetWorkspaceID(workspaceID).SetRoutineID(routineID).SetKind(spec.Kind).SetEnabled(spec.Enabled)
	switch spec.Kind {
	case domain.TriggerKindSchedule:
		if spec.TimeZone == "" {
			zone, err := t.workspaceZone(ctx, workspaceID)
			if err != nil {
				return "", err
			}
			spec.TimeZone = zone
		}
		next := spec.settings()
		err := domain.AsUserError(domain.CheckTiming(next))
		var schedule cron.Timing
		if err == nil {
			schedule, err = parseSchedule(timingOf(id, next))
		}
		if err != nil {
			return "", under(err, "schedule")
		}
		create.SetTimeZone(spec.TimeZone).SetNillableAt(spec.At).SetNillableStartsAt(spec.StartsAt).SetNillableEndsAt(spec.EndsAt).
			SetJitterMs(spec.Jitter.Milliseconds()).SetNillableStartDeadlineMs(milliseconds(spec.StartDeadline))
		if spec.Cron != "" {
			create.SetCron(spec.Cron)
		}
		if len(spec.SkipDates) > 0 {
			create.SetSkipDates(spec.SkipDates)
		}
		first := schedule.FirstDue(t.Now)
		switch {
		case first.IsZero() && spec.At != nil:
			return "", domain.RefuseField([]string{"schedule", "at"}, domain.UserErrorCodeInvalid, "the instant is over: give one to come")
		case first.IsZero():
			create.SetEnabled(false).SetError(domain.NoSlotLeft)
		case spec.Enabled:
			create.SetNextRunAt(first)
		}
	case domain.TriggerKindWebhook:
		if spec.SigningMode != domain.SigningModeNone && spec.Secret == nil {
			return "", domain.RefuseField([]string{"webhook", "secret"}, domain.UserErrorCodeRequired, "a webhook that asks for proof needs a secret")
		}
		if err := domain.AsUserError(domain.CheckWebhook(spec.settings())); err != nil {
			return "", under(err, "webhook")
		}
		if spec.Preset != "" {
			create.SetPreset(spec.Preset)
		}
		if len(spec.Conditions) > 0 {
			create.SetConditions(spec.Conditions)
		}
		create.SetPublicID(newPublicID()).SetSigningMode(spec.SigningMode).SetReplayWindowMs(spec.ReplayWindow.Milliseconds()).
			SetRequireTimestamp(spec.RequireTimestamp)
		if spec.Secret != nil {
			create.SetSecretSealed(spec.Secret.Sealed).SetSecretHint(spec.Secret.Hint).SetSecretRotatedAt(t.Now)
		}
	}
	if err := create.Exec(ctx); err != nil {
		return "", fmt.Errorf("insert trigger: %w", err)
	}
	return id, nil
}

func (t *tx) workspaceZone(ctx context.Context, workspaceID xid.ID) (string, error) {
	zone, err := pgtx.QueryOne[string](ctx, t, `SELECT default_time_zone FROM workspaces WHERE id = $1`, workspaceID)
	return zone, pgtx.Wrap("read the workspace's time zone", err)
}

// UpdateTrigger is a change of a trigger. ExpectedRevision nil changes whatever is there.
type UpdateTrigger struct {
	WorkspaceID, TriggerID xid.ID
	ExpectedRevision       *int
	Patch                  domain.TriggerPatch
}

// UpdateTrigger changes a trigger. A schedule whose expression or zone changes, or that is switched on, goes on from now;
// slots that were due under the old expression are fired first, in the same transaction, so that none is lost or comes
// twice (C204). It returns their requests.
func (s *Routines) UpdateTrigger(ctx context.Context, in UpdateTrigger) (sent []xid.ID, err error) {
	err = s.withTrigger(ctx, in.WorkspaceID, in.TriggerID, func(t *tx, l lane, r routineRow, row *ent.RoutineTrigger) error {
		sent = nil
		if err := r.refuseArchived(); err != nil {
			return err
		}
		if err := checkRevision(in.ExpectedRevision, row.Revision, "trigger"); err != nil {
			return err
		}
		zone, err := t.workspaceZone(ctx, in.WorkspaceID)
		if err != nil {
			return err
		}
		change, problems := triggerSettings(row).Apply(in.Patch, zone)
		if err := domain.AsUserError(problems); err != nil || len(change.Changed) == 0 {
			return err
		}
		err = t.updateTrigger(ctx, r, row, change)
		sent = t.sent
		return err
	})
	return sent, pgtx.Wrap("update trigger", err)
}

func triggerSettings(row *ent.RoutineTrigger) domain.TriggerSettings {
	s := domain.TriggerSettings{Kind: row.Kind, Enabled: row.Enabled, HasSecret: row.SecretSealed != nil,
		ReplayWindow: time.Duration(row.ReplayWindowMs) * time.Millisecond, RequireTimestamp: row.RequireTimestamp}
	if row.Kind == domain.TriggerKindSchedule {
		of := scheduleRow(row, "")
		s.Cron, s.TimeZone, s.At, s.StartsAt, s.EndsAt = of.spec.Expression, of.spec.Zone, of.spec.At, of.spec.StartsAt, of.spec.EndsAt
		s.Jitter, s.SkipDates = of.spec.Jitter, of.spec.SkipDates
		if of.deadline > 0 {
			s.StartDeadline = &of.deadline
		}
	}
	if row.SigningMode != nil {
		s.SigningMode = *row.SigningMode
	}
	if row.Preset != nil {
		s.Preset = *row.Preset
	}
	s.Conditions = row.Conditions
	return s
}

// updateTrigger writes a change.
func (t *tx) updateTrigger(ctx context.Context, r routineRow, row *ent.RoutineTrigger, change domain.TriggerChange) error {
	next := change.Next
	u := t.RoutineTrigger.UpdateOneID(row.ID).AddRevision(1).SetUpdatedAt(t.Now).SetEnabled(next.Enabled)
	switch next.Kind {
	case domain.TriggerKindSchedule:
		schedule, err := parseSchedule(timingOf(row.ID, next))
		if err != nil {
			return err
		}
		if change.Replanned {
			if err := t.fireBeforeChange(ctx, r, row); err != nil {
				return err
			}
		}
		setTiming(u.SetTimeZone(next.TimeZone).ClearError(), next)
		switch {
		case !next.Enabled:
			u.ClearNextRunAt()
		case change.Rearmed():
			t.setFirst(u, schedule.FirstDue(afterFire(t.Now, pgtx.OrZero(row.LastFiredAt))))
		}
	case domain.TriggerKindWebhook:
		u.SetSigningMode(next.SigningMode).SetReplayWindowMs(next.ReplayWindow.Milliseconds()).SetRequireTimestamp(next.RequireTimestamp).
			SetConditions(next.Conditions)
		if next.Preset == "" {
			u.ClearPreset()
		} else {
			u.SetPreset(next.Preset)
		}
	}
	if err := u.Exec(ctx); err != nil {
		return fmt.Errorf("update the trigger's row: %w", err)
	}
	return t.noteTrigger(ctx, r, row.ID, "A trigger was changed.", map[string]any{"changed": change.Changed})
}

// timingOf says when a trigger with settings fires.
func timingOf(id xid.ID, s domain.TriggerSettings) cron.Spec {
	return cron.Spec{Expression: s.Cron, Zone: s.TimeZone, At: s.At, StartsAt: s.StartsAt, EndsAt: s.EndsAt, Jitter: s.Jitter, SkipDates: s.SkipDates, Seed: string(id)}
}

// setTiming writes when a schedule fires.
func setTiming(u *ent.RoutineTriggerUpdateOne, s domain.TriggerSettings) {
	u.SetJitterMs(s.Jitter.Milliseconds()).SetSkipDates(s.SkipDates)
	if s.Cron == "" {
		u.ClearCron()
	} else {
		u.SetCron(s.Cron)
	}
	for _, of := range []struct {
		at    *time.Time
		set   func(time.Time) *ent.RoutineTriggerUpdateOne
		clear func() *ent.RoutineTriggerUpdateOne
	}{{s.At, u.SetAt, u.ClearAt}, {s.StartsAt, u.SetStartsAt, u.ClearStartsAt}, {s.EndsAt, u.SetEndsAt, u.ClearEndsAt}} {
		if of.at == nil {
			of.clear()
		} else {
			of.set(*of.at)
		}
	}
	if s.StartDeadline == nil {
		u.ClearStartDeadlineMs()
	} else {
		u.SetStartDeadlineMs(s.StartDeadline.Milliseconds())
	}
}

// setFirst arms a schedule for its first slot, or switches it off when it has none.
func (t *tx) setFirst(u *ent.RoutineTriggerUpdateOne, first time.Time) {
	if first.IsZero() {
		u.SetEnabled(false).ClearNextRunAt().SetError(domain.NoSlotLeft)
		return
	}
	u.SetNextRunAt(first)
}

// milliseconds is a duration that may be absent as its column has it.
func milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(d.Milliseconds())
}

// fireBeforeChange fires the slots that are due under the expression that is about to be replaced. One that cannot be read
// has none.
func (t *tx) fireBeforeChange(ctx context.Context, r routineRow, row *ent.RoutineTrigger) error {
	if !row.Enabled || row.NextRunAt == nil || row.NextRunAt.After(t.Now) {
		return nil
	}
	d := &dueTrigger{triggerRow: scheduleRow(row, r.assigneeID),
		nextRunAt: *row.NextRunAt, lastFiredAt: pgtx.OrZero(row.LastFiredAt), routine: &r}
	b := fireBatch{tx: t}
	if err := b.fireAll(ctx, []*dueTrigger{d}); err != nil {
		return err
	}
	return errors.Join(b.unfit...)
}

// DeleteTrigger removes a trigger for good; fires that it made stay readable.
func (s *Routines) DeleteTrigger(ctx context.Context, workspaceID, triggerID xid.ID) error {
	return pgtx.Wrap("delete trigger", s.withTrigger(ctx, workspaceID, triggerID, func(t *tx, _ lane, r routineRow, row *ent.RoutineTrigger) error {
		if err := t.removeTriggers(ctx, `id = $2`, row.ID); err != nil {
			return err
		}
		return t.noteTrigger(ctx, r, row.ID, "A trigger was deleted.", map[string]any{"deleted": true})
	}))
}

// removeTriggers deletes the triggers that a condition on $2 names: off, without a cursor, and without their secrets.
func (t *tx) removeTriggers(ctx context.Context, which string, arg any) error {
	query := `
UPDATE routine_triggers
SET deleted_at = $1, enabled = false, next_run_at = NULL, secret_sealed = NULL,
  previous_secret_sealed = NULL, previous_secret_expires_at = NULL, revision = revision + 1, updated_at = $1
WHERE deleted_at IS NULL AND ` + which
	if _, err := pgtx.Exec(ctx, t, query, t.Now, arg); err != nil {
		return fmt.Errorf("remove triggers: %w", err)
	}
	return nil
}

// withTrigger runs f with the routine's agent's lane, the routine and the trigger locked, in this order.
func (s *Routines) withTrigger(ctx context.Context, workspaceID, triggerID xid.ID, f func(*tx, lane, routineRow, *ent.RoutineTrigger) error) error {
	routineID, err := s.routineOfTrigger(ctx, workspaceID, triggerID)
	if err != nil {
		return err
	}
	return s.withRoutine(ctx, workspaceID, routineID, func(t *tx, l lane, r routineRow) error {
		row, err := t.lockTrigger(ctx, triggerID)
		if err != nil {
			return err
		}
		return f(t, l, r, row)
	})
}

func (s *Routines) routineOfTrigger(ctx context.Context, workspaceID, triggerID xid.ID) (xid.ID, error) {
	const find = `SELECT routine_id FROM routine_triggers WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`
	routineID, err := pgtx.QueryOne[xid.ID](ctx, s.db, find, triggerID, workspaceID)
	if err != nil {
		return "", pgtx.NotFound(err, []string{"triggerId"}, "trigger", triggerID)
	}
	return routineID, nil
}

// lockTrigger locks a trigger whose routine is locked.
func (t *tx) lockTrigger(ctx context.Context, triggerID xid.ID) (*ent.RoutineTrigger, error) {
	_, err := pgtx.QueryOne[bool](ctx, t, `SELECT true FROM routine_triggers WHERE id = $1 AND deleted_at IS NULL FOR UPDATE`, triggerID)
	if err != nil {
		return nil, pgtx.NotFound(err, []string{"triggerId"}, "trigger", triggerID)
	}
	row, err := t.RoutineTrigger.Query().Where(routinetrigger.ID(triggerID)).Only(ctx)
	return row, pgtx.Wrap("read the trigger", err)
}

// rearm plans the enabled schedules of a routine from now; one that cannot be read is switched off, with the reason.
func (t *tx) rearm(ctx context.Context, r routineRow) error { return t.rearmAll(ctx, []xid.ID{r.id}) }

// rearmAll is rearm for several routines.
func (t *tx) rearmAll(ctx context.Context, routines []xid.ID) error {
	rows, err := t.RoutineTrigger.Query().Where(routinetrigger.RoutineIDIn(routines...), routinetrigger.KindEQ(domain.TriggerKindSchedule),
		routinetrigger.Enabled(true), routinetrigger.DeletedAtIsNil()).Order(ent.Asc(routinetrigger.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return fmt.Errorf("lock the routine's schedules: %w", err)
	}
	for _, row := range rows {
		schedule, err := cron.ParseTiming(TimingSpec(row))
		u := t.RoutineTrigger.UpdateOneID(row.ID).AddRevision(1).SetUpdatedAt(t.Now)
		if err != nil {
			u.SetEnabled(false).ClearNextRunAt().SetError(domain.FirstRunes(err.Error(), maxTriggerError))
		} else {
			t.setFirst(u, schedule.FirstDue(afterFire(t.Now, pgtx.OrZero(row.LastFiredAt))))
		}
		if err := u.Exec(ctx); err != nil {
			return fmt.Errorf("arm trigger %s: %w", row.ID, err)
		}
	}
	return nil
}

// maxTriggerError bounds the stored reason why a schedule cannot be computed, in characters.
const maxTriggerError = 1000

// afterFire is the instant after which a schedule's next slot lies: now, or the last fire where the clock was set back.
// The zero lastFired means that it never fired.
func afterFire(now, lastFired time.Time) time.Time {
	if lastFired.After(now) {
		return lastFired
	}
	return now
}

// noteTrigger says in the feed what became of a routine's trigger.
func (t *tx) noteTrigger(ctx context.Context, r routineRow, id xid.ID, summary string, data map[string]any) error {
	all := map[string]any{"triggerId": id, "routineId": r.id}
	maps.Copy(all, data)
	return t.note(ctx, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeTriggerChanged, by: callerOr(ctx, "routines"), summary: summary,
		subjectID: r.id, agentID: r.assigneeID, data: all})
}
