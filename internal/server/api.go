package server

import (
	"context"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/lifecycle"
)

// newAPI makes the GraphQL server, and starts to watch the tokens of its sockets, and for the end of outages, until the
// front stops.
func (s *Server) newAPI() *edge.Server {
	schema := graph.NewSchema(graph.Resolver{
		Store: s.store, Reader: s.reader, Signals: s.hub, Sealer: s.box, Process: s.processInfo, OperationCost: operationCost, URL: s.front.url(), WebhookURL: s.front.webhookURL(),
		Launches: launches{s.box, s.front.url() + graphqlPath}, Leaving: s.front.leaving.Done(),
		Tester:    newTester(s.registry, s.box, s.front.url()+graphqlPath, s.store, true),
		Notifier:  s.sender,
		EndStream: edge.EndSubscription, Log: s.log,
	})
	g := s.gatekeeper
	s.front.serving.Go(func() { g.sockets.run(s.front.base, g.stillGood) })
	o := newOutage(s.db.tryToWrite, s.log)
	s.outage = o
	s.front.serving.Go(func() { o.run(s.front.base) })
	return edge.New(schema, edge.Options{Authenticate: g.authenticate, AllowOrigin: s.front.allowsOrigin, Strangers: s.front.strangers, Refused: refused, PresentError: o.presentError, Log: s.log})
}

// operationCost is what the edge measured before it let the operation in.
func operationCost(ctx context.Context) model.OperationCost {
	return model.OperationCost(edge.CostOf(ctx))
}

// processInfo is the state of this process, for the API.
func (s *Server) processInfo() model.ProcessInfo {
	p := s.counters.Process()
	return model.ProcessInfo{
		Version: s.options.Version, StartedAt: p.StartedAt, LastCronTickAt: p.LastCronTick, LastQueuePassAt: p.LastQueuePass,
		CronTicks: int(p.CronTicks), Scheduler: schedulerState(s.loops.State()), Unattributed: unattributed(p.Unattributed),
	}
}

// unattributed is counts as a JSON object.
func unattributed(counts map[string]int64) map[string]any {
	out := make(map[string]any, len(counts))
	for name, n := range counts {
		out[name] = n
	}
	return out
}

func schedulerState(state lifecycle.State) model.SchedulerState {
	switch state {
	case lifecycle.Running:
		return model.SchedulerStateRunning
	case lifecycle.Stopping:
		return model.SchedulerStateStopping
	}
	return model.SchedulerStateStopped
}
