-- +goose Up
-- add value to enum type: "activity_code"
ALTER TYPE "activity_code" ADD VALUE 'WORKSPACE_HELD';
-- add value to enum type: "activity_code"
ALTER TYPE "activity_code" ADD VALUE 'WORKSPACE_RELEASED';
-- add value to enum type: "activity_code"
ALTER TYPE "activity_code" ADD VALUE 'WORKSPACE_CHANGED';
-- add value to enum type: "end_reason"
ALTER TYPE "end_reason" ADD VALUE 'WORKSPACE_HELD';
-- add value to enum type: "parked_reason"
ALTER TYPE "parked_reason" ADD VALUE 'LOOP_BREAKER';

-- +goose Down
-- A value of a type cannot be removed.
SELECT 1;
