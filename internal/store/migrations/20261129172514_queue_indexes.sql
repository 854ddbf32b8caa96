-- +goose Up
-- drop index "agentlane_workspace_id_head_at_head_id" from table: "agent_lanes"
DROP INDEX "agentlane_workspace_id_head_at_head_id";
-- create index "agent_lanes_due" to table: "agent_lanes"
CREATE INDEX "agent_lanes_due" ON "agent_lanes" ("workspace_id", "head_at", "head_id", "eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions));
-- create index "agent_lanes_resting" to table: "agent_lanes"
CREATE INDEX "agent_lanes_resting" ON "agent_lanes" ("eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions));
-- create index "runs_ended" to table: "runs"
CREATE INDEX "runs_ended" ON "runs" ("workspace_id", "finished_at", "status") WHERE (finished_at IS NOT NULL);
-- create index "runs_parked_lane" to table: "runs"
CREATE INDEX "runs_parked_lane" ON "runs" ("agent_id", "parked_until") WHERE (((status)::text = 'QUEUED'::text) AND (parked_until IS NOT NULL));
-- create index "runs_queued" to table: "runs"
CREATE INDEX "runs_queued" ON "runs" ("workspace_id", "parked_reason") WHERE ((status)::text = 'QUEUED'::text);
-- create index "runs_scope_busy" to table: "runs"
CREATE INDEX "runs_scope_busy" ON "runs" ("agent_id", "scope", "requested_at", "id") WHERE (((status)::text = 'QUEUED'::text) AND ((parked_reason)::text = 'SCOPE_BUSY'::text));

-- +goose Down
-- reverse: create index "runs_scope_busy" to table: "runs"
DROP INDEX "runs_scope_busy";
-- reverse: create index "runs_queued" to table: "runs"
DROP INDEX "runs_queued";
-- reverse: create index "runs_parked_lane" to table: "runs"
DROP INDEX "runs_parked_lane";
-- reverse: create index "runs_ended" to table: "runs"
DROP INDEX "runs_ended";
-- reverse: create index "agent_lanes_resting" to table: "agent_lanes"
DROP INDEX "agent_lanes_resting";
-- reverse: create index "agent_lanes_due" to table: "agent_lanes"
DROP INDEX "agent_lanes_due";
-- reverse: drop index "agentlane_workspace_id_head_at_head_id" from table: "agent_lanes"
CREATE INDEX "agentlane_workspace_id_head_at_head_id" ON "agent_lanes" ("workspace_id", "head_at", "head_id") WHERE ((head_at IS NOT NULL) AND (running < max_sessions));
