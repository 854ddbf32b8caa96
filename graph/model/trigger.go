// Package model holds the Go types of the API that are neither rows nor words of the domain. They are the types that
// gqlgen makes from the SDL, the scalars, and the several types as which the API shows one table.
package model

import (
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/xid"
)

// ScheduleTrigger is a trigger with id prefix sch_.
type ScheduleTrigger struct{ *ent.RoutineTrigger }

// WebhookTrigger is a trigger with id prefix whk_.
type WebhookTrigger struct{ *ent.RoutineTrigger }

// ManualTrigger is a trigger with id prefix man_.
type ManualTrigger struct{ *ent.RoutineTrigger }

// IsTrigger marks a member of interface Trigger.
func (ScheduleTrigger) IsTrigger() {}

// IsVersioned marks a member of interface Versioned.
func (ScheduleTrigger) IsVersioned() {}

// IsTrigger marks a member of interface Trigger.
func (WebhookTrigger) IsTrigger() {}

// IsVersioned marks a member of interface Versioned.
func (WebhookTrigger) IsVersioned() {}

// IsTrigger marks a member of interface Trigger.
func (ManualTrigger) IsTrigger() {}

// IsVersioned marks a member of interface Versioned.
func (ManualTrigger) IsVersioned() {}

// TriggerOf gives a row the type that the API shows it as. The id's prefix decides, because the column kind is not read
// when nobody asked for it.
func TriggerOf(row *ent.RoutineTrigger) Trigger {
	switch row.ID.Prefix() {
	case "sch":
		return ScheduleTrigger{row}
	case "whk":
		return WebhookTrigger{row}
	default:
		return ManualTrigger{row}
	}
}

// WebhookDelivery is one POST to a webhook trigger. Detail is nil when there is nothing to add.
type WebhookDelivery struct {
	ReceivedAt   time.Time
	Status       int
	Outcome      string
	Detail       *string
	Event        *string
	RoutineRunID xid.ID
}

// ApiToken is a row of API tokens, shown without its digest.
type ApiToken struct{ *ent.ApiToken }

// IsNode marks a member of interface Node.
func (ApiToken) IsNode() {}
