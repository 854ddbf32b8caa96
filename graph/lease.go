package graph

import (
	"context"
	"errors"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// reported is an attempt that the caller proved to be its own.
type reported struct {
	store.Attempt
	run *ent.Run
}

// attemptOf finds the live attempt that a lease stands for. A run token stands for its own attempt alone.
func (r *Resolver) attemptOf(ctx context.Context, in *model.RunLeaseInput) (reported, error) {
	run, err := visible(r.Reader.Run.Get(ctx, in.RunID))
	if err != nil {
		return reported{}, fmt.Errorf("look for run: %w", err)
	}
	if run == nil {
		return reported{}, domain.RefuseField([]string{"lease", "runId"}, domain.UserErrorCodeNotFound, "there is no such run in this workspace")
	}
	caller, _ := auth.FromContext(ctx)
	token, err := auth.ParseToken(in.LeaseToken)
	if err != nil || caller.Kind == auth.KindRun && (caller.RunID != run.ID || caller.Attempt != in.Attempt) {
		return reported{}, staleLease()
	}
	a, err := r.Store.LeasedAttempt(ctx, run.ID, in.Attempt, token.Digest().String())
	return reported{a, run}, fenced(err)
}

func staleLease() error {
	return domain.RefuseField([]string{"lease"}, domain.UserErrorCodeStaleLease,
		"this lease does not stand any more: the attempt has ended, or another one owns the run; end the agent and acquire another run")
}

// fenced tells a reporter that its attempt is over.
func fenced(err error) error {
	if errors.Is(err, store.ErrFenced) {
		return staleLease()
	}
	return err
}
