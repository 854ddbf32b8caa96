package server

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

const (
	demoRoutine = "Every minute"
	// demoLasts is how long the demo's routine fires. Nobody looks at it for longer, and its runs would fill the lists.
	demoLasts = time.Hour
	// demoRetry is how long after a failure the demo's end is tried again.
	demoRetry = time.Minute
)

// startDemoEnd pauses the demo's routine when its hour is over, as long as this process runs; the next one goes on.
func (s *Server) startDemoEnd(ctx context.Context) {
	ctx, cancel := context.WithCancel(auth.WithPrincipal(context.WithoutCancel(ctx), auth.Local()))
	ended := make(chan struct{})
	s.endDemo = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		for {
			left, err := pauseOldDemo(ctx, s.store, time.Now())
			if err != nil && ctx.Err() == nil {
				s.log.Warn("the demo's routine could not be paused", "error", err)
				left = demoRetry
			}
			if left <= 0 {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(left):
			}
		}
	}()
}

// pauseOldDemo pauses the demo's routine when it is an hour old, or says in how long it will be; 0: there is nothing to
// wait for. One that a person has changed, or resumed after this, is theirs and goes on.
func pauseOldDemo(ctx context.Context, s *store.Store, now time.Time) (left time.Duration, err error) {
	r, err := s.Reader().Routine.Query().Where(routine.Name(demoRoutine), routine.Revision(1), routine.StatusEQ(domain.RoutineStatusActive),
		routine.DeletedAtIsNil(), routine.HasWorkspaceWith(workspace.Slug(demoSlug)), routine.HasAssigneeWith(agent.Name(demoAgent))).First(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find the demo's routine: %w", err)
	}
	if left := r.CreatedAt.Add(demoLasts).Sub(now); left > 0 {
		return left, nil
	}
	return 0, s.PauseRoutine(ctx, r.WorkspaceID, r.ID)
}
