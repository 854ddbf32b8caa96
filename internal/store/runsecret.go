package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// SecretsOf are the sealed values that a run's agent may say: those of its executor as it is set now, those that its live attempt
// was launched with, which the agent keeps when they are replaced, and those of its earlier attempts, whose files and session it
// may have found.
func (s *Store) SecretsOf(ctx context.Context, runID xid.ID) (sets []domain.SealedSet, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		var run runRow
		const query = `SELECT id, agent_id, task_id FROM runs WHERE id = $1`
		if err := queryRow(ctx, t, []any{&run.id, &run.agentID, &run.taskID}, query, runID); err != nil {
			return fmt.Errorf("read the run: %w", err)
		}
		ag, err := t.Agent.Query().Where(agent.ID(run.agentID)).WithWorkspace().Only(ctx)
		if err != nil {
			return fmt.Errorf("read the agent: %w", err)
		}
		spec, holder, err := t.resolveExecutor(ctx, run, ag)
		if err != nil {
			return err
		}
		launched, err := t.launchSecrets(ctx, runID)
		if err != nil {
			return err
		}
		former, err := t.formerSecrets(ctx, runID)
		sets = append(append(launched, former...), spec.Sealed(holder))
		return err
	})
	return sets, wrap("read the secrets of the run's executor", err)
}

// launchSecrets are what the run's live attempt was launched with.
func (t *tx) launchSecrets(ctx context.Context, runID xid.ID) ([]domain.SealedSet, error) {
	const query = `SELECT secrets FROM attempt_leases WHERE run_id = $1 AND secrets IS NOT NULL`
	sets, err := collect(ctx, t, func(rows *sql.Rows) (set domain.SealedSet, err error) {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return set, err
		}
		return set, json.Unmarshal(text, &set)
	}, query, runID)
	return sets, wrap("read what the attempt was launched with", err)
}

// formerSecrets are what earlier attempts of the run were launched with.
func (t *tx) formerSecrets(ctx context.Context, runID xid.ID) (sets []domain.SealedSet, err error) {
	text, err := queryOne[[]byte](ctx, t, `SELECT sets FROM run_secrets WHERE run_id = $1`, runID)
	if isNoRows(err) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &sets)
	}
	return sets, wrap("read what earlier attempts were launched with", err)
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
WITH lease AS (SELECT run_id, workspace_id, secrets FROM attempt_leases WHERE run_id = $1 AND attempt = $2 AND secrets <> $3::jsonb),
former AS (` + keepFormer + `)
UPDATE attempt_leases SET secrets = $3::jsonb WHERE run_id = $1 AND attempt = $2`
	return wrap("keep what the attempt is launched with", execOne(ctx, t, keep, run.id, run.attempt, text))
}

// maxFormerSets bounds what is kept of a run whose executor is changed again and again: the newest count.
const maxFormerSets = "20"

// keepFormer moves the secrets of lease to those of the run's former launches, unless they are there.
const keepFormer = `
INSERT INTO run_secrets AS s (run_id, workspace_id, sets) SELECT run_id, workspace_id, jsonb_build_array(secrets) FROM lease WHERE secrets IS NOT NULL
ON CONFLICT (run_id) DO UPDATE SET sets = CASE WHEN s.sets @> excluded.sets THEN s.sets
  WHEN jsonb_array_length(s.sets) >= ` + maxFormerSets + ` THEN (s.sets - 0) || excluded.sets ELSE s.sets || excluded.sets END`
