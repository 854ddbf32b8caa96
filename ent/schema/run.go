package schema

import (
	"encoding/json"
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// Run is the execution record. The row is narrow, since the queue rewrites it; its texts live in RunContent.
type Run struct{ ent.Schema }

// Mixin of Run.
func (Run) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "run"}, owned{}, caused{}} }

// Fields of Run. A QUEUED run is due when parked_reason is NULL; parked_until NULL with a reason means "until an event".
// due_at is when it last became due after it had waited, NULL since it was asked for.
// unattended says that neither a person nor a schedule asked for it: agents did, or a webhook.
// attempt is the number of the newest attempt and only rises. outcome is text without a CHECK (SPEC S10.2).
func (Run) Fields() []ent.Field {
	return []ent.Field{
		field.Int("revision").Default(1).Annotations(entsql.Default("1")),
		ref("agent_id"),
		optionalRef("task_id"),
		optionalRef("routine_id"),
		field.String("scope").MaxRuneLen(80).Annotations(hidden()),
		field.Enum("source").GoType(domain.WakeupSource("")).SchemaType(native("wakeup_source")).Annotations(entgql.Type("WakeupSource")),
		field.Enum("wake_class").GoType(domain.WakeClass("")).SchemaType(native("wake_class")).Annotations(entgql.Type("WakeClass")),
		field.String("fingerprint").MaxRuneLen(64).Optional().Nillable().Annotations(hidden()),
		field.Enum("status").GoType(domain.RunStatus("")).SchemaType(native("run_status")).Default(string(domain.RunStatusQueued)).Annotations(entgql.Type("RunStatus")),
		field.Enum("parked_reason").GoType(domain.ParkedReason("")).SchemaType(native("parked_reason")).Optional().Nillable().Annotations(hidden()),
		field.Time("parked_until").Optional().Nillable().Annotations(hidden()),
		field.Time("due_at").Optional().Nillable().Annotations(hidden()),
		field.Int("attempt").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.Int("abandonments").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.Int("coalesced_count").Default(1).Annotations(entsql.Default("1")),
		field.Int("retry_count").Default(0).Annotations(entsql.Default("0")),
		field.Int("guard_errors").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.Int("hops").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.Bool("unattended").Default(false).Annotations(entsql.Default("false"), hidden()),
		field.Int64("event_seq").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.String("session_id").MaxRuneLen(500).Optional().Nillable().Annotations(entgql.MapsTo("sessionId")),
		field.String("outcome").MaxRuneLen(64).Optional().Nillable(),
		field.Enum("end_reason").GoType(domain.EndReason("")).SchemaType(native("end_reason")).Optional().Nillable().Annotations(hidden()),
		field.String("summary").SchemaType(text()).Optional().Nillable(),
		field.Enum("error_code").GoType(domain.RunErrorCode("")).SchemaType(native("run_error_code")).Optional().Nillable().Annotations(hidden()),
		field.String("error_message").SchemaType(text()).Optional().Nillable().Annotations(hidden()),
		field.Bool("error_retryable").Default(false).Annotations(entsql.Default("false"), hidden()),
		field.Enum("retry_source").GoType(domain.RetrySource("")).SchemaType(native("retry_source")).Optional().Nillable().Annotations(hidden()),
		field.Time("rate_limit_reset_at").Optional().Nillable().Annotations(hidden()),
		field.Int("limits").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.Time("limited_since").Optional().Nillable().Annotations(hidden()),
		field.Int64("input_tokens").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.Int64("output_tokens").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.String("cost_usd").Optional().Nillable().SchemaType(money()).Annotations(hidden()),
		field.Time("requested_at").Default(time.Now).Annotations(entsql.DefaultExpr("clock_timestamp()"), entgql.OrderField("REQUESTED_AT")),
		field.Time("claimed_at").Optional().Nillable(),
		field.Time("started_at").Optional().Nillable().Annotations(hidden()),
		field.Time("finished_at").Optional().Nillable(),
		field.Time("cancel_requested_at").Optional().Nillable(),
		field.String("cancel_note").MaxRuneLen(1000).Optional().Nillable().Annotations(hidden()),
	}
}

// Edges of Run.
func (Run) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("agent", Agent.Type).Field("agent_id").Unique().Required(),
		edge.To("task", Task.Type).Field("task_id").Unique().Annotations(hidden()),
		edge.To("routine", Routine.Type).Field("routine_id").Unique(),
		edge.To("wakeup_requests", WakeupRequest.Type).Annotations(hidden()),
		edge.To("attempts", RunAttempt.Type).Annotations(hidden()),
		edge.To("content", RunContent.Type).Unique().Annotations(hidden()),
	}
}

// Indexes of Run: due runs of an agent in order, parked ones by instant, live ones by scope; and one for each filter of a list,
// in the list's order. A run that ended well is in the fewest, because each of its changes writes an entry into all of them:
// runs_by_status has none for it. The numbers of a workspace's queue are counted in runs_by_status, runs_waiting and runs_ended.
func (Run) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("agent_id", "requested_at", "id").StorageKey("runs_due").Annotations(where("status = 'QUEUED' AND parked_reason IS NULL")),
		index.Fields("parked_until").StorageKey("runs_parked").Annotations(where("status = 'QUEUED' AND parked_until IS NOT NULL")),
		index.Fields("agent_id", "parked_until").StorageKey("runs_parked_lane").Annotations(where("status = 'QUEUED' AND parked_until IS NOT NULL")),
		index.Fields("agent_id", "scope", "requested_at", "id").StorageKey("runs_scope_busy").Annotations(where("status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY'")),
		index.Fields("agent_id").StorageKey("runs_task_blocked").Annotations(where("status = 'QUEUED' AND parked_reason = 'TASK_BLOCKED'")),
		index.Fields("workspace_id", "status", "requested_at", "id").StorageKey("runs_by_status").Annotations(where("status <> 'FINISHED'")),
		index.Fields("workspace_id", "parked_reason", "requested_at", "id").StorageKey("runs_waiting").Annotations(where("parked_reason IS NOT NULL")),
		index.Fields("workspace_id", "requested_at", "id").StorageKey("runs_unprocessed").Annotations(where("status = 'FINISHED' AND outcome IS DISTINCT FROM 'processed'")),
		index.Fields("workspace_id", "finished_at", "status").StorageKey("runs_ended").Annotations(where("finished_at IS NOT NULL")),
		index.Fields("agent_id", "scope").StorageKey("runs_queued_scope").Annotations(where("status = 'QUEUED'")),
		index.Fields("agent_id", "scope").StorageKey("runs_live_scope").Unique().Annotations(where("status = 'CLAIMED'")),
		index.Fields("workspace_id", "finished_at").StorageKey("runs_silent").Annotations(where("status = 'FINISHED' AND outcome = 'processed' AND session_id IS NULL")),
		index.Fields("workspace_id", "requested_at", "id"),
		index.Fields("agent_id", "requested_at", "id"),
		index.Fields("agent_id", "finished_at").StorageKey("runs_ended_agent").Annotations(where("finished_at IS NOT NULL")),
		index.Fields("task_id", "requested_at", "id").Annotations(where("task_id IS NOT NULL")),
		index.Fields("routine_id", "requested_at", "id").Annotations(where("routine_id IS NOT NULL")),
	}
}

// Annotations of Run.
func (Run) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(), entgql.Implements("Versioned"),
		table(map[string]string{
			"runs_session":      "session_id <> ''",
			"runs_parked":       "parked_reason IS NULL OR status = 'QUEUED'",
			"runs_parked_until": "parked_until IS NULL OR parked_reason IS NOT NULL",
			"runs_claimed":      "(claimed_at IS NOT NULL) OR (status <> 'CLAIMED')",
			"runs_ended":        "(finished_at IS NOT NULL) = (status IN ('FINISHED', 'FAILED', 'CANCELLED'))",
		}),
	}
}

// RunContent holds the long texts of a run apart from the row that the queue rewrites.
type RunContent struct{ ent.Schema }

// Mixin of RunContent.
func (RunContent) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "rct"}, owned{}} }

// Fields of RunContent. full_prompt is what a new session would be told, while assembled_prompt is what is new for the one
// that the newest attempt resumes; "" when it resumes none.
func (RunContent) Fields() []ent.Field {
	return []ent.Field{
		ref("run_id"),
		field.String("assembled_prompt").SchemaType(text()).Default(""),
		field.String("full_prompt").SchemaType(text()).Default("").Annotations(entsql.Default("")),
		field.String("summary_injected").SchemaType(text()).Default(""),
		field.JSON("context_snapshot", json.RawMessage{}).SchemaType(jsonb()).Default(json.RawMessage("{}")),
		field.JSON("result", json.RawMessage{}).SchemaType(jsonb()).Optional(),
	}
}

// Edges of RunContent.
func (RunContent) Edges() []ent.Edge {
	return []ent.Edge{edge.From("run", Run.Type).Ref("content").Field("run_id").Unique().Required()}
}

// Annotations of RunContent.
func (RunContent) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }
