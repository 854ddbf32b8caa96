-- +goose Up
-- The record of a session writes no index entries: whether a run ended without one has a column, which that does not change. Pages keep
-- room for the version of a row that it writes. The table of runs is rewritten with its indexes, under a lock that nobody reads or writes
-- beside: docs/operations.md says how long that takes. An attempt is found by its run and number alone.
DROP INDEX "runs_silent";
ALTER TABLE "runs" SET (fillfactor = 80);
ALTER TABLE "runs" ADD COLUMN "silent" boolean NOT NULL GENERATED ALWAYS AS (status = 'FINISHED' AND outcome IS NOT DISTINCT FROM 'processed' AND session_id IS NULL) STORED;
CREATE INDEX "runs_silent" ON "runs" ("workspace_id", "finished_at") WHERE silent;
ALTER TABLE "run_attempts" DROP CONSTRAINT "run_attempts_pkey";
DROP INDEX "runattempt_run_id_number";
ALTER TABLE "run_attempts" ADD PRIMARY KEY ("run_id", "number");

-- +goose Down
ALTER TABLE "run_attempts" DROP CONSTRAINT "run_attempts_pkey";
ALTER TABLE "run_attempts" ADD PRIMARY KEY ("id");
CREATE UNIQUE INDEX "runattempt_run_id_number" ON "run_attempts" ("run_id", "number");
DROP INDEX "runs_silent";
ALTER TABLE "runs" DROP COLUMN "silent";
ALTER TABLE "runs" RESET (fillfactor);
CREATE INDEX "runs_silent" ON "runs" ("workspace_id", "finished_at") WHERE status = 'FINISHED' AND outcome = 'processed' AND session_id IS NULL;
