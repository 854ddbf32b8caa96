-- +goose Up
-- modify "attempt_leases" table
ALTER TABLE "attempt_leases" ADD COLUMN "call_key" character varying NULL;
-- create index "attempt_leases_call" to table: "attempt_leases"
CREATE INDEX "attempt_leases_call" ON "attempt_leases" ("workspace_id", "call_key") WHERE (call_key IS NOT NULL);
-- modify "run_contents" table
ALTER TABLE "run_contents" ADD COLUMN "full_prompt" text NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "run_contents" table
ALTER TABLE "run_contents" DROP COLUMN "full_prompt";
-- reverse: create index "attempt_leases_call" to table: "attempt_leases"
DROP INDEX "attempt_leases_call";
-- reverse: modify "attempt_leases" table
ALTER TABLE "attempt_leases" DROP COLUMN "call_key";
