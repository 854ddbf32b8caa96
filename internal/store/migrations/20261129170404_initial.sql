-- +goose Up
-- create "activities" table
CREATE TABLE "activities" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "tx" bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint, "code" character varying NOT NULL, "summary" text NOT NULL, "actor_kind" character varying NOT NULL, "actor" character varying NOT NULL DEFAULT '', "subject_id" character varying NULL, "agent_id" character varying NULL, "task_id" character varying NULL, "data" jsonb NOT NULL, "causation_id" character varying NULL, "occurred_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "activities_actor_kind" CHECK ((actor_kind)::text = ANY ((ARRAY['USER'::character varying, 'AGENT'::character varying, 'CHANNEL'::character varying, 'SYSTEM'::character varying])::text[])), CONSTRAINT "activities_code" CHECK ((code)::text = ANY ((ARRAY['WAKEUP_QUEUED'::character varying, 'WAKEUP_COALESCED'::character varying, 'WAKEUP_IDLE_SKIPPED'::character varying, 'WAKEUP_AGENT_INACTIVE'::character varying, 'WAKEUP_CHECKOUT_HELD'::character varying, 'WAKEUP_RESENT'::character varying, 'WAKEUP_BUDGET_BLOCKED'::character varying, 'WAKEUP_STALE_CANCELLED'::character varying, 'WAKEUP_RETRY_SCHEDULED'::character varying, 'WAKEUP_RETRY_CANCELLED'::character varying, 'RECOVERY_DISPATCH'::character varying, 'RECOVERY_SWEEP_COMPLETE'::character varying, 'RUN_CLAIMED'::character varying, 'RUN_LAUNCHED'::character varying, 'RUN_FINISHED'::character varying, 'RUN_FAILED'::character varying, 'RUN_CANCELLED'::character varying, 'RUN_RESCUED'::character varying, 'ROUTINE_CHANGED'::character varying, 'ROUTINE_FIRED'::character varying, 'TRIGGER_CHANGED'::character varying, 'TRIGGER_SECRET_ROTATED'::character varying, 'AGENT_CHANGED'::character varying, 'AGENT_PAUSED'::character varying, 'AGENT_RESUMED'::character varying, 'TASK_CHANGED'::character varying, 'TASK_COMMENTED'::character varying, 'APPROVAL_DECIDED'::character varying, 'BUDGET_CHANGED'::character varying, 'BUDGET_THRESHOLD'::character varying, 'SETTINGS_CHANGED'::character varying, 'WEBHOOK_REJECTED'::character varying])::text[])));
-- create index "activity_causation_id" to table: "activities"
CREATE INDEX "activity_causation_id" ON "activities" ("causation_id") WHERE (causation_id IS NOT NULL);
-- create index "activity_subject_id" to table: "activities"
CREATE INDEX "activity_subject_id" ON "activities" ("subject_id");
-- create index "activity_workspace_id_occurred_at_id" to table: "activities"
CREATE INDEX "activity_workspace_id_occurred_at_id" ON "activities" ("workspace_id", "occurred_at", "id");
-- create index "activity_workspace_id_tx_id" to table: "activities"
CREATE INDEX "activity_workspace_id_tx_id" ON "activities" ("workspace_id", "tx", "id");
-- create "agents" table
CREATE TABLE "agents" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "role" character varying NOT NULL, "instructions" text NOT NULL DEFAULT '', "executor" jsonb NULL, "skip_idle_wakeups" boolean NOT NULL, "max_concurrent_sessions" bigint NOT NULL DEFAULT 1, "cooldown_ms" bigint NOT NULL DEFAULT 10000, "session_max_runs" bigint NULL, "session_max_age_ms" bigint NULL, "deleted_at" timestamptz NULL, "workspace_id" character varying NOT NULL, "manager_id" character varying NULL, "comment_mentions" character varying NULL, "task_reviewers" character varying NULL, "task_approvers" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "agents_agents_reports" FOREIGN KEY ("manager_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, CONSTRAINT "agents_cooldown" CHECK (cooldown_ms >= 0), CONSTRAINT "agents_max_concurrent_sessions" CHECK ((max_concurrent_sessions >= 1) AND (max_concurrent_sessions <= 50)), CONSTRAINT "agents_role" CHECK ((role)::text = ANY ((ARRAY['WORKER'::character varying, 'SPECIALIST'::character varying, 'ASSISTANT'::character varying, 'COORDINATOR'::character varying])::text[])));
-- create index "agent_manager_id" to table: "agents"
CREATE INDEX "agent_manager_id" ON "agents" ("manager_id");
-- create index "agent_workspace_id_created_at_id" to table: "agents"
CREATE INDEX "agent_workspace_id_created_at_id" ON "agents" ("workspace_id", "created_at", "id");
-- create index "agent_workspace_id_name" to table: "agents"
CREATE UNIQUE INDEX "agent_workspace_id_name" ON "agents" ("workspace_id", "name") WHERE (deleted_at IS NULL);
-- create "agent_lanes" table
CREATE TABLE "agent_lanes" ("agent_id" character varying NOT NULL, "workspace_id" character varying NOT NULL, "status" character varying NOT NULL DEFAULT 'IDLE', "pause_reason" character varying NULL, "paused_at" timestamptz NULL, "max_sessions" bigint NOT NULL DEFAULT 1, "cooldown_ms" bigint NOT NULL DEFAULT 0, "running" bigint NOT NULL DEFAULT 0, "eligible_at" timestamptz NOT NULL DEFAULT '1970-01-01 00:00:00+00', "last_finished_at" timestamptz NULL, "head_at" timestamptz NULL, "head_id" character varying NULL, PRIMARY KEY ("agent_id"), CONSTRAINT "agent_lanes_head" CHECK ((head_at IS NULL) = (head_id IS NULL)), CONSTRAINT "agent_lanes_pause_reason" CHECK ((pause_reason)::text = ANY ((ARRAY['USER'::character varying, 'BUDGET'::character varying])::text[])), CONSTRAINT "agent_lanes_running" CHECK (running >= 0), CONSTRAINT "agent_lanes_status" CHECK ((status)::text = ANY ((ARRAY['IDLE'::character varying, 'WORKING'::character varying, 'PAUSED'::character varying, 'STOPPED'::character varying])::text[])));
-- create index "agentlane_workspace_id_head_at_head_id" to table: "agent_lanes"
CREATE INDEX "agentlane_workspace_id_head_at_head_id" ON "agent_lanes" ("workspace_id", "head_at", "head_id") WHERE ((head_at IS NOT NULL) AND (running < max_sessions));
-- create "api_tokens" table
CREATE TABLE "api_tokens" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "prefix" character varying NOT NULL, "digest" character varying NOT NULL, "scopes" jsonb NOT NULL, "last_used_at" timestamptz NULL, "expires_at" timestamptz NULL, "revoked_at" timestamptz NULL, "workspace_id" character varying NULL, PRIMARY KEY ("id"));
-- create index "api_tokens_digest_key" to table: "api_tokens"
CREATE UNIQUE INDEX "api_tokens_digest_key" ON "api_tokens" ("digest");
-- create index "apitoken_workspace_id_created_at_id" to table: "api_tokens"
CREATE INDEX "apitoken_workspace_id_created_at_id" ON "api_tokens" ("workspace_id", "created_at", "id");
-- create "approvals" table
CREATE TABLE "approvals" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "causation_id" character varying NOT NULL, "question" text NOT NULL, "status" character varying NOT NULL DEFAULT 'PENDING', "completion" boolean NOT NULL DEFAULT false, "decided_by_kind" character varying NULL, "decided_by_name" character varying NOT NULL DEFAULT '', "note" text NOT NULL DEFAULT '', "decided_at" timestamptz NULL, "workspace_id" character varying NOT NULL, "task_id" character varying NOT NULL, "requested_by_id" character varying NULL, "decided_by_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "approvals_decided_by_kind" CHECK ((decided_by_kind)::text = ANY ((ARRAY['USER'::character varying, 'AGENT'::character varying, 'CHANNEL'::character varying, 'SYSTEM'::character varying])::text[])), CONSTRAINT "approvals_status" CHECK ((status)::text = ANY ((ARRAY['PENDING'::character varying, 'APPROVED'::character varying, 'REJECTED'::character varying])::text[])));
-- create index "approval_causation_id" to table: "approvals"
CREATE INDEX "approval_causation_id" ON "approvals" ("causation_id");
-- create index "approval_task_id_created_at_id" to table: "approvals"
CREATE INDEX "approval_task_id_created_at_id" ON "approvals" ("task_id", "created_at", "id");
-- create "attempt_leases" table
CREATE TABLE "attempt_leases" ("run_id" character varying NOT NULL, "workspace_id" character varying NOT NULL, "agent_id" character varying NOT NULL, "attempt" bigint NOT NULL, "owner" character varying NULL, "queue" character varying NULL, "lease_until" timestamptz NOT NULL, "host" character varying NULL, "boot_id" character varying NULL, "owner_pid" bigint NULL, "owner_started" bigint NULL, "process_group" bigint NULL, "process_started" bigint NULL, PRIMARY KEY ("run_id"));
-- create "budget_holds" table
CREATE TABLE "budget_holds" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "attempt" bigint NOT NULL, "amount_usd" numeric(18,6) NOT NULL, "status" character varying NOT NULL DEFAULT 'HELD', "workspace_id" character varying NOT NULL, "policy_id" character varying NOT NULL, "run_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "budget_holds_status" CHECK ((status)::text = ANY ((ARRAY['HELD'::character varying, 'SETTLED'::character varying, 'VOID'::character varying])::text[])));
-- create index "budgethold_policy_id" to table: "budget_holds"
CREATE INDEX "budgethold_policy_id" ON "budget_holds" ("policy_id") WHERE ((status)::text = 'HELD'::text);
-- create index "budgethold_run_id_attempt_policy_id" to table: "budget_holds"
CREATE UNIQUE INDEX "budgethold_run_id_attempt_policy_id" ON "budget_holds" ("run_id", "attempt", "policy_id");
-- create "budget_policies" table
CREATE TABLE "budget_policies" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "subject_kind" character varying NOT NULL, "subject_id" character varying NOT NULL, "limit_usd" numeric(18,6) NOT NULL, "period" character varying NOT NULL DEFAULT 'MONTH', "alert_thresholds" jsonb NOT NULL, "on_exceed" character varying NOT NULL DEFAULT 'PAUSE_AGENT', "period_start" timestamptz NOT NULL, "spent_usd" numeric(18,6) NOT NULL DEFAULT 0, "reserved_usd" numeric(18,6) NOT NULL DEFAULT 0, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "budget_policies_on_exceed" CHECK ((on_exceed)::text = ANY ((ARRAY['PAUSE_AGENT'::character varying, 'NOTIFY'::character varying])::text[])), CONSTRAINT "budget_policies_period" CHECK ((period)::text = ANY ((ARRAY['DAY'::character varying, 'WEEK'::character varying, 'MONTH'::character varying, 'TOTAL'::character varying])::text[])), CONSTRAINT "budget_policies_subject_kind" CHECK ((subject_kind)::text = ANY ((ARRAY['WORKSPACE'::character varying, 'PROJECT'::character varying, 'AGENT'::character varying])::text[])));
-- create index "budgetpolicy_workspace_id_subject_kind_subject_id" to table: "budget_policies"
CREATE UNIQUE INDEX "budgetpolicy_workspace_id_subject_kind_subject_id" ON "budget_policies" ("workspace_id", "subject_kind", "subject_id");
-- create "comments" table
CREATE TABLE "comments" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "causation_id" character varying NOT NULL, "author_kind" character varying NOT NULL, "author_name" character varying NOT NULL DEFAULT '', "channel" character varying NOT NULL DEFAULT '', "body" text NOT NULL, "workspace_id" character varying NOT NULL, "task_id" character varying NOT NULL, "author_agent_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "comments_author_kind" CHECK ((author_kind)::text = ANY ((ARRAY['USER'::character varying, 'AGENT'::character varying, 'CHANNEL'::character varying, 'SYSTEM'::character varying])::text[])));
-- create index "comment_causation_id" to table: "comments"
CREATE INDEX "comment_causation_id" ON "comments" ("causation_id");
-- create index "comment_task_id_created_at_id" to table: "comments"
CREATE INDEX "comment_task_id_created_at_id" ON "comments" ("task_id", "created_at", "id");
-- create "continuation_summaries" table
CREATE TABLE "continuation_summaries" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "scope" character varying NOT NULL, "content" text NOT NULL DEFAULT '', "content_tokens" bigint NOT NULL DEFAULT 0, "updated_at" timestamptz NOT NULL, "workspace_id" character varying NOT NULL, "agent_id" character varying NOT NULL, "updated_by_run_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "continuation_summaries_content" CHECK (octet_length(content) <= 8192));
-- create index "continuationsummary_agent_id_scope" to table: "continuation_summaries"
CREATE UNIQUE INDEX "continuationsummary_agent_id_scope" ON "continuation_summaries" ("agent_id", "scope");
-- create "cost_entries" table
CREATE TABLE "cost_entries" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "causation_id" character varying NOT NULL, "attempt" bigint NOT NULL, "input_tokens" bigint NOT NULL DEFAULT 0, "output_tokens" bigint NOT NULL DEFAULT 0, "cost_usd" numeric(18,6) NOT NULL, "workspace_id" character varying NOT NULL, "run_id" character varying NOT NULL, "agent_id" character varying NOT NULL, "project_id" character varying NULL, PRIMARY KEY ("id"));
-- create index "costentry_agent_id_created_at" to table: "cost_entries"
CREATE INDEX "costentry_agent_id_created_at" ON "cost_entries" ("agent_id", "created_at");
-- create index "costentry_causation_id" to table: "cost_entries"
CREATE INDEX "costentry_causation_id" ON "cost_entries" ("causation_id");
-- create index "costentry_run_id_attempt" to table: "cost_entries"
CREATE UNIQUE INDEX "costentry_run_id_attempt" ON "cost_entries" ("run_id", "attempt");
-- create index "costentry_workspace_id_created_at" to table: "cost_entries"
CREATE INDEX "costentry_workspace_id_created_at" ON "cost_entries" ("workspace_id", "created_at");
-- create "inbox_items" table
CREATE TABLE "inbox_items" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "kind" character varying NOT NULL, "title" character varying NOT NULL, "body" text NOT NULL DEFAULT '', "subject_id" character varying NULL, "dedupe_key" character varying NULL, "causation_id" character varying NULL, "resolved_at" timestamptz NULL, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "inbox_items_kind" CHECK ((kind)::text = ANY ((ARRAY['AGENT_ERROR'::character varying, 'APPROVAL_REQUEST'::character varying, 'BUDGET_ALERT'::character varying, 'LOOP_BREAKER'::character varying])::text[])));
-- create index "inboxitem_workspace_id_created_at_id" to table: "inbox_items"
CREATE INDEX "inboxitem_workspace_id_created_at_id" ON "inbox_items" ("workspace_id", "created_at", "id");
-- create index "inboxitem_workspace_id_dedupe_key" to table: "inbox_items"
CREATE UNIQUE INDEX "inboxitem_workspace_id_dedupe_key" ON "inbox_items" ("workspace_id", "dedupe_key") WHERE ((dedupe_key IS NOT NULL) AND (resolved_at IS NULL));
-- create "instance_facts" table
CREATE TABLE "instance_facts" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "value" text NOT NULL, PRIMARY KEY ("id"));
-- create index "instance_facts_name_key" to table: "instance_facts"
CREATE UNIQUE INDEX "instance_facts_name_key" ON "instance_facts" ("name");
-- create "mutation_keys" table
CREATE TABLE "mutation_keys" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "owner" character varying NOT NULL, "mutation" character varying NOT NULL, "key" character varying NOT NULL, "input_digest" character varying NOT NULL, "result_id" character varying NULL, "result" jsonb NULL, PRIMARY KEY ("id"));
-- create index "mutationkey_created_at" to table: "mutation_keys"
CREATE INDEX "mutationkey_created_at" ON "mutation_keys" ("created_at");
-- create index "mutationkey_owner_mutation_key" to table: "mutation_keys"
CREATE UNIQUE INDEX "mutationkey_owner_mutation_key" ON "mutation_keys" ("owner", "mutation", "key");
-- create "projects" table
CREATE TABLE "projects" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "executor" jsonb NULL, "deleted_at" timestamptz NULL, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"));
-- create index "project_workspace_id_name" to table: "projects"
CREATE UNIQUE INDEX "project_workspace_id_name" ON "projects" ("workspace_id", "name") WHERE (deleted_at IS NULL);
-- create "routines" table
CREATE TABLE "routines" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "description" text NOT NULL DEFAULT '', "status" character varying NOT NULL DEFAULT 'ACTIVE', "concurrency_policy" character varying NOT NULL DEFAULT 'COALESCE_IF_ACTIVE', "catch_up_policy" character varying NOT NULL DEFAULT 'ENQUEUE_MISSED_WITH_CAP', "catch_up_max" bigint NOT NULL DEFAULT 25, "task_template" jsonb NULL, "variables" jsonb NOT NULL, "last_run_at" timestamptz NULL, "deleted_at" timestamptz NULL, "workspace_id" character varying NOT NULL, "assignee_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "routines_catch_up_max" CHECK ((catch_up_max >= 1) AND (catch_up_max <= 1000)), CONSTRAINT "routines_catch_up_policy" CHECK ((catch_up_policy)::text = ANY ((ARRAY['ENQUEUE_MISSED_WITH_CAP'::character varying, 'SKIP_MISSED'::character varying])::text[])), CONSTRAINT "routines_concurrency_policy" CHECK ((concurrency_policy)::text = ANY ((ARRAY['COALESCE_IF_ACTIVE'::character varying, 'SKIP_IF_ACTIVE'::character varying, 'ALWAYS_ENQUEUE'::character varying])::text[])), CONSTRAINT "routines_status" CHECK ((status)::text = ANY ((ARRAY['ACTIVE'::character varying, 'PAUSED'::character varying, 'ARCHIVED'::character varying])::text[])));
-- create index "routine_assignee_id" to table: "routines"
CREATE INDEX "routine_assignee_id" ON "routines" ("assignee_id");
-- create index "routine_workspace_id_created_at_id" to table: "routines"
CREATE INDEX "routine_workspace_id_created_at_id" ON "routines" ("workspace_id", "created_at", "id");
-- create index "routine_workspace_id_name" to table: "routines"
CREATE UNIQUE INDEX "routine_workspace_id_name" ON "routines" ("workspace_id", "name") WHERE (deleted_at IS NULL);
-- create "routine_runs" table
CREATE TABLE "routine_runs" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "causation_id" character varying NOT NULL, "source" character varying NOT NULL, "status" character varying NOT NULL DEFAULT 'RECEIVED', "skip_reason" character varying NULL, "fire_key" character varying NULL, "variables" jsonb NOT NULL, "missed_ticks" bigint NOT NULL DEFAULT 0, "missed_since" timestamptz NULL, "missed_truncated" boolean NOT NULL DEFAULT false, "dispatch_fingerprint" character varying NOT NULL, "error" text NULL, "scheduled_for" timestamptz NULL, "started_at" timestamptz NOT NULL, "completed_at" timestamptz NULL, "workspace_id" character varying NOT NULL, "routine_id" character varying NOT NULL, "trigger_id" character varying NULL, "task_id" character varying NULL, "coalesced_into_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "routine_runs_routine_runs_coalesced" FOREIGN KEY ("coalesced_into_id") REFERENCES "routine_runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, CONSTRAINT "routine_runs_skip_reason" CHECK ((skip_reason)::text = ANY ((ARRAY['TASK_NOT_FOUND'::character varying, 'ASSIGNEE_CHANGED'::character varying, 'TASK_DONE'::character varying, 'TASK_CANCELLED'::character varying, 'REVIEW_PARTICIPANT_CHANGED'::character varying, 'RETRY_STALE_ASSIGNEE'::character varying, 'RETRY_TASK_CANCELLED'::character varying, 'CANCELLED_BY_USER'::character varying, 'ROUTINE_DELETED'::character varying, 'AGENT_DELETED'::character varying, 'IDLE_SKIPPED'::character varying, 'BUDGET_BLOCKED'::character varying, 'CHECKOUT_HELD'::character varying, 'AGENT_INACTIVE'::character varying, 'CONCURRENCY_POLICY'::character varying, 'HOP_LIMIT'::character varying, 'BACKLOG_FULL'::character varying, 'RETRIES_EXHAUSTED'::character varying, 'NO_EXECUTOR'::character varying])::text[])), CONSTRAINT "routine_runs_source" CHECK ((source)::text = ANY ((ARRAY['CRON'::character varying, 'WEBHOOK'::character varying, 'MANUAL'::character varying])::text[])), CONSTRAINT "routine_runs_status" CHECK ((status)::text = ANY ((ARRAY['RECEIVED'::character varying, 'TASK_CREATED'::character varying, 'ENQUEUED'::character varying, 'DONE'::character varying, 'SKIPPED'::character varying, 'COALESCED'::character varying, 'CANCELLED'::character varying, 'FAILED'::character varying])::text[])));
-- create index "routinerun_causation_id" to table: "routine_runs"
CREATE INDEX "routinerun_causation_id" ON "routine_runs" ("causation_id");
-- create index "routinerun_routine_id_dispatch_fingerprint" to table: "routine_runs"
CREATE INDEX "routinerun_routine_id_dispatch_fingerprint" ON "routine_runs" ("routine_id", "dispatch_fingerprint") WHERE (completed_at IS NULL);
-- create index "routinerun_routine_id_started_at_id" to table: "routine_runs"
CREATE INDEX "routinerun_routine_id_started_at_id" ON "routine_runs" ("routine_id", "started_at", "id");
-- create index "routinerun_task_id" to table: "routine_runs"
CREATE INDEX "routinerun_task_id" ON "routine_runs" ("task_id") WHERE (task_id IS NOT NULL);
-- create index "routinerun_trigger_id_fire_key" to table: "routine_runs"
CREATE UNIQUE INDEX "routinerun_trigger_id_fire_key" ON "routine_runs" ("trigger_id", "fire_key") WHERE (fire_key IS NOT NULL);
-- create index "routinerun_workspace_id_started_at_id" to table: "routine_runs"
CREATE INDEX "routinerun_workspace_id_started_at_id" ON "routine_runs" ("workspace_id", "started_at", "id");
-- create "routine_triggers" table
CREATE TABLE "routine_triggers" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "kind" character varying NOT NULL, "enabled" boolean NOT NULL DEFAULT true, "last_fired_at" timestamptz NULL, "cron" character varying NULL, "time_zone" character varying NULL, "next_run_at" timestamptz NULL, "error" character varying NULL, "public_id" character varying NULL, "signing_mode" character varying NULL, "secret_sealed" text NULL, "secret_hint" character varying NULL, "secret_rotated_at" timestamptz NULL, "previous_secret_sealed" text NULL, "previous_secret_expires_at" timestamptz NULL, "replay_window_ms" bigint NOT NULL DEFAULT 300000, "require_timestamp" boolean NOT NULL DEFAULT false, "routine_id" character varying NOT NULL, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "routine_triggers_kind" CHECK ((kind)::text = ANY ((ARRAY['SCHEDULE'::character varying, 'WEBHOOK'::character varying, 'MANUAL'::character varying])::text[])), CONSTRAINT "routine_triggers_schedule" CHECK (((kind)::text <> 'SCHEDULE'::text) OR ((cron IS NOT NULL) AND (time_zone IS NOT NULL))), CONSTRAINT "routine_triggers_signing_mode" CHECK ((signing_mode)::text = ANY ((ARRAY['NONE'::character varying, 'BEARER'::character varying, 'HMAC_SHA256'::character varying])::text[])), CONSTRAINT "routine_triggers_webhook" CHECK (((kind)::text <> 'WEBHOOK'::text) OR ((public_id IS NOT NULL) AND (signing_mode IS NOT NULL))));
-- create index "routine_triggers_public_id_key" to table: "routine_triggers"
CREATE UNIQUE INDEX "routine_triggers_public_id_key" ON "routine_triggers" ("public_id");
-- create index "routine_triggers_unarmed" to table: "routine_triggers"
CREATE INDEX "routine_triggers_unarmed" ON "routine_triggers" ("id") WHERE (((kind)::text = 'SCHEDULE'::text) AND enabled AND (next_run_at IS NULL));
-- create index "routinetrigger_next_run_at_id" to table: "routine_triggers"
CREATE INDEX "routinetrigger_next_run_at_id" ON "routine_triggers" ("next_run_at", "id") WHERE (((kind)::text = 'SCHEDULE'::text) AND enabled AND (next_run_at IS NOT NULL));
-- create index "routinetrigger_routine_id" to table: "routine_triggers"
CREATE INDEX "routinetrigger_routine_id" ON "routine_triggers" ("routine_id");
-- create index "routinetrigger_workspace_id" to table: "routine_triggers"
CREATE INDEX "routinetrigger_workspace_id" ON "routine_triggers" ("workspace_id");
-- create "runs" table
CREATE TABLE "runs" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "causation_id" character varying NOT NULL, "revision" bigint NOT NULL DEFAULT 1, "scope" character varying NOT NULL, "source" character varying NOT NULL, "wake_class" character varying NOT NULL, "fingerprint" character varying NULL, "status" character varying NOT NULL DEFAULT 'QUEUED', "parked_reason" character varying NULL, "parked_until" timestamptz NULL, "attempt" bigint NOT NULL DEFAULT 0, "abandonments" bigint NOT NULL DEFAULT 0, "coalesced_count" bigint NOT NULL DEFAULT 1, "retry_count" bigint NOT NULL DEFAULT 0, "guard_errors" bigint NOT NULL DEFAULT 0, "hops" bigint NOT NULL DEFAULT 0, "event_seq" bigint NOT NULL DEFAULT 0, "session_id" character varying NULL, "outcome" character varying NULL, "end_reason" character varying NULL, "summary" text NULL, "error_code" character varying NULL, "error_message" text NULL, "error_retryable" boolean NOT NULL DEFAULT false, "retry_source" character varying NULL, "rate_limit_reset_at" timestamptz NULL, "input_tokens" bigint NOT NULL DEFAULT 0, "output_tokens" bigint NOT NULL DEFAULT 0, "cost_usd" numeric(18,6) NULL, "requested_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "claimed_at" timestamptz NULL, "started_at" timestamptz NULL, "finished_at" timestamptz NULL, "cancel_requested_at" timestamptz NULL, "cancel_note" character varying NULL, "workspace_id" character varying NOT NULL, "agent_id" character varying NOT NULL, "task_id" character varying NULL, "routine_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "runs_claimed" CHECK ((claimed_at IS NOT NULL) OR ((status)::text <> 'CLAIMED'::text)), CONSTRAINT "runs_end_reason" CHECK ((end_reason)::text = ANY ((ARRAY['TASK_NOT_FOUND'::character varying, 'ASSIGNEE_CHANGED'::character varying, 'TASK_DONE'::character varying, 'TASK_CANCELLED'::character varying, 'REVIEW_PARTICIPANT_CHANGED'::character varying, 'RETRY_STALE_ASSIGNEE'::character varying, 'RETRY_TASK_CANCELLED'::character varying, 'CANCELLED_BY_USER'::character varying, 'ROUTINE_DELETED'::character varying, 'AGENT_DELETED'::character varying, 'IDLE_SKIPPED'::character varying, 'BUDGET_BLOCKED'::character varying, 'CHECKOUT_HELD'::character varying, 'AGENT_INACTIVE'::character varying, 'CONCURRENCY_POLICY'::character varying, 'HOP_LIMIT'::character varying, 'BACKLOG_FULL'::character varying, 'RETRIES_EXHAUSTED'::character varying, 'NO_EXECUTOR'::character varying])::text[])), CONSTRAINT "runs_ended" CHECK ((finished_at IS NOT NULL) = ((status)::text = ANY ((ARRAY['FINISHED'::character varying, 'FAILED'::character varying, 'CANCELLED'::character varying])::text[]))), CONSTRAINT "runs_error_code" CHECK ((error_code)::text = ANY ((ARRAY['RATE_LIMITED'::character varying, 'LAUNCH'::character varying, 'TIMEOUT'::character varying, 'CRASH'::character varying, 'LEASE_LOST'::character varying, 'BUDGET'::character varying, 'OTHER'::character varying])::text[])), CONSTRAINT "runs_parked" CHECK ((parked_reason IS NULL) OR ((status)::text = 'QUEUED'::text)), CONSTRAINT "runs_parked_reason" CHECK ((parked_reason)::text = ANY ((ARRAY['WINDOW'::character varying, 'BACKOFF'::character varying, 'RATE_LIMIT'::character varying, 'SCOPE_BUSY'::character varying, 'TASK_BLOCKED'::character varying, 'BUDGET_RESERVED'::character varying, 'GUARD_ERROR'::character varying, 'NO_WORKER'::character varying])::text[])), CONSTRAINT "runs_parked_until" CHECK ((parked_until IS NULL) OR (parked_reason IS NOT NULL)), CONSTRAINT "runs_retry_source" CHECK ((retry_source)::text = ANY ((ARRAY['BACKOFF'::character varying, 'RATE_LIMIT_PARSED'::character varying])::text[])), CONSTRAINT "runs_source" CHECK ((source)::text = ANY ((ARRAY['ROUTINE'::character varying, 'COMMENT'::character varying, 'AGENT_ERROR'::character varying, 'SELF'::character varying, 'USER'::character varying, 'TASK_ASSIGNED'::character varying, 'TASK_BLOCKERS_RESOLVED'::character varying, 'TASK_CHILDREN_COMPLETED'::character varying, 'APPROVAL_RESOLVED'::character varying, 'BUDGET_ALERT'::character varying])::text[])), CONSTRAINT "runs_status" CHECK ((status)::text = ANY ((ARRAY['QUEUED'::character varying, 'CLAIMED'::character varying, 'FINISHED'::character varying, 'FAILED'::character varying, 'CANCELLED'::character varying])::text[])), CONSTRAINT "runs_wake_class" CHECK ((wake_class)::text = ANY ((ARRAY['PERIODIC'::character varying, 'EVENT'::character varying])::text[])));
-- create index "run_agent_id_finished_at" to table: "runs"
CREATE INDEX "run_agent_id_finished_at" ON "runs" ("agent_id", "finished_at");
-- create index "run_causation_id" to table: "runs"
CREATE INDEX "run_causation_id" ON "runs" ("causation_id");
-- create index "run_routine_id_requested_at" to table: "runs"
CREATE INDEX "run_routine_id_requested_at" ON "runs" ("routine_id", "requested_at") WHERE (routine_id IS NOT NULL);
-- create index "run_task_id" to table: "runs"
CREATE INDEX "run_task_id" ON "runs" ("task_id") WHERE (task_id IS NOT NULL);
-- create index "run_workspace_id_requested_at_id" to table: "runs"
CREATE INDEX "run_workspace_id_requested_at_id" ON "runs" ("workspace_id", "requested_at", "id");
-- create index "runs_due" to table: "runs"
CREATE INDEX "runs_due" ON "runs" ("agent_id", "requested_at", "id") WHERE (((status)::text = 'QUEUED'::text) AND (parked_reason IS NULL));
-- create index "runs_live_scope" to table: "runs"
CREATE UNIQUE INDEX "runs_live_scope" ON "runs" ("agent_id", "scope") WHERE ((status)::text = 'CLAIMED'::text);
-- create index "runs_parked" to table: "runs"
CREATE INDEX "runs_parked" ON "runs" ("parked_until") WHERE (((status)::text = 'QUEUED'::text) AND (parked_until IS NOT NULL));
-- create index "runs_queued_scope" to table: "runs"
CREATE INDEX "runs_queued_scope" ON "runs" ("agent_id", "scope") WHERE ((status)::text = 'QUEUED'::text);
-- create "run_attempts" table
CREATE TABLE "run_attempts" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "number" bigint NOT NULL, "executor" character varying NULL, "session_id" character varying NULL, "status" character varying NOT NULL, "owner" character varying NOT NULL, "token_digest" character varying NULL, "error_code" character varying NULL, "error_message" text NULL, "started_at" timestamptz NOT NULL, "heartbeat_at" timestamptz NULL, "finished_at" timestamptz NULL, "run_id" character varying NOT NULL, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "run_attempts_error_code" CHECK ((error_code)::text = ANY ((ARRAY['RATE_LIMITED'::character varying, 'LAUNCH'::character varying, 'TIMEOUT'::character varying, 'CRASH'::character varying, 'LEASE_LOST'::character varying, 'BUDGET'::character varying, 'OTHER'::character varying])::text[])), CONSTRAINT "run_attempts_status" CHECK ((status)::text = ANY ((ARRAY['OFFERED'::character varying, 'LAUNCHING'::character varying, 'RUNNING'::character varying, 'SUCCEEDED'::character varying, 'FAILED'::character varying, 'ABANDONED'::character varying, 'INTERRUPTED'::character varying, 'CANCELLED'::character varying])::text[])));
-- create index "runattempt_run_id_number" to table: "run_attempts"
CREATE UNIQUE INDEX "runattempt_run_id_number" ON "run_attempts" ("run_id", "number");
-- create index "runattempt_token_digest" to table: "run_attempts"
CREATE UNIQUE INDEX "runattempt_token_digest" ON "run_attempts" ("token_digest") WHERE (token_digest IS NOT NULL);
-- create "run_contents" table
CREATE TABLE "run_contents" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "assembled_prompt" text NOT NULL DEFAULT '', "summary_injected" text NOT NULL DEFAULT '', "context_snapshot" jsonb NOT NULL, "result" jsonb NULL, "run_id" character varying NOT NULL, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"));
-- create index "run_contents_run_id_key" to table: "run_contents"
CREATE UNIQUE INDEX "run_contents_run_id_key" ON "run_contents" ("run_id");
-- create "run_events" table
CREATE TABLE "run_events" ("id" bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY, "seq" bigint NOT NULL, "kind" character varying NOT NULL, "attempt" bigint NULL, "data" jsonb NOT NULL, "occurred_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "workspace_id" character varying NOT NULL, "run_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "run_events_kind" CHECK ((kind)::text = ANY ((ARRAY['CREATED'::character varying, 'CLAIMED'::character varying, 'GUARD'::character varying, 'COALESCED'::character varying, 'PROMOTED'::character varying, 'LAUNCHED'::character varying, 'SESSION_RECORDED'::character varying, 'PROGRESS'::character varying, 'RETRY_SCHEDULED'::character varying, 'FINISHED'::character varying, 'FAILED'::character varying, 'CANCELLED'::character varying, 'RECOVERED'::character varying])::text[])));
-- create index "runevent_run_id_seq" to table: "run_events"
CREATE UNIQUE INDEX "runevent_run_id_seq" ON "run_events" ("run_id", "seq");
-- create "run_log_lines" table
CREATE TABLE "run_log_lines" ("id" bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY, "attempt" bigint NOT NULL, "seq" bigint NOT NULL, "stream" character varying NOT NULL, "text" text NOT NULL, "at" timestamptz NOT NULL DEFAULT clock_timestamp(), "workspace_id" character varying NOT NULL, "run_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "run_log_lines_stream" CHECK ((stream)::text = ANY ((ARRAY['STDOUT'::character varying, 'STDERR'::character varying, 'SYSTEM'::character varying])::text[])));
-- create index "runlogline_run_id_attempt_seq" to table: "run_log_lines"
CREATE UNIQUE INDEX "runlogline_run_id_attempt_seq" ON "run_log_lines" ("run_id", "attempt", "seq");
-- create "tasks" table
CREATE TABLE "tasks" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "title" character varying NOT NULL, "description" text NOT NULL DEFAULT '', "state" character varying NOT NULL DEFAULT 'TODO', "archived_at" timestamptz NULL, "deleted_at" timestamptz NULL, "assignment_version" bigint NOT NULL DEFAULT 0, "wake_generation" bigint NOT NULL DEFAULT 0, "requires_approval" boolean NOT NULL DEFAULT false, "executor" jsonb NULL, "checkout_at" timestamptz NULL, "workspace_id" character varying NOT NULL, "workflow_id" character varying NOT NULL, "step_id" character varying NOT NULL, "project_id" character varying NULL, "parent_id" character varying NULL, "assignee_id" character varying NULL, "checkout_agent_id" character varying NULL, "checkout_run_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "tasks_tasks_children" FOREIGN KEY ("parent_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, CONSTRAINT "tasks_checkout" CHECK ((checkout_agent_id IS NULL) = (checkout_run_id IS NULL)), CONSTRAINT "tasks_state" CHECK ((state)::text = ANY ((ARRAY['TODO'::character varying, 'IN_PROGRESS'::character varying, 'IN_REVIEW'::character varying, 'BLOCKED'::character varying, 'DONE'::character varying, 'CANCELLED'::character varying])::text[])));
-- create index "task_assignee_id_state" to table: "tasks"
CREATE INDEX "task_assignee_id_state" ON "tasks" ("assignee_id", "state") WHERE (archived_at IS NULL);
-- create index "task_checkout_run_id" to table: "tasks"
CREATE INDEX "task_checkout_run_id" ON "tasks" ("checkout_run_id") WHERE (checkout_run_id IS NOT NULL);
-- create index "task_parent_id" to table: "tasks"
CREATE INDEX "task_parent_id" ON "tasks" ("parent_id");
-- create index "task_project_id" to table: "tasks"
CREATE INDEX "task_project_id" ON "tasks" ("project_id");
-- create index "task_workspace_id_created_at_id" to table: "tasks"
CREATE INDEX "task_workspace_id_created_at_id" ON "tasks" ("workspace_id", "created_at", "id");
-- create "task_sessions" table
CREATE TABLE "task_sessions" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "external_id" character varying NOT NULL, "state" character varying NOT NULL DEFAULT 'STARTING', "run_count" bigint NOT NULL DEFAULT 0, "last_used_at" timestamptz NOT NULL, "workspace_id" character varying NOT NULL, "task_id" character varying NOT NULL, "agent_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "task_sessions_state" CHECK ((state)::text = ANY ((ARRAY['STARTING'::character varying, 'RUNNING'::character varying, 'WAITING_FOR_INPUT'::character varying, 'IDLE'::character varying, 'ENDED'::character varying])::text[])));
-- create index "tasksession_agent_id" to table: "task_sessions"
CREATE INDEX "tasksession_agent_id" ON "task_sessions" ("agent_id");
-- create index "tasksession_task_id_agent_id" to table: "task_sessions"
CREATE UNIQUE INDEX "tasksession_task_id_agent_id" ON "task_sessions" ("task_id", "agent_id") WHERE ((state)::text <> 'ENDED'::text);
-- create "wakeup_requests" table
CREATE TABLE "wakeup_requests" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "causation_id" character varying NOT NULL, "scope" character varying NOT NULL, "source" character varying NOT NULL, "basis" character varying NULL, "wake_class" character varying NOT NULL, "person_waiting" boolean NOT NULL DEFAULT false, "fingerprint" character varying NULL, "reason" character varying NOT NULL, "payload" jsonb NOT NULL, "status" character varying NOT NULL DEFAULT 'QUEUED', "end_reason" character varying NULL, "recovered" boolean NOT NULL DEFAULT false, "resends" bigint NOT NULL DEFAULT 0, "idempotency_key" character varying NULL, "hops" bigint NOT NULL DEFAULT 0, "retry_count" bigint NOT NULL DEFAULT 0, "scheduled_retry_at" timestamptz NULL, "retry_source" character varying NULL, "requested_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "delivered_at" timestamptz NULL, "claimed_at" timestamptz NULL, "finished_at" timestamptz NULL, "run_id" character varying NULL, "workspace_id" character varying NOT NULL, "agent_id" character varying NOT NULL, "task_id" character varying NULL, "routine_id" character varying NULL, "routine_run_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "wakeup_requests_basis" CHECK ((basis)::text = ANY ((ARRAY['ASSIGNEE'::character varying, 'REVIEWER'::character varying, 'APPROVER'::character varying, 'EXPLICIT'::character varying])::text[])), CONSTRAINT "wakeup_requests_end_reason" CHECK ((end_reason)::text = ANY ((ARRAY['TASK_NOT_FOUND'::character varying, 'ASSIGNEE_CHANGED'::character varying, 'TASK_DONE'::character varying, 'TASK_CANCELLED'::character varying, 'REVIEW_PARTICIPANT_CHANGED'::character varying, 'RETRY_STALE_ASSIGNEE'::character varying, 'RETRY_TASK_CANCELLED'::character varying, 'CANCELLED_BY_USER'::character varying, 'ROUTINE_DELETED'::character varying, 'AGENT_DELETED'::character varying, 'IDLE_SKIPPED'::character varying, 'BUDGET_BLOCKED'::character varying, 'CHECKOUT_HELD'::character varying, 'AGENT_INACTIVE'::character varying, 'CONCURRENCY_POLICY'::character varying, 'HOP_LIMIT'::character varying, 'BACKLOG_FULL'::character varying, 'RETRIES_EXHAUSTED'::character varying, 'NO_EXECUTOR'::character varying])::text[])), CONSTRAINT "wakeup_requests_retry_source" CHECK ((retry_source)::text = ANY ((ARRAY['BACKOFF'::character varying, 'RATE_LIMIT_PARSED'::character varying])::text[])), CONSTRAINT "wakeup_requests_source" CHECK ((source)::text = ANY ((ARRAY['ROUTINE'::character varying, 'COMMENT'::character varying, 'AGENT_ERROR'::character varying, 'SELF'::character varying, 'USER'::character varying, 'TASK_ASSIGNED'::character varying, 'TASK_BLOCKERS_RESOLVED'::character varying, 'TASK_CHILDREN_COMPLETED'::character varying, 'APPROVAL_RESOLVED'::character varying, 'BUDGET_ALERT'::character varying])::text[])), CONSTRAINT "wakeup_requests_status" CHECK ((status)::text = ANY ((ARRAY['QUEUED'::character varying, 'CLAIMED'::character varying, 'COALESCED'::character varying, 'SKIPPED'::character varying, 'FINISHED'::character varying, 'FAILED'::character varying, 'CANCELLED'::character varying])::text[])), CONSTRAINT "wakeup_requests_wake_class" CHECK ((wake_class)::text = ANY ((ARRAY['PERIODIC'::character varying, 'EVENT'::character varying])::text[])));
-- create index "wakeup_requests_checkout_held" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_checkout_held" ON "wakeup_requests" ("task_id") WHERE (((status)::text = 'SKIPPED'::text) AND ((end_reason)::text = 'CHECKOUT_HELD'::text));
-- create index "wakeup_requests_dropped_by_pause" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_dropped_by_pause" ON "wakeup_requests" ("agent_id", "finished_at") WHERE (((end_reason)::text = 'AGENT_INACTIVE'::text) OR ((end_reason)::text = 'BUDGET_BLOCKED'::text));
-- create index "wakeup_requests_unrouted" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_unrouted" ON "wakeup_requests" ("agent_id", "requested_at", "id") WHERE (((status)::text = 'QUEUED'::text) AND (run_id IS NULL));
-- create index "wakeuprequest_causation_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_causation_id" ON "wakeup_requests" ("causation_id");
-- create index "wakeuprequest_routine_run_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_routine_run_id" ON "wakeup_requests" ("routine_run_id");
-- create index "wakeuprequest_run_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_run_id" ON "wakeup_requests" ("run_id");
-- create index "wakeuprequest_task_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_task_id" ON "wakeup_requests" ("task_id");
-- create index "wakeuprequest_workspace_id_idempotency_key" to table: "wakeup_requests"
CREATE UNIQUE INDEX "wakeuprequest_workspace_id_idempotency_key" ON "wakeup_requests" ("workspace_id", "idempotency_key") WHERE (idempotency_key IS NOT NULL);
-- create index "wakeuprequest_workspace_id_requested_at_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_workspace_id_requested_at_id" ON "wakeup_requests" ("workspace_id", "requested_at", "id");
-- create "webhook_deliveries" table
CREATE TABLE "webhook_deliveries" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "status" bigint NOT NULL, "outcome" character varying NOT NULL, "detail" character varying NOT NULL DEFAULT '', "delivery_key" character varying NULL, "workspace_id" character varying NOT NULL, "trigger_id" character varying NOT NULL, "routine_run_id" character varying NULL, PRIMARY KEY ("id"));
-- create index "webhookdelivery_trigger_id_created_at" to table: "webhook_deliveries"
CREATE INDEX "webhookdelivery_trigger_id_created_at" ON "webhook_deliveries" ("trigger_id", "created_at");
-- create "workflows" table
CREATE TABLE "workflows" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "kind" character varying NOT NULL, "system" boolean NOT NULL DEFAULT false, "hidden" boolean NOT NULL DEFAULT false, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "workflows_kind" CHECK ((kind)::text = ANY ((ARRAY['KANBAN'::character varying, 'OFFICE'::character varying, 'ROUTINE'::character varying])::text[])));
-- create index "workflow_workspace_id_kind" to table: "workflows"
CREATE UNIQUE INDEX "workflow_workspace_id_kind" ON "workflows" ("workspace_id", "kind") WHERE ((kind)::text = 'ROUTINE'::text);
-- create index "workflow_workspace_id_name" to table: "workflows"
CREATE UNIQUE INDEX "workflow_workspace_id_name" ON "workflows" ("workspace_id", "name");
-- create "workflow_steps" table
CREATE TABLE "workflow_steps" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "position" bigint NOT NULL, "state" character varying NOT NULL, "on_enter" jsonb NOT NULL, "workflow_id" character varying NOT NULL, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "workflow_steps_state" CHECK ((state)::text = ANY ((ARRAY['TODO'::character varying, 'IN_PROGRESS'::character varying, 'IN_REVIEW'::character varying, 'BLOCKED'::character varying, 'DONE'::character varying, 'CANCELLED'::character varying])::text[])));
-- create index "workflowstep_workflow_id_position" to table: "workflow_steps"
CREATE UNIQUE INDEX "workflowstep_workflow_id_position" ON "workflow_steps" ("workflow_id", "position");
-- create "workspaces" table
CREATE TABLE "workspaces" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "name" character varying NOT NULL, "slug" character varying NOT NULL, "default_time_zone" character varying NOT NULL DEFAULT 'UTC', "recovery_lookback_hours" bigint NOT NULL DEFAULT 24, "coalescing_window_ms" bigint NOT NULL DEFAULT 5000, "max_concurrent_runs" bigint NULL, "default_executor" jsonb NULL, "office_workflow_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "workspaces_coalescing_window" CHECK ((coalescing_window_ms >= 0) AND (coalescing_window_ms <= 60000)), CONSTRAINT "workspaces_max_concurrent_runs" CHECK (max_concurrent_runs >= 1), CONSTRAINT "workspaces_recovery_lookback_hours" CHECK ((recovery_lookback_hours >= 1) AND (recovery_lookback_hours <= 720)));
-- create index "workspaces_slug_key" to table: "workspaces"
CREATE UNIQUE INDEX "workspaces_slug_key" ON "workspaces" ("slug");
-- create "workspace_lanes" table
CREATE TABLE "workspace_lanes" ("workspace_id" character varying NOT NULL, "running" bigint NOT NULL DEFAULT 0, "max_running" bigint NULL, PRIMARY KEY ("workspace_id"), CONSTRAINT "workspace_lanes_running" CHECK (running >= 0));
-- create "task_blocked_by" table
CREATE TABLE "task_blocked_by" ("task_id" character varying NOT NULL, "block_id" character varying NOT NULL, PRIMARY KEY ("task_id", "block_id"));
-- modify "activities" table
ALTER TABLE "activities" ADD CONSTRAINT "activities_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "agents" table
ALTER TABLE "agents" ADD CONSTRAINT "agents_comments_mentions" FOREIGN KEY ("comment_mentions") REFERENCES "comments" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "agents_tasks_approvers" FOREIGN KEY ("task_approvers") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "agents_tasks_reviewers" FOREIGN KEY ("task_reviewers") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "agents_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "api_tokens" table
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE SET NULL;
-- modify "approvals" table
ALTER TABLE "approvals" ADD CONSTRAINT "approvals_agents_decided_by" FOREIGN KEY ("decided_by_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "approvals_agents_requested_by" FOREIGN KEY ("requested_by_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "approvals_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "approvals_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "budget_holds" table
ALTER TABLE "budget_holds" ADD CONSTRAINT "budget_holds_budget_policies_policy" FOREIGN KEY ("policy_id") REFERENCES "budget_policies" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "budget_holds_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "budget_holds_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "budget_policies" table
ALTER TABLE "budget_policies" ADD CONSTRAINT "budget_policies_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "comments" table
ALTER TABLE "comments" ADD CONSTRAINT "comments_agents_author_agent" FOREIGN KEY ("author_agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "comments_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "comments_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "continuation_summaries" table
ALTER TABLE "continuation_summaries" ADD CONSTRAINT "continuation_summaries_agents_agent" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "continuation_summaries_runs_updated_by_run" FOREIGN KEY ("updated_by_run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "continuation_summaries_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "cost_entries" table
ALTER TABLE "cost_entries" ADD CONSTRAINT "cost_entries_agents_agent" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "cost_entries_projects_project" FOREIGN KEY ("project_id") REFERENCES "projects" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "cost_entries_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "cost_entries_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "inbox_items" table
ALTER TABLE "inbox_items" ADD CONSTRAINT "inbox_items_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "projects" table
ALTER TABLE "projects" ADD CONSTRAINT "projects_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "routines" table
ALTER TABLE "routines" ADD CONSTRAINT "routines_agents_assignee" FOREIGN KEY ("assignee_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "routines_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "routine_runs" table
ALTER TABLE "routine_runs" ADD CONSTRAINT "routine_runs_routine_triggers_trigger" FOREIGN KEY ("trigger_id") REFERENCES "routine_triggers" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "routine_runs_routines_routine" FOREIGN KEY ("routine_id") REFERENCES "routines" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "routine_runs_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "routine_runs_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "routine_triggers" table
ALTER TABLE "routine_triggers" ADD CONSTRAINT "routine_triggers_routines_triggers" FOREIGN KEY ("routine_id") REFERENCES "routines" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "routine_triggers_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "runs" table
ALTER TABLE "runs" ADD CONSTRAINT "runs_agents_agent" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "runs_routines_routine" FOREIGN KEY ("routine_id") REFERENCES "routines" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "runs_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "runs_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "run_attempts" table
ALTER TABLE "run_attempts" ADD CONSTRAINT "run_attempts_runs_attempts" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_attempts_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "run_contents" table
ALTER TABLE "run_contents" ADD CONSTRAINT "run_contents_runs_content" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_contents_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "run_events" table
ALTER TABLE "run_events" ADD CONSTRAINT "run_events_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_events_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "run_log_lines" table
ALTER TABLE "run_log_lines" ADD CONSTRAINT "run_log_lines_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "run_log_lines_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "tasks" table
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_agents_assignee" FOREIGN KEY ("assignee_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "tasks_agents_checkout_agent" FOREIGN KEY ("checkout_agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "tasks_projects_project" FOREIGN KEY ("project_id") REFERENCES "projects" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "tasks_runs_checkout_run" FOREIGN KEY ("checkout_run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "tasks_workflow_steps_step" FOREIGN KEY ("step_id") REFERENCES "workflow_steps" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "tasks_workflows_workflow" FOREIGN KEY ("workflow_id") REFERENCES "workflows" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "tasks_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "task_sessions" table
ALTER TABLE "task_sessions" ADD CONSTRAINT "task_sessions_agents_agent" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "task_sessions_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "task_sessions_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "wakeup_requests" table
ALTER TABLE "wakeup_requests" ADD CONSTRAINT "wakeup_requests_agents_agent" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "wakeup_requests_routine_runs_routine_run" FOREIGN KEY ("routine_run_id") REFERENCES "routine_runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "wakeup_requests_routines_routine" FOREIGN KEY ("routine_id") REFERENCES "routines" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "wakeup_requests_runs_wakeup_requests" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "wakeup_requests_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "wakeup_requests_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "webhook_deliveries" table
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_routine_runs_routine_run" FOREIGN KEY ("routine_run_id") REFERENCES "routine_runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "webhook_deliveries_routine_triggers_trigger" FOREIGN KEY ("trigger_id") REFERENCES "routine_triggers" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "webhook_deliveries_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "workflows" table
ALTER TABLE "workflows" ADD CONSTRAINT "workflows_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "workflow_steps" table
ALTER TABLE "workflow_steps" ADD CONSTRAINT "workflow_steps_workflows_steps" FOREIGN KEY ("workflow_id") REFERENCES "workflows" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "workflow_steps_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "workspaces" table
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_workflows_office_workflow" FOREIGN KEY ("office_workflow_id") REFERENCES "workflows" ("id") ON UPDATE NO ACTION ON DELETE SET NULL;
-- modify "task_blocked_by" table
ALTER TABLE "task_blocked_by" ADD CONSTRAINT "task_blocked_by_block_id" FOREIGN KEY ("block_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, ADD CONSTRAINT "task_blocked_by_task_id" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE CASCADE;

-- +goose Down
-- reverse: modify "task_blocked_by" table
ALTER TABLE "task_blocked_by" DROP CONSTRAINT "task_blocked_by_task_id", DROP CONSTRAINT "task_blocked_by_block_id";
-- reverse: modify "workspaces" table
ALTER TABLE "workspaces" DROP CONSTRAINT "workspaces_workflows_office_workflow";
-- reverse: modify "workflow_steps" table
ALTER TABLE "workflow_steps" DROP CONSTRAINT "workflow_steps_workspaces_workspace", DROP CONSTRAINT "workflow_steps_workflows_steps";
-- reverse: modify "workflows" table
ALTER TABLE "workflows" DROP CONSTRAINT "workflows_workspaces_workspace";
-- reverse: modify "webhook_deliveries" table
ALTER TABLE "webhook_deliveries" DROP CONSTRAINT "webhook_deliveries_workspaces_workspace", DROP CONSTRAINT "webhook_deliveries_routine_triggers_trigger", DROP CONSTRAINT "webhook_deliveries_routine_runs_routine_run";
-- reverse: modify "wakeup_requests" table
ALTER TABLE "wakeup_requests" DROP CONSTRAINT "wakeup_requests_workspaces_workspace", DROP CONSTRAINT "wakeup_requests_tasks_task", DROP CONSTRAINT "wakeup_requests_runs_wakeup_requests", DROP CONSTRAINT "wakeup_requests_routines_routine", DROP CONSTRAINT "wakeup_requests_routine_runs_routine_run", DROP CONSTRAINT "wakeup_requests_agents_agent";
-- reverse: modify "task_sessions" table
ALTER TABLE "task_sessions" DROP CONSTRAINT "task_sessions_workspaces_workspace", DROP CONSTRAINT "task_sessions_tasks_task", DROP CONSTRAINT "task_sessions_agents_agent";
-- reverse: modify "tasks" table
ALTER TABLE "tasks" DROP CONSTRAINT "tasks_workspaces_workspace", DROP CONSTRAINT "tasks_workflows_workflow", DROP CONSTRAINT "tasks_workflow_steps_step", DROP CONSTRAINT "tasks_runs_checkout_run", DROP CONSTRAINT "tasks_projects_project", DROP CONSTRAINT "tasks_agents_checkout_agent", DROP CONSTRAINT "tasks_agents_assignee";
-- reverse: modify "run_log_lines" table
ALTER TABLE "run_log_lines" DROP CONSTRAINT "run_log_lines_workspaces_workspace", DROP CONSTRAINT "run_log_lines_runs_run";
-- reverse: modify "run_events" table
ALTER TABLE "run_events" DROP CONSTRAINT "run_events_workspaces_workspace", DROP CONSTRAINT "run_events_runs_run";
-- reverse: modify "run_contents" table
ALTER TABLE "run_contents" DROP CONSTRAINT "run_contents_workspaces_workspace", DROP CONSTRAINT "run_contents_runs_content";
-- reverse: modify "run_attempts" table
ALTER TABLE "run_attempts" DROP CONSTRAINT "run_attempts_workspaces_workspace", DROP CONSTRAINT "run_attempts_runs_attempts";
-- reverse: modify "runs" table
ALTER TABLE "runs" DROP CONSTRAINT "runs_workspaces_workspace", DROP CONSTRAINT "runs_tasks_task", DROP CONSTRAINT "runs_routines_routine", DROP CONSTRAINT "runs_agents_agent";
-- reverse: modify "routine_triggers" table
ALTER TABLE "routine_triggers" DROP CONSTRAINT "routine_triggers_workspaces_workspace", DROP CONSTRAINT "routine_triggers_routines_triggers";
-- reverse: modify "routine_runs" table
ALTER TABLE "routine_runs" DROP CONSTRAINT "routine_runs_workspaces_workspace", DROP CONSTRAINT "routine_runs_tasks_task", DROP CONSTRAINT "routine_runs_routines_routine", DROP CONSTRAINT "routine_runs_routine_triggers_trigger";
-- reverse: modify "routines" table
ALTER TABLE "routines" DROP CONSTRAINT "routines_workspaces_workspace", DROP CONSTRAINT "routines_agents_assignee";
-- reverse: modify "projects" table
ALTER TABLE "projects" DROP CONSTRAINT "projects_workspaces_workspace";
-- reverse: modify "inbox_items" table
ALTER TABLE "inbox_items" DROP CONSTRAINT "inbox_items_workspaces_workspace";
-- reverse: modify "cost_entries" table
ALTER TABLE "cost_entries" DROP CONSTRAINT "cost_entries_workspaces_workspace", DROP CONSTRAINT "cost_entries_runs_run", DROP CONSTRAINT "cost_entries_projects_project", DROP CONSTRAINT "cost_entries_agents_agent";
-- reverse: modify "continuation_summaries" table
ALTER TABLE "continuation_summaries" DROP CONSTRAINT "continuation_summaries_workspaces_workspace", DROP CONSTRAINT "continuation_summaries_runs_updated_by_run", DROP CONSTRAINT "continuation_summaries_agents_agent";
-- reverse: modify "comments" table
ALTER TABLE "comments" DROP CONSTRAINT "comments_workspaces_workspace", DROP CONSTRAINT "comments_tasks_task", DROP CONSTRAINT "comments_agents_author_agent";
-- reverse: modify "budget_policies" table
ALTER TABLE "budget_policies" DROP CONSTRAINT "budget_policies_workspaces_workspace";
-- reverse: modify "budget_holds" table
ALTER TABLE "budget_holds" DROP CONSTRAINT "budget_holds_workspaces_workspace", DROP CONSTRAINT "budget_holds_runs_run", DROP CONSTRAINT "budget_holds_budget_policies_policy";
-- reverse: modify "approvals" table
ALTER TABLE "approvals" DROP CONSTRAINT "approvals_workspaces_workspace", DROP CONSTRAINT "approvals_tasks_task", DROP CONSTRAINT "approvals_agents_requested_by", DROP CONSTRAINT "approvals_agents_decided_by";
-- reverse: modify "api_tokens" table
ALTER TABLE "api_tokens" DROP CONSTRAINT "api_tokens_workspaces_workspace";
-- reverse: modify "agents" table
ALTER TABLE "agents" DROP CONSTRAINT "agents_workspaces_workspace", DROP CONSTRAINT "agents_tasks_reviewers", DROP CONSTRAINT "agents_tasks_approvers", DROP CONSTRAINT "agents_comments_mentions";
-- reverse: modify "activities" table
ALTER TABLE "activities" DROP CONSTRAINT "activities_workspaces_workspace";
-- reverse: create "task_blocked_by" table
DROP TABLE "task_blocked_by";
-- reverse: create "workspace_lanes" table
DROP TABLE "workspace_lanes";
-- reverse: create index "workspaces_slug_key" to table: "workspaces"
DROP INDEX "workspaces_slug_key";
-- reverse: create "workspaces" table
DROP TABLE "workspaces";
-- reverse: create index "workflowstep_workflow_id_position" to table: "workflow_steps"
DROP INDEX "workflowstep_workflow_id_position";
-- reverse: create "workflow_steps" table
DROP TABLE "workflow_steps";
-- reverse: create index "workflow_workspace_id_name" to table: "workflows"
DROP INDEX "workflow_workspace_id_name";
-- reverse: create index "workflow_workspace_id_kind" to table: "workflows"
DROP INDEX "workflow_workspace_id_kind";
-- reverse: create "workflows" table
DROP TABLE "workflows";
-- reverse: create index "webhookdelivery_trigger_id_created_at" to table: "webhook_deliveries"
DROP INDEX "webhookdelivery_trigger_id_created_at";
-- reverse: create "webhook_deliveries" table
DROP TABLE "webhook_deliveries";
-- reverse: create index "wakeuprequest_workspace_id_requested_at_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_workspace_id_requested_at_id";
-- reverse: create index "wakeuprequest_workspace_id_idempotency_key" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_workspace_id_idempotency_key";
-- reverse: create index "wakeuprequest_task_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_task_id";
-- reverse: create index "wakeuprequest_run_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_run_id";
-- reverse: create index "wakeuprequest_routine_run_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_routine_run_id";
-- reverse: create index "wakeuprequest_causation_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_causation_id";
-- reverse: create index "wakeup_requests_unrouted" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_unrouted";
-- reverse: create index "wakeup_requests_dropped_by_pause" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_dropped_by_pause";
-- reverse: create index "wakeup_requests_checkout_held" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_checkout_held";
-- reverse: create "wakeup_requests" table
DROP TABLE "wakeup_requests";
-- reverse: create index "tasksession_task_id_agent_id" to table: "task_sessions"
DROP INDEX "tasksession_task_id_agent_id";
-- reverse: create index "tasksession_agent_id" to table: "task_sessions"
DROP INDEX "tasksession_agent_id";
-- reverse: create "task_sessions" table
DROP TABLE "task_sessions";
-- reverse: create index "task_workspace_id_created_at_id" to table: "tasks"
DROP INDEX "task_workspace_id_created_at_id";
-- reverse: create index "task_project_id" to table: "tasks"
DROP INDEX "task_project_id";
-- reverse: create index "task_parent_id" to table: "tasks"
DROP INDEX "task_parent_id";
-- reverse: create index "task_checkout_run_id" to table: "tasks"
DROP INDEX "task_checkout_run_id";
-- reverse: create index "task_assignee_id_state" to table: "tasks"
DROP INDEX "task_assignee_id_state";
-- reverse: create "tasks" table
DROP TABLE "tasks";
-- reverse: create index "runlogline_run_id_attempt_seq" to table: "run_log_lines"
DROP INDEX "runlogline_run_id_attempt_seq";
-- reverse: create "run_log_lines" table
DROP TABLE "run_log_lines";
-- reverse: create index "runevent_run_id_seq" to table: "run_events"
DROP INDEX "runevent_run_id_seq";
-- reverse: create "run_events" table
DROP TABLE "run_events";
-- reverse: create index "run_contents_run_id_key" to table: "run_contents"
DROP INDEX "run_contents_run_id_key";
-- reverse: create "run_contents" table
DROP TABLE "run_contents";
-- reverse: create index "runattempt_token_digest" to table: "run_attempts"
DROP INDEX "runattempt_token_digest";
-- reverse: create index "runattempt_run_id_number" to table: "run_attempts"
DROP INDEX "runattempt_run_id_number";
-- reverse: create "run_attempts" table
DROP TABLE "run_attempts";
-- reverse: create index "runs_queued_scope" to table: "runs"
DROP INDEX "runs_queued_scope";
-- reverse: create index "runs_parked" to table: "runs"
DROP INDEX "runs_parked";
-- reverse: create index "runs_live_scope" to table: "runs"
DROP INDEX "runs_live_scope";
-- reverse: create index "runs_due" to table: "runs"
DROP INDEX "runs_due";
-- reverse: create index "run_workspace_id_requested_at_id" to table: "runs"
DROP INDEX "run_workspace_id_requested_at_id";
-- reverse: create index "run_task_id" to table: "runs"
DROP INDEX "run_task_id";
-- reverse: create index "run_routine_id_requested_at" to table: "runs"
DROP INDEX "run_routine_id_requested_at";
-- reverse: create index "run_causation_id" to table: "runs"
DROP INDEX "run_causation_id";
-- reverse: create index "run_agent_id_finished_at" to table: "runs"
DROP INDEX "run_agent_id_finished_at";
-- reverse: create "runs" table
DROP TABLE "runs";
-- reverse: create index "routinetrigger_workspace_id" to table: "routine_triggers"
DROP INDEX "routinetrigger_workspace_id";
-- reverse: create index "routinetrigger_routine_id" to table: "routine_triggers"
DROP INDEX "routinetrigger_routine_id";
-- reverse: create index "routinetrigger_next_run_at_id" to table: "routine_triggers"
DROP INDEX "routinetrigger_next_run_at_id";
-- reverse: create index "routine_triggers_unarmed" to table: "routine_triggers"
DROP INDEX "routine_triggers_unarmed";
-- reverse: create index "routine_triggers_public_id_key" to table: "routine_triggers"
DROP INDEX "routine_triggers_public_id_key";
-- reverse: create "routine_triggers" table
DROP TABLE "routine_triggers";
-- reverse: create index "routinerun_workspace_id_started_at_id" to table: "routine_runs"
DROP INDEX "routinerun_workspace_id_started_at_id";
-- reverse: create index "routinerun_trigger_id_fire_key" to table: "routine_runs"
DROP INDEX "routinerun_trigger_id_fire_key";
-- reverse: create index "routinerun_task_id" to table: "routine_runs"
DROP INDEX "routinerun_task_id";
-- reverse: create index "routinerun_routine_id_started_at_id" to table: "routine_runs"
DROP INDEX "routinerun_routine_id_started_at_id";
-- reverse: create index "routinerun_routine_id_dispatch_fingerprint" to table: "routine_runs"
DROP INDEX "routinerun_routine_id_dispatch_fingerprint";
-- reverse: create index "routinerun_causation_id" to table: "routine_runs"
DROP INDEX "routinerun_causation_id";
-- reverse: create "routine_runs" table
DROP TABLE "routine_runs";
-- reverse: create index "routine_workspace_id_name" to table: "routines"
DROP INDEX "routine_workspace_id_name";
-- reverse: create index "routine_workspace_id_created_at_id" to table: "routines"
DROP INDEX "routine_workspace_id_created_at_id";
-- reverse: create index "routine_assignee_id" to table: "routines"
DROP INDEX "routine_assignee_id";
-- reverse: create "routines" table
DROP TABLE "routines";
-- reverse: create index "project_workspace_id_name" to table: "projects"
DROP INDEX "project_workspace_id_name";
-- reverse: create "projects" table
DROP TABLE "projects";
-- reverse: create index "mutationkey_owner_mutation_key" to table: "mutation_keys"
DROP INDEX "mutationkey_owner_mutation_key";
-- reverse: create index "mutationkey_created_at" to table: "mutation_keys"
DROP INDEX "mutationkey_created_at";
-- reverse: create "mutation_keys" table
DROP TABLE "mutation_keys";
-- reverse: create index "instance_facts_name_key" to table: "instance_facts"
DROP INDEX "instance_facts_name_key";
-- reverse: create "instance_facts" table
DROP TABLE "instance_facts";
-- reverse: create index "inboxitem_workspace_id_dedupe_key" to table: "inbox_items"
DROP INDEX "inboxitem_workspace_id_dedupe_key";
-- reverse: create index "inboxitem_workspace_id_created_at_id" to table: "inbox_items"
DROP INDEX "inboxitem_workspace_id_created_at_id";
-- reverse: create "inbox_items" table
DROP TABLE "inbox_items";
-- reverse: create index "costentry_workspace_id_created_at" to table: "cost_entries"
DROP INDEX "costentry_workspace_id_created_at";
-- reverse: create index "costentry_run_id_attempt" to table: "cost_entries"
DROP INDEX "costentry_run_id_attempt";
-- reverse: create index "costentry_causation_id" to table: "cost_entries"
DROP INDEX "costentry_causation_id";
-- reverse: create index "costentry_agent_id_created_at" to table: "cost_entries"
DROP INDEX "costentry_agent_id_created_at";
-- reverse: create "cost_entries" table
DROP TABLE "cost_entries";
-- reverse: create index "continuationsummary_agent_id_scope" to table: "continuation_summaries"
DROP INDEX "continuationsummary_agent_id_scope";
-- reverse: create "continuation_summaries" table
DROP TABLE "continuation_summaries";
-- reverse: create index "comment_task_id_created_at_id" to table: "comments"
DROP INDEX "comment_task_id_created_at_id";
-- reverse: create index "comment_causation_id" to table: "comments"
DROP INDEX "comment_causation_id";
-- reverse: create "comments" table
DROP TABLE "comments";
-- reverse: create index "budgetpolicy_workspace_id_subject_kind_subject_id" to table: "budget_policies"
DROP INDEX "budgetpolicy_workspace_id_subject_kind_subject_id";
-- reverse: create "budget_policies" table
DROP TABLE "budget_policies";
-- reverse: create index "budgethold_run_id_attempt_policy_id" to table: "budget_holds"
DROP INDEX "budgethold_run_id_attempt_policy_id";
-- reverse: create index "budgethold_policy_id" to table: "budget_holds"
DROP INDEX "budgethold_policy_id";
-- reverse: create "budget_holds" table
DROP TABLE "budget_holds";
-- reverse: create "attempt_leases" table
DROP TABLE "attempt_leases";
-- reverse: create index "approval_task_id_created_at_id" to table: "approvals"
DROP INDEX "approval_task_id_created_at_id";
-- reverse: create index "approval_causation_id" to table: "approvals"
DROP INDEX "approval_causation_id";
-- reverse: create "approvals" table
DROP TABLE "approvals";
-- reverse: create index "apitoken_workspace_id_created_at_id" to table: "api_tokens"
DROP INDEX "apitoken_workspace_id_created_at_id";
-- reverse: create index "api_tokens_digest_key" to table: "api_tokens"
DROP INDEX "api_tokens_digest_key";
-- reverse: create "api_tokens" table
DROP TABLE "api_tokens";
-- reverse: create index "agentlane_workspace_id_head_at_head_id" to table: "agent_lanes"
DROP INDEX "agentlane_workspace_id_head_at_head_id";
-- reverse: create "agent_lanes" table
DROP TABLE "agent_lanes";
-- reverse: create index "agent_workspace_id_name" to table: "agents"
DROP INDEX "agent_workspace_id_name";
-- reverse: create index "agent_workspace_id_created_at_id" to table: "agents"
DROP INDEX "agent_workspace_id_created_at_id";
-- reverse: create index "agent_manager_id" to table: "agents"
DROP INDEX "agent_manager_id";
-- reverse: create "agents" table
DROP TABLE "agents";
-- reverse: create index "activity_workspace_id_tx_id" to table: "activities"
DROP INDEX "activity_workspace_id_tx_id";
-- reverse: create index "activity_workspace_id_occurred_at_id" to table: "activities"
DROP INDEX "activity_workspace_id_occurred_at_id";
-- reverse: create index "activity_subject_id" to table: "activities"
DROP INDEX "activity_subject_id";
-- reverse: create index "activity_causation_id" to table: "activities"
DROP INDEX "activity_causation_id";
-- reverse: create "activities" table
DROP TABLE "activities";
