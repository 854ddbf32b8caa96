-- What the schema has beyond ent/schema, executed after ent's tables are made (package schemadiff). A change here needs a
-- migration as one of ent/schema does: make migration NAME=…

-- A run's event is found by its run and number alone, and a run's texts by their run: an index of their ids would be written
-- in each cycle and read by nobody.
ALTER TABLE run_events DROP CONSTRAINT run_events_pkey;
DROP INDEX runevent_run_id_seq;
ALTER TABLE run_events ADD PRIMARY KEY (run_id, seq);
ALTER TABLE run_contents DROP CONSTRAINT run_contents_pkey;
ALTER TABLE run_contents DROP CONSTRAINT IF EXISTS run_contents_run_id_key;
DROP INDEX IF EXISTS run_contents_run_id_key;
ALTER TABLE run_contents ADD PRIMARY KEY (run_id);
-- So is an attempt, by its run and number.
ALTER TABLE run_attempts DROP CONSTRAINT run_attempts_pkey;
DROP INDEX runattempt_run_id_number;
ALTER TABLE run_attempts ADD PRIMARY KEY (run_id, number);

-- Ended runs of a minute, by what their terminal shape is derived from, and the one row that says which minutes are counted.
-- No record of the API is behind them, and the store reads and writes them by statements of its own.
CREATE TABLE "shape_tallies" ("workspace_id" character varying NOT NULL, "minute" timestamptz NOT NULL, "status" character varying NOT NULL, "outcome" character varying NOT NULL, "end_reason" character varying NOT NULL, "session" boolean NOT NULL, "active" boolean NOT NULL, "n" bigint NOT NULL, PRIMARY KEY ("workspace_id", "minute", "status", "outcome", "end_reason", "session", "active"));
CREATE TABLE "shape_tally_mark" ("id" boolean NOT NULL DEFAULT true, "since" timestamptz NOT NULL, "until" timestamptz NOT NULL, "seen" timestamptz NOT NULL, "horizon" bigint NOT NULL, "activated" timestamptz NULL, PRIMARY KEY ("id"), CONSTRAINT "shape_tally_mark_one" CHECK (id));

-- Costs of an hour, and of a day, by agent, project and together, and the one row that says which hours are counted. The store
-- reads and writes them by statements of its own, too.
CREATE TABLE "cost_tallies" ("workspace_id" character varying NOT NULL, "kind" character varying NOT NULL, "subject" character varying NOT NULL, "day" boolean NOT NULL, "begins" timestamptz NOT NULL, "since" timestamptz NOT NULL, "cost_usd" numeric NOT NULL, "input_tokens" numeric NOT NULL, "output_tokens" numeric NOT NULL, "runs" bigint NOT NULL, PRIMARY KEY ("workspace_id", "kind", "subject", "day", "begins", "since"));
CREATE INDEX "cost_tallies_begins" ON "cost_tallies" ("workspace_id", "kind", "day", "begins");
CREATE TABLE "cost_tally_mark" ("id" boolean NOT NULL DEFAULT true, "until" timestamptz NOT NULL, "seen" timestamptz NOT NULL, "horizon" bigint NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "cost_tally_mark_one" CHECK (id));

-- Lines of output, those that were stored together in one row: a row and its index entries for each line were half of what a short
-- run cost the database (docs/decisions/0032-logs-in-pieces.md). The view has them one by one. Instants are microseconds since 1970.
CREATE TYPE "log_stream" AS ENUM ('STDOUT', 'STDERR', 'SYSTEM');
CREATE TABLE "run_log_pieces" ("workspace_id" character varying NOT NULL, "run_id" character varying NOT NULL, "attempt" bigint NOT NULL, "first_seq" bigint NOT NULL, "last_seq" bigint NOT NULL, "bytes" bigint NOT NULL, "streams" "log_stream"[] NOT NULL, "texts" text[] NOT NULL, "micros" bigint[] NOT NULL, PRIMARY KEY ("run_id", "attempt", "last_seq"));
CREATE VIEW "run_log_lines" AS
SELECT p.workspace_id, p.run_id, p.attempt, p.last_seq, p.first_seq + l.place - 1 AS seq, l.stream, l.text,
  timestamptz 'epoch' + l.micros * interval '1 microsecond' AS at
FROM run_log_pieces p CROSS JOIN LATERAL unnest(p.streams, p.texts, p.micros) WITH ORDINALITY AS l (stream, text, micros, place);

-- The rows that each run writes refer to their workspace, agent and run without foreign keys, which took a lock and a look for
-- each row written. Their order of deletion and the check of the repair stand for them (docs/decisions/0028-no-keys-of-hot-rows.md).
ALTER TABLE runs DROP CONSTRAINT runs_workspaces_workspace, DROP CONSTRAINT runs_agents_agent;
ALTER TABLE run_attempts DROP CONSTRAINT run_attempts_workspaces_workspace, DROP CONSTRAINT run_attempts_runs_attempts;
ALTER TABLE run_events DROP CONSTRAINT run_events_workspaces_workspace, DROP CONSTRAINT run_events_runs_run;
ALTER TABLE run_contents DROP CONSTRAINT run_contents_workspaces_workspace, DROP CONSTRAINT run_contents_runs_content;
ALTER TABLE activities DROP CONSTRAINT activities_workspaces_workspace;
ALTER TABLE wakeup_requests DROP CONSTRAINT wakeup_requests_workspaces_workspace, DROP CONSTRAINT wakeup_requests_agents_agent,
  DROP CONSTRAINT wakeup_requests_runs_wakeup_requests;

-- What is rare of a request is told by columns that are derived from those that change, and empty or false for a usual request
-- from its insertion to its end. An update that leaves them as they are writes no index entry
-- (docs/decisions/0031-requests-are-updated-in-place.md). Nobody writes them, and the API does not have them.
ALTER TABLE wakeup_requests
  ADD COLUMN unrouted boolean NOT NULL GENERATED ALWAYS AS (status = 'QUEUED' AND run_id IS NULL) STORED,
  ADD COLUMN apart wakeup_status GENERATED ALWAYS AS (CASE WHEN status NOT IN ('QUEUED', 'CLAIMED', 'FINISHED') THEN status END) STORED,
  ADD COLUMN put_by_at timestamptz GENERATED ALWAYS AS (CASE WHEN run_id IS NULL OR end_reason IN ('AGENT_INACTIVE', 'BUDGET_BLOCKED') THEN finished_at END) STORED;
CREATE INDEX wakeup_requests_unrouted ON wakeup_requests (agent_id, requested_at, id) WHERE unrouted;
CREATE INDEX wakeup_requests_apart ON wakeup_requests (workspace_id, apart, requested_at, id) WHERE apart IS NOT NULL;
CREATE INDEX wakeup_requests_dropped_by_pause ON wakeup_requests (agent_id, put_by_at) WHERE end_reason = 'AGENT_INACTIVE' OR end_reason = 'BUDGET_BLOCKED';
CREATE INDEX wakeup_requests_ended_unlinked ON wakeup_requests (workspace_id, put_by_at) WHERE run_id IS NULL AND put_by_at IS NOT NULL;

-- Whether a run ended well without a session (docs/decisions/0036-a-session-is-recorded-in-place.md). The index was of the session itself, so that its
-- record wrote an entry into each index of the run.
ALTER TABLE runs ADD COLUMN silent boolean NOT NULL GENERATED ALWAYS AS (status = 'FINISHED' AND outcome IS NOT DISTINCT FROM 'processed' AND session_id IS NULL) STORED;
DROP INDEX runs_silent;
CREATE INDEX runs_silent ON runs (workspace_id, finished_at) WHERE silent;

-- The processes that serve this database and the workers that take runs from its queues, as they last said of themselves, and which
-- worker took an attempt. A worker has a row for each queue that it asks. The store reads and writes them by statements of its own.
CREATE TABLE "processes" ("id" character varying NOT NULL, "host" character varying NOT NULL, "pid" bigint NOT NULL, "version" character varying NOT NULL, "standby" boolean NOT NULL, "slots" bigint NOT NULL, "started_at" timestamptz NOT NULL, "seen_at" timestamptz NOT NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
CREATE TABLE "workers" ("id" character varying NOT NULL, "queue" character varying NOT NULL, "workspace_id" character varying NOT NULL, "name" character varying NOT NULL, "host" character varying NOT NULL, "version" character varying NOT NULL, "seen_at" timestamptz NOT NULL, PRIMARY KEY ("id", "queue"), CONSTRAINT "workers_workspaces_workspace" FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") ON DELETE CASCADE);
CREATE INDEX "workers_seen" ON "workers" ("workspace_id", "seen_at");
ALTER TABLE run_attempts ADD COLUMN worker character varying NULL;

-- Filters and orders of the API's lists that no other index serves. Those of runs hold ended runs, or rare ones: a usual run writes an
-- entry into runs_by_source when it ends, one into runs_by_duration when it took a second, and one into runs_by_cost when it cost
-- something (docs/decisions/0040-what-lists-may-cost.md).
CREATE INDEX runs_of_agent_apart ON runs (agent_id, status, requested_at, id) WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX runs_by_error ON runs (workspace_id, error_code, requested_at, id) WHERE error_code IS NOT NULL;
CREATE INDEX runs_by_outcome ON runs (workspace_id, outcome, requested_at, id) WHERE outcome IS NOT NULL AND outcome <> 'processed';
CREATE INDEX runs_by_source ON runs (workspace_id, source, wake_class, requested_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_by_duration ON runs (workspace_id, ((extract(epoch FROM finished_at - claimed_at) * 1000000)::bigint), id) WHERE finished_at - claimed_at >= interval '1 second';
CREATE INDEX runs_by_cost ON runs (workspace_id, cost_usd, id) WHERE cost_usd > 0;
CREATE INDEX wakeup_requests_by_reason ON wakeup_requests (workspace_id, end_reason, requested_at, id) WHERE end_reason IS NOT NULL;
CREATE INDEX wakeup_requests_recovered ON wakeup_requests (workspace_id, requested_at, id) WHERE recovered;
CREATE INDEX wakeup_requests_of_routine ON wakeup_requests (routine_id, requested_at, id) WHERE routine_id IS NOT NULL;
DROP INDEX wakeuprequest_task_id;
CREATE INDEX wakeup_requests_of_task ON wakeup_requests (task_id, requested_at, id) WHERE task_id IS NOT NULL;
CREATE INDEX activities_routine ON activities ((data ->> 'routineId'), occurred_at, id) WHERE code IN ('ROUTINE_CHANGED', 'ROUTINE_FIRED', 'TRIGGER_CHANGED', 'TRIGGER_SECRET_ROTATED', 'WEBHOOK_REJECTED');
CREATE INDEX activities_actor ON activities (workspace_id, actor, occurred_at, id) WHERE actor_kind <> 'SYSTEM';
ALTER TABLE inbox_items ADD COLUMN agent_id character varying NULL;
CREATE INDEX inbox_items_of_agent ON inbox_items (workspace_id, agent_id, created_at, id) WHERE agent_id IS NOT NULL;
CREATE INDEX task_reviewers_of_agent ON task_reviewers (agent_id, task_id);
CREATE INDEX task_approvers_of_agent ON task_approvers (agent_id, task_id);
CREATE INDEX tasks_to_approve ON tasks (workspace_id, id) WHERE requires_approval;
CREATE INDEX approvals_by_status ON approvals (workspace_id, status, created_at, id);
CREATE INDEX approvals_listed ON approvals (workspace_id, created_at, id);
