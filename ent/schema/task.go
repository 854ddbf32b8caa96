package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"entgo.io/ent/schema/mixin"

	"rouse.dev/rouse/internal/domain"
)

// Task is a piece of work.
type Task struct{ ent.Schema }

// Mixin of Task.
func (Task) Mixin() []ent.Mixin {
	return []ent.Mixin{record{prefix: "tsk"}, owned{}, versionedInOrder{}}
}

// versionedInOrder is versioned for records that are listed by their last change.
type versionedInOrder struct{ mixin.Schema }

func (versionedInOrder) Fields() []ent.Field {
	fields := versioned{}.Fields()
	updated := fields[1].Descriptor()
	updated.Annotations = append(updated.Annotations, entgql.OrderField("UPDATED_AT"))
	return fields
}

// Fields of Task. wake_generation is part of the idempotency keys of its wakes (SPEC S3.3). word_run_id is the run
// that was at work when somebody last said where the task stands; NULL when none was. unsettled says of an ended task
// that not all of what waited about it has ended yet.
func (Task) Fields() []ent.Field {
	return []ent.Field{
		field.String("title").MaxRuneLen(200).NotEmpty(),
		field.String("description").Default("").SchemaType(text()).Annotations(entgql.Type("Markdown")),
		field.Enum("state").GoType(domain.TaskState("")).Default(string(domain.TaskStateTodo)).Annotations(entgql.Type("TaskState")),
		field.Time("archived_at").Optional().Nillable(),
		field.Time("deleted_at").Optional().Nillable().Annotations(hidden()),
		ref("workflow_id"),
		ref("step_id"),
		optionalRef("project_id"),
		optionalRef("parent_id"),
		optionalRef("assignee_id"),
		field.Int("assignment_version").Default(0).Annotations(hidden()),
		field.Int("wake_generation").Default(0).Annotations(hidden()),
		optionalRef("word_run_id"),
		field.Bool("unsettled").Default(false).Annotations(hidden(), entsql.Default("false")),
		field.Bool("requires_approval").Default(false),
		field.JSON("executor", &domain.ExecutorSpec{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
		optionalRef("checkout_agent_id"),
		optionalRef("checkout_run_id"),
		field.Time("checkout_at").Optional().Nillable().Annotations(hidden()),
	}
}

// Edges of Task.
func (Task) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("workflow", Workflow.Type).Field("workflow_id").Unique().Required(),
		edge.To("step", WorkflowStep.Type).Field("step_id").Unique().Required(),
		edge.To("project", Project.Type).Field("project_id").Unique(),
		edge.To("children", Task.Type).Annotations(hidden()).From("parent").Field("parent_id").Unique(),
		edge.To("assignee", Agent.Type).Field("assignee_id").Unique(),
		edge.To("checkout_agent", Agent.Type).Field("checkout_agent_id").Unique().Annotations(hidden()),
		edge.To("checkout_run", Run.Type).Field("checkout_run_id").Unique().Annotations(hidden()),
		edge.To("reviewers", Agent.Type).Annotations(hidden()),
		edge.To("approvers", Agent.Type).Annotations(hidden()),
	}
}

// Indexes of Task.
func (Task) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "created_at", "id"),
		index.Fields("assignee_id", "state").Annotations(where("archived_at IS NULL")),
		index.Fields("workspace_id", "created_at").StorageKey("tasks_unstarted").Annotations(where("state = 'TODO' AND assignee_id IS NOT NULL AND archived_at IS NULL AND deleted_at IS NULL")),
		index.Fields("parent_id"),
		index.Fields("project_id"),
		index.Fields("checkout_run_id").Annotations(where("checkout_run_id IS NOT NULL")),
		index.Fields("id").StorageKey("tasks_unsettled").Annotations(where("unsettled")),
	}
}

// Annotations of Task.
func (Task) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.Implements("Versioned"), table(map[string]string{
		"tasks_state":    oneOf("state", domain.TaskState("").Values()),
		"tasks_checkout": "(checkout_agent_id IS NULL) = (checkout_run_id IS NULL)",
	})}
}

// TaskBlocker says that a task waits for another one (SPEC S5.3). The links form no cycle. linked_by_id is the agent whose run
// named the blocker; NULL is a person, or a link of an earlier version. An agent does not read what it named by itself (SPEC S7.4).
type TaskBlocker struct{ ent.Schema }

// Mixin of TaskBlocker.
func (TaskBlocker) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "blk"}, owned{}} }

// Fields of TaskBlocker.
func (TaskBlocker) Fields() []ent.Field {
	return []ent.Field{ref("task_id"), ref("blocker_id"), optionalRef("linked_by_id")}
}

// Edges of TaskBlocker.
func (TaskBlocker) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("task", Task.Type).Field("task_id").Unique().Required(),
		edge.To("blocker", Task.Type).Field("blocker_id").Unique().Required(),
	}
}

// Indexes of TaskBlocker.
func (TaskBlocker) Indexes() []ent.Index {
	return []ent.Index{index.Fields("task_id", "blocker_id").Unique(), index.Fields("blocker_id")}
}

// Annotations of TaskBlocker.
func (TaskBlocker) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }

// Comment is a remark on a task.
type Comment struct{ ent.Schema }

// Mixin of Comment.
func (Comment) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "cmt"}, owned{}, caused{}} }

// Fields of Comment. author_name is the person's external id or the sender in a channel.
func (Comment) Fields() []ent.Field {
	return []ent.Field{
		ref("task_id"),
		field.Enum("author_kind").GoType(domain.AuthorKind("")).Annotations(hidden()),
		optionalRef("author_agent_id"),
		field.String("author_name").MaxRuneLen(200).Default("").Annotations(hidden()),
		field.String("channel").MaxRuneLen(64).Default("").Annotations(hidden()),
		field.String("body").SchemaType(text()).NotEmpty().Annotations(entgql.Type("Markdown")),
	}
}

// Edges of Comment.
func (Comment) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("task", Task.Type).Field("task_id").Unique().Required(),
		edge.To("author_agent", Agent.Type).Field("author_agent_id").Unique().Annotations(hidden()),
		edge.To("mentions", Agent.Type).Annotations(hidden()),
	}
}

// Indexes of Comment.
func (Comment) Indexes() []ent.Index { return []ent.Index{index.Fields("task_id", "created_at", "id")} }

// Annotations of Comment.
func (Comment) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), table(map[string]string{"comments_author_kind": oneOf("author_kind", domain.AuthorKind("").Values())})}
}

// Approval is a decision asked of a person or an agent.
type Approval struct{ ent.Schema }

// Mixin of Approval.
func (Approval) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "apr"}, owned{}, caused{}} }

// Fields of Approval.
func (Approval) Fields() []ent.Field {
	return []ent.Field{
		ref("task_id"),
		field.String("question").SchemaType(text()).Annotations(entgql.Type("Markdown")),
		field.Enum("status").GoType(domain.ApprovalStatus("")).Default(string(domain.ApprovalStatusPending)).Annotations(entgql.Type("ApprovalStatus")),
		field.Bool("completion").Default(false),
		optionalRef("requested_by_id"),
		field.Enum("decided_by_kind").GoType(domain.AuthorKind("")).Optional().Nillable().Annotations(hidden()),
		optionalRef("decided_by_id"),
		field.String("decided_by_name").MaxRuneLen(200).Default("").Annotations(hidden()),
		field.String("note").SchemaType(text()).Default("").Annotations(hidden()),
		field.Time("decided_at").Optional().Nillable(),
	}
}

// Edges of Approval.
func (Approval) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("task", Task.Type).Field("task_id").Unique().Required(),
		edge.To("requested_by", Agent.Type).Field("requested_by_id").Unique().Annotations(hidden()),
		edge.To("decided_by", Agent.Type).Field("decided_by_id").Unique().Annotations(hidden()),
	}
}

// Indexes of Approval.
func (Approval) Indexes() []ent.Index {
	return []ent.Index{index.Fields("task_id", "created_at", "id")}
}

// Annotations of Approval.
func (Approval) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), table(map[string]string{
		"approvals_status":          oneOf("status", domain.ApprovalStatus("").Values()),
		"approvals_decided_by_kind": oneOf("decided_by_kind", domain.AuthorKind("").Values()),
	})}
}

// TaskSession is the agent-side conversation that the runs of one agent on one task resume (SPEC S7.2).
type TaskSession struct{ ent.Schema }

// Mixin of TaskSession.
func (TaskSession) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "ses"}, owned{}} }

// Fields of TaskSession. secrets are what its runs were launched with, sealed as on the executors' records, oldest first: the
// session may still know them. They are gone when the session is resumed no more. told_usage is what the agent's program told last
// of the use of the whole session.
func (TaskSession) Fields() []ent.Field {
	return []ent.Field{
		ref("task_id"),
		ref("agent_id"),
		field.String("external_id").MaxRuneLen(500).Annotations(entgql.MapsTo("externalId")),
		field.Enum("state").GoType(domain.TaskSessionState("")).Default(string(domain.TaskSessionStateStarting)).Annotations(entgql.Type("TaskSessionState")),
		field.Int("run_count").Default(0),
		field.Time("last_used_at"),
		field.JSON("secrets", []domain.SealedSet{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
		field.JSON("told_usage", &domain.ToldUsage{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
	}
}

// Edges of TaskSession.
func (TaskSession) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("task", Task.Type).Field("task_id").Unique().Required(),
		edge.To("agent", Agent.Type).Field("agent_id").Unique().Required(),
	}
}

// Indexes of TaskSession: one conversation that is not ended for an agent on a task.
func (TaskSession) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("task_id", "agent_id").Unique().Annotations(where("state <> 'ENDED'")),
		index.Fields("agent_id"),
	}
}

// Annotations of TaskSession.
func (TaskSession) Annotations() []schema.Annotation {
	return []schema.Annotation{table(map[string]string{"task_sessions_state": oneOf("state", domain.TaskSessionState("").Values())})}
}
