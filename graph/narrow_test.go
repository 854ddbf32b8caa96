package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

// Every field of every type but the roots has a line that says who sees it, and no line is left of one that is gone.
func TestEveryFieldSaysWhoSeesIt(t *testing.T) {
	t.Parallel()
	s := publicSchema()
	left := map[string]bool{}
	for name := range fieldScopes {
		left[name] = true
	}
	for _, d := range s.Types {
		if d.Kind != ast.Object || strings.HasPrefix(d.Name, "__") || d == s.Query || d == s.Mutation || d == s.Subscription {
			continue
		}
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			name := d.Name + "." + f.Name
			scopes, there := fieldScopes[name]
			if !there {
				t.Errorf("%s is not in fieldscopes.txt: until it is, nobody without READ sees it; add the line %q, or EXECUTE or RUN for READ when a worker or an agent must see it", name, name+" READ")
			}
			for _, scope := range scopes {
				if !slices.Contains([]domain.TokenScope{domain.TokenScopeRead, domain.TokenScopeExecute, domain.TokenScopeRun}, scope) || scope == domain.TokenScopeRead && len(scopes) > 1 {
					t.Errorf("%s: cannot read %v", name, scopes)
				}
			}
			delete(left, name)
		}
	}
	for name := range left {
		t.Errorf("%s of fieldscopes.txt is no field any more", name)
	}
}

// What only READ sees is beyond the border by every way that leads there: by its type, by interfaces and in unions; and so is what
// nobody has decided about.
func TestTheBorderOfNarrowTokensFailsClosed(t *testing.T) {
	t.Parallel()
	s := publicSchema()
	callers := map[string]auth.Principal{"RUN": {Kind: auth.KindRun, WorkspaceID: "wsp_1"}, "EXECUTE": {Kind: auth.KindToken, WorkspaceID: "wsp_1", Scopes: []domain.TokenScope{domain.TokenScopeExecute}}}
	for scope, caller := range callers {
		b := border{s, caller}
		seen := 0
		for _, d := range s.Types {
			if d.Kind != ast.Object && d.Kind != ast.Interface || strings.HasPrefix(d.Name, "__") || d == s.Query || d == s.Mutation || d == s.Subscription {
				continue
			}
			for _, f := range d.Fields {
				if strings.HasPrefix(f.Name, "__") {
					continue
				}
				want := true
				for _, behind := range s.GetPossibleTypes(d) {
					if behind.Kind != ast.Object {
						continue
					}
					want = want && slices.Contains(fieldScopes[behind.Name+"."+f.Name], domain.TokenScope(scope))
				}
				err := b.field(&ast.Field{Name: f.Name, ObjectDefinition: d, Definition: f, Position: &ast.Position{}})
				if (err == nil) != want {
					t.Errorf("%s, %s.%s: %v, want it shown: %t", scope, d.Name, f.Name, err, want)
				}
				if want {
					seen++
				}
			}
		}
		if seen < 100 {
			t.Errorf("%s sees only %d fields", scope, seen)
		}
		for _, name := range []string{"Task.inventedLater", "Invented.id"} {
			of, field, _ := strings.Cut(name, ".")
			d := s.Types[of]
			if d == nil {
				d = &ast.Definition{Name: of, Kind: ast.Object}
			}
			if b.shows(d, field) {
				t.Errorf("%s sees %s, of which nobody has decided", scope, name)
			}
		}
		for name, want := range map[string]bool{"Node.id": true, "Versioned.revision": false, "Trigger.id": true, "Trigger.enabled": false, "MutationPayload.userErrors": true} {
			of, field, _ := strings.Cut(name, ".")
			if b.shows(s.Types[of], field) != want {
				t.Errorf("%s sees %s: %t, want %t", scope, name, !want, want)
			}
		}
	}
}
