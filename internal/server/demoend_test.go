package server

import (
	"testing"
	"time"

	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/pgtest"
)

// The demo's routine, which fires each minute, stops after an hour; one that a person has touched is theirs.
func TestTheDemosRoutineStopsAfterAnHour(t *testing.T) {
	db := pgtest.New(t)
	s := NewTokens(&Database{DB: db, log: quiet()}).store
	if err := fillDemo(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	ctx := auth.WithPrincipal(t.Context(), auth.Local())
	now := func() domain.RoutineStatus {
		t.Helper()
		r, err := s.Reader().Routine.Query().Where(routine.Name(demoRoutine)).Only(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r.Status
	}
	r, err := s.Reader().Routine.Query().Where(routine.Name(demoRoutine)).Only(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := pauseOldDemo(ctx, s, r.CreatedAt.Add(20*time.Minute)); err != nil || left != 40*time.Minute || now() != domain.RoutineStatusActive {
		t.Errorf("after 20 minutes: %s left, %v, %s", left, err, now())
	}
	if left, err := pauseOldDemo(ctx, s, r.CreatedAt.Add(time.Hour)); err != nil || left != 0 || now() != domain.RoutineStatusPaused {
		t.Errorf("after an hour: %s left, %v, %s", left, err, now())
	}
	if err := s.ResumeRoutine(ctx, r.WorkspaceID, r.ID); err != nil {
		t.Fatal(err)
	}
	if left, err := pauseOldDemo(ctx, s, r.CreatedAt.Add(2*time.Hour)); err != nil || left != 0 || now() != domain.RoutineStatusActive {
		t.Errorf("resumed by a person: %s left, %v, %s", left, err, now())
	}
}
