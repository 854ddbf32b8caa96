package domain

// RoutineStatus is whether a routine fires (SPEC S4.1).
//
//rouse:enum
type RoutineStatus string

const (
	RoutineStatusActive   RoutineStatus = "ACTIVE"   // fires
	RoutineStatusPaused   RoutineStatus = "PAUSED"   // held
	RoutineStatusArchived RoutineStatus = "ARCHIVED" // gone for good
)

// ConcurrencyPolicy is what a fire does when it meets an active one (SPEC S4.6).
//
//rouse:enum
type ConcurrencyPolicy string

const (
	ConcurrencyPolicyCoalesceIfActive ConcurrencyPolicy = "COALESCE_IF_ACTIVE" // merge into the active one
	ConcurrencyPolicySkipIfActive     ConcurrencyPolicy = "SKIP_IF_ACTIVE"     // drop this fire
	ConcurrencyPolicyAlwaysEnqueue    ConcurrencyPolicy = "ALWAYS_ENQUEUE"     // always run
)

// CatchUpPolicy is what happens to slots missed while the scheduler was down (SPEC S4.5).
//
//rouse:enum
type CatchUpPolicy string

const (
	CatchUpPolicyEnqueueMissedWithCap CatchUpPolicy = "ENQUEUE_MISSED_WITH_CAP" // fire the newest missed slots, up to the cap
	CatchUpPolicySkipMissed           CatchUpPolicy = "SKIP_MISSED"             // fire the newest slot only
)

// VariableType is the type of a declared template variable (SPEC S4.8).
//
//rouse:enum
type VariableType string

const (
	VariableTypeText    VariableType = "TEXT"    // text
	VariableTypeNumber  VariableType = "NUMBER"  // a decimal number
	VariableTypeBoolean VariableType = "BOOLEAN" // true or false
	VariableTypeSelect  VariableType = "SELECT"  // one of the options
)

// TriggerKind is what makes a routine fire.
//
//rouse:enum
type TriggerKind string

const (
	TriggerKindSchedule TriggerKind = "SCHEDULE" // a cron schedule
	TriggerKindWebhook  TriggerKind = "WEBHOOK"  // a signed HTTP POST
	TriggerKindManual   TriggerKind = "MANUAL"   // by hand
)

// SigningMode is how webhook callers prove themselves (SPEC S4.9).
//
//rouse:enum
type SigningMode string

const (
	SigningModeNone       SigningMode = "NONE"        // no proof
	SigningModeBearer     SigningMode = "BEARER"      // Authorization: Bearer
	SigningModeHMACSHA256 SigningMode = "HMAC_SHA256" // HMAC-SHA-256 over the raw body, or over timestamp and body
)

// BackfillOutcome is what becomes of a slot that somebody wants to be fired anew.
//
//rouse:enum
type BackfillOutcome string

const (
	BackfillOutcomeFired        BackfillOutcome = "FIRED"         // it fires
	BackfillOutcomeAlreadyFired BackfillOutcome = "ALREADY_FIRED" // it has fired before
	BackfillOutcomePending      BackfillOutcome = "PENDING"       // the schedule will fire it by itself
)

// WebhookPreset is a sender that a webhook understands: how it signs, how it calls its events, and how it names a delivery.
//
//rouse:enum
type WebhookPreset string

const (
	WebhookPresetGitHub   WebhookPreset = "GITHUB"   // X-Hub-Signature-256, X-GitHub-Event, X-GitHub-Delivery
	WebhookPresetGitLab   WebhookPreset = "GITLAB"   // X-Gitlab-Token or Standard Webhooks, X-Gitlab-Event, Idempotency-Key
	WebhookPresetStripe   WebhookPreset = "STRIPE"   // Stripe-Signature, type and id of the body
	WebhookPresetSlack    WebhookPreset = "SLACK"    // X-Slack-Signature, event.type and event_id of the body
	WebhookPresetLinear   WebhookPreset = "LINEAR"   // Linear-Signature, Linear-Event, Linear-Delivery
	WebhookPresetStandard WebhookPreset = "STANDARD" // Standard Webhooks, type of the body, webhook-id
)

// RoutineRunSource is the kind of trigger behind a fire.
//
//rouse:enum
type RoutineRunSource string

const (
	RoutineRunSourceCron    RoutineRunSource = "CRON"    // schedule
	RoutineRunSourceWebhook RoutineRunSource = "WEBHOOK" // HTTP
	RoutineRunSourceManual  RoutineRunSource = "MANUAL"  // by hand
)

// RoutineRunStatus is the disposition of a fire.
//
//rouse:enum
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
