package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// Workflow is the steps that tasks move through.
type Workflow struct{ ent.Schema }

// Mixin of Workflow.
func (Workflow) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "wfl"}, owned{}} }

// Fields of Workflow.
func (Workflow) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").MaxRuneLen(200).NotEmpty(),
		field.Enum("kind").GoType(domain.WorkflowKind("")).Annotations(entgql.Type("WorkflowKind")),
		field.Bool("system").Default(false),
		field.Bool("hidden").Default(false),
	}
}

// Edges of Workflow.
func (Workflow) Edges() []ent.Edge {
	return []ent.Edge{edge.To("steps", WorkflowStep.Type).Annotations(hidden())}
}

// Indexes of Workflow: one ROUTINE workflow of the system in a workspace.
func (Workflow) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "name").Unique(),
		index.Fields("workspace_id", "kind").Unique().Annotations(where("kind = 'ROUTINE'")),
	}
}

// Annotations of Workflow.
func (Workflow) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), table(map[string]string{"workflows_kind": oneOf("kind", domain.WorkflowKind("").Values())})}
}

// WorkflowStep is a column of a workflow.
type WorkflowStep struct{ ent.Schema }

// Mixin of WorkflowStep.
func (WorkflowStep) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "stp"}, owned{}} }

// Fields of WorkflowStep.
func (WorkflowStep) Fields() []ent.Field {
	return []ent.Field{
		ref("workflow_id"),
		field.String("name").MaxRuneLen(200).NotEmpty(),
		field.Int("position").Annotations(hidden()),
		field.Enum("state").GoType(domain.TaskState("")).Annotations(entgql.Type("TaskState")),
		field.JSON("on_enter", []domain.StepAction{}).SchemaType(jsonb()).Default([]domain.StepAction{}).Annotations(hidden()),
	}
}

// Edges of WorkflowStep.
func (WorkflowStep) Edges() []ent.Edge {
	return []ent.Edge{edge.From("workflow", Workflow.Type).Ref("steps").Field("workflow_id").Unique().Required().Annotations(hidden())}
}

// Indexes of WorkflowStep.
func (WorkflowStep) Indexes() []ent.Index {
	return []ent.Index{index.Fields("workflow_id", "position").Unique()}
}

// Annotations of WorkflowStep.
func (WorkflowStep) Annotations() []schema.Annotation {
	return []schema.Annotation{table(map[string]string{"workflow_steps_state": oneOf("state", domain.TaskState("").Values())})}
}
