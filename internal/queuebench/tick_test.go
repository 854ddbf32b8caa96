package queuebench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// newRoutine makes a lightweight routine that is due every minute.
func (h *house) newRoutine(agent xid.ID, name string) {
	h.Helper()
	_, err := h.CreateRoutine(context.Background(), store.CreateRoutine{WorkspaceID: h.workspace, Name: name, Description: "Look around, {{date}}.", AssigneeID: agent,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: 25,
		Triggers: []store.TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: "* * * * *", Enabled: true}}})
	h.ok(err)
}

// fireAll fires n due triggers as the cron tick does: in order, by page, those of one agent one after the other, four agents
// at a time.
func (h *house) fireAll(n int) (woken map[xid.ID]bool, fired int) {
	h.Helper()
	ctx := context.Background()
	woken = map[xid.ID]bool{}
	for after := (store.DueTrigger{}); fired < n; {
		due, err := h.DueTriggers(ctx, after, 100)
		h.ok(err)
		if len(due) == 0 {
			break
		}
		of := map[xid.ID][]xid.ID{}
		for _, trigger := range due {
			of[trigger.AgentID] = append(of[trigger.AgentID], trigger.ID)
		}
		var all sync.WaitGroup
		slots := make(chan struct{}, 4)
		for agent, triggers := range of {
			woken[agent] = true
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				for _, id := range triggers {
					if _, err := h.FireDue(ctx, id); err != nil {
						h.Error(err)
					}
				}
			})
		}
		all.Wait()
		after, fired = due[len(due)-1], fired+len(due)
	}
	return woken, fired
}

// BenchmarkTick: 10,000 schedules of 100 agents come due at one instant; they are fired as the cron tick does, and what they
// sent is routed. The aim is 20 s on two cores.
func BenchmarkTick(b *testing.B) {
	const agents, routines = 100, 100
	ctx := context.Background()
	for b.Loop() {
		h := newHouse(b)
		for i := range agents {
			agent := h.newAgent(h.workspace, fmt.Sprint("agent ", i), 1)
			for j := range routines {
				h.newRoutine(agent, fmt.Sprint("routine ", i, " ", j))
			}
		}
		h.sql(`UPDATE routine_triggers SET next_run_at = date_trunc('minute', clock_timestamp())`)
		h.settle()
		before, began := h.cpu(), time.Now()
		woken, fired := h.fireAll(agents * routines)
		firing := time.Since(began)
		var routing sync.WaitGroup
		slots := make(chan struct{}, 4)
		for agent := range woken {
			slots <- struct{}{}
			routing.Go(func() {
				defer func() { <-slots }()
				if _, err := h.Route(ctx, agent); err != nil {
					h.Error(err)
				}
			})
		}
		routing.Wait()
		if fired < agents*routines {
			b.Fatalf("%d fired", fired)
		}
		all, used := time.Since(began), h.cpu().sub(before)
		var recorded, routed int
		h.ok(h.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM routine_runs), (SELECT count(*) FROM wakeup_requests WHERE run_id IS NOT NULL)`).Scan(&recorded, &routed))
		if recorded < agents*routines || routed != recorded {
			b.Fatalf("%d recorded, %d routed", recorded, routed)
		}
		report(b, map[string]float64{"firing-s": firing.Seconds(), "all-s": all.Seconds(), "ms/trigger": float64(all.Milliseconds()) / float64(recorded),
			"server-cpu-s": used.server.Seconds(), "client-cpu-s": used.client.Seconds()})
	}
}
