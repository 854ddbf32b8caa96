-- +goose Up
-- Requests are updated in place: no index has a column that a usual request changes on its way. The table is rewritten with its
-- indexes, under a lock that nobody reads or writes beside: docs/operations.md says how long that takes. Pages keep room for the
-- versions of a row that its claim and its end write.
DROP INDEX "wakeup_requests_unrouted", "wakeup_requests_apart", "wakeup_requests_checkout_held", "wakeup_requests_dropped_by_pause", "wakeup_requests_ended_unlinked";
ALTER TABLE "wakeup_requests" SET (fillfactor = 50);
ALTER TABLE "wakeup_requests"
  ADD COLUMN "unrouted" boolean NOT NULL GENERATED ALWAYS AS (status = 'QUEUED' AND run_id IS NULL) STORED,
  ADD COLUMN "apart" "wakeup_status" GENERATED ALWAYS AS (CASE WHEN status NOT IN ('QUEUED', 'CLAIMED', 'FINISHED') THEN status END) STORED,
  ADD COLUMN "put_by_at" timestamptz GENERATED ALWAYS AS (CASE WHEN run_id IS NULL OR end_reason IN ('AGENT_INACTIVE', 'BUDGET_BLOCKED') THEN finished_at END) STORED;
CREATE INDEX "wakeup_requests_unrouted" ON "wakeup_requests" ("agent_id", "requested_at", "id") WHERE unrouted;
CREATE INDEX "wakeup_requests_apart" ON "wakeup_requests" ("workspace_id", "apart", "requested_at", "id") WHERE apart IS NOT NULL;
CREATE INDEX "wakeup_requests_checkout_held" ON "wakeup_requests" ("task_id") WHERE end_reason = 'CHECKOUT_HELD';
CREATE INDEX "wakeup_requests_dropped_by_pause" ON "wakeup_requests" ("agent_id", "put_by_at") WHERE end_reason = 'AGENT_INACTIVE' OR end_reason = 'BUDGET_BLOCKED';
CREATE INDEX "wakeup_requests_ended_unlinked" ON "wakeup_requests" ("workspace_id", "put_by_at") WHERE run_id IS NULL AND put_by_at IS NOT NULL;

-- +goose Down
DROP INDEX "wakeup_requests_unrouted", "wakeup_requests_apart", "wakeup_requests_checkout_held", "wakeup_requests_dropped_by_pause", "wakeup_requests_ended_unlinked";
ALTER TABLE "wakeup_requests" DROP COLUMN "unrouted", DROP COLUMN "apart", DROP COLUMN "put_by_at";
ALTER TABLE "wakeup_requests" RESET (fillfactor);
CREATE INDEX "wakeup_requests_unrouted" ON "wakeup_requests" ("agent_id", "requested_at", "id") WHERE status = 'QUEUED' AND run_id IS NULL;
CREATE INDEX "wakeup_requests_apart" ON "wakeup_requests" ("workspace_id", "status", "requested_at", "id") WHERE status <> 'QUEUED' AND status <> 'CLAIMED' AND status <> 'FINISHED';
CREATE INDEX "wakeup_requests_checkout_held" ON "wakeup_requests" ("task_id") WHERE status = 'SKIPPED' AND end_reason = 'CHECKOUT_HELD';
CREATE INDEX "wakeup_requests_dropped_by_pause" ON "wakeup_requests" ("agent_id", "finished_at") WHERE end_reason = 'AGENT_INACTIVE' OR end_reason = 'BUDGET_BLOCKED';
CREATE INDEX "wakeup_requests_ended_unlinked" ON "wakeup_requests" ("workspace_id", "finished_at") WHERE run_id IS NULL AND finished_at IS NOT NULL;
