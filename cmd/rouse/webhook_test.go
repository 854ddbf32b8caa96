package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// testWebhook fires a routine from outside through a program whose API asks for a token: the trigger's own secret, which is
// no token, is enough (C227).
func testWebhook(t *testing.T, j journey, url string) {
	agent := j.agent("hooked", map[string]any{"echo": map[string]any{}})
	var made struct {
		CreateRoutine struct {
			Routine struct {
				ID       string
				Triggers []struct{ Path, SampleCurl string }
			}
			Secrets []struct{ Secret string }
		}
	}
	j.request(`mutation($in: CreateRoutineInput!) { createRoutine(input: $in) { routine { id triggers { ... on WebhookTrigger { path sampleCurl } } }
		secrets { secret } userErrors { message } } }`, map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": "Hooked", "assigneeId": agent,
		"description": "Build {{branch}}.", "triggers": []any{map[string]any{"webhook": map[string]any{"signingMode": "BEARER"}}}}}, &made)
	r := made.CreateRoutine
	base := strings.TrimSuffix(url, "/graphql")
	if !strings.Contains(r.Routine.Triggers[0].SampleCurl, "http://127.0.0.1:") {
		t.Errorf("the sample is %s", r.Routine.Triggers[0].SampleCurl)
	}
	for secret, want := range map[string]int{"wrong": 401, r.Secrets[0].Secret: 202} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+r.Routine.Triggers[0].Path, strings.NewReader(`{"branch":"main"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "hooks.example.com" // as through a tunnel
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // its status is all that counts
		if resp.StatusCode != want {
			t.Errorf("C227 the answer is %d, want %d", resp.StatusCode, want)
		}
	}
	eventually(t, "the routine run of the webhook is DONE", patience, func() bool { return slices.Contains(j.fires(r.Routine.ID), "DONE") })
}
