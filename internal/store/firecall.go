package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// fireMutation is the mutation whose keys fires by hand are remembered by.
const fireMutation = "fireRoutine"

// fireCall is a fire that somebody calls for: by hand, or by a delivery that proved itself.
type fireCall struct {
	FireRoutine
	source   domain.RoutineRunSource
	delivery *Delivery // nil: by hand
	caller   auth.Principal

	id      xid.ID // of the routine run
	agentID xid.ID
	routine *routineRow // locked
	trigger callTrigger

	made      Made
	delivered Delivered
	toRoute   xid.ID     // the agent, if the fire's request was left to the dispatcher
	unfit     error      // what is wrong with the delivery's body
	filtered  string     // the condition that keeps the delivery from firing
	err       error      // why this call alone fires nothing
	chain     causeChain // that it goes on with; the zero value: it begins one
}

// as is the context of the transaction with the caller of this fire.
func (x *fireCall) as(ctx context.Context) context.Context {
	return auth.WithPrincipal(ctx, x.caller)
}

// call makes a fire together with others, or alone when it would have to wait for somebody: the others do not wait with it.
func (s *Routines) call(ctx context.Context, x *fireCall) error {
	x.caller, _ = auth.FromContext(ctx)
	err := s.calls.Ask(ctx, x)
	for range pgtx.MaxTries {
		if !errors.Is(err, errHeld) {
			return err
		}
		if err = s.routingTx(ctx, func(t *tx) error { return t.callAll(ctx, []*fireCall{x}, true) }); err == nil {
			err = x.err
		}
	}
	if errors.Is(err, errHeld) {
		return errMoved
	}
	return err
}

// callTogether makes fires in one transaction. Those that fail are found by bisecting.
func (s *Routines) callTogether(ctx context.Context, batch []*fireCall) []error {
	return pgtx.Together(ctx, batch, func(some []*fireCall) ([]error, error) {
		err := s.routingTx(ctx, func(t *tx) error { return t.callAll(ctx, some, false) })
		results := make([]error, len(some))
		for i, x := range some {
			results[i] = x.err
		}
		return results, err
	})
}

// callAll makes fires: agents' lanes first, then routines, then keys, each in their order. The rate limits, repetitions and the
// routines' states are decided in the order of the batch, each fire after those before it. Without wait, fires of lanes that
// others hold are left out.
func (t *tx) callAll(ctx context.Context, batch []*fireCall, wait bool) error {
	for _, x := range batch {
		*x = fireCall{FireRoutine: x.FireRoutine, source: x.source, delivery: x.delivery, caller: x.caller, id: xid.New("rrn")}
	}
	held, err := t.lockCalls(ctx, batch, wait)
	if err != nil {
		return err
	}
	fresh, err := t.claimCallKeys(ctx, held)
	if err != nil {
		return err
	}
	if err := t.readChains(ctx, fresh); err != nil {
		return err
	}
	b := &callBatch{tx: t, recent: map[xid.ID]int{}, seen: map[string]Delivered{}}
	if err := b.decideAll(ctx, fresh); err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	return b.answer(ctx, fresh)
}

// lockCalls locks the lanes of the routines' agents, then the routines, and returns the calls that hold theirs.
func (t *tx) lockCalls(ctx context.Context, batch []*fireCall, wait bool) (held []*fireCall, err error) {
	var routines, agents []xid.ID
	for _, x := range batch {
		routines = append(routines, x.RoutineID)
	}
	routines = pgtx.Distinct(routines)
	assignees, err := t.assignees(ctx, routines)
	if err != nil {
		return nil, err
	}
	for _, x := range batch {
		of := assignees[x.RoutineID]
		if of.workspaceID != x.WorkspaceID {
			x.err = pgtx.NotFound(sql.ErrNoRows, []string{"routineId"}, "routine", x.RoutineID)
			continue
		}
		x.agentID = of.agentID
		agents = append(agents, of.agentID)
	}
	if len(agents) == 0 {
		return nil, nil
	}
	if _, err := t.lockToRoute(ctx, wait, pgtx.Distinct(agents)); err != nil {
		return nil, err
	}
	locked, err := t.lockRoutines(ctx, routines)
	if err != nil {
		return nil, err
	}
	for _, x := range batch {
		if x.err != nil {
			continue
		}
		_, hasLane := t.locked[x.agentID]
		x.routine = locked[x.RoutineID]
		switch {
		case x.routine == nil:
			x.err = pgtx.NotFound(sql.ErrNoRows, []string{"routineId"}, "routine", x.RoutineID)
		case !hasLane || x.routine.assigneeID != x.agentID:
			x.err = errHeld
		default:
			held = append(held, x)
		}
	}
	return held, nil
}

// agentOf is an agent, and the workspace that it was looked for in.
type agentOf struct{ workspaceID, agentID xid.ID }

// assignees looks without locks whose routines these are.
func (t *tx) assignees(ctx context.Context, routines []xid.ID) (map[xid.ID]agentOf, error) {
	const query = `SELECT id, workspace_id, assignee_id FROM routines WHERE id = ANY($1) AND deleted_at IS NULL`
	found := map[xid.ID]agentOf{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var id xid.ID
		var of agentOf
		err = rows.Scan(&id, &of.workspaceID, &of.agentID)
		found[id] = of
		return struct{}{}, err
	}, query, pgtx.IDs(routines))
	return found, pgtx.Wrap("look for the agents of routines", err)
}

// lockRoutines locks routines that are not deleted, in the order of their ids.
func (t *tx) lockRoutines(ctx context.Context, ids []xid.ID) (map[xid.ID]*routineRow, error) {
	const query = `
SELECT ` + routineColumns + `
FROM routines r
JOIN agents a ON a.id = r.assignee_id
WHERE r.id = ANY($1) AND r.deleted_at IS NULL
ORDER BY r.id
FOR NO KEY UPDATE OF r`
	locked := map[xid.ID]*routineRow{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		r, err := scanRoutine(rows)
		locked[r.id] = &r
		return struct{}{}, err
	}, query, pgtx.IDs(ids))
	return locked, pgtx.Wrap("lock routines", err)
}

// claimCallKeys takes the keys of fires by hand, in their order, and returns the calls that are to fire, in the order of the batch.
// A second one with a key of the same transaction is left out: it finds the first one's result later.
func (t *tx) claimCallKeys(ctx context.Context, batch []*fireCall) (fresh []*fireCall, err error) {
	var keyed []*fireCall
	for _, x := range batch {
		if x.err = x.Idempotency.check(); x.err == nil && x.Key != "" {
			keyed = append(keyed, x)
		}
	}
	slices.SortStableFunc(keyed, func(a, b *fireCall) int {
		return cmp.Or(cmp.Compare(a.WorkspaceID, b.WorkspaceID), cmp.Compare(a.Key, b.Key))
	})
	var first []*fireCall
	var keys []keyClaim
	for _, x := range keyed {
		if last := len(first) - 1; last >= 0 && first[last].Key == x.Key && first[last].WorkspaceID == x.WorkspaceID {
			x.err = errHeld
			continue
		}
		first, keys = append(first, x), append(keys, keyClaim{x.as(ctx), x.WorkspaceID, x.Idempotency, x.id})
	}
	if len(keys) > 0 {
		taken, err := t.claimKeys(ctx, fireMutation, keys)
		if err != nil {
			return nil, err
		}
		for i, x := range first {
			if taken[i] {
				continue
			}
			x.made.Replayed = true
			x.made.ID, x.err = t.earlierResult(x.as(ctx), keyOwner(x.as(ctx), x.WorkspaceID), fireMutation, x.Idempotency)
			if x.err != nil && !isRefusal(x.err) {
				return nil, x.err
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(batch), func(x *fireCall) bool { return x.err != nil || x.made.Replayed }), nil
}

// callBatch decides calls one after the other, and writes what was decided together.
type callBatch struct {
	*tx
	queue  *fireQueue
	recent map[xid.ID]int       // deliveries of the batch that proved themselves, of a trigger
	seen   map[string]Delivered // deliveries of the batch that fired, by what they are repeated by
	calls  []*fireCall          // that fire
	fires  []fire
}

func (b *callBatch) decideAll(ctx context.Context, batch []*fireCall) (err error) {
	if err := b.readCallTriggers(ctx, batch); err != nil {
		return err
	}
	marked := make([]markedRoutine, len(batch))
	for i, x := range batch {
		x.provide()
		marked[i] = markedRoutine{x.routine, x.routine.fingerprint(x.Variables)}
	}
	if b.queue, err = b.readFireQueue(ctx, marked); err != nil {
		return err
	}
	for _, x := range batch {
		decide := b.decideByHand
		if x.delivery != nil {
			decide = b.decideDelivery
		}
		if x.err = decide(x); x.err != nil && !isRefusal(x.err) {
			return x.err
		}
	}
	return nil
}

// facts are what a call is decided on.
func (b *callBatch) facts(x *fireCall) domain.FireFacts {
	f := b.queue.facts(x.routine, domain.FireFacts{TriggerID: string(x.TriggerID), Source: x.source, Fingerprint: x.routine.fingerprint(x.Variables)})
	f.RoutineRunID = string(x.id)
	if x.delivery != nil {
		f.DeliveryKey = x.delivery.Key
	}
	return f
}

// accept notes a fire that is to be written.
func (b *callBatch) accept(x *fireCall, facts domain.FireFacts, plan domain.FirePlan, values map[string]string) {
	b.queue.note(x.routine, facts, plan)
	b.calls = append(b.calls, x)
	b.fires = append(b.fires, fire{source: x.source, routine: x.routine, id: x.id, triggerID: x.TriggerID, causationID: cmp.Or(x.chain.causationID, xid.New("cau")),
		hops: x.chain.hops, fingerprint: facts.Fingerprint, plan: plan, values: values})
	x.made = Made{ID: x.id}
}

// valuesNow resolves the variables of a fire without a slot, whose instant is told in the zone of its schedule, if it names one, else
// in the workspace's (SPEC S4.8).
func (x *fireCall) valuesNow(now time.Time) (map[string]string, error) {
	location, err := time.LoadLocation(x.trigger.zone)
	if err != nil {
		return nil, fmt.Errorf("read the time zone of a fire: %w", err)
	}
	resolved, problems := domain.ResolveVariables(x.routine.variables, x.Variables, domain.BuiltIns(now, location))
	return domain.VariableValues(resolved), domain.AsUserError(problems)
}

// write writes the fires, and notes them as the last ones of their triggers and routines. The last_fired_at of a schedule is written
// with its cursor.
func (b *callBatch) write(ctx context.Context) error {
	if len(b.fires) == 0 {
		return nil
	}
	var triggers []xid.ID
	for i, x := range b.calls {
		b.fires[i].by = fireActor(x.as(ctx), x.source)
		if x.TriggerID != "" {
			triggers = append(triggers, x.TriggerID)
		}
	}
	if err := b.writeFires(ctx, b.fires); err != nil {
		return err
	}
	if len(triggers) > 0 {
		const touch = `UPDATE routine_triggers SET last_fired_at = $2 WHERE id = ANY($1) AND kind <> 'SCHEDULE'`
		if _, err := pgtx.Exec(ctx, b, touch, pgtx.IDs(pgtx.Distinct(triggers)), b.Now); err != nil {
			return fmt.Errorf("note the last fire of triggers: %w", err)
		}
	}
	return b.touchLastRun(ctx, b.Now, firedRoutines(b.fires)...)
}

// answer records the deliveries, gives back the keys of refused calls, and says who is to be routed.
func (b *callBatch) answer(ctx context.Context, batch []*fireCall) error {
	for _, x := range batch {
		if b.sentUnrouted(x.agentID) && x.made.ID != "" {
			x.toRoute = x.agentID
		}
		if x.err == nil || x.delivery != nil {
			continue
		}
		if err := b.forgetKey(x.as(ctx), x.WorkspaceID, fireMutation, x.Idempotency); err != nil {
			return err
		}
	}
	return b.recordDeliveries(ctx, batch)
}
