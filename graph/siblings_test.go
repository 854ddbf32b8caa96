package graph

import (
	"context"
	"slices"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// respond reads rows for a response to an operation of a kind, and gives the loaders of the response.
func respond(t *testing.T, kind ast.Operation, rows ent.Value) *loaders {
	t.Helper()
	ctx := graphql.WithOperationContext(t.Context(), &graphql.OperationContext{Operation: &ast.OperationDefinition{Operation: kind}})
	ctx = (&Resolver{Store: &store.Store{}, Reader: ent.NewClient()}).withLoaders(ctx)
	read := ent.QuerierFunc(func(context.Context, ent.Query) (ent.Value, error) { return rows, nil })
	if _, err := expectSiblings(read).Query(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return load(ctx)
}

func TestWhatBelongsToThePagesRowsIsReadAtOnce(t *testing.T) {
	t.Parallel()
	queued := func(id, agent xid.ID) *ent.Run {
		return &ent.Run{ID: id, AgentID: agent, Status: domain.RunStatusQueued}
	}
	page := []*ent.Run{queued("run_a", "agt_a"), queued("run_b", "agt_b"), {ID: "run_c", AgentID: "agt_a", Status: domain.RunStatusFinished}}
	l := respond(t, ast.Query, page)
	for name, c := range map[string]struct{ got, want []xid.ID }{
		"why they wait": {l.waiting.siblingsOf("run_a").ids, []xid.ID{"run_a", "run_b"}},
		"their texts":   {l.contents.siblingsOf("run_b").ids, []xid.ID{"run_a", "run_b", "run_c"}},
		"their agents":  {l.agents.siblingsOf("agt_b").ids, []xid.ID{"agt_a", "agt_b"}},
		"another agent": {l.agents.siblingsOf("agt_x").ids, []xid.ID{"agt_x"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v is read at once, want %v", name, c.got, c.want)
		}
	}
	text := func(s string) *string { return &s }
	l = respond(t, ast.Query, []*ent.Activity{{SubjectID: text("run_a")}, {SubjectID: text("tsk_a")}, {}, {SubjectID: text("run_b"), ActorKind: domain.AuthorKindAgent, Actor: "agt_a"}})
	if got := l.runs.siblingsOf("run_b").ids; !slices.Equal(got, []xid.ID{"run_a", "run_b"}) {
		t.Errorf("of a feed's subjects %v are read at once", got)
	}
}

// A change reads its rows before and after it: what belongs to them is read when it is asked for, and not earlier.
func TestAMutationReadsNothingAhead(t *testing.T) {
	t.Parallel()
	l := respond(t, ast.Mutation, []*ent.Run{{ID: "run_a", AgentID: "agt_a"}, {ID: "run_b", AgentID: "agt_b"}})
	if got := l.agents.siblingsOf("agt_a").ids; !slices.Equal(got, []xid.ID{"agt_a"}) {
		t.Errorf("%v are read at once", got)
	}
}
