package store

import (
	"context"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// formerSecrets are what earlier attempts of the run were launched with.
func (t *tx) formerSecrets(ctx context.Context, runID xid.ID) (sets []domain.SealedSet, err error) {
	text, err := pgtx.QueryOne[[]byte](ctx, t, `SELECT sets FROM run_secrets WHERE run_id = $1`, runID)
	if pgtx.NoRows(err) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &sets)
	}
	return sets, pgtx.Wrap("read what earlier attempts were launched with", err)
}

// keepSecrets keeps what an attempt is launched with, sealed as it is, for as long as its lease stands. What it was lent with
// before is a former launch's.
func (t *tx) keepSecrets(ctx context.Context, run runRow, set domain.SealedSet) error {
	if len(set.Values) == 0 {
		return nil
	}
	text, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("encode the attempt's secrets: %w", err)
	}
	const keep = `
WITH lease AS (
  SELECT run_id, workspace_id, secrets
  FROM attempt_leases
  WHERE run_id = $1 AND attempt = $2 AND secrets <> $3::jsonb),
former AS (` + keepFormer + `)
UPDATE attempt_leases SET secrets = $3::jsonb WHERE run_id = $1 AND attempt = $2`
	return pgtx.Wrap("keep what the attempt is launched with", pgtx.ExecOne(ctx, t, keep, run.id, run.attempt, text))
}

// maxFormerSets bounds what is kept of a run whose executor is changed again and again: the newest count.
const maxFormerSets = "20"

// keepFormer moves the secrets of lease to those of the run's former launches, unless they are there.
const keepFormer = `
INSERT INTO run_secrets AS s (run_id, workspace_id, sets)
SELECT run_id, workspace_id, jsonb_build_array(secrets)
FROM lease
WHERE secrets IS NOT NULL
ON CONFLICT (run_id) DO UPDATE SET sets = CASE WHEN s.sets @> excluded.sets THEN s.sets
  WHEN jsonb_array_length(s.sets) >= ` + maxFormerSets + ` THEN (s.sets - 0) || excluded.sets
  ELSE s.sets || excluded.sets END`
