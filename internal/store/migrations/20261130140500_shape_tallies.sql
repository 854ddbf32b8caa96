-- +goose Up
-- create "shape_tallies" table: ended runs of a minute, by what their terminal shape is derived from
CREATE TABLE "shape_tallies" ("workspace_id" character varying NOT NULL, "minute" timestamptz NOT NULL, "status" character varying NOT NULL, "outcome" character varying NOT NULL, "end_reason" character varying NOT NULL, "session" boolean NOT NULL, "active" boolean NOT NULL, "n" bigint NOT NULL, PRIMARY KEY ("workspace_id", "minute", "status", "outcome", "end_reason", "session", "active"));
-- create "shape_tally_mark" table: one row, which says which minutes are counted
CREATE TABLE "shape_tally_mark" ("id" boolean NOT NULL DEFAULT true, "since" timestamptz NOT NULL, "until" timestamptz NOT NULL, "seen" timestamptz NOT NULL, "horizon" bigint NOT NULL, "activated" timestamptz NULL, PRIMARY KEY ("id"), CONSTRAINT "shape_tally_mark_one" CHECK (id));
INSERT INTO "shape_tally_mark" ("since", "until", "seen", "horizon") VALUES ('epoch', 'epoch', 'epoch', 0);

-- +goose Down
DROP TABLE "shape_tally_mark";
DROP TABLE "shape_tallies";
