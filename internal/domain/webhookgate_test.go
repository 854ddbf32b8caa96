package domain

import (
	"strconv"
	"strings"
	"testing"
)

// SPEC S4.9: what becomes of a delivery before its content is looked at.
func TestGateDelivery(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts DeliveryFacts
		want  WebhookOutcome
		tells string
	}{
		{"the first one is judged by its content", DeliveryFacts{Enabled: true}, "", ""},
		{"the last one that a minute allows is judged", DeliveryFacts{Recent: WebhookRateLimit - 1, Enabled: true}, "", ""},
		{"the next one is too many, and hears the limit", DeliveryFacts{Recent: WebhookRateLimit, Enabled: true}, WebhookRateLimited, strconv.Itoa(WebhookRateLimit)},
		{"a repetition that is too many is too many", DeliveryFacts{Recent: WebhookRateLimit, Repeats: true, Enabled: true}, WebhookRateLimited, "try again later"},
		{"a repetition has fired already", DeliveryFacts{Recent: 1, Repeats: true, Enabled: true}, WebhookDuplicate, ""},
		{"a repetition is one also when its trigger was switched off since", DeliveryFacts{Repeats: true}, WebhookDuplicate, ""},
		{"a trigger that is switched off fires nothing", DeliveryFacts{}, WebhookRefused, "switched off"},
	} {
		outcome, problem := GateDelivery(c.facts)
		if outcome != c.want || !strings.Contains(problem, c.tells) || c.tells == "" && problem != "" {
			t.Errorf("%s: %q, %q", c.name, outcome, problem)
		}
	}
}
