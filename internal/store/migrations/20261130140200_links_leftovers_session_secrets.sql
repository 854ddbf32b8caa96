-- +goose Up
-- modify "task_blockers" table
ALTER TABLE "task_blockers" ADD COLUMN "linked_by_id" character varying NULL;
-- modify "task_sessions" table
ALTER TABLE "task_sessions" ADD COLUMN "secrets" jsonb NULL;
-- modify "tasks" table
ALTER TABLE "tasks" ADD COLUMN "unsettled" boolean NOT NULL DEFAULT false;
-- create index "tasks_unsettled" to table: "tasks"
CREATE INDEX "tasks_unsettled" ON "tasks" ("id") WHERE unsettled;

-- +goose Down
-- reverse: create index "tasks_unsettled" to table: "tasks"
DROP INDEX "tasks_unsettled";
-- reverse: modify "tasks" table
ALTER TABLE "tasks" DROP COLUMN "unsettled";
-- reverse: modify "task_sessions" table
ALTER TABLE "task_sessions" DROP COLUMN "secrets";
-- reverse: modify "task_blockers" table
ALTER TABLE "task_blockers" DROP COLUMN "linked_by_id";
