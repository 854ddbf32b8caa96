package schema

import (
	"strconv"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// Agent is who is woken. Its hot state lives on its lane.
type Agent struct{ ent.Schema }

// Mixin of Agent.
func (Agent) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "agt"}, owned{}, versioned{}} }

// Fields of Agent. Durations are in milliseconds. launch_limit is how many unattended launches a window of launch_limit_ms may have;
// NULL: any number.
func (Agent) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").MaxRuneLen(200).NotEmpty().Annotations(entgql.OrderField("NAME")),
		field.Enum("role").GoType(domain.AgentRole("")).Annotations(entgql.Type("AgentRole")),
		optionalRef("manager_id"),
		field.String("instructions").Default("").SchemaType(text()).Annotations(entgql.Type("Markdown")),
		field.JSON("executor", &domain.ExecutorSpec{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
		field.Bool("skip_idle_wakeups"),
		field.Int("max_concurrent_sessions").Default(1),
		field.Int64("cooldown_ms").Default(10_000).Annotations(hidden()),
		field.Int("session_max_runs").Optional().Nillable(),
		field.Int64("session_max_age_ms").Optional().Nillable().Annotations(hidden()),
		field.Int("launch_limit").Optional().Nillable().Annotations(hidden()),
		field.Int64("launch_limit_ms").Default(domain.DefaultLaunchWindow.Milliseconds()).Annotations(entsql.Default(strconv.FormatInt(domain.DefaultLaunchWindow.Milliseconds(), 10)), hidden()),
		field.Time("deleted_at").Optional().Nillable().Annotations(hidden()),
	}
}

// Edges of Agent.
func (Agent) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("reports", Agent.Type).Annotations(hidden()).From("manager").Field("manager_id").Unique(),
		edge.From("reviews", Task.Type).Ref("reviewers").Annotations(hidden()),
		edge.From("approves", Task.Type).Ref("approvers").Annotations(hidden()),
		edge.From("mentioned_in", Comment.Type).Ref("mentions").Annotations(hidden()),
	}
}

// Indexes of Agent.
func (Agent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "name").Unique().Annotations(where("deleted_at IS NULL")),
		index.Fields("workspace_id", "created_at", "id"),
		index.Fields("manager_id"),
	}
}

// Annotations of Agent.
func (Agent) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(), entgql.Implements("Versioned"),
		table(map[string]string{
			"agents_role":                    oneOf("role", domain.AgentRole("").Values()),
			"agents_max_concurrent_sessions": "max_concurrent_sessions BETWEEN 1 AND 50",
			"agents_cooldown":                "cooldown_ms >= 0",
			"agents_launch_limit":            "launch_limit >= 1",
			"agents_launch_limit_ms":         "launch_limit_ms BETWEEN 1000 AND 604800000",
		}),
	}
}

// AgentLane is an agent's hot state and the head of its queue: the row that every change of the queue locks first
// (docs/queue.md rule 2). Nothing references it; a missing row is an error.
type AgentLane struct{ ent.Schema }

// Fields of AgentLane. head_at and head_id name the oldest due queued run; released_at is when a session last fell free of
// an agent that had none. What is too much for one transaction is done in steps: resend_from and resend_after are the end
// and the id of the request up to which a resume has come, none when it is through; clearing says that a deleted agent
// still has something queued. launches counts unattended launches in the window that began at launches_since.
func (AgentLane) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").StorageKey("agent_id").MaxRuneLen(64),
		field.String("workspace_id").MaxRuneLen(64),
		field.Enum("status").GoType(domain.AgentStatus("")).SchemaType(native("agent_status")).Default(string(domain.AgentStatusIdle)),
		field.Enum("pause_reason").GoType(domain.AgentPauseReason("")).SchemaType(native("agent_pause_reason")).Optional().Nillable(),
		field.Time("paused_at").Optional().Nillable(),
		field.Int("max_sessions").Default(1),
		field.Int64("cooldown_ms").Default(0),
		field.Int("running").Default(0).Annotations(entsql.Default("0")),
		field.Time("eligible_at").Annotations(entsql.DefaultExpr("'1970-01-01 00:00:00+00'::timestamptz")),
		field.Time("last_finished_at").Optional().Nillable(),
		field.Time("released_at").Optional().Nillable(),
		field.Time("head_at").Optional().Nillable(),
		field.String("head_id").MaxRuneLen(64).Optional().Nillable(),
		field.Time("resend_from").Optional().Nillable(),
		field.String("resend_after").MaxRuneLen(64).Default("").Annotations(entsql.Default("")),
		field.Bool("clearing").Default(false).Annotations(entsql.Default("false")),
		field.Time("launches_since").Optional().Nillable(),
		field.Int("launches").Default(0).Annotations(entsql.Default("0")),
	}
}

// Indexes of AgentLane: what a claim may take, oldest first, where eligible_at is looked at in the index so that ten
// thousand resting lanes in front cost no look at their rows; the next end of a rest, of which nothing that looks for due lanes
// can make use, since the planner would sort all of them by it; who a budget holds; and which lanes have something to be ended
// or sent again in steps. A held lane is never among those that a claim may take.
func (AgentLane) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "head_at", "head_id", "eligible_at").StorageKey("agent_lanes_due").Annotations(where("head_at IS NOT NULL AND running < max_sessions AND status = 'IDLE'")),
		index.Fields("workspace_id", "id").StorageKey("agent_lanes_over_budget").Annotations(where("pause_reason = 'BUDGET'")),
		index.Fields("eligible_at").StorageKey("agent_lanes_resting").Annotations(where("head_at IS NOT NULL AND running < max_sessions AND status = 'IDLE' AND eligible_at > '1970-01-01 00:00:00+00'")),
		index.Fields("id").StorageKey("agent_lanes_backlog").Annotations(where("head_at IS NOT NULL AND status <> 'IDLE' OR resend_from IS NOT NULL AND status = 'IDLE' OR clearing")),
	}
}

// Annotations of AgentLane.
func (AgentLane) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{
		"agent_lanes_running": "running >= 0",
		"agent_lanes_head":    "(head_at IS NULL) = (head_id IS NULL)",
	})}
}
