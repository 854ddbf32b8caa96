-- +goose Up
-- drop index "agent_lanes_due" from table: "agent_lanes"
DROP INDEX "agent_lanes_due";
-- drop index "agent_lanes_resting" from table: "agent_lanes"
DROP INDEX "agent_lanes_resting";
-- modify "agent_lanes" table
ALTER TABLE "agent_lanes" ADD COLUMN "resend_from" timestamptz NULL, ADD COLUMN "resend_after" character varying NOT NULL DEFAULT '', ADD COLUMN "clearing" boolean NOT NULL DEFAULT false;
-- create index "agent_lanes_due" to table: "agent_lanes"
CREATE INDEX "agent_lanes_due" ON "agent_lanes" ("workspace_id", "head_at", "head_id", "eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND ((status)::text = 'IDLE'::text));
-- create index "agent_lanes_resting" to table: "agent_lanes"
CREATE INDEX "agent_lanes_resting" ON "agent_lanes" ("eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions) AND ((status)::text = 'IDLE'::text));
-- create index "agent_lanes_backlog" to table: "agent_lanes"
CREATE INDEX "agent_lanes_backlog" ON "agent_lanes" ("agent_id") WHERE (((head_at IS NOT NULL) AND ((status)::text <> 'IDLE'::text)) OR ((resend_from IS NOT NULL) AND ((status)::text = 'IDLE'::text)) OR clearing);

-- +goose Down
-- reverse: create index "agent_lanes_backlog" to table: "agent_lanes"
DROP INDEX "agent_lanes_backlog";
-- reverse: create index "agent_lanes_resting" to table: "agent_lanes"
DROP INDEX "agent_lanes_resting";
-- reverse: create index "agent_lanes_due" to table: "agent_lanes"
DROP INDEX "agent_lanes_due";
-- reverse: modify "agent_lanes" table
ALTER TABLE "agent_lanes" DROP COLUMN "clearing", DROP COLUMN "resend_after", DROP COLUMN "resend_from";
-- reverse: drop index "agent_lanes_resting" from table: "agent_lanes"
CREATE INDEX "agent_lanes_resting" ON "agent_lanes" ("eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions));
-- reverse: drop index "agent_lanes_due" from table: "agent_lanes"
CREATE INDEX "agent_lanes_due" ON "agent_lanes" ("workspace_id", "head_at", "head_id", "eligible_at") WHERE ((head_at IS NOT NULL) AND (running < max_sessions));
