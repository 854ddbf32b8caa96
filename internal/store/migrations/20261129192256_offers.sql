-- +goose Up
-- modify "attempt_leases" table
ALTER TABLE "attempt_leases" ADD COLUMN "lease_ms" bigint NOT NULL DEFAULT 0, ADD COLUMN "log_bytes" bigint NOT NULL DEFAULT 0;
-- create index "attempt_leases_offered" to table: "attempt_leases"
CREATE INDEX "attempt_leases_offered" ON "attempt_leases" ("workspace_id", "queue") WHERE (owner IS NULL);

-- +goose Down
-- reverse: create index "attempt_leases_offered" to table: "attempt_leases"
DROP INDEX "attempt_leases_offered";
-- reverse: modify "attempt_leases" table
ALTER TABLE "attempt_leases" DROP COLUMN "log_bytes", DROP COLUMN "lease_ms";
