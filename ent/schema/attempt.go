package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// RunAttempt is one launch of a run.
type RunAttempt struct{ ent.Schema }

// Mixin of RunAttempt.
func (RunAttempt) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "att"}, owned{}} }

// Fields of RunAttempt.
func (RunAttempt) Fields() []ent.Field {
	return []ent.Field{
		ref("run_id"),
		field.Int("number"),
		field.String("executor").MaxRuneLen(32).Optional().Nillable(),
		field.String("session_id").MaxRuneLen(500).Optional().Nillable(),
		field.Enum("status").GoType(domain.RunAttemptStatus("")).SchemaType(native("run_attempt_status")),
		field.String("owner").MaxRuneLen(64),
		field.String("token_digest").MaxRuneLen(64).Optional().Nillable().Sensitive(),
		field.Enum("error_code").GoType(domain.RunErrorCode("")).SchemaType(native("run_error_code")).Optional().Nillable(),
		field.String("error_message").SchemaType(text()).Optional().Nillable(),
		field.Time("started_at"),
		field.Time("heartbeat_at").Optional().Nillable(),
		field.Time("finished_at").Optional().Nillable(),
	}
}

// Edges of RunAttempt.
func (RunAttempt) Edges() []ent.Edge {
	return []ent.Edge{edge.From("run", Run.Type).Ref("attempts").Field("run_id").Unique().Required()}
}

// Indexes of RunAttempt.
func (RunAttempt) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("run_id", "number").Unique(),
		index.Fields("token_digest").Unique().Annotations(where("token_digest IS NOT NULL")),
	}
}

// Annotations of RunAttempt.
func (RunAttempt) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden()}
}

// AttemptLease is a process's time-bound hold on the live attempt of a run, narrow so that a heartbeat rewrites nothing
// else. The process columns identify an agent's process group, so that a leftover can be ended later.
type AttemptLease struct{ ent.Schema }

// Fields of AttemptLease. owner is the process that renews it, or the digest of the token of a worker that took the run from
// its queue; NULL is an offer that no worker has taken yet. lease_ms is for how long a worker's sign of life renews it, and
// log_bytes is what such a worker has stored of its output so far. call_key names the call that a worker took it with, so that the
// call can be repeated when its answer was lost. process_started is the kernel's start time of the group's
// leader, in clock ticks since boot. secrets are the values that the agent was launched with, sealed as on the executor's record,
// which may have got others since; they are gone with the lease. accepted_at is when an agent service took the run, to report its end
// by itself: then no process has the attempt, lease_until is the end of its time, which is timeout_ms in all, ending_at when
// it was asked to end, and grace_ms how long it has for its report after that.
func (AttemptLease) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").StorageKey("run_id").MaxRuneLen(64),
		field.String("workspace_id").MaxRuneLen(64),
		field.String("agent_id").MaxRuneLen(64),
		field.Int("attempt"),
		field.String("owner").MaxRuneLen(64).Optional().Nillable(),
		field.String("queue").MaxRuneLen(64).Optional().Nillable(),
		field.String("call_key").MaxRuneLen(255).Optional().Nillable(),
		field.Time("lease_until"),
		field.Int64("lease_ms").Default(0).Annotations(entsql.Default("0")),
		field.Int64("log_bytes").Default(0).Annotations(entsql.Default("0")),
		field.String("host").MaxRuneLen(200).Optional().Nillable(),
		field.String("boot_id").MaxRuneLen(64).Optional().Nillable(),
		field.Int("owner_pid").Optional().Nillable(),
		field.Int64("owner_started").Optional().Nillable(),
		field.Int("process_group").Optional().Nillable(),
		field.Int64("process_started").Optional().Nillable(),
		field.Time("accepted_at").Optional().Nillable(),
		field.Time("ending_at").Optional().Nillable(),
		field.Int64("timeout_ms").Default(0).Annotations(entsql.Default("0")),
		field.Int64("grace_ms").Default(0).Annotations(entsql.Default("0")),
		field.JSON("secrets", &domain.SealedSet{}).Optional().SchemaType(jsonb()),
	}
}

// Indexes of AttemptLease: what a queue offers, and what a worker's call has taken.
func (AttemptLease) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "queue").StorageKey("attempt_leases_offered").Annotations(where("owner IS NULL")),
		index.Fields("workspace_id", "call_key").StorageKey("attempt_leases_call").Annotations(where("call_key IS NOT NULL")),
	}
}

// Annotations of AttemptLease.
func (AttemptLease) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }

// RunSecret holds what earlier attempts of a run were launched with while the run waits for another attempt, or has one: its agent
// may still know the values, so that they are masked in what it says. They are sealed as on the executors' records, and gone
// with the run's end.
type RunSecret struct{ ent.Schema }

// Fields of RunSecret. sets are different ones, oldest first.
func (RunSecret) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").StorageKey("run_id").MaxRuneLen(64),
		field.String("workspace_id").MaxRuneLen(64),
		field.JSON("sets", []domain.SealedSet{}).SchemaType(jsonb()),
	}
}

// Annotations of RunSecret.
func (RunSecret) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }
