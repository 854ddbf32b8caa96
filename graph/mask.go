package graph

import (
	"context"
	"regexp"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/xid"
)

// maskOf hides in what is reported about a run the secrets that its agent was launched with, those of its executor as it is set now, and
// whatever looks like a token of ours.
func (r *Resolver) maskOf(ctx context.Context, runID xid.ID) (func(string) string, error) {
	sets, err := r.Store.SecretsOf(ctx, runID)
	if err != nil {
		return nil, err
	}
	values := r.Launches.Mask(sets)
	return func(text string) string { return ownTokens.ReplaceAllString(values(text), "***") }, nil
}

// agentMask hides in what an agent writes by its run's token what is hidden in its output and its result (SPEC S7.6). What
// others write stays as it is.
func (r *Resolver) agentMask(ctx context.Context) (func(string) string, error) {
	caller, _ := auth.FromContext(ctx)
	if caller.Kind != auth.KindRun {
		return func(text string) string { return text }, nil
	}
	return r.maskOf(ctx, caller.RunID)
}

// ownTokens are API, run and lease tokens.
var ownTokens = regexp.MustCompile(`\brs[erl]_[0-9A-Za-z_-]{43,86}`)
