package graph_test

import (
	"io/fs"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/console"
)

// The console's ten operations are the first that a person tries: each must be valid against the schema that is served.
func TestTheConsolesOperationsAreValid(t *testing.T) {
	t.Parallel()
	schema := graph.NewSchema(graph.Resolver{}).Schema()
	files, err := fs.Glob(console.Operations(), "*.graphql")
	if err != nil || len(files) != 10 {
		t.Fatalf("there are %d operations, %v; want 10", len(files), err)
	}
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			text, err := fs.ReadFile(console.Operations(), name)
			if err != nil {
				t.Fatal(err)
			}
			if _, errs := gqlparser.LoadQueryWithRules(schema, string(text), rules.NewDefaultRules()); len(errs) > 0 {
				t.Error(gqlerror.List(errs))
			}
		})
	}
}
