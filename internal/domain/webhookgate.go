package domain

import "fmt"

// DeliveryFacts are what is known of a delivery that proved itself, before its content is looked at.
type DeliveryFacts struct {
	Recent  int  // deliveries of its trigger within WebhookRateWindow that proved themselves, those decided just before it among them
	Repeats bool // its key or its signature came before
	Enabled bool // the trigger is switched on
}

// GateDelivery is the outcome of a delivery that is not judged by its content, and what its sender is told; "": it is judged (SPEC S4.9).
// A trigger takes so many in a minute whatever they are, and one that is switched off still knows what it fired for.
func GateDelivery(f DeliveryFacts) (outcome WebhookOutcome, problem string) {
	switch {
	case f.Recent >= WebhookRateLimit:
		return WebhookRateLimited, fmt.Sprintf("more than %d deliveries within a minute: try again later", WebhookRateLimit)
	case f.Repeats:
		return WebhookDuplicate, ""
	case !f.Enabled:
		return WebhookRefused, "the trigger is switched off"
	}
	return "", ""
}
