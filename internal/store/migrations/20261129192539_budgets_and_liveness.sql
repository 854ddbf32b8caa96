-- +goose Up
-- modify "agent_lanes" table
ALTER TABLE "agent_lanes" ADD COLUMN "released_at" timestamptz NULL;
-- create index "agent_lanes_over_budget" to table: "agent_lanes"
CREATE INDEX "agent_lanes_over_budget" ON "agent_lanes" ("workspace_id", "agent_id") WHERE ((pause_reason)::text = 'BUDGET'::text);
-- modify "budget_policies" table
ALTER TABLE "budget_policies" ADD COLUMN "alerted_percent" bigint NOT NULL DEFAULT 0;
-- create index "costentry_project_id_created_at" to table: "cost_entries"
CREATE INDEX "costentry_project_id_created_at" ON "cost_entries" ("project_id", "created_at") WHERE (project_id IS NOT NULL);
-- modify "runs" table
ALTER TABLE "runs" ADD CONSTRAINT "runs_session" CHECK ((session_id)::text <> ''::text), ADD COLUMN "due_at" timestamptz NULL;
-- create index "runs_silent" to table: "runs"
CREATE INDEX "runs_silent" ON "runs" ("workspace_id", "finished_at") WHERE (((status)::text = 'FINISHED'::text) AND ((outcome)::text = 'processed'::text) AND (session_id IS NULL));
-- create index "tasks_unstarted" to table: "tasks"
CREATE INDEX "tasks_unstarted" ON "tasks" ("workspace_id", "created_at") WHERE (((state)::text = 'TODO'::text) AND (assignee_id IS NOT NULL) AND (archived_at IS NULL) AND (deleted_at IS NULL));
-- modify "workspace_lanes" table
ALTER TABLE "workspace_lanes" ADD COLUMN "released_at" timestamptz NULL;

-- +goose Down
-- reverse: modify "workspace_lanes" table
ALTER TABLE "workspace_lanes" DROP COLUMN "released_at";
-- reverse: create index "tasks_unstarted" to table: "tasks"
DROP INDEX "tasks_unstarted";
-- reverse: create index "runs_silent" to table: "runs"
DROP INDEX "runs_silent";
-- reverse: modify "runs" table
ALTER TABLE "runs" DROP COLUMN "due_at", DROP CONSTRAINT "runs_session";
-- reverse: create index "costentry_project_id_created_at" to table: "cost_entries"
DROP INDEX "costentry_project_id_created_at";
-- reverse: modify "budget_policies" table
ALTER TABLE "budget_policies" DROP COLUMN "alerted_percent";
-- reverse: create index "agent_lanes_over_budget" to table: "agent_lanes"
DROP INDEX "agent_lanes_over_budget";
-- reverse: modify "agent_lanes" table
ALTER TABLE "agent_lanes" DROP COLUMN "released_at";
