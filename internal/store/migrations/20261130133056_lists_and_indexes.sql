-- +goose Up
-- drop index "activity_causation_id" from table: "activities"
DROP INDEX "activity_causation_id";
-- drop index "activity_subject_id" from table: "activities"
DROP INDEX "activity_subject_id";
-- create index "activities_inbox" to table: "activities"
CREATE INDEX "activities_inbox" ON "activities" ("subject_id") WHERE ((code)::text = 'INBOX_ITEM_MADE'::text);
-- create index "activities_rare" to table: "activities"
CREATE INDEX "activities_rare" ON "activities" ("workspace_id", "code", "occurred_at", "id") WHERE ((code)::text <> 'WAKEUP_QUEUED'::text AND (code)::text <> 'RUN_CLAIMED'::text AND (code)::text <> 'RUN_LAUNCHED'::text AND (code)::text <> 'RUN_FINISHED'::text);
-- create index "activity_agent_id_occurred_at_id" to table: "activities"
CREATE INDEX "activity_agent_id_occurred_at_id" ON "activities" ("agent_id", "occurred_at", "id") WHERE (agent_id IS NOT NULL);
-- create index "activity_causation_id_occurred_at_id" to table: "activities"
CREATE INDEX "activity_causation_id_occurred_at_id" ON "activities" ("causation_id", "occurred_at", "id") WHERE (causation_id IS NOT NULL);
-- create index "activity_task_id_occurred_at_id" to table: "activities"
CREATE INDEX "activity_task_id_occurred_at_id" ON "activities" ("task_id", "occurred_at", "id") WHERE (task_id IS NOT NULL);
-- create index "inbox_items_open" to table: "inbox_items"
CREATE INDEX "inbox_items_open" ON "inbox_items" ("workspace_id", "created_at", "id") WHERE (resolved_at IS NULL);
-- create index "inbox_items_open_kind" to table: "inbox_items"
CREATE INDEX "inbox_items_open_kind" ON "inbox_items" ("workspace_id", "kind", "created_at", "id") WHERE (resolved_at IS NULL);
-- create index "inboxitem_workspace_id_kind_created_at_id" to table: "inbox_items"
CREATE INDEX "inboxitem_workspace_id_kind_created_at_id" ON "inbox_items" ("workspace_id", "kind", "created_at", "id");
-- create index "routine_runs_by_source" to table: "routine_runs"
CREATE INDEX "routine_runs_by_source" ON "routine_runs" ("workspace_id", "source", "started_at", "id") WHERE ((source)::text <> 'CRON'::text);
-- create index "routine_runs_by_status" to table: "routine_runs"
CREATE INDEX "routine_runs_by_status" ON "routine_runs" ("workspace_id", "status", "started_at", "id") WHERE ((status)::text <> 'DONE'::text);
-- drop index "run_contents_run_id_key" from table: "run_contents"
DROP INDEX "run_contents_run_id_key";
-- modify "run_contents" table
ALTER TABLE "run_contents" DROP CONSTRAINT "run_contents_pkey", ADD PRIMARY KEY ("run_id");
-- drop index "runevent_run_id_seq" from table: "run_events"
DROP INDEX "runevent_run_id_seq";
-- modify "run_events" table
ALTER TABLE "run_events" DROP CONSTRAINT "run_events_pkey", ADD PRIMARY KEY ("run_id", "seq");
-- drop index "run_agent_id_finished_at" from table: "runs"
DROP INDEX "run_agent_id_finished_at";
-- drop index "run_routine_id_requested_at" from table: "runs"
DROP INDEX "run_routine_id_requested_at";
-- drop index "run_task_id" from table: "runs"
DROP INDEX "run_task_id";
-- drop index "runs_queued" from table: "runs"
DROP INDEX "runs_queued";
-- create index "run_agent_id_requested_at_id" to table: "runs"
CREATE INDEX "run_agent_id_requested_at_id" ON "runs" ("agent_id", "requested_at", "id");
-- create index "run_routine_id_requested_at_id" to table: "runs"
CREATE INDEX "run_routine_id_requested_at_id" ON "runs" ("routine_id", "requested_at", "id") WHERE (routine_id IS NOT NULL);
-- create index "run_task_id_requested_at_id" to table: "runs"
CREATE INDEX "run_task_id_requested_at_id" ON "runs" ("task_id", "requested_at", "id") WHERE (task_id IS NOT NULL);
-- create index "runs_by_status" to table: "runs"
CREATE INDEX "runs_by_status" ON "runs" ("workspace_id", "status", "requested_at", "id") WHERE ((status)::text <> 'FINISHED'::text);
-- create index "runs_ended_agent" to table: "runs"
CREATE INDEX "runs_ended_agent" ON "runs" ("agent_id", "finished_at") WHERE (finished_at IS NOT NULL);
-- create index "runs_unprocessed" to table: "runs"
CREATE INDEX "runs_unprocessed" ON "runs" ("workspace_id", "requested_at", "id") WHERE (((status)::text = 'FINISHED'::text) AND ((outcome)::text IS DISTINCT FROM 'processed'::text));
-- create index "runs_waiting" to table: "runs"
CREATE INDEX "runs_waiting" ON "runs" ("workspace_id", "parked_reason", "requested_at", "id") WHERE (parked_reason IS NOT NULL);
-- drop index "wakeuprequest_routine_run_id" from table: "wakeup_requests"
DROP INDEX "wakeuprequest_routine_run_id";
-- drop index "wakeuprequest_run_id" from table: "wakeup_requests"
DROP INDEX "wakeuprequest_run_id";
-- drop index "wakeuprequest_task_id" from table: "wakeup_requests"
DROP INDEX "wakeuprequest_task_id";
-- create index "wakeuprequest_routine_run_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_routine_run_id" ON "wakeup_requests" ("routine_run_id") WHERE (routine_run_id IS NOT NULL);
-- create index "wakeuprequest_task_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_task_id" ON "wakeup_requests" ("task_id") WHERE (task_id IS NOT NULL);
-- create index "wakeup_requests_apart" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_apart" ON "wakeup_requests" ("workspace_id", "status", "requested_at", "id") WHERE ((status)::text <> 'QUEUED'::text AND (status)::text <> 'CLAIMED'::text AND (status)::text <> 'FINISHED'::text);
-- create index "wakeuprequest_agent_id_requested_at_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_agent_id_requested_at_id" ON "wakeup_requests" ("agent_id", "requested_at", "id");
-- create index "wakeuprequest_run_id_requested_at_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_run_id_requested_at_id" ON "wakeup_requests" ("run_id", "requested_at", "id") WHERE (run_id IS NOT NULL);
-- create index "wakeuprequest_workspace_id_source_requested_at_id" to table: "wakeup_requests"
CREATE INDEX "wakeuprequest_workspace_id_source_requested_at_id" ON "wakeup_requests" ("workspace_id", "source", "requested_at", "id");

-- +goose Down
-- reverse: create index "wakeuprequest_workspace_id_source_requested_at_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_workspace_id_source_requested_at_id";
-- reverse: create index "wakeuprequest_run_id_requested_at_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_run_id_requested_at_id";
-- reverse: create index "wakeuprequest_agent_id_requested_at_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_agent_id_requested_at_id";
-- reverse: create index "wakeup_requests_apart" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_apart";
-- reverse: create index "wakeuprequest_task_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_task_id";
-- reverse: create index "wakeuprequest_routine_run_id" to table: "wakeup_requests"
DROP INDEX "wakeuprequest_routine_run_id";
-- reverse: drop index "wakeuprequest_task_id" from table: "wakeup_requests"
CREATE INDEX "wakeuprequest_task_id" ON "wakeup_requests" ("task_id");
-- reverse: drop index "wakeuprequest_run_id" from table: "wakeup_requests"
CREATE INDEX "wakeuprequest_run_id" ON "wakeup_requests" ("run_id");
-- reverse: drop index "wakeuprequest_routine_run_id" from table: "wakeup_requests"
CREATE INDEX "wakeuprequest_routine_run_id" ON "wakeup_requests" ("routine_run_id");
-- reverse: create index "runs_waiting" to table: "runs"
DROP INDEX "runs_waiting";
-- reverse: create index "runs_unprocessed" to table: "runs"
DROP INDEX "runs_unprocessed";
-- reverse: create index "runs_ended_agent" to table: "runs"
DROP INDEX "runs_ended_agent";
-- reverse: create index "runs_by_status" to table: "runs"
DROP INDEX "runs_by_status";
-- reverse: create index "run_task_id_requested_at_id" to table: "runs"
DROP INDEX "run_task_id_requested_at_id";
-- reverse: create index "run_routine_id_requested_at_id" to table: "runs"
DROP INDEX "run_routine_id_requested_at_id";
-- reverse: create index "run_agent_id_requested_at_id" to table: "runs"
DROP INDEX "run_agent_id_requested_at_id";
-- reverse: drop index "runs_queued" from table: "runs"
CREATE INDEX "runs_queued" ON "runs" ("workspace_id", "parked_reason") WHERE (((status)::text = 'QUEUED'::text) AND (workspace_id IS NOT NULL));
-- reverse: drop index "run_task_id" from table: "runs"
CREATE INDEX "run_task_id" ON "runs" ("task_id") WHERE (task_id IS NOT NULL);
-- reverse: drop index "run_routine_id_requested_at" from table: "runs"
CREATE INDEX "run_routine_id_requested_at" ON "runs" ("routine_id", "requested_at") WHERE (routine_id IS NOT NULL);
-- reverse: drop index "run_agent_id_finished_at" from table: "runs"
CREATE INDEX "run_agent_id_finished_at" ON "runs" ("agent_id", "finished_at");
-- reverse: modify "run_events" table
ALTER TABLE "run_events" DROP CONSTRAINT "run_events_pkey", ADD PRIMARY KEY ("id");
-- reverse: drop index "runevent_run_id_seq" from table: "run_events"
CREATE UNIQUE INDEX "runevent_run_id_seq" ON "run_events" ("run_id", "seq");
-- reverse: modify "run_contents" table
ALTER TABLE "run_contents" DROP CONSTRAINT "run_contents_pkey", ADD PRIMARY KEY ("id");
-- reverse: drop index "run_contents_run_id_key" from table: "run_contents"
CREATE UNIQUE INDEX "run_contents_run_id_key" ON "run_contents" ("run_id");
-- reverse: create index "routine_runs_by_status" to table: "routine_runs"
DROP INDEX "routine_runs_by_status";
-- reverse: create index "routine_runs_by_source" to table: "routine_runs"
DROP INDEX "routine_runs_by_source";
-- reverse: create index "inboxitem_workspace_id_kind_created_at_id" to table: "inbox_items"
DROP INDEX "inboxitem_workspace_id_kind_created_at_id";
-- reverse: create index "inbox_items_open_kind" to table: "inbox_items"
DROP INDEX "inbox_items_open_kind";
-- reverse: create index "inbox_items_open" to table: "inbox_items"
DROP INDEX "inbox_items_open";
-- reverse: create index "activity_task_id_occurred_at_id" to table: "activities"
DROP INDEX "activity_task_id_occurred_at_id";
-- reverse: create index "activity_causation_id_occurred_at_id" to table: "activities"
DROP INDEX "activity_causation_id_occurred_at_id";
-- reverse: create index "activity_agent_id_occurred_at_id" to table: "activities"
DROP INDEX "activity_agent_id_occurred_at_id";
-- reverse: create index "activities_rare" to table: "activities"
DROP INDEX "activities_rare";
-- reverse: create index "activities_inbox" to table: "activities"
DROP INDEX "activities_inbox";
-- reverse: drop index "activity_subject_id" from table: "activities"
CREATE INDEX "activity_subject_id" ON "activities" ("subject_id");
-- reverse: drop index "activity_causation_id" from table: "activities"
CREATE INDEX "activity_causation_id" ON "activities" ("causation_id") WHERE (causation_id IS NOT NULL);
