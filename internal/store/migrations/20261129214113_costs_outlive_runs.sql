-- +goose Up
-- modify "cost_entries" table
ALTER TABLE "cost_entries" DROP CONSTRAINT "cost_entries_runs_run";

-- +goose Down
-- reverse: modify "cost_entries" table
ALTER TABLE "cost_entries" ADD CONSTRAINT "cost_entries_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
