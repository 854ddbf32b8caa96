package graph_test

import (
	"os/exec"
	"strings"
	"testing"
)

type shownHook struct {
	ID, PublicID, Path, SigningMode, ReplayWindow, SampleCurl string
	SecretHint, SecretRotatedAt, PreviousSecretExpiresAt      *string
	RequireTimestamp                                          bool
	Deliveries                                                []struct {
		Status          int
		Outcome, Detail string
		RoutineRun      *struct{ ID string }
	}
}

const hookFields = `... on WebhookTrigger { id publicId path signingMode replayWindow requireTimestamp sampleCurl secretHint secretRotatedAt previousSecretExpiresAt
	deliveries(first: 2) { status outcome detail routineRun { id } } }`

// SPEC S4.9: secrets are encrypted at rest and shown once.
func TestAWebhooksSecretIsShownOnceAndSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), nil)
	var made struct {
		CreateTrigger struct {
			Trigger *shownHook
			Secret  *string
		}
	}
	create := func(webhook map[string]any, key string) string {
		t.Helper()
		made.CreateTrigger.Trigger, made.CreateTrigger.Secret = nil, nil
		return w.mutate("createTrigger", "secret trigger { "+hookFields+" }", map[string]any{"routineId": r.ID, "spec": map[string]any{"webhook": webhook}, "idempotencyKey": key}, &made)
	}
	if e := create(map[string]any{}, "k"); e != "" || made.CreateTrigger.Secret == nil {
		t.Fatalf("made: %q %+v", e, made)
	}
	hook, secret := *made.CreateTrigger.Trigger, *made.CreateTrigger.Secret
	compare(t, "the webhook",
		holds("the secret begins with whsec_", strings.HasPrefix(secret, "whsec_")),
		holds("the secret has 40 characters or more", len(secret) >= 40),
		is("signingMode", hook.SigningMode, "HMAC_SHA256"),
		is("replayWindow", hook.ReplayWindow, "PT5M"),
		is("secretHint", *hook.SecretHint, secret[len(secret)-4:]),
		holds("publicId has 32 characters or more", len(hook.PublicID) >= 32),
		is("path", hook.Path, "/api/routine-triggers/"+hook.PublicID+"/fire"),
		holds("sampleCurl does not show the secret", !strings.Contains(hook.SampleCurl, secret)),
		holds("sampleCurl calls the path", strings.Contains(hook.SampleCurl, hook.Path)))
	var stored string
	w.ok(w.db.QueryRow(`SELECT secret_sealed FROM routine_triggers WHERE id = $1`, hook.ID).Scan(&stored))
	if stored != "sealed for "+hook.ID+"/secret" {
		t.Errorf("stored as %s", stored)
	}
	if e := create(map[string]any{}, "k"); e != "" || made.CreateTrigger.Secret != nil || made.CreateTrigger.Trigger.ID != hook.ID {
		t.Errorf("the same key shows a secret again: %q %+v", e, made)
	}
	if e := create(map[string]any{"signingMode": "NONE"}, "none"); e != "" || made.CreateTrigger.Secret != nil || made.CreateTrigger.Trigger.SecretHint != nil {
		t.Errorf("no proof, no secret: %q %+v", e, made)
	}
	open := made.CreateTrigger.Trigger.ID
	if e := create(map[string]any{"secret": "0123456789abcdef"}, "own"); e != "" || *made.CreateTrigger.Secret != "0123456789abcdef" {
		t.Errorf("a secret of one's own: %q %+v", e, made)
	}
	for want, webhook := range map[string]map[string]any{
		"INVALID input.spec.webhook.secret":            {"signingMode": "BEARER", "secret": ""}, // C27
		"TOO_LONG input.spec.webhook.secret":           {"secret": strings.Repeat("x", 257)},
		"OUT_OF_RANGE input.spec.webhook.replayWindow": {"replayWindow": "PT1S"},
	} {
		if got := create(webhook, want); got != want || made.CreateTrigger.Trigger != nil {
			t.Errorf("%v: %q, want %q", webhook, got, want)
		}
	}
	if e := create(map[string]any{"secret": "whsec_c2hvcnQgc2VjcmV0"}, "weak"); e != "INVALID input.spec.webhook.secret" {
		t.Errorf("a key of 12 bytes: %q", e)
	}
	var changed struct{ UpdateTrigger struct{ Trigger shownHook } }
	if e := w.mutate("updateTrigger", "trigger { "+hookFields+" }", map[string]any{"triggerId": open, "signingMode": "BEARER"}, nil); e != "INVALID_STATE input.signingMode" {
		t.Errorf("C27 proof without a secret: %q", e)
	}
	if e := w.mutate("updateTrigger", "trigger { "+hookFields+" }", map[string]any{"triggerId": hook.ID, "requireTimestamp": true, "replayWindow": "PT1M"}, &changed); e != "" ||
		!changed.UpdateTrigger.Trigger.RequireTimestamp || !strings.Contains(changed.UpdateTrigger.Trigger.SampleCurl, "X-Rouse-Timestamp") {
		t.Errorf("changed: %q %+v", e, changed)
	}
}

// SPEC S4.9: rotation.
func TestASecretIsRotatedWithAnOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"triggers": []any{map[string]any{"webhook": map[string]any{"signingMode": "NONE"}}, map[string]any{"manual": map[string]any{}}}})
	if r.ScheduleState != "EVENT_ONLY" {
		t.Errorf("C110 with a webhook: %s", r.ScheduleState)
	}
	var out struct {
		RotateTriggerSecret struct {
			Trigger  *shownHook
			Secret   *string
			Replayed bool
		}
	}
	rotate := func(trigger string, more map[string]any) string {
		t.Helper()
		out.RotateTriggerSecret.Trigger, out.RotateTriggerSecret.Secret = nil, nil
		input := map[string]any{"triggerId": trigger}
		for k, v := range more {
			input[k] = v
		}
		return w.mutate("rotateTriggerSecret", "secret replayed trigger { "+hookFields+" }", input, &out)
	}
	id := r.Triggers[0].ID
	if e := rotate(id, nil); e != "" || out.RotateTriggerSecret.Secret == nil || out.RotateTriggerSecret.Trigger.PreviousSecretExpiresAt != nil || out.RotateTriggerSecret.Trigger.SecretRotatedAt == nil {
		t.Errorf("the first secret: %q %+v", e, out)
	}
	if e := rotate(id, map[string]any{"overlap": "PT1H", "idempotencyKey": "k"}); e != "" || out.RotateTriggerSecret.Trigger.PreviousSecretExpiresAt == nil {
		t.Errorf("the second: %q %+v", e, out)
	}
	if e := rotate(id, map[string]any{"overlap": "PT1H", "idempotencyKey": "k"}); e != "" || !out.RotateTriggerSecret.Replayed || out.RotateTriggerSecret.Secret != nil {
		t.Errorf("the same key: %q %+v", e, out)
	}
	if e := rotate(id, map[string]any{"overlap": "PT0S"}); e != "" || out.RotateTriggerSecret.Trigger.PreviousSecretExpiresAt != nil {
		t.Errorf("without an overlap: %q %+v", e, out)
	}
	for want, more := range map[string]map[string]any{"OUT_OF_RANGE input.overlap": {"overlap": "P8D"}} {
		if got := rotate(id, more); got != want {
			t.Errorf("%v: %q, want %q", more, got, want)
		}
	}
	if got := rotate(r.Triggers[1].ID, nil); got != "INVALID input.triggerId" {
		t.Errorf("a manual trigger: %q", got)
	}
	w.sql(`INSERT INTO webhook_deliveries (id, workspace_id, trigger_id, status, outcome, detail, created_at)
		SELECT 'whd_' || i, $1, $2, 401, 'BAD_SIGNATURE', 'try ' || i, now() + i * interval '1 second' FROM generate_series(1, 3) i`, w.workspace, id)
	var shown struct{ Node shownHook }
	w.Do(t.Context(), `query($id: ID!) { node(id: $id) { `+hookFields+` } }`, map[string]any{"id": id}, &shown)
	if d := shown.Node.Deliveries; len(d) != 2 || d[0].Detail != "try 3" || d[0].Outcome != "BAD_SIGNATURE" || d[0].Status != 401 {
		t.Errorf("the newest deliveries are %+v", d)
	}
}

// S4.9: the sample command sends a value for each declared variable, and a shell reads it as it is meant.
func TestASampleCommandSendsTheDeclaredVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"description": "{{note}} {{branch}}", "variables": []any{
		map[string]any{"name": "note", "type": "TEXT", "default": "it's \"$HOME\" `id` \\"},
		map[string]any{"name": "n", "type": "NUMBER", "required": true},
		map[string]any{"name": "env", "type": "SELECT", "options": []any{"a 'b'", "c"}},
	}})
	for mode, proof := range map[string]string{"NONE": "", "BEARER": "Authorization: Bearer <secret>", "HMAC_SHA256": "X-Signature-256: sha256="} {
		var made struct{ CreateTrigger struct{ Trigger shownHook } }
		if e := w.mutate("createTrigger", "trigger { "+hookFields+" }", map[string]any{"routineId": r.ID, "spec": map[string]any{"webhook": map[string]any{"signingMode": mode}}}, &made); e != "" {
			t.Fatal(e)
		}
		const curl = `curl() { for a; do printf '[%s]' "$a"; done; }; openssl() { echo digest -; }; `
		out, err := exec.CommandContext(t.Context(), "sh", "-c", curl+made.CreateTrigger.Trigger.SampleCurl).CombinedOutput()
		w.ok(err)
		want := `[--data-binary][{"note":"it's \"$HOME\" ` + "`id`" + ` \\","n":1,"env":"a 'b'","branch":"value"}][`
		if sent := string(out); !strings.Contains(sent, want) || !strings.Contains(sent, proof) || !strings.HasSuffix(sent, made.CreateTrigger.Trigger.Path+"]") {
			t.Errorf("%s: the command sends %s, want %s", mode, sent, want)
		}
	}
}

// A webhook's sender and conditions are saved, shown, changed and refused field by field; its sample command signs as its sender does.
func TestAWebhookUnderstandsItsSender(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), nil)
	type condition struct {
		Path, Header, Matches *string
		In, NotIn             []string
		Exists                *bool
	}
	type shown struct {
		ID, SampleCurl string
		Preset         *string
		When           []condition
	}
	var out struct {
		CreateTrigger, UpdateTrigger struct{ Trigger *shown }
		RenderTemplate               struct {
			Title                  string
			Unresolved, Undeclared []string
		}
	}
	const fields = "trigger { ... on WebhookTrigger { id sampleCurl preset when { path header in notIn exists matches } } }"
	create := func(webhook map[string]any) string {
		t.Helper()
		out.CreateTrigger.Trigger = nil
		return w.mutate("createTrigger", fields, map[string]any{"routineId": r.ID, "spec": map[string]any{"webhook": webhook}}, &out)
	}
	for preset, proof := range map[string]string{"GITHUB": "X-Hub-Signature-256: sha256=digest", "GITLAB": "X-Gitlab-Token: <secret>", "STRIPE": ",v1=digest", "SLACK": "X-Slack-Signature: v0=digest",
		"LINEAR": "Linear-Signature: digest", "STANDARD": "webhook-signature: v1,"} {
		if e := create(map[string]any{"preset": preset}); e != "" || out.CreateTrigger.Trigger.Preset == nil || *out.CreateTrigger.Trigger.Preset != preset {
			t.Fatalf("%s: %q %+v", preset, e, out.CreateTrigger.Trigger)
		}
		const curl = `curl() { for a; do printf '[%s]' "$a"; done; }; openssl() { echo "digest -"; }; `
		sent, err := exec.CommandContext(t.Context(), "sh", "-c", curl+out.CreateTrigger.Trigger.SampleCurl).CombinedOutput()
		if w.ok(err); !strings.Contains(string(sent), proof) {
			t.Errorf("%s: the command sends %s, want %s", preset, sent, proof)
		}
	}
	when := []any{map[string]any{"header": "X-GitHub-Event", "in": []string{"issues"}}, map[string]any{"path": "action", "matches": "^opened$"}}
	if e := create(map[string]any{"preset": "GITHUB", "when": when}); e != "" {
		t.Fatal(e)
	}
	made := *out.CreateTrigger.Trigger
	if len(made.When) != 2 || *made.When[0].Header != "X-GitHub-Event" || made.When[0].In[0] != "issues" || made.When[0].Path != nil || *made.When[1].Matches != "^opened$" {
		t.Errorf("the conditions are %+v", made.When)
	}
	for want, webhook := range map[string]map[string]any{
		"INVALID input.spec.webhook.when.0.path":   {"when": []any{map[string]any{"path": "a..b", "exists": true}}},
		"INVALID input.spec.webhook.when.1":        {"when": []any{when[0], map[string]any{"path": "a"}}},
		"INVALID input.spec.webhook.when.0.header": {"when": []any{map[string]any{"header": "Authorization", "exists": true}}},
		"INVALID input.spec.webhook.signingMode":   {"preset": "STRIPE", "signingMode": "BEARER"},
	} {
		if got := create(webhook); got != want || out.CreateTrigger.Trigger != nil {
			t.Errorf("%v: %q, want %q", webhook, got, want)
		}
	}
	change := func(input map[string]any) string {
		t.Helper()
		input["triggerId"] = made.ID
		return w.mutate("updateTrigger", fields, input, &out)
	}
	if e := change(map[string]any{"when": []any{map[string]any{"path": "x", "matches": "("}}}); e != "INVALID input.when.0.matches" {
		t.Errorf("a change that cannot be judged: %q", e)
	}
	if e := change(map[string]any{"requireTimestamp": true}); e != "INVALID input.requireTimestamp" {
		t.Errorf("a timestamp that GitHub does not send: %q", e)
	}
	if e := change(map[string]any{"replayWindow": "PT10M"}); e != "" || len(out.UpdateTrigger.Trigger.When) != 2 || out.UpdateTrigger.Trigger.Preset == nil {
		t.Errorf("another field: %q %+v", e, out.UpdateTrigger.Trigger)
	}
	if e := change(map[string]any{"preset": nil, "when": nil}); e != "" || len(out.UpdateTrigger.Trigger.When) != 0 || out.UpdateTrigger.Trigger.Preset != nil {
		t.Errorf("cleared: %q %+v", e, out.UpdateTrigger.Trigger)
	}
	w.Do(t.Context(), `query($i: RenderTemplateInput!) { renderTemplate(input: $i) { title unresolved undeclared } }`, map[string]any{"i": map[string]any{
		"title": "{{header.X-GitHub-Event}} {{issue.labels.0.name}} {{issue.nope}} {{plain}}", "headers": map[string]any{"X-GitHub-Event": "issues"},
		"values": map[string]any{"issue": map[string]any{"labels": []any{map[string]any{"name": "bug"}}}}}}, &out)
	if p := out.RenderTemplate; p.Title != "issues bug {{issue.nope}} {{plain}}" || strings.Join(p.Unresolved, " ") != "issue.nope" || strings.Join(p.Undeclared, " ") != "plain" {
		t.Errorf("the preview is %+v", p)
	}
}
