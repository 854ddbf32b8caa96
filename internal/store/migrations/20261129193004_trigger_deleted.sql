-- +goose Up
-- modify "routine_triggers" table
ALTER TABLE "routine_triggers" ADD COLUMN "deleted_at" timestamptz NULL;

-- +goose Down
-- reverse: modify "routine_triggers" table
ALTER TABLE "routine_triggers" DROP COLUMN "deleted_at";
