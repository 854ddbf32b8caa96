package domain

import (
	"time"
)

// ScheduleState says whether a routine will fire by itself, and if not, why. With several triggers the first of these
// that applies counts (C110).
//
//rouse:enum
type ScheduleState string

const (
	ScheduleStateArmed                 ScheduleState = "ARMED"                   // a schedule will fire
	ScheduleStateEventOnly             ScheduleState = "EVENT_ONLY"              // webhooks only
	ScheduleStateTriggerInvalid        ScheduleState = "TRIGGER_INVALID"         // a schedule that cannot be computed
	ScheduleStateTriggerDisabled       ScheduleState = "TRIGGER_DISABLED"        // schedules, all switched off
	ScheduleStateUnscheduledManualOnly ScheduleState = "UNSCHEDULED_MANUAL_ONLY" // by hand only
	ScheduleStateUnscheduledNoTrigger  ScheduleState = "UNSCHEDULED_NO_TRIGGER"  // no trigger
)

// TriggerFacts are the facts from which the state of a trigger follows. Invalid says that its expression or zone cannot
// be read.
type TriggerFacts struct {
	Kind                   TriggerKind
	Enabled, Invalid       bool
	Ended                  bool // switched off, since no slot is left
	NextRunAt, LastFiredAt *time.Time
	CreatedAt              time.Time
}

func (t TriggerFacts) state() ScheduleState {
	switch {
	case t.Kind == TriggerKindSchedule && t.Invalid:
		return ScheduleStateTriggerInvalid
	case t.Kind == TriggerKindSchedule && t.Enabled:
		return ScheduleStateArmed
	case t.Kind == TriggerKindSchedule:
		return ScheduleStateTriggerDisabled
	case t.Kind == TriggerKindWebhook && t.Enabled:
		return ScheduleStateEventOnly
	}
	return ScheduleStateUnscheduledManualOnly
}

// ScheduleStateOf is the state of a routine with these triggers.
func ScheduleStateOf(triggers []TriggerFacts) ScheduleState {
	found := map[ScheduleState]bool{}
	for _, t := range triggers {
		found[t.state()] = true
	}
	for _, state := range scheduleStateValues {
		if found[state] {
			return state
		}
	}
	return ScheduleStateUnscheduledNoTrigger
}

// TriggerCondition is the health of one schedule trigger.
//
//rouse:enum
type TriggerCondition string

const (
	TriggerConditionOnTime   TriggerCondition = "ON_TIME"  // on time
	TriggerConditionClaiming TriggerCondition = "CLAIMING" // claimed this moment
	TriggerConditionOverdue  TriggerCondition = "OVERDUE"  // past due
	TriggerConditionStranded TriggerCondition = "STRANDED" // no next fire; dead
	TriggerConditionDisabled TriggerCondition = "DISABLED" // switched off
	TriggerConditionEnded    TriggerCondition = "ENDED"    // switched off, since no slot is left
	TriggerConditionInvalid  TriggerCondition = "INVALID"  // cannot be computed; switched off
)

// How late a trigger may be before something is wrong (SPEC S10.1).
const (
	OverdueGrace  = 180 * time.Second
	StrandedGrace = 300 * time.Second
)

// Condition is the health of a schedule trigger at an instant. One without a next slot is being claimed until its claim
// instant (last fire, else creation) is older than the grace (C97, C98).
func (t TriggerFacts) Condition(now time.Time) TriggerCondition {
	claimed := t.CreatedAt
	if t.LastFiredAt != nil {
		claimed = *t.LastFiredAt
	}
	switch {
	case t.Invalid:
		return TriggerConditionInvalid
	case !t.Enabled && t.Ended:
		return TriggerConditionEnded
	case !t.Enabled:
		return TriggerConditionDisabled
	case t.NextRunAt == nil && now.Sub(claimed) > StrandedGrace:
		return TriggerConditionStranded
	case t.NextRunAt == nil:
		return TriggerConditionClaiming
	case now.Sub(*t.NextRunAt) > OverdueGrace:
		return TriggerConditionOverdue
	}
	return TriggerConditionOnTime
}
