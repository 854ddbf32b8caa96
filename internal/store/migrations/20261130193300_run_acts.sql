-- +goose Up
-- add value to enum type: "run_event_kind"
ALTER TYPE "run_event_kind" ADD VALUE 'ACTED';

-- +goose Down
-- A value of a type cannot be removed.
SELECT 1;
