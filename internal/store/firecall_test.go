package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// hook makes a routine with a webhook, and returns the webhook.
func (w *world) hook(agent xid.ID) *Webhook {
	w.Helper()
	w.routineOf(agent, TriggerSpec{ID: NewTriggerID(domain.TriggerKindWebhook), Kind: domain.TriggerKindWebhook, Enabled: true,
		SigningMode: domain.SigningModeNone, ReplayWindow: time.Minute})
	hook, err := w.Webhook(w.Context(), one[string](w, `SELECT public_id FROM routine_triggers WHERE kind = 'WEBHOOK' ORDER BY created_at DESC, id DESC LIMIT 1`))
	return must(w, hook, err)
}

// together makes calls at once, in one transaction.
func (w *world) together(calls ...func() error) error {
	w.Helper()
	w.Routines.calls.Gather(len(calls))
	problems := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { problems[i] = call() })
	}
	wg.Wait()
	return errors.Join(problems...)
}

// S4.10, S3.3: of fires by hand that come at once each is answered for itself: with one key one fires, and what is refused keeps
// neither its key nor the others.
func TestFiresThatComeAtOnceAreEachAnsweredForThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routines := []xid.ID{w.routineOf(w.agent("worker")), w.routineOf(w.agent("other"))}
	w.sql(`UPDATE routines SET concurrency_policy = 'ALWAYS_ENQUEUE'`)
	ask := func(routine xid.ID, key string) FireRoutine {
		return FireRoutine{WorkspaceID: w.workspace, RoutineID: routine, Idempotency: Idempotency{Key: key, InputDigest: "d"}}
	}
	ins := []FireRoutine{ask(routines[0], "k"), ask(routines[0], "k"), ask(routines[0], ""), ask(routines[1], "x"), ask("rtn_none", "gone"),
		{WorkspaceID: w.workspace, RoutineID: routines[1], TriggerID: "trg_none", Idempotency: Idempotency{Key: "gone", InputDigest: "d"}}}
	made, problems := make([]Made, len(ins)), make([]error, len(ins))
	calls := make([]func() error, len(ins))
	for i, in := range ins {
		calls[i] = func() error { made[i], _, problems[i] = w.FireRoutine(t.Context(), in); return nil }
	}
	w.ok(w.together(calls...))
	w.ok(errors.Join(problems[:4]...))
	if made[0].ID != made[1].ID || made[0].Replayed == made[1].Replayed {
		t.Errorf("two calls with one key: %+v and %+v", made[0], made[1])
	}
	for _, err := range problems[4:] {
		if !isRefusal(err) {
			t.Errorf("what is not there: %v", err)
		}
	}
	if got := one[string](w, `SELECT concat_ws(' ', count(*), count(q.run_id)) FROM routine_runs f JOIN wakeup_requests q ON q.routine_run_id = f.id`); got != "3 3" {
		t.Errorf("fires and runs are %s, want 3 of each", got)
	}
	if keys := w.texts(`SELECT key || ' ' || (result_id IN (SELECT id FROM routine_runs)) FROM mutation_keys WHERE mutation = 'fireRoutine'`); !slices.Equal(keys, []string{"k true", "x true"}) {
		t.Errorf("the keys are %v", keys)
	}
	w.sound()
}

// S4.9: deliveries of one batch see each other: a repetition finds the first one's fire, and no more than the limit fire.
func TestDeliveriesThatComeAtOnceSeeEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook, agent := w.hook(w.agent("worker")), w.agent("second")
	outcomes := make([]Delivered, 64)
	deliver := func(h *Webhook, key func(i int) string) {
		t.Helper()
		calls := make([]func() error, len(outcomes))
		for i := range calls {
			calls[i] = func() (err error) {
				outcomes[i], err = w.Deliver(t.Context(), Delivery{Webhook: h, Body: []byte(`{}`), Key: key(i)})
				return err
			}
		}
		w.ok(w.together(calls...))
	}
	of := func(o domain.WebhookOutcome) (n int) {
		for _, out := range outcomes {
			if out.Outcome == o {
				n++
			}
		}
		return n
	}
	deliver(hook, func(int) string { return "same" })
	if of(domain.WebhookAccepted) != 1 || of(domain.WebhookDuplicate) != domain.WebhookRateLimit-1 || of(domain.WebhookRateLimited) != 64-domain.WebhookRateLimit {
		t.Errorf("with one key %d fired, %d were repetitions, %d were too many", of(domain.WebhookAccepted), of(domain.WebhookDuplicate), of(domain.WebhookRateLimited))
	}
	deliver(w.hook(agent), func(i int) string { return fmt.Sprint(i) })
	if of(domain.WebhookAccepted) != domain.WebhookRateLimit {
		t.Errorf("%d of 64 fired, want %d", of(domain.WebhookAccepted), domain.WebhookRateLimit)
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != 1+domain.WebhookRateLimit {
		t.Errorf("%d fires were recorded", n)
	}
	if n := one[int](w, `SELECT count(*) FROM webhook_deliveries WHERE outcome = 'RATE_LIMITED'`); n != 2 {
		t.Errorf("%d deliveries over the limit were recorded, want one of each webhook", n)
	}
	w.sound()
}

// S4.6, S3.2: a fire whose lane somebody holds waits for it alone, and the others of its batch do not wait with it.
func TestAFireWaitsForItsLaneAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("held")
	held, free := w.routineOf(agent), w.routineOf(w.agent("free"))
	release := w.lockedLane(agent)
	fired := make(chan error, 1)
	fire := func(routine xid.ID) func() error {
		return func() error {
			_, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
			return err
		}
	}
	go func() { fired <- w.together(fire(held), fire(free)) }()
	w.until("the other one fired", func() bool { return one[int](w, `SELECT count(*) FROM routine_runs`) == 1 })
	release()
	w.ok(<-fired)
	if n := one[int](w, `SELECT count(*) FROM runs`); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
	w.sound()
}
