-- +goose Up
-- add value to enum type: "run_error_code"
ALTER TYPE "run_error_code" ADD VALUE 'AUTH';
-- add value to enum type: "run_error_code"
ALTER TYPE "run_error_code" ADD VALUE 'BILLING';

-- +goose Down
-- A value of a type cannot be removed.
SELECT 1;
