package store

import (
	"context"
	"fmt"
)

// usage is what one attempt of a run used. CostUSD is a decimal of US dollars, "" when the agent did not say.
type usage struct {
	inputTokens, outputTokens int64
	costUSD                   string
}

func (u usage) none() bool { return u.inputTokens == 0 && u.outputTokens == 0 && u.costUSD == "" }

// recordCost writes what the live attempt of a run used, once, to the agent and to the project of its task. It comes
// before leaveClaimed, which charges it to the budgets and settles their holds (SPEC S6.5). Nothing used, nothing written.
func (t *tx) recordCost(ctx context.Context, run runRow, u usage) error {
	if u.none() {
		return nil
	}
	const query = `
INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, project_id, input_tokens, output_tokens, cost_usd, created_at)
SELECT $1, $2, $3, $4, $5, $6, (SELECT project_id FROM tasks WHERE id = $7), $8, $9, coalesce(NULLIF($10, '')::numeric, 0), $11
ON CONFLICT (run_id, attempt) DO NOTHING`
	_, err := exec(ctx, t, query, newIDs("cst", 1)[0], run.workspaceID, run.causationID, run.id, run.attempt, run.agentID, nullable(run.taskID),
		u.inputTokens, u.outputTokens, u.costUSD, t.now)
	if err != nil {
		return fmt.Errorf("record the attempt's cost: %w", err)
	}
	return nil
}
