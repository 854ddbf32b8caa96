-- +goose Up
-- create index "wakeup_requests_ended_unlinked" to table: "wakeup_requests"
CREATE INDEX "wakeup_requests_ended_unlinked" ON "wakeup_requests" ("workspace_id", "finished_at") WHERE ((run_id IS NULL) AND (finished_at IS NOT NULL));

-- +goose Down
-- reverse: create index "wakeup_requests_ended_unlinked" to table: "wakeup_requests"
DROP INDEX "wakeup_requests_ended_unlinked";
