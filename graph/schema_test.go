package graph

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func publicSchema() *ast.Schema { return NewExecutableSchema(Config{}).Schema() }

func TestThePrintedSchemaIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	const golden = "testdata/schema.graphql"
	var out bytes.Buffer
	formatter.NewFormatter(&out, formatter.WithIndent("  ")).FormatSchema(publicSchema())
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the public schema has changed: look at the difference, then run go test ./graph -update")
	}
}

// This server does not send answers in parts, so nothing may say that it does.
func TestTheSchemaPromisesNoPartsOfAnAnswer(t *testing.T) {
	t.Parallel()
	if s := publicSchema(); s.Directives["defer"] != nil || s.Directives["stream"] != nil || s.Directives["skip"] == nil {
		t.Error("the directives are those of another server")
	}
}

func TestEveryElementOfTheSchemaIsDescribed(t *testing.T) {
	t.Parallel()
	s := publicSchema()
	check := func(name, description string) {
		if len(strings.TrimSpace(description)) < 3 {
			t.Errorf("%s has no description", name)
		}
	}
	for _, d := range s.Directives {
		if d.Position != nil && d.Position.Src.BuiltIn {
			continue
		}
		check("@"+d.Name, d.Description)
		for _, a := range d.Arguments {
			check("@"+d.Name+"("+a.Name+")", a.Description)
		}
	}
	for _, d := range s.Types {
		if d.BuiltIn {
			continue
		}
		check(d.Name, d.Description)
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			check(d.Name+"."+f.Name, f.Description)
			for _, a := range f.Arguments {
				check(d.Name+"."+f.Name+"("+a.Name+")", a.Description)
			}
		}
		for _, v := range d.EnumValues {
			check(d.Name+"."+v.Name, v.Description)
		}
	}
}

func TestEveryRootFieldNamesTheScopesItNeeds(t *testing.T) {
	t.Parallel()
	s := publicSchema()
	for _, root := range []*ast.Definition{s.Query, s.Mutation, s.Subscription} {
		for _, f := range root.Fields {
			if !strings.HasPrefix(f.Name, "__") && f.Directives.ForName("requires") == nil {
				t.Errorf("%s.%s has no @requires", root.Name, f.Name)
			}
		}
	}
}

func TestEveryMutationHasOneInputAndAPayloadWithUserErrors(t *testing.T) {
	t.Parallel()
	s := publicSchema()
	for _, f := range s.Mutation.Fields {
		if len(f.Arguments) != 1 || f.Arguments[0].Name != "input" || !f.Arguments[0].Type.NonNull {
			t.Errorf("%s does not take one input", f.Name)
		}
		payload := s.Types[f.Type.Name()]
		if !f.Type.NonNull || !contains(payload.Interfaces, "MutationPayload") {
			t.Errorf("%s does not answer a non-null payload", f.Name)
		}
	}
}

func TestEveryConnectionIsAPageWithABound(t *testing.T) {
	t.Parallel()
	for _, d := range publicSchema().Types {
		for _, f := range d.Fields {
			if strings.HasSuffix(f.Type.Name(), "Connection") && (f.Directives.ForName("page") == nil || f.Arguments.ForName("first") == nil) {
				t.Errorf("%s.%s is a connection without @page and first", d.Name, f.Name)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
