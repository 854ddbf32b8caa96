-- +goose Up
-- create "links" table
CREATE TABLE "links" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "causation_id" character varying NOT NULL, "run_id" character varying NOT NULL, "agent_id" character varying NOT NULL, "task_id" character varying NULL, "kind" character varying NOT NULL, "url" text NOT NULL, "title" character varying NOT NULL, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "links_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, CONSTRAINT "links_kind" CHECK ((kind)::text = ANY ((ARRAY['PULL_REQUEST'::character varying, 'PREVIEW'::character varying, 'OTHER'::character varying])::text[])));
-- create index "link_causation_id" to table: "links"
CREATE INDEX "link_causation_id" ON "links" ("causation_id");
-- create index "link_run_id_url" to table: "links"
CREATE UNIQUE INDEX "link_run_id_url" ON "links" ("run_id", "url");
-- create index "link_task_id_created_at_id" to table: "links"
CREATE INDEX "link_task_id_created_at_id" ON "links" ("task_id", "created_at", "id") WHERE (task_id IS NOT NULL);
-- create "run_working_copies" table
CREATE TABLE "run_working_copies" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "run_id" character varying NOT NULL, "path" text NOT NULL, "repository" text NOT NULL, "branch" character varying NOT NULL, "head_before" character varying NOT NULL, "head_after" character varying NULL, "commits" bigint NOT NULL DEFAULT 0, "files_changed" bigint NOT NULL DEFAULT 0, "insertions" bigint NOT NULL DEFAULT 0, "deletions" bigint NOT NULL DEFAULT 0, "uncommitted" bigint NOT NULL DEFAULT 0, "diff" text NOT NULL DEFAULT '', "diff_cut" boolean NOT NULL DEFAULT false, "workspace_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "run_working_copies_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "runworkingcopy_run_id" to table: "run_working_copies"
CREATE UNIQUE INDEX "runworkingcopy_run_id" ON "run_working_copies" ("run_id");
-- what a working copy that is kept tells the inbox
ALTER TABLE "inbox_items" DROP CONSTRAINT "inbox_items_kind", ADD CONSTRAINT "inbox_items_kind" CHECK ("kind" IN ('AGENT_ERROR', 'APPROVAL_REQUEST', 'BUDGET_ALERT', 'LOOP_BREAKER', 'FIRES_WAIT', 'WORKING_COPY'));

-- +goose Down
ALTER TABLE "inbox_items" DROP CONSTRAINT "inbox_items_kind", ADD CONSTRAINT "inbox_items_kind" CHECK ("kind" IN ('AGENT_ERROR', 'APPROVAL_REQUEST', 'BUDGET_ALERT', 'LOOP_BREAKER', 'FIRES_WAIT')) NOT VALID;
-- reverse: create index "runworkingcopy_run_id" to table: "run_working_copies"
DROP INDEX "runworkingcopy_run_id";
-- reverse: create "run_working_copies" table
DROP TABLE "run_working_copies";
-- reverse: create index "link_task_id_created_at_id" to table: "links"
DROP INDEX "link_task_id_created_at_id";
-- reverse: create index "link_run_id_url" to table: "links"
DROP INDEX "link_run_id_url";
-- reverse: create index "link_causation_id" to table: "links"
DROP INDEX "link_causation_id";
-- reverse: create "links" table
DROP TABLE "links";
