package domain

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// SPEC S4.9: a secret that can never verify, or hardly protects, is refused when it is set.
func TestCheckWebhookSecret(t *testing.T) {
	key := func(bytes int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", bytes))) }
	for _, c := range []struct {
		name, secret string
		want         UserErrorCode
	}{
		{"a text of 16 characters", "0123456789abcdef", ""},
		{"a text of 15 characters", "0123456789abcde", UserErrorCodeInvalid},
		{"a text of 257 characters", strings.Repeat("x", 257), UserErrorCodeTooLong},
		{"a text with a blank", "0123456789 abcdef", UserErrorCodeInvalid},
		{"a key of 24 bytes behind whsec_", "whsec_" + key(24), ""},
		{"a key of 16 bytes behind whsec_", "whsec_" + key(16), ""},
		{"a key of 15 bytes behind whsec_", "whsec_" + key(15), UserErrorCodeInvalid},
		{"a key behind v1,whsec_", "v1,whsec_" + key(32), ""},
		{"a key of 15 bytes behind v1,whsec_", "v1,whsec_" + key(15), UserErrorCodeInvalid},
		{"a key without padding", "whsec_" + strings.TrimRight(key(32), "="), ""},
		{"a key in the base64 of addresses", "whsec_" + base64.URLEncoding.EncodeToString([]byte(strings.Repeat("\xff\xfe", 16))), ""},
		{"a key that is no base64", "whsec_" + strings.Repeat("!", 32), UserErrorCodeInvalid},
		{"a key that lost its last character", "whsec_" + strings.TrimRight(key(16), "=")[:21], UserErrorCodeInvalid},
		{"no key", "whsec_", UserErrorCodeInvalid},
		{"no key behind padding", "whsec_" + strings.Repeat("=", 32), UserErrorCodeInvalid},
		{"another version is a text", "v2,whsec_0123456789", ""},
	} {
		problem, got := CheckWebhookSecret(c.secret), UserErrorCode("")
		if problem != nil {
			got = problem.Code
			if strings.Contains(problem.Message, c.secret) {
				t.Errorf("%s: the message holds the secret: %s", c.name, problem.Message)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// GitHub sends forms unless told otherwise: who does is told what to choose.
func TestAFormIsToldFromOtherBodies(t *testing.T) {
	for body, form := range map[string]bool{
		"payload=%7B%22ref%22%3A%22main%22%7D": true, "a=1&b=2": true, "entry.1[name]=x": true, "a%5B%5D=": true,
		"--boundary\r\nContent-Disposition: form-data": true,
		`not json`: false, `[1,2]`: false, `"a=1"`: false, "=": false, "-1": false, `{"a":1}=`: false,
	} {
		_, err := WebhookValues([]byte(body))
		var problem *UserError
		if !errors.As(err, &problem) {
			t.Fatalf("%s: %v", body, err)
		}
		if got := strings.Contains(problem.Error(), "application/json"); got != form {
			t.Errorf("%s: %s", body, problem)
		}
	}
}
