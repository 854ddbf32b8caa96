-- +goose Up
-- modify "routine_triggers" table
ALTER TABLE "routine_triggers" ADD CONSTRAINT "routine_triggers_preset" CHECK ((preset)::text = ANY ((ARRAY['GITHUB'::character varying, 'GITLAB'::character varying, 'STRIPE'::character varying, 'SLACK'::character varying, 'LINEAR'::character varying, 'STANDARD'::character varying])::text[])), ADD COLUMN "preset" character varying NULL, ADD COLUMN "conditions" jsonb NOT NULL DEFAULT '[]';
-- modify "webhook_deliveries" table
ALTER TABLE "webhook_deliveries" ADD COLUMN "event" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "webhook_deliveries" table
ALTER TABLE "webhook_deliveries" DROP COLUMN "event";
-- reverse: modify "routine_triggers" table
ALTER TABLE "routine_triggers" DROP CONSTRAINT "routine_triggers_preset", DROP COLUMN "conditions", DROP COLUMN "preset";
