package store

import (
	"errors"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// reseal marks each text with the key that sealed it and its place; "s1.lost" cannot be opened.
func reseal(sealed, place string) (string, error) {
	if strings.HasPrefix(sealed, "s1.lost") {
		return "", errors.New("unknown key")
	}
	return "s1.new of " + place, nil
}

func TestAllSealedValuesAreSealedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sealed := func(names ...string) (values []domain.SealedValue) {
		for _, name := range names {
			values = append(values, domain.SealedValue{Name: name, Sealed: "s1.old"})
		}
		return values
	}
	command := w.agent("command", func(a *CreateAgent) {
		a.Executor = &domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: []string{"x"}, Environment: append(sealed("A", "B"), domain.SealedValue{Name: "GONE", Sealed: "s1.lost"})}}
	})
	service := w.agent("service", func(a *CreateAgent) {
		a.Executor = &domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: "https://x/", Headers: sealed("X-Key"), Secret: "s1.old"}}
	})
	puller := w.agent("puller", func(a *CreateAgent) {
		a.Executor = &domain.ExecutorSpec{Pull: &domain.PullSpec{Queue: "q", Command: &domain.CommandSpec{Argv: []string{"x"}, Environment: sealed("P")}}}
	})
	w.sql(`UPDATE workspaces SET default_executor = '{"acp":{"argv":["x"],"environment":[{"name":"D","sealed":"s1.old"}]}}' WHERE id = $1`, w.workspace)
	hook := w.channel("hook")
	mail := w.channel("mail", func(in *CreateNotificationChannel) {
		in.Target = domain.NotificationTarget{Email: &domain.EmailTarget{Host: "h", Username: "u", Password: "s1.old"}}
	})
	trigger := xid.New("trg")
	routine := w.routineOf(command)
	w.sql(`INSERT INTO routine_triggers (id, workspace_id, routine_id, kind, enabled, created_at, updated_at, public_id, signing_mode, secret_sealed, previous_secret_sealed)
SELECT $1, workspace_id, id, 'WEBHOOK', true, now(), now(), 'pub', 'HMAC_SHA256', 's1.old', 's1.old' FROM routines WHERE id = $2`, trigger, routine)
	w.sql(`INSERT INTO instance_facts (id, name, value) VALUES ($1, 'sealing_key', 'aaaaaaaa')`, xid.New("fct"))
	w.wake(command)
	c := w.claimOne()
	w.start(c)
	w.ok(w.HandBack(t.Context(), c.Attempt, Unfinished{})) // what it was launched with is a former attempt's by now
	w.start(w.claimOne())
	w.sql(`INSERT INTO task_sessions (id, workspace_id, task_id, agent_id, external_id, last_used_at, secrets)
VALUES ('ses_1', $1, $2, $3::text, 's-1', now(), jsonb_build_array(jsonb_build_object('holder', $3::text, 'values', '[{"name":"T","sealed":"s1.old"}]'::jsonb)))`, w.workspace, w.task("Task"), command)
	if _, err := w.Reseal(t.Context(), "cccccccc", "bbbbbbbb", reseal); !errors.Is(err, ErrSealedElsewhere) {
		t.Errorf("with a key that does not seal here: %v", err)
	}
	done, err := w.Reseal(t.Context(), "aaaaaaaa", "bbbbbbbb", reseal)
	w.ok(err)
	if done.Values != 15 || done.Refused != 3 || len(done.Left) != 3 || done.Left[0] != "GONE of "+string(command) {
		t.Errorf("%+v", done)
	}
	all := one[string](w, `SELECT (SELECT string_agg(executor::text, ' ') FROM agents) || (SELECT string_agg(default_executor::text, ' ') FROM workspaces WHERE default_executor IS NOT NULL)
|| (SELECT secrets::text FROM attempt_leases) || (SELECT sets::text FROM run_secrets) || (SELECT secrets::text FROM task_sessions) || (SELECT string_agg(target::text, ' ') FROM notification_channels) || (SELECT secret_sealed || previous_secret_sealed FROM routine_triggers WHERE id = $1)`, trigger)
	if strings.Contains(all, "s1.old") || strings.Count(all, "s1.lost") != 3 {
		t.Errorf("the database has\n%s", all)
	}
	for _, place := range []string{domain.SealPlace(command, "A"), domain.SealPlace(command, "T"), domain.SealPlace(service, "X-Key"), domain.SealPlace(service, domain.HTTPSecretName),
		domain.SealPlace(puller, "P"), domain.SealPlace(w.workspace, "D"), SecretPlace(trigger), domain.SealPlace(hook, domain.NotificationSecret), domain.SealPlace(mail, domain.NotificationPassword)} {
		if !strings.Contains(all, "s1.new of "+place) {
			t.Errorf("%s is missing in\n%s", place, all)
		}
	}
	if id, err := w.SealingKey(t.Context()); err != nil || id != "bbbbbbbb" {
		t.Errorf("noted is %q, %v", id, err)
	}
}
