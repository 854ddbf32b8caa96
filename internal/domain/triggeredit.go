package domain

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Bounds of a webhook's replay window, and its default.
const (
	MinReplayWindow     = 30 * time.Second
	MaxReplayWindow     = 24 * time.Hour
	DefaultReplayWindow = 5 * time.Minute
)

// TriggerSettings are what a person may set of a trigger. Which of them count depends on its kind.
type TriggerSettings struct {
	Kind             TriggerKind
	Enabled          bool
	Cron, TimeZone   string     // Cron is "" of a schedule that fires once
	At               *time.Time // the only slot; nil of an expression
	StartsAt, EndsAt *time.Time
	Jitter           time.Duration
	SkipDates        []string // as 2006-01-02, in the zone
	StartDeadline    *time.Duration
	SigningMode      SigningMode
	ReplayWindow     time.Duration
	RequireTimestamp bool
	Preset           WebhookPreset // "": none
	Conditions       []WebhookCondition
	HasSecret        bool // of a webhook; changed by rotating it only
}

// TriggerPatch is a change of a trigger: a field that is not Set stays, one that is Set to nil gets its default. An
// expression cannot be cleared.
type TriggerPatch struct {
	Enabled          Change[bool]
	Cron, TimeZone   Change[string]
	At               Change[time.Time]
	StartsAt, EndsAt Change[time.Time]
	Jitter           Change[time.Duration]
	SkipDates        Change[[]string]
	StartDeadline    Change[time.Duration]
	SigningMode      Change[SigningMode]
	ReplayWindow     Change[time.Duration]
	RequireTimestamp Change[bool]
	Preset           Change[WebhookPreset]
	Conditions       Change[[]WebhookCondition]
}

// TriggerChange is what a patch comes to. Replanned says that the expression or its zone is another one.
type TriggerChange struct {
	Next      TriggerSettings
	Changed   []string // in the API's spelling
	Replanned bool
	switched  bool
}

// Rearmed says whether a schedule that is on goes on from now.
func (c TriggerChange) Rearmed() bool { return c.Next.Enabled && (c.Replanned || c.switched) }

// Apply gives the settings after the change and what is wrong with them. A zone that is cleared becomes the workspace's.
// Whether an expression can be read is for the caller to find out.
func (s TriggerSettings) Apply(p TriggerPatch, workspaceZone string) (TriggerChange, []FieldError) {
	next := s
	next.Enabled = p.Enabled.Or(s.Enabled, true)
	next.Cron = p.Cron.Or(s.Cron, "")
	next.TimeZone = p.TimeZone.Or(s.TimeZone, workspaceZone)
	next.At, next.StartsAt, next.EndsAt = p.At.OrNil(s.At), p.StartsAt.OrNil(s.StartsAt), p.EndsAt.OrNil(s.EndsAt)
	next.Jitter = p.Jitter.Or(s.Jitter, 0)
	next.SkipDates = p.SkipDates.Or(s.SkipDates, []string{})
	next.StartDeadline = p.StartDeadline.OrNil(s.StartDeadline)
	next.SigningMode = p.SigningMode.Or(s.SigningMode, SigningModeHMACSHA256)
	next.ReplayWindow = p.ReplayWindow.Or(s.ReplayWindow, DefaultReplayWindow)
	next.RequireTimestamp = p.RequireTimestamp.Or(s.RequireTimestamp, false)
	next.Preset = p.Preset.Or(s.Preset, "")
	next.Conditions = p.Conditions.Or(s.Conditions, []WebhookCondition{})
	d := differences{}
	d.add("enabled", next.Enabled != s.Enabled)
	d.add("cron", next.Cron != s.Cron)
	d.add("timeZone", next.TimeZone != s.TimeZone)
	d.add("at", !sameInstant(next.At, s.At))
	d.add("startsAt", !sameInstant(next.StartsAt, s.StartsAt))
	d.add("endsAt", !sameInstant(next.EndsAt, s.EndsAt))
	d.add("jitter", next.Jitter != s.Jitter)
	d.add("skipDates", !slices.Equal(next.SkipDates, s.SkipDates))
	replanned := len(d) > 0 && !slices.Equal(d, []string{"enabled"})
	d.add("startDeadline", !sameValue(next.StartDeadline, s.StartDeadline))
	d.add("signingMode", next.SigningMode != s.SigningMode)
	d.add("replayWindow", next.ReplayWindow != s.ReplayWindow)
	d.add("requireTimestamp", next.RequireTimestamp != s.RequireTimestamp)
	d.add("preset", next.Preset != s.Preset)
	d.add("when", !reflect.DeepEqual(next.Conditions, s.Conditions) && len(next.Conditions)+len(s.Conditions) > 0)
	return TriggerChange{Next: next, Changed: d, Replanned: replanned && s.Kind == TriggerKindSchedule, switched: next.Enabled != s.Enabled},
		append(p.misplaced(s.Kind), next.problems()...)
}

// misplaced are the fields that a trigger of this kind does not have.
func (p TriggerPatch) misplaced(kind TriggerKind) (problems []FieldError) {
	for _, f := range []struct {
		name string
		set  bool
		of   TriggerKind
	}{
		{"at", p.At.Set, TriggerKindSchedule}, {"startsAt", p.StartsAt.Set, TriggerKindSchedule}, {"endsAt", p.EndsAt.Set, TriggerKindSchedule},
		{"jitter", p.Jitter.Set, TriggerKindSchedule}, {"skipDates", p.SkipDates.Set, TriggerKindSchedule},
		{"startDeadline", p.StartDeadline.Set, TriggerKindSchedule},
		{"cron", p.Cron.Set, TriggerKindSchedule}, {"timeZone", p.TimeZone.Set, TriggerKindSchedule},
		{"signingMode", p.SigningMode.Set, TriggerKindWebhook}, {"replayWindow", p.ReplayWindow.Set, TriggerKindWebhook},
		{"requireTimestamp", p.RequireTimestamp.Set, TriggerKindWebhook}, {"preset", p.Preset.Set, TriggerKindWebhook},
		{"when", p.Conditions.Set, TriggerKindWebhook},
	} {
		if f.set && kind != f.of {
			problems = append(problems, FieldError{Field: []string{f.name}, Code: UserErrorCodeInvalid,
				Message: fmt.Sprintf("a trigger of kind %s has no %s: leave it out", kind, f.name)})
		}
	}
	return problems
}

// problems are what is wrong with the settings.
func (s TriggerSettings) problems() (problems []FieldError) {
	if s.Kind == TriggerKindSchedule {
		return CheckTiming(s)
	}
	if s.Kind != TriggerKindWebhook {
		return nil
	}
	problems = CheckWebhook(s)
	if s.SigningMode != SigningModeNone && !s.HasSecret {
		problems = append(problems, FieldError{Field: []string{"signingMode"}, Code: UserErrorCodeInvalidState,
			Message: "the trigger has no secret yet: make one with rotateTriggerSecret first"})
	}
	return problems
}

// CheckWebhook says what is wrong with the settings of a webhook, its secret aside.
func CheckWebhook(s TriggerSettings) (problems []FieldError) {
	if problem := CheckReplayWindow(s.ReplayWindow); problem != nil {
		problems = append(problems, *problem)
	}
	if s.Preset != "" && s.SigningMode == SigningModeBearer {
		problems = append(problems, FieldError{Field: []string{"signingMode"}, Code: UserErrorCodeInvalid,
			Message: fmt.Sprintf("the preset %s says how a delivery is signed: leave signingMode HMAC_SHA256, or NONE for no proof", s.Preset)})
	}
	if s.RequireTimestamp && (s.Preset == WebhookPresetGitHub || s.Preset == WebhookPresetGitLab) {
		problems = append(problems, FieldError{Field: []string{"requireTimestamp"}, Code: UserErrorCodeInvalid,
			Message: fmt.Sprintf("%s signs without a timestamp, so that no delivery could prove itself: leave requireTimestamp out", s.Preset)})
	}
	return append(problems, CheckConditions(s.Conditions)...)
}

// CheckReplayWindow says what is wrong with a webhook's window.
func CheckReplayWindow(d time.Duration) *FieldError {
	if d >= MinReplayWindow && d <= MaxReplayWindow {
		return nil
	}
	return &FieldError{Field: []string{"replayWindow"}, Code: UserErrorCodeOutOfRange, Message: "a replay window is PT30S to PT24H"}
}
