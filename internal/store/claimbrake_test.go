package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// braked makes an agent with this many unattended launches an hour, and many sessions.
func (w *world) braked(limit int) xid.ID {
	w.Helper()
	return w.agent("triage", func(in *CreateAgent) {
		in.MaxConcurrentSessions, in.Cooldown = 50, 0
		in.LaunchLimit = &domain.LaunchLimit{Count: limit, Per: time.Hour}
	})
}

// byWebhook is a request as a delivery makes it, in a scope of its own.
func byWebhook(r *newRequest) { r.webhook, r.scope = true, string(xid.New("fire")) }

func byPerson(r *newRequest) { r.scope = string(xid.New("fire")) }

// S3.12: what neither a person nor a schedule asked for is launched so often in a window, and then waits; all else goes on. When the
// window is over, it goes on too.
func TestTheBrakeHoldsUnattendedLaunchesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.braked(3)
	var hooks []xid.ID
	for range 5 {
		hooks = append(hooks, w.runOf(w.request(agent, byWebhook)))
	}
	person := w.runOf(w.request(agent, byPerson))
	var launched []xid.ID
	for range 8 {
		for _, c := range w.claim(10) {
			launched = append(launched, c.RunID)
		}
	}
	if want := append(slices.Clone(hooks[:3]), person); !slices.Equal(launched, want) {
		t.Errorf("launched %v, want three of the webhook and the person's %v", launched, want)
	}
	for _, run := range hooks[3:] {
		w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonLoopBreaker)
	}
	if got := one[string](w, `SELECT launches || ' ' || count(*) FROM agent_lanes, inbox_items WHERE kind = 'LOOP_BREAKER' GROUP BY launches`); got != "3 1" {
		t.Errorf("launches and inbox items are %s, want 3 and 1", got)
	}
	ends := one[time.Time](w, `SELECT launches_since + interval '1 hour' FROM agent_lanes`)
	if waiting, err := w.Waiting(t.Context(), hooks[3:4], nil); err != nil || waiting[hooks[3]].Hold != domain.QueueHoldLoopBreaker || !waiting[hooks[3]].Until.Equal(ends) {
		t.Errorf("it is said to wait for %+v, until %v, %v", waiting[hooks[3]], ends, err)
	}
	w.sql(`UPDATE agent_lanes SET launches_since = launches_since - interval '2 hours'`)
	w.sql(`UPDATE runs SET parked_until = parked_until - interval '2 hours' WHERE parked_reason = 'LOOP_BREAKER'`)
	if got := w.claim(10); len(got) != 2 {
		t.Errorf("after the window %d were launched, want the two that waited", len(got))
	}
	if got := one[int](w, `SELECT launches FROM agent_lanes`); got != 2 {
		t.Errorf("the new window counts %d, want 2", got)
	}
	w.sound()
}

// A person who asks for the work lets it through, by a wake that is merged or by a retry; another limit lets all be looked at again.
func TestAPersonLetsBrakedRunsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.braked(1)
	w.request(agent, byWebhook)
	retried, raised := w.runOf(w.request(agent, byWebhook)), w.runOf(w.request(agent, byWebhook))
	merged := w.runOf(w.request(agent, func(r *newRequest) { r.webhook = true }))
	w.wake(agent)
	launched := func() (list []xid.ID) {
		for range 4 {
			for _, c := range w.claim(10) {
				list = append(list, c.RunID)
			}
		}
		return list
	}
	if got := launched(); len(got) != 2 || got[1] != merged {
		t.Errorf("launched %v, want the first, and the one that a person asked for as well, %s", got, merged)
	}
	w.retry(retried)
	if got := launched(); !slices.Equal(got, []xid.ID{retried}) {
		t.Errorf("launched %v, want the one that was retried", got)
	}
	w.ok(w.update(agent, domain.AgentPatch{LaunchLimit: domain.To(domain.LaunchLimit{Count: 2, Per: time.Hour})}))
	if got := launched(); !slices.Equal(got, []xid.ID{raised}) {
		t.Errorf("launched %v, want the one that the higher limit lets go", got)
	}
	w.sound()
}

// The claim counts a launch in the statement that moves the lane: a limit costs no statement more.
func TestTheBrakeCostsTheClaimNoStatement(t *testing.T) {
	t.Parallel()
	db, k := keepingDB(t)
	w := newWorldOn(t, db)
	free, braked := w.agent("free"), w.braked(1000)
	claiming := func(agent xid.ID, change func(*newRequest)) int {
		w.request(agent, change)
		return len(k.during(func() {
			if len(w.claim(1)) != 1 {
				t.Error("it claims nothing")
			}
		}))
	}
	if without, with := claiming(free, byPerson), claiming(braked, byWebhook); with > without {
		t.Errorf("%d statements with a brake, %d without", with, without)
	}
}

// The item in the inbox says what was found: an agent that wakes itself by its own webhook, how often and in which time.
func TestTheInboxTellsOfTheLoopThatWasFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.braked(3)
	routine := w.routineOf(agent)
	w.sql(`UPDATE routines SET name = 'x' WHERE id = $1`, routine)
	chain := xid.New("cau")
	for hops := range 4 {
		w.request(agent, func(r *newRequest) {
			byWebhook(r)
			r.routineID, r.source, r.causationID, r.hops = routine, domain.WakeupSourceRoutine, chain, hops
			r.payload = &domain.RoutinePayload{RoutineID: string(routine)}
		})
	}
	w.claim(3)
	w.sql(`UPDATE agent_lanes SET launches_since = launches_since - interval '8 minutes'`)
	w.claim(10)
	title := one[string](w, `SELECT title FROM inbox_items WHERE kind = 'LOOP_BREAKER'`)
	if title != "`triage` woke itself by webhook `x` 2 times in 8 min" {
		t.Errorf("the item is %q", title)
	}
	if body := one[string](w, `SELECT body FROM inbox_items WHERE kind = 'LOOP_BREAKER'`); !strings.Contains(body, "3 launches in 1 h") || !strings.Contains(body, "retryRun") || !strings.Contains(body, string(chain)) {
		t.Errorf("it says %q", body)
	}
}

// A workspace's own limit of hops ends a chain where it says.
func TestAWorkspaceSaysHowLongAChainMayBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings(domain.SettingsPatch{MaxHops: domain.To(3)})
	agent := w.agent("worker")
	last := w.request(agent, func(r *newRequest) { r.hops = 3 })
	w.wantRequest(last, domain.WakeupStatusQueued)
	over := w.request(agent, func(r *newRequest) { r.hops = 4 })
	if got := one[string](w, `SELECT end_reason FROM wakeup_requests WHERE id = $1`, over); got != "HOP_LIMIT" {
		t.Errorf("the fourth hop ended %q", got)
	}
}
