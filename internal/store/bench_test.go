package store

import (
	"context"
	"testing"
)

// BenchmarkCycle measures what the queue itself costs: a wake from its cause to its end, without an agent.
func BenchmarkCycle(b *testing.B) {
	w := newWorld(b)
	agent := w.agent("echo")
	ctx := context.Background()
	for b.Loop() {
		if _, err := w.Wake(ctx, Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann"}); err != nil {
			b.Fatal(err)
		}
		w.route(agent)
		c := w.claimOne()
		w.start(c)
		w.finish(c)
	}
}
