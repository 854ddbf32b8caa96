-- +goose Up
-- Closed sets of values become native types in the tables that each run writes, and these tables lose their foreign keys to
-- workspaces, agents and runs. Each table is rewritten with its indexes, under a lock that nobody reads or writes beside:
-- docs/operations.md says how long that takes.
-- create enum type "activity_code"
CREATE TYPE "activity_code" AS ENUM ('WAKEUP_QUEUED', 'WAKEUP_COALESCED', 'WAKEUP_IDLE_SKIPPED', 'WAKEUP_AGENT_INACTIVE', 'WAKEUP_CHECKOUT_HELD', 'WAKEUP_RESENT', 'WAKEUP_BUDGET_BLOCKED', 'WAKEUP_STALE_CANCELLED', 'WAKEUP_RETRY_SCHEDULED', 'WAKEUP_RETRY_CANCELLED', 'RECOVERY_DISPATCH', 'RECOVERY_SWEEP_COMPLETE', 'RUN_CLAIMED', 'RUN_LAUNCHED', 'RUN_FINISHED', 'RUN_FAILED', 'RUN_CANCELLED', 'RUN_RESCUED', 'ROUTINE_CHANGED', 'ROUTINE_FIRED', 'TRIGGER_CHANGED', 'TRIGGER_SECRET_ROTATED', 'AGENT_CHANGED', 'AGENT_PAUSED', 'AGENT_RESUMED', 'TASK_CHANGED', 'TASK_COMMENTED', 'APPROVAL_DECIDED', 'BUDGET_CHANGED', 'BUDGET_THRESHOLD', 'SETTINGS_CHANGED', 'WEBHOOK_REJECTED', 'APPROVAL_REQUESTED', 'INBOX_ITEM_MADE', 'INBOX_ITEM_HANDLED', 'TOKEN_CREATED', 'TOKEN_REVOKED', 'PROJECT_CHANGED', 'WORKFLOW_CHANGED', 'WORKSPACE_CREATED', 'EXECUTOR_TESTED', 'WAKEUP_REQUESTED', 'RUN_CANCEL_REQUESTED');
-- create enum type "agent_pause_reason"
CREATE TYPE "agent_pause_reason" AS ENUM ('USER', 'BUDGET');
-- create enum type "agent_status"
CREATE TYPE "agent_status" AS ENUM ('IDLE', 'WORKING', 'PAUSED', 'STOPPED');
-- create enum type "author_kind"
CREATE TYPE "author_kind" AS ENUM ('USER', 'AGENT', 'CHANNEL', 'SYSTEM');
-- create enum type "budget_hold_status"
CREATE TYPE "budget_hold_status" AS ENUM ('HELD', 'SETTLED', 'VOID');
-- create enum type "end_reason"
CREATE TYPE "end_reason" AS ENUM ('TASK_NOT_FOUND', 'ASSIGNEE_CHANGED', 'TASK_DONE', 'TASK_CANCELLED', 'REVIEW_PARTICIPANT_CHANGED', 'RETRY_STALE_ASSIGNEE', 'RETRY_TASK_CANCELLED', 'CANCELLED_BY_USER', 'ROUTINE_DELETED', 'AGENT_DELETED', 'IDLE_SKIPPED', 'BUDGET_BLOCKED', 'CHECKOUT_HELD', 'AGENT_INACTIVE', 'CONCURRENCY_POLICY', 'HOP_LIMIT', 'BACKLOG_FULL', 'RETRIES_EXHAUSTED', 'NO_EXECUTOR');
-- create enum type "log_stream"
CREATE TYPE "log_stream" AS ENUM ('STDOUT', 'STDERR', 'SYSTEM');
-- create enum type "parked_reason"
CREATE TYPE "parked_reason" AS ENUM ('WINDOW', 'BACKOFF', 'RATE_LIMIT', 'SCOPE_BUSY', 'TASK_BLOCKED', 'BUDGET_RESERVED', 'GUARD_ERROR', 'NO_WORKER');
-- create enum type "retry_source"
CREATE TYPE "retry_source" AS ENUM ('BACKOFF', 'RATE_LIMIT_PARSED');
-- create enum type "routine_run_source"
CREATE TYPE "routine_run_source" AS ENUM ('CRON', 'WEBHOOK', 'MANUAL');
-- create enum type "routine_run_status"
CREATE TYPE "routine_run_status" AS ENUM ('RECEIVED', 'TASK_CREATED', 'ENQUEUED', 'DONE', 'SKIPPED', 'COALESCED', 'CANCELLED', 'FAILED');
-- create enum type "run_attempt_status"
CREATE TYPE "run_attempt_status" AS ENUM ('OFFERED', 'LAUNCHING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'ABANDONED', 'INTERRUPTED', 'CANCELLED');
-- create enum type "run_error_code"
CREATE TYPE "run_error_code" AS ENUM ('RATE_LIMITED', 'LAUNCH', 'TIMEOUT', 'CRASH', 'LEASE_LOST', 'BUDGET', 'OTHER');
-- create enum type "run_event_kind"
CREATE TYPE "run_event_kind" AS ENUM ('CREATED', 'CLAIMED', 'GUARD', 'COALESCED', 'PROMOTED', 'LAUNCHED', 'SESSION_RECORDED', 'PROGRESS', 'RETRY_SCHEDULED', 'FINISHED', 'FAILED', 'CANCELLED', 'RECOVERED');
-- create enum type "run_status"
CREATE TYPE "run_status" AS ENUM ('QUEUED', 'CLAIMED', 'FINISHED', 'FAILED', 'CANCELLED');
-- create enum type "wake_basis"
CREATE TYPE "wake_basis" AS ENUM ('ASSIGNEE', 'REVIEWER', 'APPROVER', 'EXPLICIT');
-- create enum type "wake_class"
CREATE TYPE "wake_class" AS ENUM ('PERIODIC', 'EVENT');
-- create enum type "wakeup_source"
CREATE TYPE "wakeup_source" AS ENUM ('ROUTINE', 'COMMENT', 'AGENT_ERROR', 'SELF', 'USER', 'TASK_ASSIGNED', 'TASK_BLOCKERS_RESOLVED', 'TASK_CHILDREN_COMPLETED', 'APPROVAL_RESOLVED', 'BUDGET_ALERT');
-- create enum type "wakeup_status"
CREATE TYPE "wakeup_status" AS ENUM ('QUEUED', 'CLAIMED', 'COALESCED', 'SKIPPED', 'FINISHED', 'FAILED', 'CANCELLED');
-- what a statement writes may come as text, from json or an array: assignments take it, comparisons do not
CREATE CAST (character varying AS "activity_code") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "activity_code") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "agent_pause_reason") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "agent_pause_reason") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "agent_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "agent_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "author_kind") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "author_kind") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "budget_hold_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "budget_hold_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "end_reason") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "end_reason") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "log_stream") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "log_stream") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "parked_reason") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "parked_reason") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "retry_source") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "retry_source") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "routine_run_source") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "routine_run_source") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "routine_run_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "routine_run_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "run_attempt_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "run_attempt_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "run_error_code") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "run_error_code") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "run_event_kind") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "run_event_kind") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "run_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "run_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "wake_basis") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "wake_basis") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "wake_class") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "wake_class") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "wakeup_source") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "wakeup_source") WITH INOUT AS ASSIGNMENT;
CREATE CAST (character varying AS "wakeup_status") WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS "wakeup_status") WITH INOUT AS ASSIGNMENT;
-- drop index "activities_inbox" from table: "activities"
DROP INDEX "activities_inbox";
-- drop index "activities_rare" from table: "activities"
DROP INDEX "activities_rare";
-- modify "activities" table
ALTER TABLE "activities" DROP CONSTRAINT "activities_actor_kind", DROP CONSTRAINT "activities_code", DROP CONSTRAINT "activities_workspaces_workspace", ALTER COLUMN "code" TYPE "activity_code" USING "code"::text::"activity_code", ALTER COLUMN "actor_kind" TYPE "author_kind" USING "actor_kind"::text::"author_kind";
-- create index "activities_inbox" to table: "activities"
CREATE INDEX "activities_inbox" ON "activities" ("subject_id") WHERE (code = 'INBOX_ITEM_MADE'::activity_code);
-- create index "activities_rare" to table: "activities"
CREATE INDEX "activities_rare" ON "activities" ("workspace_id", "code", "occurred_at", "id") WHERE ((code <> 'WAKEUP_QUEUED'::activity_code) AND (code <> 'RUN_CLAIMED'::activity_code) AND (code <> 'RUN_LAUNCHED'::activity_code) AND (code <> 'RUN_FINISHED'::activity_code));
-- drop index "agent_lanes_backlog" from table: "agent_lanes"
DROP INDEX "agent_lanes_backlog";
-- drop index "agent_lanes_due" from table: "agent_lanes"
DROP INDEX "agent_lanes_due";
-- drop index "agent_lanes_over_budget" from table: "agent_lanes"
DROP INDEX "agent_lanes_over_budget";
-- drop index "agent_lanes_resting" from table: "agent_lanes"
DROP INDEX "agent_lanes_resting";
-- modify "agent_lanes" table
ALTER TABLE "agent_lanes" ALTER COLUMN "status" DROP DEFAULT, DROP CONSTRAINT "agent_lanes_pause_reason", DROP CONSTRAINT "agent_lanes_status", ALTER COLUMN "status" TYPE "agent_status" USING "status"::text::"agent_status", ALTER COLUMN "pause_reason" TYPE "agent_pause_reason" USING "pause_reason"::text::"agent_pause_reason";
ALTER TABLE "agent_lanes" ALTER COLUMN "status" SET DEFAULT 'IDLE';
-- create index "agent_lanes_backlog" to table: "agent_lanes"
CREATE INDEX "agent_lanes_backlog" ON "agent_lanes" ("agent_id") WHERE (((head_at IS NOT NULL) AND (status <> 'IDLE'::agent_status)) OR ((resend_from IS NOT NULL) AND (status = 'IDLE'::agent_status)) OR clearing);
-- create index "agent_lanes_due" to table: "agent_lanes"
CREATE INDEX "agent_lanes_due" ON "agent_lanes" ("workspace_id", "head_at", "head_id", "eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND (status = 'IDLE'::agent_status));
-- create index "agent_lanes_over_budget" to table: "agent_lanes"
CREATE INDEX "agent_lanes_over_budget" ON "agent_lanes" ("workspace_id", "agent_id") WHERE (pause_reason = 'BUDGET'::agent_pause_reason);
-- create index "agent_lanes_resting" to table: "agent_lanes"
CREATE INDEX "agent_lanes_resting" ON "agent_lanes" ("eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND (status = 'IDLE'::agent_status));
-- drop index "budgethold_policy_id" from table: "budget_holds"
DROP INDEX "budgethold_policy_id";
-- modify "budget_holds" table
ALTER TABLE "budget_holds" ALTER COLUMN "status" DROP DEFAULT, DROP CONSTRAINT "budget_holds_status", ALTER COLUMN "status" TYPE "budget_hold_status" USING "status"::text::"budget_hold_status";
ALTER TABLE "budget_holds" ALTER COLUMN "status" SET DEFAULT 'HELD';
-- create index "budgethold_policy_id" to table: "budget_holds"
CREATE INDEX "budgethold_policy_id" ON "budget_holds" ("policy_id") WHERE (status = 'HELD'::budget_hold_status);
-- drop index "routine_runs_by_source" from table: "routine_runs"
DROP INDEX "routine_runs_by_source";
-- drop index "routine_runs_by_status" from table: "routine_runs"
DROP INDEX "routine_runs_by_status";
-- modify "routine_runs" table
ALTER TABLE "routine_runs" ALTER COLUMN "status" DROP DEFAULT, DROP CONSTRAINT "routine_runs_skip_reason", DROP CONSTRAINT "routine_runs_source", DROP CONSTRAINT "routine_runs_status", ALTER COLUMN "source" TYPE "routine_run_source" USING "source"::text::"routine_run_source", ALTER COLUMN "status" TYPE "routine_run_status" USING "status"::text::"routine_run_status", ALTER COLUMN "skip_reason" TYPE "end_reason" USING "skip_reason"::text::"end_reason";
ALTER TABLE "routine_runs" ALTER COLUMN "status" SET DEFAULT 'RECEIVED';
-- create index "routine_runs_by_source" to table: "routine_runs"
CREATE INDEX "routine_runs_by_source" ON "routine_runs" ("workspace_id", "source", "started_at", "id") WHERE (source <> 'CRON'::routine_run_source);
-- create index "routine_runs_by_status" to table: "routine_runs"
CREATE INDEX "routine_runs_by_status" ON "routine_runs" ("workspace_id", "status", "started_at", "id") WHERE (status <> 'DONE'::routine_run_status);
-- modify "run_attempts" table
ALTER TABLE "run_attempts" DROP CONSTRAINT "run_attempts_error_code", DROP CONSTRAINT "run_attempts_status", DROP CONSTRAINT "run_attempts_runs_attempts", DROP CONSTRAINT "run_attempts_workspaces_workspace", ALTER COLUMN "status" TYPE "run_attempt_status" USING "status"::text::"run_attempt_status", ALTER COLUMN "error_code" TYPE "run_error_code" USING "error_code"::text::"run_error_code";
-- modify "run_contents" table
ALTER TABLE "run_contents" DROP CONSTRAINT "run_contents_runs_content", DROP CONSTRAINT "run_contents_workspaces_workspace";
-- modify "run_events" table
ALTER TABLE "run_events" DROP CONSTRAINT "run_events_kind", DROP CONSTRAINT "run_events_runs_run", DROP CONSTRAINT "run_events_workspaces_workspace", ALTER COLUMN "kind" TYPE "run_event_kind" USING "kind"::text::"run_event_kind";
-- modify "run_log_lines" table
ALTER TABLE "run_log_lines" DROP CONSTRAINT "run_log_lines_stream", DROP CONSTRAINT "run_log_lines_runs_run", DROP CONSTRAINT "run_log_lines_workspaces_workspace", ALTER COLUMN "stream" TYPE "log_stream" USING "stream"::text::"log_stream";
-- drop index "runs_by_status" from table: "runs"
DROP INDEX "runs_by_status";
-- drop index "runs_due" from table: "runs"
DROP INDEX "runs_due";
-- drop index "runs_live_scope" from table: "runs"
DROP INDEX "runs_live_scope";
-- drop index "runs_parked" from table: "runs"
DROP INDEX "runs_parked";
-- drop index "runs_parked_lane" from table: "runs"
DROP INDEX "runs_parked_lane";
-- drop index "runs_queued_scope" from table: "runs"
DROP INDEX "runs_queued_scope";
-- drop index "runs_scope_busy" from table: "runs"
DROP INDEX "runs_scope_busy";
-- drop index "runs_silent" from table: "runs"
DROP INDEX "runs_silent";
-- drop index "runs_task_blocked" from table: "runs"
DROP INDEX "runs_task_blocked";
-- drop index "runs_unprocessed" from table: "runs"
DROP INDEX "runs_unprocessed";
-- modify "runs" table
ALTER TABLE "runs" DROP CONSTRAINT "runs_parked", DROP CONSTRAINT "runs_claimed", DROP CONSTRAINT "runs_ended", ALTER COLUMN "status" DROP DEFAULT, DROP CONSTRAINT "runs_end_reason", DROP CONSTRAINT "runs_error_code", DROP CONSTRAINT "runs_parked_reason", DROP CONSTRAINT "runs_retry_source", DROP CONSTRAINT "runs_source", DROP CONSTRAINT "runs_status", DROP CONSTRAINT "runs_wake_class", DROP CONSTRAINT "runs_agents_agent", DROP CONSTRAINT "runs_workspaces_workspace", ALTER COLUMN "source" TYPE "wakeup_source" USING "source"::text::"wakeup_source", ALTER COLUMN "wake_class" TYPE "wake_class" USING "wake_class"::text::"wake_class", ALTER COLUMN "status" TYPE "run_status" USING "status"::text::"run_status", ALTER COLUMN "parked_reason" TYPE "parked_reason" USING "parked_reason"::text::"parked_reason", ALTER COLUMN "end_reason" TYPE "end_reason" USING "end_reason"::text::"end_reason", ALTER COLUMN "error_code" TYPE "run_error_code" USING "error_code"::text::"run_error_code", ALTER COLUMN "retry_source" TYPE "retry_source" USING "retry_source"::text::"retry_source";
ALTER TABLE "runs" ALTER COLUMN "status" SET DEFAULT 'QUEUED';
ALTER TABLE "runs" ADD CONSTRAINT "runs_parked" CHECK (parked_reason IS NULL OR status = 'QUEUED'), ADD CONSTRAINT "runs_claimed" CHECK ((claimed_at IS NOT NULL) OR (status <> 'CLAIMED')), ADD CONSTRAINT "runs_ended" CHECK ((finished_at IS NOT NULL) = (status IN ('FINISHED', 'FAILED', 'CANCELLED')));
-- create index "runs_by_status" to table: "runs"
CREATE INDEX "runs_by_status" ON "runs" ("workspace_id", "status", "requested_at", "id") WHERE (status <> 'FINISHED'::run_status);
-- create index "runs_due" to table: "runs"
CREATE INDEX "runs_due" ON "runs" ("agent_id", "requested_at", "id") WHERE ((status = 'QUEUED'::run_status) AND (parked_reason IS NULL));
-- create index "runs_live_scope" to table: "runs"
CREATE UNIQUE INDEX "runs_live_scope" ON "runs" ("agent_id", "scope") WHERE (status = 'CLAIMED'::run_status);
-- create index "runs_parked" to table: "runs"
CREATE INDEX "runs_parked" ON "runs" ("parked_until") WHERE ((status = 'QUEUED'::run_status) AND (parked_until IS NOT NULL));
-- create index "runs_parked_lane" to table: "runs"
CREATE INDEX "runs_parked_lane" ON "runs" ("agent_id", "parked_until") WHERE ((status = 'QUEUED'::run_status) AND (parked_until IS NOT NULL));
-- create index "runs_queued_scope" to table: "runs"
CREATE INDEX "runs_queued_scope" ON "runs" ("agent_id", "scope") WHERE (status = 'QUEUED'::run_status);
-- create index "runs_scope_busy" to table: "runs"
CREATE INDEX "runs_scope_busy" ON "runs" ("agent_id", "scope", "requested_at", "id") WHERE ((status = 'QUEUED'::run_status) AND (parked_reason = 'SCOPE_BUSY'::parked_reason));
-- create index "runs_silent" to table: "runs"
CREATE INDEX "runs_silent" ON "runs" ("workspace_id", "finished_at") WHERE ((status = 'FINISHED'::run_status) AND ((outcome)::text = 'processed'::text) AND (session_id IS NULL));
-- create index "runs_task_blocked" to table: "runs"
CREATE INDEX "runs_task_blocked" ON "runs" ("agent_id") WHERE ((status = 'QUEUED'::run_status) AND (parked_reason = 'TASK_BLOCKED'::parked_reason));
-- create index "runs_unprocessed" to table: "runs"
CREATE INDEX "runs_unprocessed" ON "runs" ("workspace_id", "requested_at", "id") WHERE ((status = 'FINISHED'::run_status) AND ((outcome)::text IS DISTINCT FROM 'processed'::text));
-- drop index "wakeup_requests_apart" from table: "wakeup_requests"
DROP INDEX "wakeup_requests_apart";
-- drop index "wakeup_requests_checkout_held" from table: "wakeup_requests"
DROP INDEX "wakeup_requests_checkout_held";
-- drop index "wakeup_requests_dropped_by_pause" from table: "wakeup_requests"
DROP INDEX "wakeup_requests_dropped_by_pause";
-- drop index "wakeup_requests_unrouted" from table: "wakeup_requests"
DROP INDEX "wakeup_requests_unrouted";
-- modify "wakeup_requests" table
ALTER TABLE "wakeup_requests" ALTER COLUMN "status" DROP DEFAULT, DROP CONSTRAINT "wakeup_requests_basis", DROP CONSTRAINT "wakeup_requests_end_reason", DROP CONSTRAINT "wakeup_requests_retry_source", DROP CONSTRAINT "wakeup_requests_source", DROP CONSTRAINT "wakeup_requests_status", DROP CONSTRAINT "wakeup_requests_wake_class", DROP CONSTRAINT "wakeup_requests_agents_agent", DROP CONSTRAINT "wakeup_requests_runs_wakeup_requests", DROP CONSTRAINT "wakeup_requests_workspaces_workspace", ALTER COLUMN "source" TYPE "wakeup_source" USING "source"::text::"wakeup_source", ALTER COLUMN "basis" TYPE "wake_basis" USING "basis"::text::"wake_basis", ALTER COLUMN "wake_class" TYPE "wake_class" USING "wake_class"::text::"wake_class", ALTER COLUMN "status" TYPE "wakeup_status" USING "status"::text::"wakeup_status", ALTER COLUMN "end_reason" TYPE "end_reason" USING "end_reason"::text::"end_reason", ALTER COLUMN "retry_source" TYPE "retry_source" USING "retry_source"::text::"retry_source";
ALTER TABLE "wakeup_requests" ALTER COLUMN "status" SET DEFAULT 'QUEUED';
-- create index "wakeup_requests_apart" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_apart" ON "wakeup_requests" ("workspace_id", "status", "requested_at", "id") WHERE ((status <> 'QUEUED'::wakeup_status) AND (status <> 'CLAIMED'::wakeup_status) AND (status <> 'FINISHED'::wakeup_status));
-- create index "wakeup_requests_checkout_held" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_checkout_held" ON "wakeup_requests" ("task_id") WHERE ((status = 'SKIPPED'::wakeup_status) AND (end_reason = 'CHECKOUT_HELD'::end_reason));
-- create index "wakeup_requests_dropped_by_pause" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_dropped_by_pause" ON "wakeup_requests" ("agent_id", "finished_at") WHERE ((end_reason = 'AGENT_INACTIVE'::end_reason) OR (end_reason = 'BUDGET_BLOCKED'::end_reason));
-- create index "wakeup_requests_unrouted" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_unrouted" ON "wakeup_requests" ("agent_id", "requested_at", "id") WHERE ((status = 'QUEUED'::wakeup_status) AND (run_id IS NULL));

-- +goose Down
-- reverse: create index "wakeup_requests_unrouted" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_unrouted";
-- reverse: create index "wakeup_requests_dropped_by_pause" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_dropped_by_pause";
-- reverse: create index "wakeup_requests_checkout_held" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_checkout_held";
-- reverse: create index "wakeup_requests_apart" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_apart";
-- reverse: modify "wakeup_requests" table
ALTER TABLE "wakeup_requests" ALTER COLUMN "status" DROP DEFAULT, ALTER COLUMN "retry_source" TYPE character varying, ALTER COLUMN "end_reason" TYPE character varying, ALTER COLUMN "status" TYPE character varying, ALTER COLUMN "wake_class" TYPE character varying, ALTER COLUMN "basis" TYPE character varying, ALTER COLUMN "source" TYPE character varying, ADD CONSTRAINT "wakeup_requests_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "wakeup_requests_runs_wakeup_requests" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "wakeup_requests_agents_agent" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "wakeup_requests_wake_class" CHECK ((wake_class)::text = ANY (ARRAY[('PERIODIC'::character varying)::text, ('EVENT'::character varying)::text])), ADD CONSTRAINT "wakeup_requests_status" CHECK ((status)::text = ANY (ARRAY[('QUEUED'::character varying)::text, ('CLAIMED'::character varying)::text, ('COALESCED'::character varying)::text, ('SKIPPED'::character varying)::text, ('FINISHED'::character varying)::text, ('FAILED'::character varying)::text, ('CANCELLED'::character varying)::text])), ADD CONSTRAINT "wakeup_requests_source" CHECK ((source)::text = ANY (ARRAY[('ROUTINE'::character varying)::text, ('COMMENT'::character varying)::text, ('AGENT_ERROR'::character varying)::text, ('SELF'::character varying)::text, ('USER'::character varying)::text, ('TASK_ASSIGNED'::character varying)::text, ('TASK_BLOCKERS_RESOLVED'::character varying)::text, ('TASK_CHILDREN_COMPLETED'::character varying)::text, ('APPROVAL_RESOLVED'::character varying)::text, ('BUDGET_ALERT'::character varying)::text])), ADD CONSTRAINT "wakeup_requests_retry_source" CHECK ((retry_source)::text = ANY (ARRAY[('BACKOFF'::character varying)::text, ('RATE_LIMIT_PARSED'::character varying)::text])), ADD CONSTRAINT "wakeup_requests_end_reason" CHECK ((end_reason)::text = ANY (ARRAY[('TASK_NOT_FOUND'::character varying)::text, ('ASSIGNEE_CHANGED'::character varying)::text, ('TASK_DONE'::character varying)::text, ('TASK_CANCELLED'::character varying)::text, ('REVIEW_PARTICIPANT_CHANGED'::character varying)::text, ('RETRY_STALE_ASSIGNEE'::character varying)::text, ('RETRY_TASK_CANCELLED'::character varying)::text, ('CANCELLED_BY_USER'::character varying)::text, ('ROUTINE_DELETED'::character varying)::text, ('AGENT_DELETED'::character varying)::text, ('IDLE_SKIPPED'::character varying)::text, ('BUDGET_BLOCKED'::character varying)::text, ('CHECKOUT_HELD'::character varying)::text, ('AGENT_INACTIVE'::character varying)::text, ('CONCURRENCY_POLICY'::character varying)::text, ('HOP_LIMIT'::character varying)::text, ('BACKLOG_FULL'::character varying)::text, ('RETRIES_EXHAUSTED'::character varying)::text, ('NO_EXECUTOR'::character varying)::text])), ADD CONSTRAINT "wakeup_requests_basis" CHECK ((basis)::text = ANY (ARRAY[('ASSIGNEE'::character varying)::text, ('REVIEWER'::character varying)::text, ('APPROVER'::character varying)::text, ('EXPLICIT'::character varying)::text]));
ALTER TABLE "wakeup_requests" ALTER COLUMN "status" SET DEFAULT 'QUEUED';
-- reverse: drop index "wakeup_requests_unrouted" from table: "wakeup_requests"
CREATE INDEX "wakeup_requests_unrouted" ON "wakeup_requests" ("agent_id", "requested_at", "id") WHERE (((status)::text = 'QUEUED'::text) AND (run_id IS NULL));
-- reverse: drop index "wakeup_requests_dropped_by_pause" from table: "wakeup_requests"
CREATE INDEX "wakeup_requests_dropped_by_pause" ON "wakeup_requests" ("agent_id", "finished_at") WHERE (((end_reason)::text = 'AGENT_INACTIVE'::text) OR ((end_reason)::text = 'BUDGET_BLOCKED'::text));
-- reverse: drop index "wakeup_requests_checkout_held" from table: "wakeup_requests"
CREATE INDEX "wakeup_requests_checkout_held" ON "wakeup_requests" ("task_id") WHERE (((status)::text = 'SKIPPED'::text) AND ((end_reason)::text = 'CHECKOUT_HELD'::text));
-- reverse: drop index "wakeup_requests_apart" from table: "wakeup_requests"
CREATE INDEX "wakeup_requests_apart" ON "wakeup_requests" ("workspace_id", "status", "requested_at", "id") WHERE (((status)::text <> 'QUEUED'::text) AND ((status)::text <> 'CLAIMED'::text) AND ((status)::text <> 'FINISHED'::text));
-- reverse: create index "runs_unprocessed" to table: "runs"
DROP INDEX "runs_unprocessed";
-- reverse: create index "runs_task_blocked" to table: "runs"
DROP INDEX "runs_task_blocked";
-- reverse: create index "runs_silent" to table: "runs"
DROP INDEX "runs_silent";
-- reverse: create index "runs_scope_busy" to table: "runs"
DROP INDEX "runs_scope_busy";
-- reverse: create index "runs_queued_scope" to table: "runs"
DROP INDEX "runs_queued_scope";
-- reverse: create index "runs_parked_lane" to table: "runs"
DROP INDEX "runs_parked_lane";
-- reverse: create index "runs_parked" to table: "runs"
DROP INDEX "runs_parked";
-- reverse: create index "runs_live_scope" to table: "runs"
DROP INDEX "runs_live_scope";
-- reverse: create index "runs_due" to table: "runs"
DROP INDEX "runs_due";
-- reverse: create index "runs_by_status" to table: "runs"
DROP INDEX "runs_by_status";
-- reverse: modify "runs" table
ALTER TABLE "runs" DROP CONSTRAINT "runs_parked", DROP CONSTRAINT "runs_claimed", DROP CONSTRAINT "runs_ended", ALTER COLUMN "status" DROP DEFAULT, ALTER COLUMN "retry_source" TYPE character varying, ALTER COLUMN "error_code" TYPE character varying, ALTER COLUMN "end_reason" TYPE character varying, ALTER COLUMN "parked_reason" TYPE character varying, ALTER COLUMN "status" TYPE character varying, ALTER COLUMN "wake_class" TYPE character varying, ALTER COLUMN "source" TYPE character varying, ADD CONSTRAINT "runs_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "runs_agents_agent" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "runs_wake_class" CHECK ((wake_class)::text = ANY (ARRAY[('PERIODIC'::character varying)::text, ('EVENT'::character varying)::text])), ADD CONSTRAINT "runs_status" CHECK ((status)::text = ANY (ARRAY[('QUEUED'::character varying)::text, ('CLAIMED'::character varying)::text, ('FINISHED'::character varying)::text, ('FAILED'::character varying)::text, ('CANCELLED'::character varying)::text])), ADD CONSTRAINT "runs_source" CHECK ((source)::text = ANY (ARRAY[('ROUTINE'::character varying)::text, ('COMMENT'::character varying)::text, ('AGENT_ERROR'::character varying)::text, ('SELF'::character varying)::text, ('USER'::character varying)::text, ('TASK_ASSIGNED'::character varying)::text, ('TASK_BLOCKERS_RESOLVED'::character varying)::text, ('TASK_CHILDREN_COMPLETED'::character varying)::text, ('APPROVAL_RESOLVED'::character varying)::text, ('BUDGET_ALERT'::character varying)::text])), ADD CONSTRAINT "runs_retry_source" CHECK ((retry_source)::text = ANY (ARRAY[('BACKOFF'::character varying)::text, ('RATE_LIMIT_PARSED'::character varying)::text])), ADD CONSTRAINT "runs_parked_reason" CHECK ((parked_reason)::text = ANY (ARRAY[('WINDOW'::character varying)::text, ('BACKOFF'::character varying)::text, ('RATE_LIMIT'::character varying)::text, ('SCOPE_BUSY'::character varying)::text, ('TASK_BLOCKED'::character varying)::text, ('BUDGET_RESERVED'::character varying)::text, ('GUARD_ERROR'::character varying)::text, ('NO_WORKER'::character varying)::text])), ADD CONSTRAINT "runs_error_code" CHECK ((error_code)::text = ANY (ARRAY[('RATE_LIMITED'::character varying)::text, ('LAUNCH'::character varying)::text, ('TIMEOUT'::character varying)::text, ('CRASH'::character varying)::text, ('LEASE_LOST'::character varying)::text, ('BUDGET'::character varying)::text, ('OTHER'::character varying)::text])), ADD CONSTRAINT "runs_end_reason" CHECK ((end_reason)::text = ANY (ARRAY[('TASK_NOT_FOUND'::character varying)::text, ('ASSIGNEE_CHANGED'::character varying)::text, ('TASK_DONE'::character varying)::text, ('TASK_CANCELLED'::character varying)::text, ('REVIEW_PARTICIPANT_CHANGED'::character varying)::text, ('RETRY_STALE_ASSIGNEE'::character varying)::text, ('RETRY_TASK_CANCELLED'::character varying)::text, ('CANCELLED_BY_USER'::character varying)::text, ('ROUTINE_DELETED'::character varying)::text, ('AGENT_DELETED'::character varying)::text, ('IDLE_SKIPPED'::character varying)::text, ('BUDGET_BLOCKED'::character varying)::text, ('CHECKOUT_HELD'::character varying)::text, ('AGENT_INACTIVE'::character varying)::text, ('CONCURRENCY_POLICY'::character varying)::text, ('HOP_LIMIT'::character varying)::text, ('BACKLOG_FULL'::character varying)::text, ('RETRIES_EXHAUSTED'::character varying)::text, ('NO_EXECUTOR'::character varying)::text]));
ALTER TABLE "runs" ALTER COLUMN "status" SET DEFAULT 'QUEUED';
ALTER TABLE "runs" ADD CONSTRAINT "runs_parked" CHECK (parked_reason IS NULL OR status = 'QUEUED'), ADD CONSTRAINT "runs_claimed" CHECK ((claimed_at IS NOT NULL) OR (status <> 'CLAIMED')), ADD CONSTRAINT "runs_ended" CHECK ((finished_at IS NOT NULL) = (status IN ('FINISHED', 'FAILED', 'CANCELLED')));
-- reverse: drop index "runs_unprocessed" from table: "runs"
CREATE INDEX "runs_unprocessed" ON "runs" ("workspace_id", "requested_at", "id") WHERE (((status)::text = 'FINISHED'::text) AND ((outcome)::text IS DISTINCT FROM 'processed'::text));
-- reverse: drop index "runs_task_blocked" from table: "runs"
CREATE INDEX "runs_task_blocked" ON "runs" ("agent_id") WHERE (((status)::text = 'QUEUED'::text) AND ((parked_reason)::text = 'TASK_BLOCKED'::text));
-- reverse: drop index "runs_silent" from table: "runs"
CREATE INDEX "runs_silent" ON "runs" ("workspace_id", "finished_at") WHERE (((status)::text = 'FINISHED'::text) AND ((outcome)::text = 'processed'::text) AND (session_id IS NULL));
-- reverse: drop index "runs_scope_busy" from table: "runs"
CREATE INDEX "runs_scope_busy" ON "runs" ("agent_id", "scope", "requested_at", "id") WHERE (((status)::text = 'QUEUED'::text) AND ((parked_reason)::text = 'SCOPE_BUSY'::text));
-- reverse: drop index "runs_queued_scope" from table: "runs"
CREATE INDEX "runs_queued_scope" ON "runs" ("agent_id", "scope") WHERE ((status)::text = 'QUEUED'::text);
-- reverse: drop index "runs_parked_lane" from table: "runs"
CREATE INDEX "runs_parked_lane" ON "runs" ("agent_id", "parked_until") WHERE (((status)::text = 'QUEUED'::text) AND (parked_until IS NOT NULL));
-- reverse: drop index "runs_parked" from table: "runs"
CREATE INDEX "runs_parked" ON "runs" ("parked_until") WHERE (((status)::text = 'QUEUED'::text) AND (parked_until IS NOT NULL));
-- reverse: drop index "runs_live_scope" from table: "runs"
CREATE UNIQUE INDEX "runs_live_scope" ON "runs" ("agent_id", "scope") WHERE ((status)::text = 'CLAIMED'::text);
-- reverse: drop index "runs_due" from table: "runs"
CREATE INDEX "runs_due" ON "runs" ("agent_id", "requested_at", "id") WHERE (((status)::text = 'QUEUED'::text) AND (parked_reason IS NULL));
-- reverse: drop index "runs_by_status" from table: "runs"
CREATE INDEX "runs_by_status" ON "runs" ("workspace_id", "status", "requested_at", "id") WHERE ((status)::text <> 'FINISHED'::text);
-- reverse: modify "run_log_lines" table
ALTER TABLE "run_log_lines" ALTER COLUMN "stream" TYPE character varying, ADD CONSTRAINT "run_log_lines_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_log_lines_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_log_lines_stream" CHECK ((stream)::text = ANY (ARRAY[('STDOUT'::character varying)::text, ('STDERR'::character varying)::text, ('SYSTEM'::character varying)::text]));
-- reverse: modify "run_events" table
ALTER TABLE "run_events" ALTER COLUMN "kind" TYPE character varying, ADD CONSTRAINT "run_events_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_events_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_events_kind" CHECK ((kind)::text = ANY (ARRAY[('CREATED'::character varying)::text, ('CLAIMED'::character varying)::text, ('GUARD'::character varying)::text, ('COALESCED'::character varying)::text, ('PROMOTED'::character varying)::text, ('LAUNCHED'::character varying)::text, ('SESSION_RECORDED'::character varying)::text, ('PROGRESS'::character varying)::text, ('RETRY_SCHEDULED'::character varying)::text, ('FINISHED'::character varying)::text, ('FAILED'::character varying)::text, ('CANCELLED'::character varying)::text, ('RECOVERED'::character varying)::text]));
-- reverse: modify "run_contents" table
ALTER TABLE "run_contents" ADD CONSTRAINT "run_contents_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_contents_runs_content" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- reverse: modify "run_attempts" table
ALTER TABLE "run_attempts" ALTER COLUMN "error_code" TYPE character varying, ALTER COLUMN "status" TYPE character varying, ADD CONSTRAINT "run_attempts_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_attempts_runs_attempts" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_attempts_status" CHECK ((status)::text = ANY (ARRAY[('OFFERED'::character varying)::text, ('LAUNCHING'::character varying)::text, ('RUNNING'::character varying)::text, ('SUCCEEDED'::character varying)::text, ('FAILED'::character varying)::text, ('ABANDONED'::character varying)::text, ('INTERRUPTED'::character varying)::text, ('CANCELLED'::character varying)::text])), ADD CONSTRAINT "run_attempts_error_code" CHECK ((error_code)::text = ANY (ARRAY[('RATE_LIMITED'::character varying)::text, ('LAUNCH'::character varying)::text, ('TIMEOUT'::character varying)::text, ('CRASH'::character varying)::text, ('LEASE_LOST'::character varying)::text, ('BUDGET'::character varying)::text, ('OTHER'::character varying)::text]));
-- reverse: create index "routine_runs_by_status" to table: "routine_runs"
DROP INDEX "routine_runs_by_status";
-- reverse: create index "routine_runs_by_source" to table: "routine_runs"
DROP INDEX "routine_runs_by_source";
-- reverse: modify "routine_runs" table
ALTER TABLE "routine_runs" ALTER COLUMN "status" DROP DEFAULT, ALTER COLUMN "skip_reason" TYPE character varying, ALTER COLUMN "status" TYPE character varying, ALTER COLUMN "source" TYPE character varying, ADD CONSTRAINT "routine_runs_status" CHECK ((status)::text = ANY (ARRAY[('RECEIVED'::character varying)::text, ('TASK_CREATED'::character varying)::text, ('ENQUEUED'::character varying)::text, ('DONE'::character varying)::text, ('SKIPPED'::character varying)::text, ('COALESCED'::character varying)::text, ('CANCELLED'::character varying)::text, ('FAILED'::character varying)::text])), ADD CONSTRAINT "routine_runs_source" CHECK ((source)::text = ANY (ARRAY[('CRON'::character varying)::text, ('WEBHOOK'::character varying)::text, ('MANUAL'::character varying)::text])), ADD CONSTRAINT "routine_runs_skip_reason" CHECK ((skip_reason)::text = ANY (ARRAY[('TASK_NOT_FOUND'::character varying)::text, ('ASSIGNEE_CHANGED'::character varying)::text, ('TASK_DONE'::character varying)::text, ('TASK_CANCELLED'::character varying)::text, ('REVIEW_PARTICIPANT_CHANGED'::character varying)::text, ('RETRY_STALE_ASSIGNEE'::character varying)::text, ('RETRY_TASK_CANCELLED'::character varying)::text, ('CANCELLED_BY_USER'::character varying)::text, ('ROUTINE_DELETED'::character varying)::text, ('AGENT_DELETED'::character varying)::text, ('IDLE_SKIPPED'::character varying)::text, ('BUDGET_BLOCKED'::character varying)::text, ('CHECKOUT_HELD'::character varying)::text, ('AGENT_INACTIVE'::character varying)::text, ('CONCURRENCY_POLICY'::character varying)::text, ('HOP_LIMIT'::character varying)::text, ('BACKLOG_FULL'::character varying)::text, ('RETRIES_EXHAUSTED'::character varying)::text, ('NO_EXECUTOR'::character varying)::text]));
ALTER TABLE "routine_runs" ALTER COLUMN "status" SET DEFAULT 'RECEIVED';
-- reverse: drop index "routine_runs_by_status" from table: "routine_runs"
CREATE INDEX "routine_runs_by_status" ON "routine_runs" ("workspace_id", "status", "started_at", "id") WHERE ((status)::text <> 'DONE'::text);
-- reverse: drop index "routine_runs_by_source" from table: "routine_runs"
CREATE INDEX "routine_runs_by_source" ON "routine_runs" ("workspace_id", "source", "started_at", "id") WHERE ((source)::text <> 'CRON'::text);
-- reverse: create index "budgethold_policy_id" to table: "budget_holds"
DROP INDEX "budgethold_policy_id";
-- reverse: modify "budget_holds" table
ALTER TABLE "budget_holds" ALTER COLUMN "status" DROP DEFAULT, ALTER COLUMN "status" TYPE character varying, ADD CONSTRAINT "budget_holds_status" CHECK ((status)::text = ANY (ARRAY[('HELD'::character varying)::text, ('SETTLED'::character varying)::text, ('VOID'::character varying)::text]));
ALTER TABLE "budget_holds" ALTER COLUMN "status" SET DEFAULT 'HELD';
-- reverse: drop index "budgethold_policy_id" from table: "budget_holds"
CREATE INDEX "budgethold_policy_id" ON "budget_holds" ("policy_id") WHERE ((status)::text = 'HELD'::text);
-- reverse: create index "agent_lanes_resting" to table: "agent_lanes"
DROP INDEX "agent_lanes_resting";
-- reverse: create index "agent_lanes_over_budget" to table: "agent_lanes"
DROP INDEX "agent_lanes_over_budget";
-- reverse: create index "agent_lanes_due" to table: "agent_lanes"
DROP INDEX "agent_lanes_due";
-- reverse: create index "agent_lanes_backlog" to table: "agent_lanes"
DROP INDEX "agent_lanes_backlog";
-- reverse: modify "agent_lanes" table
ALTER TABLE "agent_lanes" ALTER COLUMN "status" DROP DEFAULT, ALTER COLUMN "pause_reason" TYPE character varying, ALTER COLUMN "status" TYPE character varying, ADD CONSTRAINT "agent_lanes_status" CHECK ((status)::text = ANY (ARRAY[('IDLE'::character varying)::text, ('WORKING'::character varying)::text, ('PAUSED'::character varying)::text, ('STOPPED'::character varying)::text])), ADD CONSTRAINT "agent_lanes_pause_reason" CHECK ((pause_reason)::text = ANY (ARRAY[('USER'::character varying)::text, ('BUDGET'::character varying)::text]));
ALTER TABLE "agent_lanes" ALTER COLUMN "status" SET DEFAULT 'IDLE';
-- reverse: drop index "agent_lanes_resting" from table: "agent_lanes"
CREATE INDEX "agent_lanes_resting" ON "agent_lanes" ("eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND ((status)::text = 'IDLE'::text));
-- reverse: drop index "agent_lanes_over_budget" from table: "agent_lanes"
CREATE INDEX "agent_lanes_over_budget" ON "agent_lanes" ("workspace_id", "agent_id") WHERE ((pause_reason)::text = 'BUDGET'::text);
-- reverse: drop index "agent_lanes_due" from table: "agent_lanes"
CREATE INDEX "agent_lanes_due" ON "agent_lanes" ("workspace_id", "head_at", "head_id", "eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND ((status)::text = 'IDLE'::text));
-- reverse: drop index "agent_lanes_backlog" from table: "agent_lanes"
CREATE INDEX "agent_lanes_backlog" ON "agent_lanes" ("agent_id") WHERE (((head_at IS NOT NULL) AND ((status)::text <> 'IDLE'::text)) OR ((resend_from IS NOT NULL) AND ((status)::text = 'IDLE'::text)) OR clearing);
-- reverse: create index "activities_rare" to table: "activities"
DROP INDEX "activities_rare";
-- reverse: create index "activities_inbox" to table: "activities"
DROP INDEX "activities_inbox";
-- reverse: modify "activities" table
ALTER TABLE "activities" ALTER COLUMN "actor_kind" TYPE character varying, ALTER COLUMN "code" TYPE character varying, ADD CONSTRAINT "activities_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "activities_code" CHECK ((code)::text = ANY ((ARRAY['WAKEUP_QUEUED'::character varying, 'WAKEUP_COALESCED'::character varying, 'WAKEUP_IDLE_SKIPPED'::character varying, 'WAKEUP_AGENT_INACTIVE'::character varying, 'WAKEUP_CHECKOUT_HELD'::character varying, 'WAKEUP_RESENT'::character varying, 'WAKEUP_BUDGET_BLOCKED'::character varying, 'WAKEUP_STALE_CANCELLED'::character varying, 'WAKEUP_RETRY_SCHEDULED'::character varying, 'WAKEUP_RETRY_CANCELLED'::character varying, 'RECOVERY_DISPATCH'::character varying, 'RECOVERY_SWEEP_COMPLETE'::character varying, 'RUN_CLAIMED'::character varying, 'RUN_LAUNCHED'::character varying, 'RUN_FINISHED'::character varying, 'RUN_FAILED'::character varying, 'RUN_CANCELLED'::character varying, 'RUN_RESCUED'::character varying, 'ROUTINE_CHANGED'::character varying, 'ROUTINE_FIRED'::character varying, 'TRIGGER_CHANGED'::character varying, 'TRIGGER_SECRET_ROTATED'::character varying, 'AGENT_CHANGED'::character varying, 'AGENT_PAUSED'::character varying, 'AGENT_RESUMED'::character varying, 'TASK_CHANGED'::character varying, 'TASK_COMMENTED'::character varying, 'APPROVAL_DECIDED'::character varying, 'BUDGET_CHANGED'::character varying, 'BUDGET_THRESHOLD'::character varying, 'SETTINGS_CHANGED'::character varying, 'WEBHOOK_REJECTED'::character varying, 'APPROVAL_REQUESTED'::character varying, 'INBOX_ITEM_MADE'::character varying, 'INBOX_ITEM_HANDLED'::character varying, 'TOKEN_CREATED'::character varying, 'TOKEN_REVOKED'::character varying, 'PROJECT_CHANGED'::character varying, 'WORKFLOW_CHANGED'::character varying, 'WORKSPACE_CREATED'::character varying, 'EXECUTOR_TESTED'::character varying, 'WAKEUP_REQUESTED'::character varying, 'RUN_CANCEL_REQUESTED'::character varying])::text[])), ADD CONSTRAINT "activities_actor_kind" CHECK ((actor_kind)::text = ANY (ARRAY[('USER'::character varying)::text, ('AGENT'::character varying)::text, ('CHANNEL'::character varying)::text, ('SYSTEM'::character varying)::text]));
-- reverse: drop index "activities_rare" from table: "activities"
CREATE INDEX "activities_rare" ON "activities" ("workspace_id", "code", "occurred_at", "id") WHERE (((code)::text <> 'WAKEUP_QUEUED'::text) AND ((code)::text <> 'RUN_CLAIMED'::text) AND ((code)::text <> 'RUN_LAUNCHED'::text) AND ((code)::text <> 'RUN_FINISHED'::text));
-- reverse: drop index "activities_inbox" from table: "activities"
CREATE INDEX "activities_inbox" ON "activities" ("subject_id") WHERE ((code)::text = 'INBOX_ITEM_MADE'::text);
-- reverse: create enum type "wakeup_status"
DROP CAST (text AS "wakeup_status");
DROP CAST (character varying AS "wakeup_status");
DROP TYPE "wakeup_status";
-- reverse: create enum type "wakeup_source"
DROP CAST (text AS "wakeup_source");
DROP CAST (character varying AS "wakeup_source");
DROP TYPE "wakeup_source";
-- reverse: create enum type "wake_class"
DROP CAST (text AS "wake_class");
DROP CAST (character varying AS "wake_class");
DROP TYPE "wake_class";
-- reverse: create enum type "wake_basis"
DROP CAST (text AS "wake_basis");
DROP CAST (character varying AS "wake_basis");
DROP TYPE "wake_basis";
-- reverse: create enum type "run_status"
DROP CAST (text AS "run_status");
DROP CAST (character varying AS "run_status");
DROP TYPE "run_status";
-- reverse: create enum type "run_event_kind"
DROP CAST (text AS "run_event_kind");
DROP CAST (character varying AS "run_event_kind");
DROP TYPE "run_event_kind";
-- reverse: create enum type "run_error_code"
DROP CAST (text AS "run_error_code");
DROP CAST (character varying AS "run_error_code");
DROP TYPE "run_error_code";
-- reverse: create enum type "run_attempt_status"
DROP CAST (text AS "run_attempt_status");
DROP CAST (character varying AS "run_attempt_status");
DROP TYPE "run_attempt_status";
-- reverse: create enum type "routine_run_status"
DROP CAST (text AS "routine_run_status");
DROP CAST (character varying AS "routine_run_status");
DROP TYPE "routine_run_status";
-- reverse: create enum type "routine_run_source"
DROP CAST (text AS "routine_run_source");
DROP CAST (character varying AS "routine_run_source");
DROP TYPE "routine_run_source";
-- reverse: create enum type "retry_source"
DROP CAST (text AS "retry_source");
DROP CAST (character varying AS "retry_source");
DROP TYPE "retry_source";
-- reverse: create enum type "parked_reason"
DROP CAST (text AS "parked_reason");
DROP CAST (character varying AS "parked_reason");
DROP TYPE "parked_reason";
-- reverse: create enum type "log_stream"
DROP CAST (text AS "log_stream");
DROP CAST (character varying AS "log_stream");
DROP TYPE "log_stream";
-- reverse: create enum type "end_reason"
DROP CAST (text AS "end_reason");
DROP CAST (character varying AS "end_reason");
DROP TYPE "end_reason";
-- reverse: create enum type "budget_hold_status"
DROP CAST (text AS "budget_hold_status");
DROP CAST (character varying AS "budget_hold_status");
DROP TYPE "budget_hold_status";
-- reverse: create enum type "author_kind"
DROP CAST (text AS "author_kind");
DROP CAST (character varying AS "author_kind");
DROP TYPE "author_kind";
-- reverse: create enum type "agent_status"
DROP CAST (text AS "agent_status");
DROP CAST (character varying AS "agent_status");
DROP TYPE "agent_status";
-- reverse: create enum type "agent_pause_reason"
DROP CAST (text AS "agent_pause_reason");
DROP CAST (character varying AS "agent_pause_reason");
DROP TYPE "agent_pause_reason";
-- reverse: create enum type "activity_code"
DROP CAST (text AS "activity_code");
DROP CAST (character varying AS "activity_code");
DROP TYPE "activity_code";
