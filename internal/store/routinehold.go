package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// RoutineIn names a routine, and the workspace that it is expected in.
type RoutineIn struct{ WorkspaceID, RoutineID xid.ID }

// PauseRoutines holds routines, all or none, and returns those that were not paused before.
func (s *Routines) PauseRoutines(ctx context.Context, routines []RoutineIn) ([]xid.ID, error) {
	changed, err := s.setRoutineStatuses(ctx, routines, domain.RoutineStatusPaused, "The routine was paused.")
	return changed, pgtx.Wrap("pause routines", err)
}

// ResumeRoutines lets routines go on, all or none, and returns those that were paused. Their schedules go on from now.
func (s *Routines) ResumeRoutines(ctx context.Context, routines []RoutineIn) ([]xid.ID, error) {
	changed, err := s.setRoutineStatuses(ctx, routines, domain.RoutineStatusActive, "The routine was resumed.")
	return changed, pgtx.Wrap("resume routines", err)
}

func (s *Routines) setRoutineStatuses(ctx context.Context, routines []RoutineIn, next domain.RoutineStatus, summary string) (changed []xid.ID, err error) {
	for range pgtx.MaxTries {
		err = s.inTx(ctx, func(t *tx) (err error) {
			changed, err = t.setRoutineStatuses(ctx, routines, next, summary)
			return err
		})
		if !errors.Is(err, errMoved) {
			return changed, err
		}
	}
	return nil, errMoved
}

// setRoutineStatuses locks the lanes of the routines' agents, then the routines, and changes those that are to change.
func (t *tx) setRoutineStatuses(ctx context.Context, routines []RoutineIn, next domain.RoutineStatus, summary string) (changed []xid.ID, err error) {
	rows, err := t.lockRoutinesToSet(ctx, routines)
	if err != nil {
		return nil, err
	}
	var problems []domain.FieldError
	var entries []entry
	for i, in := range routines {
		r := rows[in.RoutineID]
		changes, refused := r.status.To(next)
		for _, p := range refused {
			p.Field = []string{"routineIds", fmt.Sprint(i)}
			problems = append(problems, p)
		}
		if changes {
			changed = append(changed, r.id)
			entries = append(entries, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeRoutineChanged, by: callerOr(ctx, "routines"), summary: summary,
				subjectID: r.id, agentID: r.assigneeID, data: map[string]any{"routineId": r.id, "status": next}})
		}
	}
	if err := domain.AsUserError(problems); err != nil || len(changed) == 0 {
		return nil, err
	}
	encoded, err := t.encodeEntries(entries)
	if err != nil {
		return nil, err
	}
	query := `
-- $1 routines, $2 status, $3 now, $4 entries as JSON
WITH told AS (` + entriesInto("$4", "$3") + ` RETURNING 1)
UPDATE routines
SET status = $2, revision = revision + 1, updated_at = $3
WHERE id = ANY($1) AND (SELECT count(*) FROM told) >= 0`
	if _, err := pgtx.Exec(ctx, t, query, pgtx.IDs(changed), next, t.Now, encoded); err != nil {
		return nil, fmt.Errorf("write the routines' status: %w", err)
	}
	if next == domain.RoutineStatusActive {
		err = t.rearmAll(ctx, changed)
	}
	return changed, err
}

// lockRoutinesToSet locks routines after the lanes of their agents, and refuses the call when one is not there.
func (t *tx) lockRoutinesToSet(ctx context.Context, routines []RoutineIn) (map[xid.ID]routineRow, error) {
	ids := make([]xid.ID, len(routines))
	for i, r := range routines {
		ids[i] = r.RoutineID
	}
	agents, err := pgtx.Collect(ctx, t, pgtx.ScanOne[string], `SELECT DISTINCT assignee_id FROM routines WHERE id = ANY($1) AND deleted_at IS NULL`, pgtx.IDs(ids))
	if err != nil {
		return nil, fmt.Errorf("read the routines' agents: %w", err)
	}
	if _, err := t.lockLanesIn(ctx, agents); err != nil {
		return nil, err
	}
	const query = `
SELECT ` + routineColumns + `
FROM routines r
JOIN agents a ON a.id = r.assignee_id
WHERE r.id = ANY($1) AND r.deleted_at IS NULL
ORDER BY r.id
FOR NO KEY UPDATE OF r`
	rows := map[xid.ID]routineRow{}
	_, err = pgtx.Collect(ctx, t, func(found *sql.Rows) (routineRow, error) {
		r, err := scanRoutine(found)
		rows[r.id] = r
		return r, err
	}, query, pgtx.IDs(ids))
	if err != nil {
		return nil, fmt.Errorf("lock the routines: %w", err)
	}
	var problems []domain.FieldError
	for i, in := range routines {
		switch r := rows[in.RoutineID]; {
		case r.workspaceID != in.WorkspaceID:
			problems = append(problems, domain.FieldError{Field: []string{"routineIds", fmt.Sprint(i)}, Code: domain.UserErrorCodeNotFound,
				Message: fmt.Sprintf("there is no routine %s", in.RoutineID)})
		case !slices.Contains(agents, string(r.assigneeID)):
			return nil, errMoved
		}
	}
	return rows, domain.AsUserError(problems)
}
