package store

import (
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Runs are aged from the instant at which there was room for them; a setting that makes none makes nothing younger.
func TestOnlyRoomMakesStuckRunsYounger(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		running int
		change  func(w *world)
		younger bool
	}{
		"another zone":                           {0, func(w *world) { w.settings(domain.SettingsPatch{TimeZone: domain.To("Europe/Lisbon")}) }, false},
		"a ceiling where there was none":         {3, func(w *world) { w.settings(domain.SettingsPatch{MaxRuns: domain.To(9)}) }, false},
		"a higher ceiling that was not reached":  {1, func(w *world) { w.ceiling(2); w.settings(domain.SettingsPatch{MaxRuns: domain.To(9)}) }, false},
		"a higher ceiling that was reached":      {2, func(w *world) { w.ceiling(2); w.settings(domain.SettingsPatch{MaxRuns: domain.To(9)}) }, true},
		"a higher ceiling that is still reached": {5, func(w *world) { w.ceiling(2); w.settings(domain.SettingsPatch{MaxRuns: domain.To(3)}) }, false},
		"no ceiling any more":                    {2, func(w *world) { w.ceiling(2); w.settings(domain.SettingsPatch{MaxRuns: domain.Change[int]{Set: true}}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sql(`UPDATE workspace_lanes SET running = $1, released_at = '2020-01-01Z'`, row.running)
			row.change(w)
			if younger := one[time.Time](w, `SELECT released_at FROM workspace_lanes`).Year() != 2020; younger != row.younger {
				t.Errorf("its runs are younger: %t", younger)
			}
		})
	}
	for name, row := range map[string]struct {
		running, sessions int
		younger           bool
	}{"one more session, none free before": {1, 2, true}, "one more session, one free before": {0, 2, false}, "as many sessions": {1, 1, false}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			w.sql(`UPDATE agent_lanes SET running = $1, released_at = '2020-01-01Z'`, row.running)
			w.ok(w.update(agent, domain.AgentPatch{Sessions: domain.To(row.sessions), Cooldown: domain.To(time.Minute)}))
			if younger := one[time.Time](w, `SELECT released_at FROM agent_lanes`).Year() != 2020; younger != row.younger {
				t.Errorf("its runs are younger: %t", younger)
			}
		})
	}
}

func (w *world) ceiling(n int) {
	w.sql(`UPDATE workspaces SET max_concurrent_runs = $1`, n)
	w.sql(`UPDATE workspace_lanes SET max_running = $1`, n)
}

func (w *world) settings(p domain.SettingsPatch) {
	w.Helper()
	_, _, err := w.UpdateSettings(w.Context(), UpdateSettings{WorkspaceID: w.workspace, Patch: p})
	w.ok(err)
}

// SPEC S3.9: a run that waits for the workspace's ceiling names the runs that fill it.
func TestACeilingNamesTheRunsThatHoldIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.agent("first"), w.agent("second")
	w.wake(first)
	c := w.claimOne()
	waiting := w.runOf(w.wake(second))
	w.ceiling(1)
	got, err := w.Waiting(t.Context(), []xid.ID{waiting}, nil)
	w.ok(err)
	if g := got[waiting]; g.Hold != domain.QueueHoldWorkspaceCeiling || len(g.BlockedBy) != 1 || g.BlockedBy[0] != string(c.RunID) {
		t.Errorf("it waits for %+v", g)
	}
}
