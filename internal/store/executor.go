package store

import (
	"context"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// executorColumn is where a record has its executor, and how the API calls it.
type executorColumn struct{ table, column, field string }

var (
	executorOfAgent     = executorColumn{"agents", "executor", "executor"}
	executorOfProject   = executorColumn{"projects", "executor", "executor"}
	executorOfTask      = executorColumn{"tasks", "executor", "executor"}
	executorOfWorkspace = executorColumn{"workspaces", "default_executor", "defaultExecutor"}
)

// changeExecutor gives a new executor of a record, which the caller has locked, the secrets that it keeps from the stored one. changed says
// whether it is a change: taking away what is not there is none, and one that is given always is, since its sealed values
// cannot be compared. removed are the paths of the secrets that are no more.
func (t *tx) changeExecutor(ctx context.Context, of executorColumn, id xid.ID, c domain.Change[domain.ExecutorSpec]) (changed bool, removed []string, err error) {
	if !c.Set {
		return false, nil, nil
	}
	text, err := pgtx.QueryOne[string](ctx, t, `SELECT coalesce(`+of.column+`::text, 'null') FROM `+of.table+` WHERE id = $1`, id)
	if err != nil {
		return false, nil, fmt.Errorf("read the stored executor: %w", err)
	}
	var stored *domain.ExecutorSpec
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return false, nil, fmt.Errorf("decode the stored executor: %w", err)
	}
	removed, problems := domain.KeepSecrets(stored, c.Value, []string{of.field})
	return c.Value != nil || stored != nil, removed, domain.AsUserError(problems)
}
