-- +goose Up
-- drop index "runs_queued" from table: "runs"
DROP INDEX "runs_queued";
-- create index "runs_queued" to table: "runs"
CREATE INDEX "runs_queued" ON "runs" ("workspace_id", "parked_reason") WHERE (((status)::text = 'QUEUED'::text) AND (workspace_id IS NOT NULL));

-- +goose Down
-- reverse: create index "runs_queued" to table: "runs"
DROP INDEX "runs_queued";
-- reverse: drop index "runs_queued" from table: "runs"
CREATE INDEX "runs_queued" ON "runs" ("workspace_id", "parked_reason") WHERE ((status)::text = 'QUEUED'::text);
