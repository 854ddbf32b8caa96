package reads

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// ActivityPosition is a place in the workspace's log: after the entry of this transaction and id. ID "" is before every
// entry of the transaction.
type ActivityPosition struct {
	Tx int64
	ID xid.ID
}

// UpTo says whether the place is not after another one.
func (p ActivityPosition) UpTo(other ActivityPosition) bool {
	return p.Tx < other.Tx || p.Tx == other.Tx && p.ID <= other.ID
}

// ActivityHead is the position that follows everything which can be read in order now. What was visible before it was
// taken may lie after it, while an older transaction is still running: never the other way round.
func (s *Reads) ActivityHead(ctx context.Context) (ActivityPosition, error) {
	horizon, err := pgtx.QueryOne[int64](ctx, s.pool, `SELECT `+guard.OldestWriter)
	if err != nil {
		return ActivityPosition{}, fmt.Errorf("read the head of the log: %w", err)
	}
	return ActivityPosition{Tx: horizon}, nil
}

// ActivityAfter reads the workspace's log after a position, in its order (tx, id), at most limit entries. It gives only
// entries below the oldest transaction that may still append one, because that one would be passed by otherwise. held
// says that further entries wait for it.
func (s *Reads) ActivityAfter(ctx context.Context, workspaceID xid.ID, after ActivityPosition, limit int) (entries []*ent.Activity, held bool, err error) {
	const query = `
WITH horizon AS MATERIALIZED (SELECT ` + guard.OldestWriter + ` AS tx)
SELECT id, tx, code, summary, actor_kind, actor, subject_id, agent_id, task_id, data, causation_id,
  occurred_at, tx < (SELECT tx FROM horizon)
FROM activities WHERE workspace_id = $1 AND (tx, id) > ($2, $3) ORDER BY tx, id LIMIT $4`
	all, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (*ent.Activity, error) {
		a := &ent.Activity{WorkspaceID: workspaceID}
		var settled bool
		err := rows.Scan(&a.ID, &a.Tx, &a.Code, &a.Summary, &a.ActorKind, &a.Actor, &a.SubjectID, &a.AgentID, &a.TaskID, &a.Data, &a.CausationID, &a.OccurredAt, &settled)
		if !settled {
			held = true
			return nil, err
		}
		return a, err
	}, query, workspaceID, after.Tx, string(after.ID), limit)
	if err != nil {
		return nil, false, fmt.Errorf("read the log: %w", err)
	}
	for _, a := range all {
		if a != nil {
			entries = append(entries, a)
		}
	}
	return entries, held, nil
}
