package store

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// UpdateSettings is a change of a workspace's settings. Values of DefaultExecutor are sealed for WorkspaceID.
type UpdateSettings struct {
	WorkspaceID      xid.ID
	ExpectedRevision *int
	Patch            domain.SettingsPatch
	DefaultExecutor  domain.Change[domain.ExecutorSpec]
	OfficeWorkflowID domain.Change[string] // the loop acts on its tasks (SPEC S5.1); cleared: on those of projects alone
}

// SettingsUpdated is what a change of settings comes to: the fields whose value was clamped, the paths of the secrets that the
// default executor has no more, and the runs that a new one makes due.
type SettingsUpdated struct {
	Clamped, Removed []string
	Moved            Moved
}

// UpdateSettings changes a workspace's settings. The ceiling goes to the
// workspace's lane: below the runs that are live, it only keeps new ones from being claimed. The zone is that of schedules
// saved from now on. A change that changes nothing leaves the revision alone.
func (s *Records) UpdateSettings(ctx context.Context, in UpdateSettings) (done SettingsUpdated, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		row, err := t.lockWorkspace(ctx, in.WorkspaceID)
		if err != nil {
			return err
		}
		if err := checkRevision(in.ExpectedRevision, row.Revision, "workspace"); err != nil {
			return err
		}
		change, problems := settingsOfWorkspace(row).Apply(in.Patch, knownZone)
		if err := domain.AsUserError(problems); err != nil {
			return err
		}
		done.Clamped = change.Clamped
		var executor bool
		if executor, done.Removed, err = t.changeExecutor(ctx, executorOfWorkspace, in.WorkspaceID, in.DefaultExecutor); err != nil {
			return err
		}
		if executor {
			change.Changed = append(change.Changed, "defaultExecutor")
		}
		if id := xid.ID(in.OfficeWorkflowID.Or(string(row.OfficeWorkflowID), "")); id != row.OfficeWorkflowID {
			change.Changed = append(change.Changed, "officeWorkflowId")
			if err := t.setOfficeWorkflow(ctx, in.WorkspaceID, id); err != nil {
				return err
			}
		}
		if len(change.Changed) == 0 {
			return nil
		}
		return t.updateSettings(ctx, in, change)
	})
	if err == nil && in.DefaultExecutor.Set {
		done.Moved = s.followExecutor(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeSettingsChanged, by: callerOr(ctx, "settings"), subjectID: in.WorkspaceID,
			data: map[string]any{"changed": []string{"defaultExecutor"}}})
	}
	return done, pgtx.Wrap("update settings", err)
}

// lockWorkspace locks a workspace's row against other changes of its settings. References to it do not wait.
func (t *tx) lockWorkspace(ctx context.Context, id xid.ID) (*ent.Workspace, error) {
	if _, err := pgtx.QueryOne[bool](ctx, t, `SELECT true FROM workspaces WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
		return nil, pgtx.NotFound(err, []string{"workspaceId"}, "workspace", id)
	}
	if err := t.ReadClock(ctx); err != nil {
		return nil, err
	}
	row, err := t.Workspace.Query().Where(workspace.ID(id)).Only(ctx)
	return row, pgtx.Wrap("read the workspace", err)
}

// writeCeiling writes a workspace's ceiling. Runs are aged from the instant at which there was room for them: only a ceiling
// that was reached, and is not any more, makes room.
const writeCeiling = `
UPDATE workspace_lanes
SET max_running = $2, released_at = CASE
  WHEN running >= max_running AND (running < $2) IS NOT FALSE THEN $3
  ELSE released_at END
WHERE workspace_id = $1`

func (t *tx) updateSettings(ctx context.Context, in UpdateSettings, change domain.SettingsChange) error {
	s := change.Next
	u := t.Workspace.UpdateOneID(in.WorkspaceID).AddRevision(1).SetUpdatedAt(t.Now).ClearMaxConcurrentRuns().SetNillableMaxConcurrentRuns(s.MaxRuns).
		SetRecoveryLookbackHours(s.LookbackHours).SetCoalescingWindowMs(s.Window.Milliseconds()).SetDefaultTimeZone(s.TimeZone).SetMaxHops(s.MaxHops)
	switch {
	case in.DefaultExecutor.Set && in.DefaultExecutor.Value == nil:
		u.ClearDefaultExecutor()
	case in.DefaultExecutor.Set:
		u.SetDefaultExecutor(in.DefaultExecutor.Value)
	}
	if err := u.Exec(ctx); err != nil {
		return fmt.Errorf("update the workspace's row: %w", err)
	}
	if err := pgtx.ExecOne(ctx, t, writeCeiling, in.WorkspaceID, s.MaxRuns, t.Now); err != nil {
		return fmt.Errorf("write the workspace's ceiling: %w", err)
	}
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: in.WorkspaceID})
	return t.note(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeSettingsChanged, by: callerOr(ctx, "settings"),
		summary: "The workspace's settings were changed.", subjectID: in.WorkspaceID, data: map[string]any{"changed": change.Changed}})
}

// setOfficeWorkflow names the workflow whose tasks the loop may act on from now on.
func (t *tx) setOfficeWorkflow(ctx context.Context, workspaceID, workflowID xid.ID) error {
	if workflowID != "" {
		const find = `SELECT true FROM workflows WHERE id = $1 AND workspace_id = $2 AND kind <> 'ROUTINE'`
		if _, err := pgtx.QueryOne[bool](ctx, t, find, workflowID, workspaceID); err != nil {
			return pgtx.NotFound(err, []string{"officeWorkflowId"}, "workflow of people's tasks", workflowID)
		}
	}
	if err := pgtx.ExecOne(ctx, t, `UPDATE workspaces SET office_workflow_id = $2 WHERE id = $1`, workspaceID, workflowID); err != nil {
		return fmt.Errorf("write the office workflow: %w", err)
	}
	return nil
}

func settingsOfWorkspace(w *ent.Workspace) domain.Settings {
	return domain.Settings{MaxRuns: w.MaxConcurrentRuns, LookbackHours: w.RecoveryLookbackHours,
		Window: time.Duration(w.CoalescingWindowMs) * time.Millisecond, TimeZone: w.DefaultTimeZone, MaxHops: w.MaxHops}
}

// knownZone says whether schedules can use a zone: the same answer as when one is saved.
func knownZone(name string) bool {
	_, err := cron.Parse("* * * * *", name)
	return err == nil
}
