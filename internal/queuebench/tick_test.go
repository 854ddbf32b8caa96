package queuebench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// newRoutine makes a lightweight routine that is due every hour: a slower tick than a minute must not find a second slot.
func (h *house) newRoutine(agent xid.ID, name string, template *domain.TaskTemplate) {
	h.Helper()
	_, err := h.CreateRoutine(context.Background(), store.CreateRoutine{WorkspaceID: h.workspace, Name: name, Description: "Look around, {{date}}.", AssigneeID: agent, TaskTemplate: template,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: 25,
		Triggers: []store.TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: "0 * * * *", Enabled: true}}})
	h.ok(err)
}

// fireAll fires n due triggers and routes what they send as the cron tick does: in order, by page, in batches, those of one
// agent one after the other, four batches at a time.
func (h *house) fireAll(n int) (firing, all time.Duration) {
	h.Helper()
	ctx, began := context.Background(), time.Now()
	var mu sync.Mutex
	var woken []xid.ID
	fired := 0
	for after := (store.DueTrigger{}); ; {
		due, err := h.DueTriggers(ctx, after, 1000)
		h.ok(err)
		if len(due) == 0 {
			break
		}
		var lists [][]xid.ID
		for i, trigger := range due { // an agent's triggers are neighbours here
			if last := len(lists) - 1; last >= 0 && (due[i-1].AgentID == trigger.AgentID || len(lists[last]) < 100) {
				lists[last] = append(lists[last], trigger.ID)
				continue
			}
			lists = append(lists, []xid.ID{trigger.ID})
		}
		h.parallel(lists, func(list []xid.ID) {
			agents, err := h.FireDue(ctx, list...)
			h.check(err)
			mu.Lock()
			defer mu.Unlock()
			woken = append(woken, agents...)
		})
		after, fired = due[len(due)-1], fired+len(due)
	}
	if fired != n {
		h.Fatalf("%d fired, want %d", fired, n)
	}
	firing = time.Since(began)
	slices.Sort(woken)
	h.parallel(slices.Collect(slices.Chunk(slices.Compact(woken), 20)), func(list []xid.ID) {
		_, err := h.Route(ctx, list...)
		h.check(err)
	})
	return firing, time.Since(began)
}

// parallel does something with each list, with four at a time.
func (h *house) parallel(lists [][]xid.ID, do func([]xid.ID)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for _, list := range lists {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(list)
		})
	}
	all.Wait()
}

// BenchmarkTick: 10,000 schedules come due at one instant; they are fired as the cron tick does, and what they sent is
// routed. The aim is 20 s on two cores.
func BenchmarkTick(b *testing.B) {
	for _, c := range []struct {
		agents, routines int
		template         *domain.TaskTemplate
	}{{100, 100, nil}, {10_000, 1, nil}, {100, 100, &domain.TaskTemplate{Title: "Look around, {{date}}"}}} {
		name := fmt.Sprintf("%d agents, %d each", c.agents, c.routines)
		if c.template != nil {
			name += ", with tasks"
		}
		b.Run(name, func(b *testing.B) { benchmarkTick(b, c.agents, c.routines, c.template) })
	}
}

func benchmarkTick(b *testing.B, agents, routines int, template *domain.TaskTemplate) {
	ctx := context.Background()
	for b.Loop() {
		h := newHouse(b)
		for i := range agents {
			agent := h.newAgent(h.workspace, fmt.Sprint("agent ", i), 1)
			for j := range routines {
				h.newRoutine(agent, fmt.Sprint("routine ", i, " ", j), template)
			}
		}
		h.sql(`UPDATE routine_triggers SET next_run_at = date_trunc('hour', clock_timestamp())`)
		h.settle()
		before := h.cpu()
		firing, all := h.fireAll(agents * routines)
		used := h.cpu().sub(before)
		var recorded, routed int
		h.ok(h.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM routine_runs), (SELECT count(*) FROM wakeup_requests WHERE run_id IS NOT NULL)`).Scan(&recorded, &routed))
		if recorded != agents*routines || routed != recorded {
			b.Fatalf("%d recorded, %d routed", recorded, routed)
		}
		report(b, map[string]float64{"firing-s": firing.Seconds(), "all-s": all.Seconds(), "ms/trigger": float64(all.Milliseconds()) / float64(recorded),
			"server-cpu-s": used.server.Seconds(), "client-cpu-s": used.client.Seconds()})
	}
}
