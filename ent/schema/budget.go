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

// BudgetPolicy limits what one workspace, project or agent may spend in a period.
type BudgetPolicy struct{ ent.Schema }

// Mixin of BudgetPolicy.
func (BudgetPolicy) Mixin() []ent.Mixin {
	return []ent.Mixin{record{prefix: "bud"}, owned{}, versioned{}}
}

// Fields of BudgetPolicy. spent_usd, reserved_usd, told_thresholds, those that were told of, and alerted_percent, the highest
// of them, belong to the period that began at period_start.
func (BudgetPolicy) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("subject_kind").GoType(domain.BudgetSubjectKind("")),
		field.String("subject_id").MaxRuneLen(64),
		field.String("limit_usd").SchemaType(money()),
		field.Enum("period").GoType(domain.BudgetPeriod("")).Default(string(domain.BudgetPeriodMonth)),
		field.JSON("alert_thresholds", []int{}).SchemaType(jsonb()).Default([]int{80, 100}),
		field.Enum("on_exceed").GoType(domain.BudgetAction("")).Default(string(domain.BudgetActionPauseAgent)),
		field.Time("period_start"),
		field.String("spent_usd").SchemaType(money()).Default("0"),
		field.String("reserved_usd").SchemaType(money()).Default("0"),
		field.Int("alerted_percent").Default(0).Annotations(entsql.Default("0")),
		field.JSON("told_thresholds", []int{}).SchemaType(jsonb()).Default([]int{}).Annotations(entsql.Default("[]")),
	}
}

// Indexes of BudgetPolicy: one policy for a subject.
func (BudgetPolicy) Indexes() []ent.Index {
	return []ent.Index{index.Fields("workspace_id", "subject_kind", "subject_id").Unique()}
}

// Annotations of BudgetPolicy.
func (BudgetPolicy) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{
		"budget_policies_subject_kind": oneOf("subject_kind", domain.BudgetSubjectKind("").Values()),
		"budget_policies_period":       oneOf("period", domain.BudgetPeriod("").Values()),
		"budget_policies_on_exceed":    oneOf("on_exceed", domain.BudgetAction("").Values()),
	})}
}

// BudgetHold reserves money for a live run, so that parallel runs cannot overshoot (SPEC S6.5).
type BudgetHold struct{ ent.Schema }

// Mixin of BudgetHold.
func (BudgetHold) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "hld"}, owned{}} }

// Fields of BudgetHold.
func (BudgetHold) Fields() []ent.Field {
	return []ent.Field{
		ref("policy_id"),
		ref("run_id"),
		field.Int("attempt"),
		field.String("amount_usd").SchemaType(money()),
		field.Enum("status").GoType(domain.BudgetHoldStatus("")).SchemaType(native("budget_hold_status")).Default(string(domain.BudgetHoldStatusHeld)),
	}
}

// Edges of BudgetHold.
func (BudgetHold) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("policy", BudgetPolicy.Type).Field("policy_id").Unique().Required(),
		edge.To("run", Run.Type).Field("run_id").Unique().Required(),
	}
}

// Indexes of BudgetHold.
func (BudgetHold) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("run_id", "attempt", "policy_id").Unique(),
		index.Fields("policy_id").Annotations(where("status = 'HELD'")),
	}
}

// Annotations of BudgetHold.
func (BudgetHold) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden()}
}

// CostEntry is what one attempt of a run cost.
type CostEntry struct{ ent.Schema }

// Mixin of CostEntry.
func (CostEntry) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "cst"}, owned{}, caused{}} }

// Fields of CostEntry.
func (CostEntry) Fields() []ent.Field {
	return []ent.Field{
		ref("run_id"),
		field.Int("attempt"),
		ref("agent_id"),
		optionalRef("project_id"),
		field.Int64("input_tokens").Default(0),
		field.Int64("output_tokens").Default(0),
		field.String("cost_usd").SchemaType(money()),
	}
}

// Edges of CostEntry. Its run is a bare id: the account outlives the run, which the retention removes.
func (CostEntry) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("agent", Agent.Type).Field("agent_id").Unique().Required(),
		edge.To("project", Project.Type).Field("project_id").Unique(),
	}
}

// Indexes of CostEntry.
func (CostEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("run_id", "attempt").Unique(),
		index.Fields("workspace_id", "created_at"),
		index.Fields("agent_id", "created_at"),
		index.Fields("project_id", "created_at").Annotations(where("project_id IS NOT NULL")),
	}
}

// Annotations of CostEntry.
func (CostEntry) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }
