package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Routine is a task template (heavy) or a bare wake (lightweight) with triggers.
type Routine struct{ ent.Schema }

// Mixin of Routine.
func (Routine) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "rtn"}, owned{}, versioned{}} }

// Fields of Routine. A NULL task_template makes it lightweight.
func (Routine) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").MaxRuneLen(200).NotEmpty().Annotations(entgql.OrderField("NAME")),
		field.String("description").Default("").SchemaType(text()).Annotations(entgql.Type("Markdown")),
		ref("assignee_id"),
		field.Enum("status").GoType(domain.RoutineStatus("")).Default(string(domain.RoutineStatusActive)).Annotations(entgql.Type("RoutineStatus")),
		field.Enum("concurrency_policy").GoType(domain.ConcurrencyPolicy("")).Default(string(domain.ConcurrencyPolicyCoalesceIfActive)).Annotations(entgql.Type("ConcurrencyPolicy")),
		field.Enum("catch_up_policy").GoType(domain.CatchUpPolicy("")).Default(string(domain.CatchUpPolicyEnqueueMissedWithCap)).Annotations(entgql.Type("CatchUpPolicy")),
		field.Int("catch_up_max").Default(25),
		field.JSON("task_template", &domain.TaskTemplate{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
		field.JSON("variables", []domain.RoutineVariable{}).Default([]domain.RoutineVariable{}).SchemaType(jsonb()).Annotations(hidden()),
		field.Time("last_run_at").Optional().Nillable(),
		field.Time("deleted_at").Optional().Nillable().Annotations(hidden()),
	}
}

// Edges of Routine.
func (Routine) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("assignee", Agent.Type).Field("assignee_id").Unique().Required().Annotations(hidden()),
		edge.To("triggers", RoutineTrigger.Type).Annotations(hidden()),
	}
}

// Indexes of Routine.
func (Routine) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "name").Unique().Annotations(where("deleted_at IS NULL")),
		index.Fields("workspace_id", "created_at", "id"),
		index.Fields("assignee_id"),
	}
}

// Annotations of Routine.
func (Routine) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(), entgql.Implements("Versioned"),
		table(map[string]string{
			"routines_status":             oneOf("status", domain.RoutineStatus("").Values()),
			"routines_concurrency_policy": oneOf("concurrency_policy", domain.ConcurrencyPolicy("").Values()),
			"routines_catch_up_policy":    oneOf("catch_up_policy", domain.CatchUpPolicy("").Values()),
			"routines_catch_up_max":       "catch_up_max BETWEEN 1 AND 1000",
		}),
	}
}

// RoutineTrigger makes a routine fire. The API shows it as one of three types, told apart by the id's prefix.
type RoutineTrigger struct{ ent.Schema }

// Mixin of RoutineTrigger.
func (RoutineTrigger) Mixin() []ent.Mixin {
	return []ent.Mixin{triggerRecord{}, owned{}, versioned{}}
}

// triggerRecord is record with the prefixes of the three kinds: the store chooses one when it makes a trigger.
type triggerRecord struct{ record }

// Fields of a trigger's record: the id has no default, since its prefix follows from the kind.
func (triggerRecord) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").GoType(xid.ID("")).MaxRuneLen(64).Immutable(),
		record{}.Fields()[1],
	}
}

// Annotations of a trigger's record.
func (triggerRecord) Annotations() []schema.Annotation {
	return []schema.Annotation{IDPrefix{[]string{"sch", "whk", "man"}}}
}

// Fields of RoutineTrigger. next_run_at is the cursor of a schedule: the first slot that has not fired. A deleted trigger is
// switched off and stays for the history that names it. missed_* are slots that were too old to fire, until the next fire tells of them.
func (RoutineTrigger) Fields() []ent.Field {
	return []ent.Field{
		ref("routine_id"),
		field.Enum("kind").GoType(domain.TriggerKind("")).Annotations(hidden()),
		field.Bool("enabled").Default(true),
		field.Time("last_fired_at").Optional().Nillable(),
		field.String("cron").MaxRuneLen(200).Optional().Nillable().Annotations(hidden()),
		field.String("time_zone").MaxRuneLen(64).Optional().Nillable().Annotations(hidden()),
		field.Time("at").Optional().Nillable().Annotations(hidden()),
		field.Time("starts_at").Optional().Nillable().Annotations(hidden()),
		field.Time("ends_at").Optional().Nillable().Annotations(hidden()),
		field.Int64("jitter_ms").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.JSON("skip_dates", []string{}).SchemaType(jsonb()).Default([]string{}).Annotations(entsql.Default("[]"), hidden()),
		field.Int64("start_deadline_ms").Optional().Nillable().Annotations(hidden()),
		field.Int("missed_ticks").Default(0).Annotations(entsql.Default("0"), hidden()),
		field.Time("missed_since").Optional().Nillable().Annotations(hidden()),
		field.Bool("missed_truncated").Default(false).Annotations(entsql.Default("false"), hidden()),
		field.Time("next_run_at").Optional().Nillable().Annotations(hidden()),
		field.String("error").MaxRuneLen(1000).Optional().Nillable().Annotations(hidden()),
		field.String("public_id").MaxRuneLen(64).Unique().Optional().Nillable().Annotations(hidden()),
		field.Enum("signing_mode").GoType(domain.SigningMode("")).Optional().Nillable().Annotations(hidden()),
		field.String("secret_sealed").Optional().Nillable().SchemaType(text()).Sensitive().Annotations(hidden()),
		field.String("secret_hint").MaxRuneLen(8).Optional().Nillable().Annotations(hidden()),
		field.Time("secret_rotated_at").Optional().Nillable().Annotations(hidden()),
		field.String("previous_secret_sealed").Optional().Nillable().SchemaType(text()).Sensitive().Annotations(hidden()),
		field.Time("previous_secret_expires_at").Optional().Nillable().Annotations(hidden()),
		field.Int64("replay_window_ms").Default(300_000).Annotations(hidden()),
		field.Bool("require_timestamp").Default(false).Annotations(hidden()),
		field.Enum("preset").GoType(domain.WebhookPreset("")).Optional().Nillable().Annotations(hidden()),
		field.JSON("conditions", []domain.WebhookCondition{}).SchemaType(jsonb()).Default([]domain.WebhookCondition{}).Annotations(entsql.Default("[]"), hidden()),
		field.Time("deleted_at").Optional().Nillable().Annotations(hidden()),
	}
}

// Edges of RoutineTrigger.
func (RoutineTrigger) Edges() []ent.Edge {
	return []ent.Edge{edge.From("routine", Routine.Type).Ref("triggers").Field("routine_id").Unique().Required()}
}

// Indexes of RoutineTrigger: the tick walks due schedules by (next_run_at, id).
func (RoutineTrigger) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("next_run_at", "id").Annotations(where("kind = 'SCHEDULE' AND enabled AND next_run_at IS NOT NULL")),
		index.Fields("id").StorageKey("routine_triggers_unarmed").Annotations(where("kind = 'SCHEDULE' AND enabled AND next_run_at IS NULL")),
		index.Fields("routine_id"),
		index.Fields("workspace_id"),
	}
}

// Annotations of RoutineTrigger.
func (RoutineTrigger) Annotations() []schema.Annotation {
	return []schema.Annotation{table(map[string]string{
		"routine_triggers_kind":         oneOf("kind", domain.TriggerKind("").Values()),
		"routine_triggers_signing_mode": oneOf("signing_mode", domain.SigningMode("").Values()),
		"routine_triggers_preset":       oneOf("preset", domain.WebhookPreset("").Values()),
		"routine_triggers_schedule":     "kind <> 'SCHEDULE' OR ((cron IS NULL) <> (at IS NULL) AND time_zone IS NOT NULL)",
		"routine_triggers_webhook":      "kind <> 'WEBHOOK' OR (public_id IS NOT NULL AND signing_mode IS NOT NULL)",
	})}
}

// RoutineRun is the record of one fire.
type RoutineRun struct{ ent.Schema }

// Mixin of RoutineRun.
func (RoutineRun) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "rrn"}, owned{}, caused{}} }

// Fields of RoutineRun. fire_key dedupes fires: (trigger, slot minute) or (trigger, delivery key).
// held_by is the active fire for which the policy dropped this one, SKIPPED or COALESCED.
func (RoutineRun) Fields() []ent.Field {
	return []ent.Field{
		ref("routine_id"),
		optionalRef("trigger_id"),
		field.Enum("source").GoType(domain.RoutineRunSource("")).SchemaType(native("routine_run_source")).Annotations(entgql.Type("RoutineRunSource")),
		field.Enum("status").GoType(domain.RoutineRunStatus("")).SchemaType(native("routine_run_status")).Default(string(domain.RoutineRunStatusReceived)).Annotations(entgql.Type("RoutineRunStatus")),
		field.Enum("skip_reason").GoType(domain.EndReason("")).SchemaType(native("end_reason")).Optional().Nillable().Annotations(entgql.Type("EndReason")),
		field.String("fire_key").MaxRuneLen(400).Optional().Nillable().Annotations(hidden()),
		field.JSON("variables", map[string]any{}).Default(map[string]any{}).SchemaType(jsonb()).Annotations(entgql.Type("JSONObject")),
		field.Int("missed_ticks").Default(0),
		field.Time("missed_since").Optional().Nillable(),
		field.Bool("missed_truncated").Default(false),
		field.Int64("late_by_ms").Optional().Nillable().Annotations(hidden()),
		field.Bool("backfilled").Default(false).Annotations(entsql.Default("false")),
		optionalRef("task_id"),
		optionalRef("coalesced_into_id"),
		optionalRef("held_by_id"),
		field.String("dispatch_fingerprint").MaxRuneLen(64),
		field.String("error").SchemaType(text()).Optional().Nillable(),
		field.Time("scheduled_for").Optional().Nillable(),
		field.Time("started_at").Annotations(entgql.OrderField("STARTED_AT")),
		field.Time("completed_at").Optional().Nillable(),
	}
}

// Edges of RoutineRun.
func (RoutineRun) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("routine", Routine.Type).Field("routine_id").Unique().Required(),
		edge.To("trigger", RoutineTrigger.Type).Field("trigger_id").Unique().Annotations(hidden()),
		edge.To("task", Task.Type).Field("task_id").Unique().Annotations(hidden()),
		edge.To("coalesced", RoutineRun.Type).Annotations(hidden()).From("coalesced_into").Field("coalesced_into_id").Unique(),
		edge.To("holds", RoutineRun.Type).Annotations(hidden()).From("held_by").Field("held_by_id").Unique(),
		edge.From("wakeup_requests", WakeupRequest.Type).Ref("routine_run").Annotations(hidden()),
	}
}

// Indexes of RoutineRun.
func (RoutineRun) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("trigger_id", "fire_key").Unique().Annotations(where("fire_key IS NOT NULL")),
		index.Fields("routine_id", "started_at", "id"),
		index.Fields("workspace_id", "started_at", "id"),
		index.Fields("workspace_id", "status", "started_at", "id").StorageKey("routine_runs_by_status").Annotations(where("status <> 'DONE'")),
		index.Fields("workspace_id", "source", "started_at", "id").StorageKey("routine_runs_by_source").Annotations(where("source <> 'CRON'")),
		index.Fields("routine_id", "status", "started_at", "id").StorageKey("routine_runs_worked").Annotations(where("status IN ('DONE', 'FAILED')")),
		index.Fields("routine_id", "dispatch_fingerprint").Annotations(where("completed_at IS NULL")),
		index.Fields("task_id").Annotations(where("task_id IS NOT NULL")),
		index.Fields("workspace_id").StorageKey("routine_runs_open").Annotations(where("completed_at IS NULL")),
		index.Fields("task_id").StorageKey("routine_runs_open_task").Annotations(where("completed_at IS NULL AND task_id IS NOT NULL")),
		index.Fields("held_by_id", "started_at").Annotations(where("held_by_id IS NOT NULL")),
	}
}

// Annotations of RoutineRun.
func (RoutineRun) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(),
	}
}

// WebhookDelivery is one POST to a webhook trigger as the operator sees it; the caller is never told the reason.
type WebhookDelivery struct{ ent.Schema }

// Mixin of WebhookDelivery.
func (WebhookDelivery) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "whd"}, owned{}} }

// Fields of WebhookDelivery.
func (WebhookDelivery) Fields() []ent.Field {
	return []ent.Field{
		ref("trigger_id"),
		optionalRef("routine_run_id"),
		field.Int("status"),
		field.String("outcome").MaxRuneLen(64),
		field.String("detail").MaxRuneLen(1000).Default(""),
		field.String("delivery_key").MaxRuneLen(400).Optional().Nillable(),
		field.String("event").MaxRuneLen(100).Default("").Annotations(entsql.Default("")),
	}
}

// Edges of WebhookDelivery.
func (WebhookDelivery) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("trigger", RoutineTrigger.Type).Field("trigger_id").Unique().Required(),
		edge.To("routine_run", RoutineRun.Type).Field("routine_run_id").Unique(),
	}
}

// Indexes of WebhookDelivery.
func (WebhookDelivery) Indexes() []ent.Index {
	return []ent.Index{index.Fields("trigger_id", "created_at")}
}

// Annotations of WebhookDelivery.
func (WebhookDelivery) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }
