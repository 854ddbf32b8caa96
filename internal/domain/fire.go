package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// FireFacts is what a fire is decided on, read after the agent's lane lock (SPEC S4.4 to S4.7). RoutineRunID and TaskID
// are the ids the routine run and, of a heavy routine, its task will have if they are made.
type FireFacts struct {
	RoutineID, TriggerID, RoutineRunID, TaskID string // TriggerID may be "" for a manual fire
	Source                                     RoutineRunSource
	RoutineStatus                              RoutineStatus
	AgentGone                                  bool // the agent is deleted
	SkipsSlots                                 bool // a person holds the workspace, and its schedules' slots are skipped meanwhile
	Heavy                                      bool // has a task template
	Policy                                     ConcurrencyPolicy
	Fingerprint                                string
	ActiveRoutineRun                           string    // the oldest active fire with this fingerprint; "": none
	ActiveWait                                 FireWait  // what that fire waits for, with nothing of it on its way; "": nothing
	QueuedRuns                                 int       // of the agent, for the backlog bound
	Slot                                       time.Time // of a cron fire
	DeliveryKey                                string    // of a webhook fire; "": none
}

// FireAnswer is what a fire comes to.
type FireAnswer string

const (
	FireRecord   FireAnswer = "RECORD"   // write the routine run, and what the plan says besides
	FireSuppress FireAnswer = "SUPPRESS" // a cron fire that is not due to happen: the cursor moves on, nothing is recorded
	FireRefuse   FireAnswer = "REFUSE"   // a webhook or manual fire that is not taken: nothing is recorded, the caller is told
)

// FirePlan is the decision about one fire.
type FirePlan struct {
	Answer  FireAnswer
	Problem FieldError // of REFUSE: INVALID_STATE (webhook 409) or BACKLOG_FULL (webhook 429)
	// AgentMissing asks for an activity entry that says why a SUPPRESSed fire did not happen (C220).
	AgentMissing bool

	Key           string           // unique per workspace, "" without
	Status        RoutineRunStatus // ENQUEUED, TASK_CREATED, SKIPPED or COALESCED
	SkipReason    EndReason        // of SKIPPED
	CoalescedInto string           // of COALESCED: the active routine run
	HeldBy        string           // of COALESCED and of SKIPPED by the policy: the active routine run
	TellWait      FireWait         // people are to be told, once, that fires wait for it, and why; "": no
	CreateTask    bool             // make the task with TaskID
	Request       *FireRequest     // the wakeup request to send; nil: none
}

// FireRequest is the request that a fire sends.
type FireRequest struct {
	Source        WakeupSource // ROUTINE, or TASK_ASSIGNED of a heavy routine
	Basis         WakeBasis    // of TASK_ASSIGNED
	Scope         string
	Class         WakeClass
	PersonWaiting bool // no coalescing window
}

// PlanFire decides what a fire does: the status gate, a person's hold of the workspace, the backlog bound, then the concurrency
// policy.
func PlanFire(f FireFacts) FirePlan {
	if plan, closed := gate(f); closed {
		return plan
	}
	plan := FirePlan{Answer: FireRecord, Key: f.key()}
	switch {
	case f.SkipsSlots && f.Source == RoutineRunSourceCron:
		return plan.skip(EndReasonWorkspaceHeld)
	case Backlog(f.QueuedRuns, f.cause()) == BacklogRefuse:
		return FirePlan{Answer: FireRefuse, Problem: BacklogFull(f.QueuedRuns)}
	case Backlog(f.QueuedRuns, f.cause()) == BacklogSkip:
		return plan.skip(EndReasonBacklogFull)
	case f.ActiveRoutineRun == "" || f.Policy == ConcurrencyPolicyAlwaysEnqueue:
		return plan.send(f)
	}
	plan.HeldBy, plan.TellWait = f.ActiveRoutineRun, f.ActiveWait
	if f.Policy == ConcurrencyPolicySkipIfActive {
		return plan.skip(EndReasonConcurrencyPolicy)
	}
	plan.Status, plan.CoalescedInto = RoutineRunStatusCoalesced, f.ActiveRoutineRun
	if !f.Heavy { // its request is merged or absorbed by routing (SPEC S3.5)
		plan.Request = f.request()
	}
	return plan
}

// Then is the facts of the next fire of the same catch-up: a fire that goes ahead is active for those after it.
func (f FireFacts) Then(plan FirePlan) FireFacts {
	if plan.Status == RoutineRunStatusEnqueued || plan.Status == RoutineRunStatusTaskCreated {
		if f.ActiveRoutineRun == "" {
			f.ActiveRoutineRun = f.RoutineRunID
		}
		if !f.Heavy {
			f.QueuedRuns++
		}
	}
	return f
}

// gate is closed to a routine that is not ACTIVE or whose agent is gone (SPEC S4.4).
func gate(f FireFacts) (FirePlan, bool) {
	if f.RoutineStatus == RoutineStatusActive && !f.AgentGone {
		return FirePlan{}, false
	}
	missing := f.AgentGone && f.RoutineStatus == RoutineStatusActive
	if f.Source == RoutineRunSourceCron {
		return FirePlan{Answer: FireSuppress, AgentMissing: missing}, true
	}
	message := map[RoutineStatus]string{
		RoutineStatusActive:   "the routine's agent was deleted: give the routine another assignee",
		RoutineStatusPaused:   "the routine is paused: resume it first",
		RoutineStatusArchived: "the routine is archived and does not fire any more: make a new one",
	}[f.RoutineStatus]
	return FirePlan{Answer: FireRefuse, Problem: FieldError{Code: UserErrorCodeInvalidState, Message: message}}, true
}

func (p FirePlan) skip(reason EndReason) FirePlan {
	p.Status, p.SkipReason = RoutineRunStatusSkipped, reason
	return p
}

func (p FirePlan) send(f FireFacts) FirePlan {
	p.Request = f.request()
	p.Status, p.CreateTask = RoutineRunStatusEnqueued, f.Heavy
	if f.Heavy {
		p.Status = RoutineRunStatusTaskCreated
	}
	return p
}

// request is what the fire sends: a heavy one tells the assignee of its task, a lightweight one wakes without a task.
func (f FireFacts) request() *FireRequest {
	r := &FireRequest{Class: WakeClassEvent, PersonWaiting: f.Source == RoutineRunSourceManual}
	switch {
	case f.Heavy:
		r.Source, r.Basis, r.Scope = WakeupSourceTaskAssigned, WakeBasisAssignee, TaskScope(f.TaskID)
		return r
	case f.Policy == ConcurrencyPolicyAlwaysEnqueue:
		r.Source, r.Scope = WakeupSourceRoutine, FireScope(f.RoutineRunID)
	default:
		r.Source, r.Scope = WakeupSourceRoutine, RoutineScope(f.RoutineID)
	}
	if f.Source == RoutineRunSourceCron {
		r.Class = WakeClassPeriodic
	}
	return r
}

func (f FireFacts) cause() WakeCause {
	switch f.Source {
	case RoutineRunSourceCron:
		return WakeCauseSchedule
	case RoutineRunSourceWebhook:
		return WakeCauseWebhook
	}
	return WakeCauseFireRoutine
}

func (f FireFacts) key() string {
	switch {
	case f.Source == RoutineRunSourceCron:
		return CronFireKey(f.RoutineID, f.TriggerID, f.Slot)
	case f.Source == RoutineRunSourceWebhook && f.DeliveryKey != "":
		return WebhookFireKey(f.RoutineID, f.TriggerID, f.DeliveryKey)
	}
	return ""
}

// CronFireKey is the idempotency key of a slot: its trigger and its minute since 1970 in UTC (SPEC S3.3, C32).
func CronFireKey(routineID, triggerID string, slot time.Time) string {
	return fmt.Sprintf("routine:%s:%s:%d", routineID, triggerID, slot.Unix()/60)
}

// maxDeliveryKey is the longest delivery key, in bytes, that is stored as it came.
const maxDeliveryKey = 128

// WebhookFireKey is the idempotency key of a delivery that names itself. Callers choose that name: one that is long or
// holds anything but printable ASCII is replaced by its hash.
func WebhookFireKey(routineID, triggerID, deliveryKey string) string {
	plain := len(deliveryKey) <= maxDeliveryKey
	for i := 0; plain && i < len(deliveryKey); i++ {
		plain = deliveryKey[i] > ' ' && deliveryKey[i] < 0x7f
	}
	if !plain {
		sum := sha256.Sum256([]byte(deliveryKey))
		return "routine:" + routineID + ":" + triggerID + ":webhook-sha256:" + hex.EncodeToString(sum[:])
	}
	return "routine:" + routineID + ":" + triggerID + ":webhook:" + deliveryKey
}
