package domain

import "io"

// RoutineStatus is whether a routine fires (SPEC S4.1).
type RoutineStatus string

const (
	RoutineStatusActive   RoutineStatus = "ACTIVE"   // fires
	RoutineStatusPaused   RoutineStatus = "PAUSED"   // held
	RoutineStatusArchived RoutineStatus = "ARCHIVED" // gone for good
)

var routineStatusValues = []RoutineStatus{
	RoutineStatusActive,
	RoutineStatusPaused,
	RoutineStatusArchived,
}

// Values lists every RoutineStatus, for the database check and the API enum.
func (RoutineStatus) Values() []string { return enumValues(routineStatusValues) }

// MarshalGQL writes the value as the API spells it.
func (v RoutineStatus) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *RoutineStatus) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, routineStatusValues) }

// ConcurrencyPolicy is what a fire does when it meets an active one (SPEC S4.6).
type ConcurrencyPolicy string

const (
	ConcurrencyPolicyCoalesceIfActive ConcurrencyPolicy = "COALESCE_IF_ACTIVE" // merge into the active one
	ConcurrencyPolicySkipIfActive     ConcurrencyPolicy = "SKIP_IF_ACTIVE"     // drop this fire
	ConcurrencyPolicyAlwaysEnqueue    ConcurrencyPolicy = "ALWAYS_ENQUEUE"     // always run
)

var concurrencyPolicyValues = []ConcurrencyPolicy{
	ConcurrencyPolicyCoalesceIfActive,
	ConcurrencyPolicySkipIfActive,
	ConcurrencyPolicyAlwaysEnqueue,
}

// Values lists every ConcurrencyPolicy, for the database check and the API enum.
func (ConcurrencyPolicy) Values() []string { return enumValues(concurrencyPolicyValues) }

// MarshalGQL writes the value as the API spells it.
func (v ConcurrencyPolicy) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *ConcurrencyPolicy) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, concurrencyPolicyValues)
}

// CatchUpPolicy is what happens to slots missed while the scheduler was down (SPEC S4.5).
type CatchUpPolicy string

const (
	CatchUpPolicyEnqueueMissedWithCap CatchUpPolicy = "ENQUEUE_MISSED_WITH_CAP" // fire the newest missed slots, up to the cap
	CatchUpPolicySkipMissed           CatchUpPolicy = "SKIP_MISSED"             // fire the newest slot only
)

var catchUpPolicyValues = []CatchUpPolicy{
	CatchUpPolicyEnqueueMissedWithCap,
	CatchUpPolicySkipMissed,
}

// Values lists every CatchUpPolicy, for the database check and the API enum.
func (CatchUpPolicy) Values() []string { return enumValues(catchUpPolicyValues) }

// MarshalGQL writes the value as the API spells it.
func (v CatchUpPolicy) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *CatchUpPolicy) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, catchUpPolicyValues) }

// VariableType is the type of a declared template variable (SPEC S4.8).
type VariableType string

const (
	VariableTypeText    VariableType = "TEXT"    // text
	VariableTypeNumber  VariableType = "NUMBER"  // a decimal number
	VariableTypeBoolean VariableType = "BOOLEAN" // true or false
	VariableTypeSelect  VariableType = "SELECT"  // one of the options
)

var variableTypeValues = []VariableType{
	VariableTypeText,
	VariableTypeNumber,
	VariableTypeBoolean,
	VariableTypeSelect,
}

// Values lists every VariableType, for the database check and the API enum.
func (VariableType) Values() []string { return enumValues(variableTypeValues) }

// MarshalGQL writes the value as the API spells it.
func (v VariableType) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *VariableType) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, variableTypeValues) }

// TriggerKind is what makes a routine fire.
type TriggerKind string

const (
	TriggerKindSchedule TriggerKind = "SCHEDULE" // a cron schedule
	TriggerKindWebhook  TriggerKind = "WEBHOOK"  // a signed HTTP POST
	TriggerKindManual   TriggerKind = "MANUAL"   // by hand
)

var triggerKindValues = []TriggerKind{
	TriggerKindSchedule,
	TriggerKindWebhook,
	TriggerKindManual,
}

// Values lists every TriggerKind, for the database check and the API enum.
func (TriggerKind) Values() []string { return enumValues(triggerKindValues) }

// MarshalGQL writes the value as the API spells it.
func (v TriggerKind) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *TriggerKind) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, triggerKindValues) }

// SigningMode is how webhook callers prove themselves (SPEC S4.9).
type SigningMode string

const (
	SigningModeNone       SigningMode = "NONE"        // no proof
	SigningModeBearer     SigningMode = "BEARER"      // Authorization: Bearer
	SigningModeHMACSHA256 SigningMode = "HMAC_SHA256" // HMAC-SHA-256 over the raw body, or over timestamp and body
)

var signingModeValues = []SigningMode{
	SigningModeNone,
	SigningModeBearer,
	SigningModeHMACSHA256,
}

// Values lists every SigningMode, for the database check and the API enum.
func (SigningMode) Values() []string { return enumValues(signingModeValues) }

// MarshalGQL writes the value as the API spells it.
func (v SigningMode) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *SigningMode) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, signingModeValues) }

// RoutineRunSource is the kind of trigger behind a fire.
type RoutineRunSource string

const (
	RoutineRunSourceCron    RoutineRunSource = "CRON"    // schedule
	RoutineRunSourceWebhook RoutineRunSource = "WEBHOOK" // HTTP
	RoutineRunSourceManual  RoutineRunSource = "MANUAL"  // by hand
)

var routineRunSourceValues = []RoutineRunSource{
	RoutineRunSourceCron,
	RoutineRunSourceWebhook,
	RoutineRunSourceManual,
}

// Values lists every RoutineRunSource, for the database check and the API enum.
func (RoutineRunSource) Values() []string { return enumValues(routineRunSourceValues) }

// MarshalGQL writes the value as the API spells it.
func (v RoutineRunSource) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *RoutineRunSource) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, routineRunSourceValues)
}

// RoutineRunStatus is the disposition of a fire.
type RoutineRunStatus string

const (
	RoutineRunStatusReceived    RoutineRunStatus = "RECEIVED"     // recorded
	RoutineRunStatusTaskCreated RoutineRunStatus = "TASK_CREATED" // task made
	RoutineRunStatusEnqueued    RoutineRunStatus = "ENQUEUED"     // wakeup made
	RoutineRunStatusDone        RoutineRunStatus = "DONE"         // work ended well
	RoutineRunStatusSkipped     RoutineRunStatus = "SKIPPED"      // dropped by policy
	RoutineRunStatusCoalesced   RoutineRunStatus = "COALESCED"    // merged by policy
	RoutineRunStatusCancelled   RoutineRunStatus = "CANCELLED"    // work cancelled
	RoutineRunStatusFailed      RoutineRunStatus = "FAILED"       // dispatch or work failed
)

var routineRunStatusValues = []RoutineRunStatus{
	RoutineRunStatusReceived,
	RoutineRunStatusTaskCreated,
	RoutineRunStatusEnqueued,
	RoutineRunStatusDone,
	RoutineRunStatusSkipped,
	RoutineRunStatusCoalesced,
	RoutineRunStatusCancelled,
	RoutineRunStatusFailed,
}

// Values lists every RoutineRunStatus, for the database check and the API enum.
func (RoutineRunStatus) Values() []string { return enumValues(routineRunStatusValues) }

// MarshalGQL writes the value as the API spells it.
func (v RoutineRunStatus) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *RoutineRunStatus) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, routineRunStatusValues)
}
