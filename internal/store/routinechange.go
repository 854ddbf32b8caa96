package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// UpdateRoutine is a change of a routine. ExpectedRevision nil changes whatever is there.
type UpdateRoutine struct {
	WorkspaceID, RoutineID xid.ID
	ExpectedRevision       *int
	Patch                  domain.RoutinePatch
}

// UpdateRoutine changes a routine and returns the fields whose value was clamped. Fires that were made keep what they were
// made with. A change that changes nothing leaves the revision alone; last_run_at is written by fires only
// (AC-OFFICE-LOOP-LIVENESS-001.8).
func (s *Routines) UpdateRoutine(ctx context.Context, in UpdateRoutine) (clamped []string, err error) {
	err = s.withRoutine(ctx, in.WorkspaceID, in.RoutineID, func(t *tx, _ lane, r routineRow) error {
		if err := r.refuseArchived(); err != nil {
			return err
		}
		row, err := t.Routine.Query().Where(routine.ID(in.RoutineID)).Only(ctx)
		if err != nil {
			return fmt.Errorf("read the routine: %w", err)
		}
		if err := checkRevision(in.ExpectedRevision, row.Revision, "routine"); err != nil {
			return err
		}
		hasSchedule, err := pgtx.QueryOne[bool](ctx, t, `
SELECT EXISTS (
  SELECT 1
  FROM routine_triggers
  WHERE routine_id = $1 AND kind = 'SCHEDULE' AND deleted_at IS NULL)`, in.RoutineID)
		if err != nil {
			return fmt.Errorf("look for schedules: %w", err)
		}
		change, problems := routineSettings(row).Apply(in.Patch, hasSchedule)
		if err := domain.AsUserError(problems); err != nil {
			return err
		}
		clamped = change.Clamped
		return t.updateRoutine(ctx, r, change)
	})
	return clamped, pgtx.Wrap("update routine", err)
}

// routineSettings are the settings of a stored routine.
func routineSettings(r *ent.Routine) domain.RoutineSettings {
	return domain.RoutineSettings{Name: r.Name, Description: r.Description, AssigneeID: r.AssigneeID, Policy: r.ConcurrencyPolicy,
		CatchUp: r.CatchUpPolicy, CatchUpMax: r.CatchUpMax, Template: r.TaskTemplate, Variables: r.Variables}
}

func (t *tx) updateRoutine(ctx context.Context, r routineRow, change domain.RoutineChange) error {
	if len(change.Changed) == 0 {
		return nil
	}
	next := change.Next
	if slices.Contains(change.Changed, "assigneeId") {
		if err := t.checkAgent(ctx, r.workspaceID, next.AssigneeID, []string{"assigneeId"}); err != nil {
			return err
		}
	}
	if slices.Contains(change.Changed, "taskTemplate") {
		if err := t.checkTemplate(ctx, r.workspaceID, next.Template); err != nil {
			return err
		}
	}
	u := t.Routine.UpdateOneID(r.id).AddRevision(1).SetUpdatedAt(t.Now).SetName(next.Name).SetDescription(next.Description).
		SetAssigneeID(next.AssigneeID).SetConcurrencyPolicy(next.Policy).SetCatchUpPolicy(next.CatchUp).SetCatchUpMax(next.CatchUpMax).
		SetVariables(next.Variables)
	if next.Template == nil {
		u.ClearTaskTemplate()
	} else {
		u.SetTaskTemplate(next.Template)
	}
	err := u.Exec(ctx)
	if pgtx.UniqueViolation(err) != "" {
		return nameTaken("routine", next.Name)
	}
	if err != nil {
		return fmt.Errorf("update the routine's row: %w", err)
	}
	return t.noteRoutine(ctx, r, "The routine was changed.", map[string]any{"changed": change.Changed})
}

// PauseRoutine holds a routine: its slots pass without a fire and are not caught up (SPEC S4.4). What it sent goes on.
func (s *Routines) PauseRoutine(ctx context.Context, workspaceID, routineID xid.ID) error {
	return pgtx.Wrap("pause routine", s.setRoutineStatus(ctx, workspaceID, routineID, domain.RoutineStatusPaused, "The routine was paused."))
}

// ResumeRoutine lets a routine go on: its schedules go on from now (SPEC S4.3, C210).
func (s *Routines) ResumeRoutine(ctx context.Context, workspaceID, routineID xid.ID) error {
	return pgtx.Wrap("resume routine", s.setRoutineStatus(ctx, workspaceID, routineID, domain.RoutineStatusActive, "The routine was resumed."))
}

// ArchiveRoutine retires a routine for good and switches its triggers off.
func (s *Routines) ArchiveRoutine(ctx context.Context, workspaceID, routineID xid.ID) error {
	return pgtx.Wrap("archive routine", s.setRoutineStatus(ctx, workspaceID, routineID, domain.RoutineStatusArchived, "The routine was archived."))
}

func (s *Routines) setRoutineStatus(ctx context.Context, workspaceID, routineID xid.ID, next domain.RoutineStatus, summary string) error {
	return s.withRoutine(ctx, workspaceID, routineID, func(t *tx, _ lane, r routineRow) error {
		changes, problems := r.status.To(next)
		if err := domain.AsUserError(problems); err != nil || !changes {
			return err
		}
		const write = `UPDATE routines SET status = $2, revision = revision + 1, updated_at = $3 WHERE id = $1`
		if err := pgtx.ExecOne(ctx, t, write, r.id, next, t.Now); err != nil {
			return fmt.Errorf("write the routine's status: %w", err)
		}
		switch next {
		case domain.RoutineStatusActive:
			if err := t.rearm(ctx, r); err != nil {
				return err
			}
		case domain.RoutineStatusArchived:
			const off = `
UPDATE routine_triggers
SET enabled = false, next_run_at = NULL, revision = revision + 1, updated_at = $2
WHERE routine_id = $1 AND enabled`
			if _, err := pgtx.Exec(ctx, t, off, r.id, t.Now); err != nil {
				return fmt.Errorf("switch the routine's triggers off: %w", err)
			}
		}
		return t.noteRoutine(ctx, r, summary, map[string]any{"status": next})
	})
}

// DeleteRoutine removes a routine and its triggers for good; its fires and runs stay readable. What it sent and did not
// start ends CANCELLED (ROUTINE_DELETED), in every agent's queue; a live run, and a task that it made, go on.
func (s *Routines) DeleteRoutine(ctx context.Context, workspaceID, routineID xid.ID) error {
	return pgtx.Wrap("delete routine", s.atRoutine(ctx, workspaceID, routineID, func(t *tx, agentID xid.ID) error {
		lanes, err := t.lockLanes(ctx, `
SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id IN (SELECT $3::text
  UNION SELECT agent_id FROM wakeup_requests WHERE routine_id = $1 AND `+guard.Unrouted+`
  UNION SELECT agent_id FROM runs WHERE workspace_id = $2 AND routine_id = $1 AND status = 'QUEUED')
  ORDER BY agent_id
  FOR NO KEY UPDATE`,
			routineID, workspaceID, agentID)
		if err != nil {
			return fmt.Errorf("lock the lanes of the routine's agents: %w", err)
		}
		r, err := t.lockRoutineOf(ctx, routineID, agentID)
		if err != nil {
			return err
		}
		return t.deleteRoutine(ctx, lanes, r)
	}))
}

func (t *tx) deleteRoutine(ctx context.Context, lanes []lane, r routineRow) error {
	const remove = `UPDATE routines SET deleted_at = $2, revision = revision + 1, updated_at = $2 WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, remove, r.id, t.Now); err != nil {
		return fmt.Errorf("remove the routine: %w", err)
	}
	if err := t.removeTriggers(ctx, `routine_id = $2`, r.id); err != nil {
		return err
	}
	cancelled := []xid.ID{}
	for _, l := range lanes {
		runs, err := t.cancelQueuedOf(ctx, l, queuedOf{routineID: r.id, reason: domain.EndReasonRoutineDeleted, why: "its routine was deleted", by: callerOr(ctx, "agents")})
		if err != nil {
			return err
		}
		for _, run := range runs {
			cancelled = append(cancelled, run.id)
		}
		if err := t.fixHead(ctx, l); err != nil {
			return err
		}
	}
	return t.noteRoutine(ctx, r, "The routine was deleted.", map[string]any{"deleted": true, "runsCancelled": len(cancelled), "cancelledRunIds": firstListed(cancelled)})
}

// refuseArchived refuses a change of a routine that is archived.
func (r routineRow) refuseArchived() error {
	_, problems := r.status.To(domain.RoutineStatusActive)
	return domain.AsUserError(problems)
}

// atRoutine runs f in a transaction with the agent whose lane is to be locked first, and looks again when the routine was
// given to another one meanwhile.
func (s *Routines) atRoutine(ctx context.Context, workspaceID, routineID xid.ID, f func(t *tx, agentID xid.ID) error) error {
	const find = `SELECT assignee_id FROM routines WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`
	for range pgtx.MaxTries {
		agentID, err := pgtx.QueryOne[xid.ID](ctx, s.db, find, routineID, workspaceID)
		if err != nil {
			return pgtx.NotFound(err, []string{"routineId"}, "routine", routineID)
		}
		if err := s.inTx(ctx, func(t *tx) error { return f(t, agentID) }); !errors.Is(err, errMoved) {
			return err
		}
	}
	return errMoved
}

// withRoutine runs f with the lane of the routine's agent and the routine locked.
func (s *Routines) withRoutine(ctx context.Context, workspaceID, routineID xid.ID, f func(*tx, lane, routineRow) error) error {
	return s.atRoutine(ctx, workspaceID, routineID, func(t *tx, agentID xid.ID) error {
		l, r, err := t.lockBoth(ctx, routineID, agentID)
		if err != nil {
			return err
		}
		return f(t, l, r)
	})
}

// withRoutineOnce is withRoutine for a mutation with an idempotency key, which is taken first.
func (s *Routines) withRoutineOnce(ctx context.Context, workspaceID, routineID xid.ID, mutation string, k Idempotency, made *Made, f func(*tx, lane, routineRow) (Made, error)) error {
	return s.atRoutine(ctx, workspaceID, routineID, func(t *tx, agentID xid.ID) (err error) {
		*made, err = t.idempotent(ctx, workspaceID, mutation, k, func() (Made, error) {
			l, r, err := t.lockBoth(ctx, routineID, agentID)
			if err != nil {
				return Made{}, err
			}
			return f(t, l, r)
		})
		return err
	})
}

// lockBoth locks an agent's lane and the routine that is its.
func (t *tx) lockBoth(ctx context.Context, routineID, agentID xid.ID) (lane, routineRow, error) {
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return lane{}, routineRow{}, err
	}
	r, err := t.lockRoutineOf(ctx, routineID, agentID)
	return l, r, err
}

// lockRoutineOf locks a routine whose agent's lane is held.
func (t *tx) lockRoutineOf(ctx context.Context, routineID, agentID xid.ID) (routineRow, error) {
	r, err := t.lockRoutine(ctx, routineID)
	switch {
	case pgtx.NoRows(err):
		return r, pgtx.NotFound(err, []string{"routineId"}, "routine", routineID)
	case err == nil && r.assigneeID != agentID:
		return r, errMoved
	}
	return r, err
}

// noteRoutine says in the feed what became of a routine.
func (t *tx) noteRoutine(ctx context.Context, r routineRow, summary string, data map[string]any) error {
	data["routineId"] = r.id
	return t.note(ctx, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeRoutineChanged, by: callerOr(ctx, "routines"), summary: summary,
		subjectID: r.id, agentID: r.assigneeID, data: data})
}
