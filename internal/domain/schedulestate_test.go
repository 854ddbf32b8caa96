package domain

import (
	"testing"
	"time"
)

func TestScheduleStateOf(t *testing.T) {
	manual := TriggerFacts{Kind: TriggerKindManual, Enabled: true}
	webhook := func(enabled bool) TriggerFacts { return TriggerFacts{Kind: TriggerKindWebhook, Enabled: enabled} }
	cron := func(enabled, invalid bool) TriggerFacts {
		return TriggerFacts{Kind: TriggerKindSchedule, Enabled: enabled, Invalid: invalid}
	}
	for _, c := range []struct {
		name     string
		triggers []TriggerFacts
		want     ScheduleState
	}{
		{"C110 no trigger", nil, ScheduleStateUnscheduledNoTrigger},
		{"C110 by hand", []TriggerFacts{manual}, ScheduleStateUnscheduledManualOnly},
		{"C110 a webhook that is off", []TriggerFacts{webhook(false)}, ScheduleStateUnscheduledManualOnly},
		{"C110 a webhook", []TriggerFacts{webhook(true)}, ScheduleStateEventOnly},
		{"C110 a schedule that is off", []TriggerFacts{cron(false, false)}, ScheduleStateTriggerDisabled},
		{"C110 a schedule that cannot be read", []TriggerFacts{cron(false, true)}, ScheduleStateTriggerInvalid},
		{"C110 a schedule that is on and cannot be read", []TriggerFacts{cron(true, true)}, ScheduleStateTriggerInvalid},
		{"C110 a schedule", []TriggerFacts{cron(true, false)}, ScheduleStateArmed},
		{"C110 a schedule goes before all", []TriggerFacts{manual, webhook(true), cron(false, true), cron(true, false)}, ScheduleStateArmed},
		{"C110 a webhook goes before broken schedules", []TriggerFacts{cron(false, true), webhook(true)}, ScheduleStateEventOnly},
		{"C110 a broken schedule goes before one that is off", []TriggerFacts{cron(false, false), cron(false, true)}, ScheduleStateTriggerInvalid},
		{"C110 a schedule that is off goes before by hand", []TriggerFacts{manual, cron(false, false), webhook(false)}, ScheduleStateTriggerDisabled},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ScheduleStateOf(c.triggers); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestConditionOfATrigger(t *testing.T) {
	now := time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for _, c := range []struct {
		name  string
		facts TriggerFacts
		want  TriggerCondition
	}{
		{"the next slot is to come", TriggerFacts{Enabled: true, NextRunAt: ago(-time.Hour)}, TriggerConditionOnTime},
		{"C98 late, within the grace", TriggerFacts{Enabled: true, NextRunAt: ago(2*time.Minute + 59*time.Second)}, TriggerConditionOnTime},
		{"C98 late, past the grace", TriggerFacts{Enabled: true, NextRunAt: ago(3*time.Minute + time.Second)}, TriggerConditionOverdue},
		{"C97 no next slot, fired 4 minutes ago", TriggerFacts{Enabled: true, LastFiredAt: ago(4 * time.Minute), CreatedAt: *ago(time.Hour)}, TriggerConditionClaiming},
		{"C97 no next slot, fired 6 minutes ago", TriggerFacts{Enabled: true, LastFiredAt: ago(6 * time.Minute)}, TriggerConditionStranded},
		{"no next slot, made 4 minutes ago, never fired", TriggerFacts{Enabled: true, CreatedAt: *ago(4 * time.Minute)}, TriggerConditionClaiming},
		{"switched off", TriggerFacts{CreatedAt: *ago(time.Hour)}, TriggerConditionDisabled},
		{"switched off because it cannot be read", TriggerFacts{Invalid: true}, TriggerConditionInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.facts.Condition(now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
