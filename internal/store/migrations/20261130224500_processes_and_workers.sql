-- +goose Up
-- Which processes serve the database, which workers ask for its runs, and which worker took an attempt.
CREATE TABLE "processes" ("id" character varying NOT NULL, "host" character varying NOT NULL, "pid" bigint NOT NULL, "version" character varying NOT NULL, "standby" boolean NOT NULL, "slots" bigint NOT NULL, "started_at" timestamptz NOT NULL, "seen_at" timestamptz NOT NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
CREATE TABLE "workers" ("id" character varying NOT NULL, "queue" character varying NOT NULL, "workspace_id" character varying NOT NULL, "name" character varying NOT NULL, "host" character varying NOT NULL, "version" character varying NOT NULL, "seen_at" timestamptz NOT NULL, PRIMARY KEY ("id", "queue"), CONSTRAINT "workers_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON DELETE CASCADE);
CREATE INDEX "workers_seen" ON "workers" ("workspace_id", "seen_at");
ALTER TABLE "run_attempts" ADD COLUMN "worker" character varying NULL;

-- +goose Down
ALTER TABLE "run_attempts" DROP COLUMN "worker";
DROP TABLE "workers";
DROP TABLE "processes";
