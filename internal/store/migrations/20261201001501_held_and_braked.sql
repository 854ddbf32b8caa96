-- +goose Up
-- modify "agent_lanes" table
ALTER TABLE "agent_lanes" ADD COLUMN "launches_since" timestamptz NULL, ADD COLUMN "launches" bigint NOT NULL DEFAULT 0;
-- Agents that are there keep launching as often as they did: launch_limit is NULL for them, and 60 an hour for new ones.
-- modify "agents" table
ALTER TABLE "agents" ADD CONSTRAINT "agents_launch_limit" CHECK (launch_limit >= 1), ADD CONSTRAINT "agents_launch_limit_ms" CHECK ((launch_limit_ms >= 1000) AND (launch_limit_ms <= 604800000)), ADD COLUMN "launch_limit" bigint NULL, ADD COLUMN "launch_limit_ms" bigint NOT NULL DEFAULT 3600000;
-- modify "runs" table
ALTER TABLE "runs" ADD COLUMN "unattended" boolean NOT NULL DEFAULT false;
-- modify "wakeup_requests" table
ALTER TABLE "wakeup_requests" ADD COLUMN "unattended" boolean NOT NULL DEFAULT false;
-- modify "workspace_lanes" table
ALTER TABLE "workspace_lanes" ADD COLUMN "held_at" timestamptz NULL;
-- modify "workspaces" table
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_max_hops" CHECK ((max_hops >= 1) AND (max_hops <= 1000)), ADD COLUMN "hold" jsonb NULL, ADD COLUMN "hold_ended_at" timestamptz NULL, ADD COLUMN "max_hops" bigint NOT NULL DEFAULT 25;

-- +goose Down
-- reverse: modify "workspaces" table
ALTER TABLE "workspaces" DROP CONSTRAINT "workspaces_max_hops", DROP COLUMN "max_hops", DROP COLUMN "hold_ended_at", DROP COLUMN "hold";
-- reverse: modify "workspace_lanes" table
ALTER TABLE "workspace_lanes" DROP COLUMN "held_at";
-- reverse: modify "wakeup_requests" table
ALTER TABLE "wakeup_requests" DROP COLUMN "unattended";
-- reverse: modify "runs" table
ALTER TABLE "runs" DROP COLUMN "unattended";
-- reverse: modify "agents" table
ALTER TABLE "agents" DROP CONSTRAINT "agents_launch_limit_ms", DROP CONSTRAINT "agents_launch_limit", DROP COLUMN "launch_limit_ms", DROP COLUMN "launch_limit";
-- reverse: modify "agent_lanes" table
ALTER TABLE "agent_lanes" DROP COLUMN "launches", DROP COLUMN "launches_since";
