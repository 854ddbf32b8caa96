-- +goose Up
-- modify "task_sessions" table
ALTER TABLE "task_sessions" ADD COLUMN "told_usage" jsonb NULL;

-- +goose Down
-- reverse: modify "task_sessions" table
ALTER TABLE "task_sessions" DROP COLUMN "told_usage";
