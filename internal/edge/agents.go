package edge

import (
	"context"
	"net/http"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/share"
)

// agents bounds what agents at work, by the tokens of their runs, can make a process do at once. An agent may be led to anything, and its owner and
// the other agents live from the same processors and connections of the database. Requests beyond the bounds wait.
type agents struct {
	each   *share.Each   // requests of one agent, from its token to the answer
	atWork chan struct{} // operations of all agents
}

func newAgents(l Limits) agents {
	return agents{each: share.NewEach(l.PerAgent), atWork: make(chan struct{}, l.Agents)}
}

// enter waits for a place of the agent, if ctx is one's. It is for before a body is read.
func (a agents) enter(ctx context.Context) (leave func(), refused *refusal) {
	caller, _ := auth.FromContext(ctx)
	if caller.Kind != auth.KindRun {
		return func() {}, nil
	}
	leave, err := a.each.Take(ctx, string(caller.AgentID))
	if err != nil { // the agent went away, or the server ends
		return nil, refuse(http.StatusServiceUnavailable, CodeUnavailable, "the request waited for others of this agent until the server ended or its caller left; send it again")
	}
	return leave, nil
}

// work waits until an operation of an agent may begin; false: not within its time.
func (a agents) work(ctx context.Context) (done func(), ok bool) {
	if caller, _ := auth.FromContext(ctx); caller.Kind != auth.KindRun {
		return func() {}, true
	}
	select {
	case a.atWork <- struct{}{}:
		return func() { <-a.atWork }, true
	case <-ctx.Done():
		return nil, false
	}
}
