-- +goose Up
-- create "cost_tallies" table: costs of an hour, and of a day, by agent, project and together. A loop of the scheduler fills it,
-- a day in each transaction. Entries that are not counted yet are read one by one, so that no sum waits for it.
CREATE TABLE "cost_tallies" ("workspace_id" character varying NOT NULL, "kind" character varying NOT NULL, "subject" character varying NOT NULL, "day" boolean NOT NULL, "begins" timestamptz NOT NULL, "since" timestamptz NOT NULL, "cost_usd" numeric NOT NULL, "input_tokens" numeric NOT NULL, "output_tokens" numeric NOT NULL, "runs" bigint NOT NULL, PRIMARY KEY ("workspace_id", "kind", "subject", "day", "begins", "since"));
CREATE INDEX "cost_tallies_begins" ON "cost_tallies" ("workspace_id", "kind", "day", "begins");
-- create "cost_tally_mark" table: one row, which says which hours are counted
CREATE TABLE "cost_tally_mark" ("id" boolean NOT NULL DEFAULT true, "until" timestamptz NOT NULL, "seen" timestamptz NOT NULL, "horizon" bigint NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "cost_tally_mark_one" CHECK (id));
INSERT INTO "cost_tally_mark" ("until", "seen", "horizon") VALUES ('epoch', 'epoch', 0);

-- +goose Down
DROP TABLE "cost_tally_mark";
DROP TABLE "cost_tallies";
