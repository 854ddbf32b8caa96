package store

import (
	"context"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
)

// formerSecrets are what earlier attempts of the run were launched with, and earlier runs of the session that it may resume: all
// of these the agent may still know.
func (t *tx) formerSecrets(ctx context.Context, run runRow) (sets []domain.SealedSet, err error) {
	const query = `
SELECT coalesce((SELECT sets FROM run_secrets WHERE run_id = $1), '[]')
  || coalesce((SELECT secrets FROM task_sessions WHERE task_id = $2 AND agent_id = $3 AND state <> 'ENDED'), '[]')`
	text, err := pgtx.QueryOne[[]byte](ctx, t, query, run.id, run.taskID, run.agentID)
	if err == nil {
		err = json.Unmarshal(text, &sets)
	}
	return sets, pgtx.Wrap("read what earlier attempts were launched with", err)
}

// knownSecrets is in SQL what the session of a task and an agent knows: what it knew before, and what the attempts of the run were
// launched with, the newest sets of each. It is NULL when it knows nothing.
func knownSecrets(task, agent, run string) string {
	return `(
  SELECT jsonb_agg(few.known ORDER BY few.place)
  FROM (
    SELECT x.known, max(x.place) AS place
    FROM (
      SELECT e.known, e.place
      FROM task_sessions former CROSS JOIN LATERAL jsonb_array_elements(former.secrets) WITH ORDINALITY AS e (known, place)
      WHERE former.task_id = ` + task + ` AND former.agent_id = ` + agent + ` AND former.secrets IS NOT NULL
      UNION ALL
      SELECT e.known, 1000 + e.place
      FROM run_secrets r CROSS JOIN LATERAL jsonb_array_elements(r.sets) WITH ORDINALITY AS e (known, place)
      WHERE r.run_id = ` + run + `
      UNION ALL
      SELECT l.secrets, 2000 FROM attempt_leases l WHERE l.run_id = ` + run + ` AND l.secrets IS NOT NULL) x
    GROUP BY x.known
    ORDER BY place DESC
    LIMIT ` + maxFormerSets + `) few)`
}

// tellSession notes what the session that a run resumes is told by that: whatever comes of the run, the session may know it. The
// run's own secrets are kept.
func (t *tx) tellSession(ctx context.Context, run runRow) error {
	query := `
WITH now AS (SELECT ` + knownSecrets("$1", "$2", "$3") + ` AS sets)
UPDATE task_sessions s SET secrets = now.sets
FROM now
WHERE s.task_id = $1 AND s.agent_id = $2 AND s.state <> 'ENDED' AND s.secrets IS DISTINCT FROM now.sets`
	_, err := pgtx.Exec(ctx, t, query, run.taskID, run.agentID, run.id)
	return pgtx.Wrap("keep what the session is told", err)
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
