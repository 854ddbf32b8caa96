package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// FireRoutine is a fire by hand. TriggerID may be empty.
type FireRoutine struct {
	WorkspaceID, RoutineID, TriggerID xid.ID
	Variables                         map[string]string
	Idempotency
}

// FireRoutine fires a routine by hand: a routine run and, unless the policy drops it, a request with its run (SPEC S4.10).
// agentID is who is to be routed; "": nobody. Fires that come at once share a transaction.
func (s *Routines) FireRoutine(ctx context.Context, in FireRoutine) (made Made, agentID xid.ID, err error) {
	x := &fireCall{FireRoutine: in, source: domain.RoutineRunSourceManual}
	if err := s.call(ctx, x); err != nil {
		return Made{}, "", pgtx.Wrap("fire routine", err)
	}
	return x.made, x.toRoute, nil
}

// decideByHand decides a fire by hand: what its caller can mend is its error.
func (b *callBatch) decideByHand(x *fireCall) error {
	if err := x.checkTrigger(); err != nil {
		return err
	}
	values, err := x.valuesNow(b.Now)
	if err != nil {
		return err
	}
	facts := b.facts(x)
	plan := domain.PlanFire(facts)
	if plan.Answer != domain.FireRecord {
		return domain.AsUserError([]domain.FieldError{plan.Problem})
	}
	b.accept(x, facts, plan, values)
	return nil
}

// checkTrigger refuses a fire by hand that names a trigger which is not there, or is switched off.
func (x *fireCall) checkTrigger() error {
	switch {
	case x.TriggerID == "":
		return nil
	case !x.trigger.there:
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeNotFound, "there is no trigger %s in this workspace", x.TriggerID)
	case !x.trigger.enabled:
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeInvalidState, "the trigger is switched off; switch it on, or fire without naming it")
	}
	return nil
}
