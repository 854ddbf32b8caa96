-- +goose Up
-- modify "attempt_leases" table
ALTER TABLE "attempt_leases" ADD COLUMN "secrets" jsonb NULL;

-- +goose Down
-- reverse: modify "attempt_leases" table
ALTER TABLE "attempt_leases" DROP COLUMN "secrets";
