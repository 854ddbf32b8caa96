package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gql "github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// The API names each value of a closed set, so that no answer holds one that the schema does not know.
func TestTheAPINamesEachValueOfASet(t *testing.T) {
	sets, compared := constantsByType(t), 0
	for name, listed := range enumsOfTheAPI(t) {
		set, ours := sets[name]
		if !ours {
			continue // an enum that gqlgen writes in Go
		}
		compared++
		slices.Sort(set)
		slices.Sort(listed)
		if !slices.Equal(set, listed) {
			t.Errorf("enum %s has %v in schema/*.graphql, and %v in internal/domain", name, listed, set)
		}
	}
	if compared < 40 {
		t.Errorf("only %d enums of the API are sets of internal/domain", compared)
	}
}

// enumsOfTheAPI are the values of each enum of the schema.
func enumsOfTheAPI(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(root + "/schema/*.graphql")
	if err != nil {
		t.Fatal(err)
	}
	enums := map[string][]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := parser.ParseSchema(&gql.Source{Name: name, Input: string(text)})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range doc.Definitions {
			for _, v := range d.EnumValues {
				enums[d.Name] = append(enums[d.Name], v.Name)
			}
		}
	}
	return enums
}

// constantsByType are the texts of the constants of internal/domain that name their type, by that name.
func constantsByType(t *testing.T) map[string][]string {
	t.Helper()
	sets := map[string][]string{}
	for _, f := range source(t) {
		if f.folder != "internal/domain" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			of, named := spec.Type.(*ast.Ident)
			lit, isText := spec.Values[0].(*ast.BasicLit)
			if !named || !isText || !strings.HasPrefix(lit.Value, `"`) {
				return true
			}
			word, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			sets[of.Name] = append(sets[of.Name], word)
			return true
		})
	}
	return sets
}
