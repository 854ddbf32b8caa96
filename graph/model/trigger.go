// Package model holds the Go types of the API that are neither rows nor words of the domain: what gqlgen makes from the
// SDL, the scalars, and the faces of one table that the API shows as several types.
package model

import "rouse.dev/rouse/ent"

// ScheduleTrigger is a trigger with id prefix sch_.
type ScheduleTrigger struct{ *ent.RoutineTrigger }

// WebhookTrigger is a trigger with id prefix whk_.
type WebhookTrigger struct{ *ent.RoutineTrigger }

// ManualTrigger is a trigger with id prefix man_.
type ManualTrigger struct{ *ent.RoutineTrigger }

// IsTrigger marks a member of interface Trigger.
func (ScheduleTrigger) IsTrigger() {}

// IsTrigger marks a member of interface Trigger.
func (WebhookTrigger) IsTrigger() {}

// IsTrigger marks a member of interface Trigger.
func (ManualTrigger) IsTrigger() {}

// TriggerOf gives a row the type that the API shows it as. The id's prefix decides, not the column kind, which is not
// read when nobody asked for it.
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

// ApiToken is a row of API tokens, shown without its digest.
type ApiToken struct{ *ent.ApiToken }

// IsNode marks a member of interface Node.
func (ApiToken) IsNode() {}
