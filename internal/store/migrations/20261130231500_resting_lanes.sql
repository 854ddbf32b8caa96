-- +goose Up
-- The index of lanes that rest serves the next end of a rest alone: what looks for due lanes was planned by it where few lanes were
-- due when they were analysed, and read all of those that were due later.
DROP INDEX "agent_lanes_resting";
CREATE INDEX "agent_lanes_resting" ON "agent_lanes" ("eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND (status = 'IDLE'::agent_status) AND (eligible_at > '1970-01-01 00:00:00+00'::timestamptz));

-- +goose Down
DROP INDEX "agent_lanes_resting";
CREATE INDEX "agent_lanes_resting" ON "agent_lanes" ("eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND (status = 'IDLE'::agent_status));
