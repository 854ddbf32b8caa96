// Package hello is a GraphQL server as gqlgen's own guide makes it, without a database, limits or tokens: the baseline
// of the API's benchmarks. Its documents have the shape of those that are measured.
package hello

//go:generate go run github.com/99designs/gqlgen generate

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"
)

// Handler answers POST.
func Handler() http.Handler {
	s := handler.New(NewExecutableSchema(Config{Resolvers: resolver{}}))
	s.AddTransport(transport.POST{})
	s.SetQueryCache(lru.New[*ast.QueryDocument](1000))
	return s
}

type resolver struct{}

// Query is the root of what can be asked.
func (resolver) Query() QueryResolver { return resolver{} }

// Run gives a run that looks like a real one.
func (resolver) Run(_ context.Context, id string) (*Run, error) { return run(id), nil }

// Workspace gives a workspace with as many runs as are asked for.
func (resolver) Workspace(context.Context, string) (*Workspace, error) {
	const most = 50
	w := &Workspace{Runs: &RunConnection{}}
	for i := range most {
		w.Runs.Edges = append(w.Runs.Edges, &RunEdge{Node: run(fmt.Sprintf("run_01k00000000000000000000%03d", i))})
	}
	return w, nil
}

func run(id string) *Run {
	now := time.Now()
	summary := "done"
	return &Run{ID: id, Status: "FINISHED", Source: "USER", CoalescedCount: 1, RequestedAt: now, FinishedAt: &now, Summary: &summary,
		Agent: &Agent{ID: "agt_01k00000000000000000000000", Name: "worker"}}
}
