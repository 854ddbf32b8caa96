-- +goose Up
-- add value to enum type: "activity_code"
ALTER TYPE "activity_code" ADD VALUE 'NOTIFICATION_CHANNEL_CHANGED';
-- add value to enum type: "activity_code"
ALTER TYPE "activity_code" ADD VALUE 'NOTIFICATION_CHANNEL_TESTED';

-- +goose Down
-- A value of a type cannot be removed.
SELECT 1;
