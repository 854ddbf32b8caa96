-- +goose Up
-- modify "budget_policies" table
ALTER TABLE "budget_policies" ADD COLUMN "told_thresholds" jsonb NOT NULL DEFAULT '[]';
-- what was told of until now is every threshold up to the highest one told
UPDATE "budget_policies" SET "told_thresholds" = (
  SELECT coalesce(jsonb_agg(t ORDER BY t::int), '[]') FROM jsonb_array_elements("alert_thresholds") AS t WHERE t::int <= "alerted_percent")
WHERE "alerted_percent" > 0;

-- +goose Down
-- reverse: modify "budget_policies" table
ALTER TABLE "budget_policies" DROP COLUMN "told_thresholds";
