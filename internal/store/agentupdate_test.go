package store

import (
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

func (w *world) update(agentID xid.ID, p domain.AgentPatch) error {
	_, err := w.UpdateAgent(w.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agentID, Patch: p})
	return err
}

func TestCapacityChangesWhileRunsAreLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo", func(in *CreateAgent) { in.MaxConcurrentSessions = 2 })
	for _, scope := range []string{"task:a", "task:b", "task:c"} {
		w.request(agent, scoped(scope))
	}
	live := w.claim(10)
	if len(live) != 2 {
		t.Fatalf("claimed %d runs with two sessions, want 2", len(live))
	}
	a, b := live[0], live[1]
	w.ok(w.update(agent, domain.AgentPatch{Sessions: domain.To(1)}))
	w.start(a)
	w.start(b)
	w.finish(a)
	if got := w.claim(10); len(got) != 0 {
		t.Errorf("C311 claimed %d runs at capacity", len(got))
	}
	w.sound()
	w.ok(w.update(agent, domain.AgentPatch{Sessions: domain.To(2)}))
	w.claimOne()
	w.sound()
}

func TestACooldownCountsFromTheLastLaunch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo", func(in *CreateAgent) { in.Cooldown = time.Hour })
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.finish(c)
	w.wake(agent)
	if got := w.claim(10); len(got) != 0 {
		t.Fatal("claimed inside the cooldown")
	}
	w.ok(w.update(agent, domain.AgentPatch{Cooldown: domain.To(time.Duration(0))}))
	w.claimOne()
	w.sound()
}

func TestAnUpdateOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, other := w.agent("Ada"), w.agent("Bob")
	w.ok(w.update(other, domain.AgentPatch{ManagerID: domain.To(string(agent))}))
	w.refused(w.update(agent, domain.AgentPatch{ManagerID: domain.To(string(other))}), domain.UserErrorCodeInvalid)
	w.refused(w.update(agent, domain.AgentPatch{ManagerID: domain.To(string(agent))}), domain.UserErrorCodeInvalid)
	w.refused(w.update(agent, domain.AgentPatch{ManagerID: domain.To(string(xid.New("agt")))}), domain.UserErrorCodeNotFound)
	w.refused(w.update(agent, domain.AgentPatch{Name: domain.To("Bob")}), domain.UserErrorCodeTaken)
	w.refused(errOf(w.UpdateAgent(t.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agent, ExpectedRevision: pgtx.Ptr(7)})), domain.UserErrorCodeConflict)
	w.refused(w.update(xid.New("agt"), domain.AgentPatch{}), domain.UserErrorCodeNotFound)
	revision := func() int { return one[int](w, `SELECT revision FROM agents WHERE id = $1`, agent) }
	w.ok(w.update(agent, domain.AgentPatch{Name: domain.To("Ada")}))
	if revision() != 1 {
		t.Errorf("the revision is %d after a change of nothing, want 1", revision())
	}
	w.ok(errOf(w.UpdateAgent(t.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agent, ExpectedRevision: pgtx.Ptr(1),
		Patch: domain.AgentPatch{Instructions: domain.To("Be kind.")}, Executor: domain.Change[domain.ExecutorSpec]{Set: true}})))
	if revision() != 2 || one[string](w, `SELECT instructions FROM agents WHERE id = $1 AND executor IS NULL`, agent) != "Be kind." {
		t.Errorf("the change is not there, or the revision is %d", revision())
	}
}

func TestACeilingIsRaisedAndLowered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := func(p domain.SettingsPatch) {
		t.Helper()
		_, _, err := w.UpdateSettings(t.Context(), UpdateSettings{WorkspaceID: w.workspace, Patch: p})
		w.ok(err)
	}
	for _, name := range []string{"a", "b"} {
		w.wake(w.agent(name))
	}
	set(domain.SettingsPatch{MaxRuns: domain.To(1)})
	w.claimOne()
	if got := w.claim(10); len(got) != 0 {
		t.Errorf("claimed %d runs above the ceiling", len(got))
	}
	set(domain.SettingsPatch{MaxRuns: domain.Change[int]{Set: true}})
	w.claimOne()
	w.sound()
}

func TestAnUpdateOfSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	revision := one[int](w, `SELECT revision FROM workspaces WHERE id = $1`, w.workspace)
	clamped, _, err := w.UpdateSettings(t.Context(), UpdateSettings{WorkspaceID: w.workspace, ExpectedRevision: &revision,
		Patch: domain.SettingsPatch{LookbackHours: domain.To(9999), TimeZone: domain.To("Europe/Lisbon")}})
	w.ok(err)
	if len(clamped) != 1 || one[int](w, `SELECT recovery_lookback_hours FROM workspaces WHERE default_time_zone = 'Europe/Lisbon'`) != 720 {
		t.Errorf("clamped %v", clamped)
	}
	_, _, err = w.UpdateSettings(t.Context(), UpdateSettings{WorkspaceID: w.workspace, ExpectedRevision: &revision})
	w.refused(err, domain.UserErrorCodeConflict)
	_, _, err = w.UpdateSettings(t.Context(), UpdateSettings{WorkspaceID: xid.New("wsp")})
	w.refused(err, domain.UserErrorCodeNotFound)
	_, _, err = w.UpdateSettings(t.Context(), UpdateSettings{WorkspaceID: w.workspace, Patch: domain.SettingsPatch{TimeZone: domain.To("posix/Europe/Lisbon")}})
	w.refused(err, domain.UserErrorCodeUnknownTimeZone)
	if n := one[int](w, `SELECT count(*) FROM activities WHERE code = 'SETTINGS_CHANGED'`); n != 1 {
		t.Errorf("%d entries of a change of settings, want 1", n)
	}
}

// errOf is the error of a call, without its result.
func errOf[T any](_ T, err error) error { return err }
