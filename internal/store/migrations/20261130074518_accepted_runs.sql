-- +goose Up
-- modify "attempt_leases" table
ALTER TABLE "attempt_leases" ADD COLUMN "accepted_at" timestamptz NULL, ADD COLUMN "ending_at" timestamptz NULL, ADD COLUMN "timeout_ms" bigint NOT NULL DEFAULT 0, ADD COLUMN "grace_ms" bigint NOT NULL DEFAULT 0;
-- modify "runs" table
ALTER TABLE "runs" ADD COLUMN "limits" bigint NOT NULL DEFAULT 0, ADD COLUMN "limited_since" timestamptz NULL;

-- +goose Down
-- reverse: modify "runs" table
ALTER TABLE "runs" DROP COLUMN "limited_since", DROP COLUMN "limits";
-- reverse: modify "attempt_leases" table
ALTER TABLE "attempt_leases" DROP COLUMN "grace_ms", DROP COLUMN "timeout_ms", DROP COLUMN "ending_at", DROP COLUMN "accepted_at";
