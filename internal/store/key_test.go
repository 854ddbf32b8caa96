package store

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// TestAKeyIsItsWholeText: a request that has the key of another is that one (SPEC S3.3); no other text is the same key, and
// no key at all is never a key that somebody else has.
func TestAKeyIsItsWholeText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("a")
	insert := func(key string) (id xid.ID, duplicate bool) {
		t.Helper()
		r := newRequest{workspaceID: w.workspace, agentID: agent, causationID: xid.New("cau"), scope: domain.ScopeTaskless, source: domain.WakeupSourceSelf,
			class: domain.WakeClassEvent, reason: "test", payload: &domain.SelfPayload{Reason: "test"}, key: key}
		w.ok(w.inTx(t.Context(), func(t *tx) (err error) { id, duplicate, err = t.insertRequest(w.Context(), r); return err }))
		return id, duplicate
	}
	stored, _ := insert("wake:t1")
	for _, c := range []struct {
		name, key string
		same      bool
	}{
		{"C35 the same key at the second insert", "wake:t1", true},
		{"C35 and at the third", "wake:t1", true},
		{"C37 another key", "wake:t2", false},
		{"C37 a longer one", "wake:t1:salt", false},
		{"C37 a shorter one", "wake:t", false},
		{"C37 none", "", false},
		{"C37 none again", "", false},
	} {
		if id, duplicate := insert(c.key); duplicate != c.same || (id == stored) != c.same {
			t.Errorf("%s: request %s, duplicate %t; the stored one is %s", c.name, id, duplicate, stored)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE idempotency_key = 'wake:t1'`); n != 1 {
		t.Errorf("C35 %d rows have the key, want 1", n)
	}
}

// TestOneRunThatCannotBeJudgedStopsNoOther is C318 with a batch of 16: what the guard of one run decides cannot be done.
func TestOneRunThatCannotBeJudgedStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := w.agent("bad")
	w.costly(bad, "5")
	w.budget(bad, "5")
	w.sql(`ALTER TABLE agent_lanes ADD CONSTRAINT test_no_pause CHECK (status <> 'PAUSED')`)
	held := w.wake(bad)
	for range 15 {
		w.wake(w.agent(string(xid.New("good"))))
	}
	if got := w.claim(16); len(got) != 15 {
		t.Errorf("C318 claimed %d runs, want 15", len(got))
	}
	for n := 1; n <= domain.GuardErrorsForInbox; n++ {
		w.wantRun(w.runOf(held), domain.RunStatusQueued, domain.ParkedReasonGuardError)
		if got := one[int](w, `SELECT guard_errors * 10 + retry_count FROM runs WHERE id = $1`, w.runOf(held)); got != n*10 {
			t.Errorf("C318 %d guard errors, ten for each, and retries: want %d and none", got, n)
		}
		if items := one[int](w, `SELECT count(*) FROM inbox_items WHERE subject_id = $1`, w.runOf(held)); items != pgtx.Btoi(n == domain.GuardErrorsForInbox) {
			t.Errorf("C318 %d inbox items after %d guard errors", items, n)
		}
		w.sql(`UPDATE runs SET parked_until = clock_timestamp() - interval '1 second' WHERE parked_reason = 'GUARD_ERROR'`)
		if got := w.claim(16); len(got) != 0 {
			t.Errorf("C318 claimed %v", got)
		}
	}
	w.sound()
}
