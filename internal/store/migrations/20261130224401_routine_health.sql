-- +goose Up
-- create index "routine_runs_worked" to table: "routine_runs"
CREATE INDEX "routine_runs_worked" ON "routine_runs" ("routine_id", "status", "started_at", "id") WHERE (status = ANY (ARRAY['DONE'::routine_run_status, 'FAILED'::routine_run_status]));

-- +goose Down
-- reverse: create index "routine_runs_worked" to table: "routine_runs"
DROP INDEX "routine_runs_worked";
