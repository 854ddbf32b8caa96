-- +goose Up
-- modify "agents" table
ALTER TABLE "agents" DROP COLUMN "comment_mentions", DROP COLUMN "task_reviewers", DROP COLUMN "task_approvers";
-- create index "runs_task_blocked" to table: "runs"
CREATE INDEX "runs_task_blocked" ON "runs" ("agent_id") WHERE (((status)::text = 'QUEUED'::text) AND ((parked_reason)::text = 'TASK_BLOCKED'::text));
-- create "comment_mentions" table
CREATE TABLE "comment_mentions" ("comment_id" character varying NOT NULL, "agent_id" character varying NOT NULL, PRIMARY KEY ("comment_id", "agent_id"), CONSTRAINT "comment_mentions_agent_id" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "comment_mentions_comment_id" FOREIGN KEY ("comment_id") REFERENCES "comments" ("id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- create "task_approvers" table
CREATE TABLE "task_approvers" ("task_id" character varying NOT NULL, "agent_id" character varying NOT NULL, PRIMARY KEY ("task_id", "agent_id"), CONSTRAINT "task_approvers_agent_id" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "task_approvers_task_id" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- create "task_blockers" table
CREATE TABLE "task_blockers" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL DEFAULT clock_timestamp(), "workspace_id" character varying NOT NULL, "task_id" character varying NOT NULL, "blocker_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "task_blockers_tasks_blocker" FOREIGN KEY ("blocker_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, CONSTRAINT "task_blockers_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, CONSTRAINT "task_blockers_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "taskblocker_blocker_id" to table: "task_blockers"
CREATE INDEX "taskblocker_blocker_id" ON "task_blockers" ("blocker_id");
-- create index "taskblocker_task_id_blocker_id" to table: "task_blockers"
CREATE UNIQUE INDEX "taskblocker_task_id_blocker_id" ON "task_blockers" ("task_id", "blocker_id");
-- create "task_reviewers" table
CREATE TABLE "task_reviewers" ("task_id" character varying NOT NULL, "agent_id" character varying NOT NULL, PRIMARY KEY ("task_id", "agent_id"), CONSTRAINT "task_reviewers_agent_id" FOREIGN KEY ("agent_id") REFERENCES "agents" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "task_reviewers_task_id" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- drop "task_blocked_by" table, whose place "task_blockers" takes
DROP TABLE "task_blocked_by";

-- +goose Down
-- reverse: drop "task_blocked_by" table
CREATE TABLE "task_blocked_by" ("task_id" character varying NOT NULL, "block_id" character varying NOT NULL, PRIMARY KEY ("task_id", "block_id"), CONSTRAINT "task_blocked_by_block_id" FOREIGN KEY ("block_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "task_blocked_by_task_id" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- reverse: create "task_reviewers" table
DROP TABLE "task_reviewers";
-- reverse: create index "taskblocker_task_id_blocker_id" to table: "task_blockers"
DROP INDEX "taskblocker_task_id_blocker_id";
-- reverse: create index "taskblocker_blocker_id" to table: "task_blockers"
DROP INDEX "taskblocker_blocker_id";
-- reverse: create "task_blockers" table
DROP TABLE "task_blockers";
-- reverse: create "task_approvers" table
DROP TABLE "task_approvers";
-- reverse: create "comment_mentions" table
DROP TABLE "comment_mentions";
-- reverse: create index "runs_task_blocked" to table: "runs"
DROP INDEX "runs_task_blocked";
-- reverse: modify "agents" table
ALTER TABLE "agents" ADD COLUMN "task_approvers" character varying NULL, ADD COLUMN "task_reviewers" character varying NULL, ADD COLUMN "comment_mentions" character varying NULL;
