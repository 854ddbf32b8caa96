-- +goose Up
-- modify "tasks" table
ALTER TABLE "tasks" ADD COLUMN "word_run_id" character varying NULL;
-- modify "routine_runs" table
ALTER TABLE "routine_runs" ADD COLUMN "held_by_id" character varying NULL, ADD CONSTRAINT "routine_runs_routine_runs_holds" FOREIGN KEY ("held_by_id") REFERENCES "routine_runs" ("id") ON UPDATE NO ACTION ON DELETE SET NULL;
-- create index "routine_runs_open" to table: "routine_runs"
CREATE INDEX "routine_runs_open" ON "routine_runs" ("workspace_id") WHERE (completed_at IS NULL);
-- create index "routine_runs_open_task" to table: "routine_runs"
CREATE INDEX "routine_runs_open_task" ON "routine_runs" ("task_id") WHERE ((completed_at IS NULL) AND (task_id IS NOT NULL));
-- create index "routinerun_held_by_id_started_at" to table: "routine_runs"
CREATE INDEX "routinerun_held_by_id_started_at" ON "routine_runs" ("held_by_id", "started_at") WHERE (held_by_id IS NOT NULL);
-- what an earlier version merged into a fire that is still open counts as held by it; of ended ones coalesced_into says it
UPDATE "routine_runs" AS r SET "held_by_id" = r.coalesced_into_id FROM "routine_runs" AS f WHERE f.id = r.coalesced_into_id AND f.completed_at IS NULL;
-- a new kind of inbox item
ALTER TABLE "inbox_items" DROP CONSTRAINT "inbox_items_kind", ADD CONSTRAINT "inbox_items_kind" CHECK ("kind" IN ('AGENT_ERROR', 'APPROVAL_REQUEST', 'BUDGET_ALERT', 'LOOP_BREAKER', 'FIRES_WAIT'));

-- +goose Down
ALTER TABLE "inbox_items" DROP CONSTRAINT "inbox_items_kind", ADD CONSTRAINT "inbox_items_kind" CHECK ("kind" IN ('AGENT_ERROR', 'APPROVAL_REQUEST', 'BUDGET_ALERT', 'LOOP_BREAKER')) NOT VALID;
DROP INDEX "routinerun_held_by_id_started_at";
DROP INDEX "routine_runs_open_task";
DROP INDEX "routine_runs_open";
ALTER TABLE "routine_runs" DROP CONSTRAINT "routine_runs_routine_runs_holds", DROP COLUMN "held_by_id";
ALTER TABLE "tasks" DROP COLUMN "word_run_id";
