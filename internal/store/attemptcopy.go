package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// RecordWorkingCopy notes where a live attempt works, and later what it left there; ErrFenced when the attempt is not the live one any
// more. What an earlier attempt of the run left stays until this one has ended.
func (s *Attempts) RecordWorkingCopy(ctx context.Context, a Attempt, w domain.WorkingCopy) error {
	const query = `
-- $1 id, $2 workspace, $3 run, $4 path, $5 repository, $6 branch, $7 head before, $8 head after, empty at first,
-- $9 commits, $10 files, $11 insertions, $12 deletions, $13 uncommitted, $14 diff, $15 whether it is cut
INSERT INTO run_working_copies AS c (id, workspace_id, run_id, path, repository, branch, head_before, head_after, commits,
  files_changed, insertions, deletions, uncommitted, diff, diff_cut)
VALUES ($1, $2, $3, $4, $5, $6, $7, nullif($8::text, ''), $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (run_id) DO UPDATE SET path = $4, repository = $5, branch = $6, head_before = $7`
	const left = query + `, head_after = $8, commits = $9, files_changed = $10, insertions = $11, deletions = $12, uncommitted = $13,
  diff = $14, diff_cut = $15`
	return pgtx.Wrap("note the working copy", s.withLive(ctx, a, func(t *tx, run runRow) error {
		statement := query
		if w.HeadAfter != "" {
			statement = left
		}
		_, err := pgtx.Exec(ctx, t, statement, xid.New("rwc"), run.workspaceID, run.id, w.Path, w.Repository, w.Branch, w.HeadBefore, w.HeadAfter, w.Commits,
			w.FilesChanged, w.Insertions, w.Deletions, w.Uncommitted, w.Diff, w.DiffCut)
		return err
	}))
}

// CopyOwners says which of a workspace's tasks and runs are there, and when they ended. A task has not while a run of it waits or is live.
func (s *Attempts) CopyOwners(ctx context.Context, workspace xid.ID, owners []xid.ID) (map[xid.ID]domain.CopyOwner, error) {
	query := `
SELECT k.id, CASE
  WHEN ` + guard.TaskOpen("k") + ` THEN NULL
  WHEN EXISTS (SELECT 1 FROM runs r WHERE r.task_id = k.id AND r.finished_at IS NULL) THEN NULL
  ELSE coalesce(k.deleted_at, k.archived_at, k.updated_at) END
FROM tasks k
WHERE k.id = ANY($1) AND k.workspace_id = $2
UNION ALL
SELECT id, finished_at FROM runs WHERE id = ANY($1) AND workspace_id = $2`
	known := map[xid.ID]domain.CopyOwner{}
	_, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var ended *time.Time
		err := rows.Scan(&id, &ended)
		known[id] = domain.CopyOwner{Exists: true, EndedAt: pgtx.OrZero(ended)}
		return struct{}{}, err
	}, query, pgtx.IDs(owners), workspace)
	return known, pgtx.Wrap("look for the tasks and runs of working copies", err)
}

// CopyKept puts into the inbox that a working copy is kept because of the work in it, once while the item is open.
func (s *Attempts) CopyKept(ctx context.Context, workspace xid.ID, kept domain.KeptCopy) error {
	return pgtx.Wrap("tell of a working copy", s.inTx(ctx, func(t *tx) error {
		i := item{workspaceID: workspace, kind: domain.InboxKindWorkingCopy, dedupe: copyItem(kept.Name), title: "A working copy is kept for the work in it",
			body: kept.Reason, subject: kept.Owner, causationID: xid.New("cau")}
		var title, task string
		const query = `
SELECT coalesce(k.title, ''), coalesce(k.id, '')
FROM (SELECT $1::text AS id) o
LEFT JOIN runs r ON r.id = o.id AND r.workspace_id = $2
LEFT JOIN tasks k ON k.id = coalesce(r.task_id, o.id) AND k.workspace_id = $2`
		if err := pgtx.QueryRow(ctx, t, []any{&title, &task}, query, kept.Owner, workspace); err != nil {
			return fmt.Errorf("read the task of a working copy: %w", err)
		}
		if title != "" {
			i.title, i.taskID = "A working copy is kept for the work in it: "+title, xid.ID(task)
		}
		return t.inbox(ctx, i)
	}))
}

// CopyRemoved takes out of the inbox what it says of a working copy that is gone.
func (s *Attempts) CopyRemoved(ctx context.Context, workspace xid.ID, name string) error {
	return pgtx.Wrap("tell of a working copy that is gone", s.inTx(ctx, func(t *tx) error {
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		return t.handleItem(ctx, workspace, copyItem(name), system("retention"))
	}))
}

// copyItem is the dedupe key of the inbox item about a working copy.
func copyItem(name string) string { return "working_copy:" + name }
