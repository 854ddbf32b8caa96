package domain

import (
	"slices"
	"testing"
	"time"
)

// SPEC S4.1, S4.3: a trigger's fields, and which of them plan it anew.
func TestAPatchOfATrigger(t *testing.T) {
	schedule := TriggerSettings{Kind: TriggerKindSchedule, Enabled: true, Cron: "0 9 * * *", TimeZone: "Europe/Berlin"}
	off := schedule
	off.Enabled = false
	webhook := TriggerSettings{Kind: TriggerKindWebhook, Enabled: true, SigningMode: SigningModeHMACSHA256, ReplayWindow: 5 * time.Minute, HasSecret: true}
	open := TriggerSettings{Kind: TriggerKindWebhook, Enabled: true, SigningMode: SigningModeNone, ReplayWindow: 5 * time.Minute}
	for _, c := range []struct {
		name    string
		before  TriggerSettings
		patch   TriggerPatch
		changed []string
		rearmed bool
		problem UserErrorCode
	}{
		{"nothing given changes nothing", schedule, TriggerPatch{}, nil, false, ""},
		{"the same value is no change", schedule, TriggerPatch{Cron: To("0 9 * * *"), Enabled: To(true)}, nil, false, ""},
		{"C204 another expression goes on from now", schedule, TriggerPatch{Cron: To("0 8 * * *")}, []string{"cron"}, true, ""},
		{"C204 another zone goes on from now", schedule, TriggerPatch{TimeZone: To("UTC")}, []string{"timeZone"}, true, ""},
		{"a cleared zone is the workspace's", schedule, TriggerPatch{TimeZone: Change[string]{Set: true}}, []string{"timeZone"}, true, ""},
		{"one that is switched on goes on from now", off, TriggerPatch{Enabled: To(true)}, []string{"enabled"}, true, ""},
		{"one that is switched off does not", schedule, TriggerPatch{Enabled: To(false)}, []string{"enabled"}, false, ""},
		{"another expression of one that is off arms nothing", off, TriggerPatch{Cron: To("0 8 * * *")}, []string{"cron"}, false, ""},
		{"a schedule has no signing mode", schedule, TriggerPatch{SigningMode: To(SigningModeNone)}, nil, false, UserErrorCodeInvalid},
		{"a webhook has no expression", webhook, TriggerPatch{Cron: To("0 9 * * *")}, nil, false, UserErrorCodeInvalid},
		{"a webhook's window", webhook, TriggerPatch{ReplayWindow: To(time.Hour), RequireTimestamp: To(true)}, []string{"replayWindow", "requireTimestamp"}, false, ""},
		{"a window that is too short", webhook, TriggerPatch{ReplayWindow: To(time.Second)}, nil, false, UserErrorCodeOutOfRange},
		{"a window that is too long", webhook, TriggerPatch{ReplayWindow: To(25 * time.Hour)}, nil, false, UserErrorCodeOutOfRange},
		{"C27 proof needs a secret", open, TriggerPatch{SigningMode: To(SigningModeBearer)}, nil, false, UserErrorCodeInvalidState},
		{"a webhook that asks for no proof", webhook, TriggerPatch{SigningMode: To(SigningModeNone)}, []string{"signingMode"}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			change, problems := c.before.Apply(c.patch, "Asia/Tokyo")
			if c.problem != "" {
				if len(problems) != 1 || problems[0].Code != c.problem {
					t.Errorf("problems are %v, want %s", problems, c.problem)
				}
				return
			}
			if len(problems) > 0 || !slices.Equal(change.Changed, c.changed) || change.Rearmed() && !c.rearmed || c.rearmed && !change.Rearmed() {
				t.Errorf("changed %v, rearmed %t, problems %v", change.Changed, change.Rearmed(), problems)
			}
		})
	}
}
