-- +goose Up
-- modify "routine_runs" table
ALTER TABLE "routine_runs" ADD COLUMN "late_by_ms" bigint NULL, ADD COLUMN "backfilled" boolean NOT NULL DEFAULT false;
-- modify "routine_triggers" table
ALTER TABLE "routine_triggers" ADD COLUMN "at" timestamptz NULL, ADD COLUMN "starts_at" timestamptz NULL, ADD COLUMN "ends_at" timestamptz NULL, ADD COLUMN "jitter_ms" bigint NOT NULL DEFAULT 0, ADD COLUMN "skip_dates" jsonb NOT NULL DEFAULT '[]', ADD COLUMN "start_deadline_ms" bigint NULL, ADD COLUMN "missed_ticks" bigint NOT NULL DEFAULT 0, ADD COLUMN "missed_since" timestamptz NULL, ADD COLUMN "missed_truncated" boolean NOT NULL DEFAULT false;
-- modify the check of schedules: one has an expression, or one instant
ALTER TABLE "routine_triggers" DROP CONSTRAINT "routine_triggers_schedule", ADD CONSTRAINT "routine_triggers_schedule" CHECK (kind <> 'SCHEDULE' OR ((cron IS NULL) <> (at IS NULL) AND time_zone IS NOT NULL));

-- +goose Down
-- reverse: modify the check of schedules; those of one instant have no expression
ALTER TABLE "routine_triggers" DROP CONSTRAINT "routine_triggers_schedule", ADD CONSTRAINT "routine_triggers_schedule" CHECK (kind <> 'SCHEDULE' OR (cron IS NOT NULL AND time_zone IS NOT NULL)) NOT VALID;
-- reverse: modify "routine_triggers" table
ALTER TABLE "routine_triggers" DROP COLUMN "missed_truncated", DROP COLUMN "missed_since", DROP COLUMN "missed_ticks", DROP COLUMN "start_deadline_ms", DROP COLUMN "skip_dates", DROP COLUMN "jitter_ms", DROP COLUMN "ends_at", DROP COLUMN "starts_at", DROP COLUMN "at";
-- reverse: modify "routine_runs" table
ALTER TABLE "routine_runs" DROP COLUMN "backfilled", DROP COLUMN "late_by_ms";
