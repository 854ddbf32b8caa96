package graph_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/xid"
)

// inputs makes the arguments of operations from the schema: what is required, and one leaf that holds NUL.
type inputs struct {
	schema *ast.Schema
	ids    map[string]string // by the name of the argument or field
}

// leaf is a way to a place of an input that takes text.
type leaf []string

// leaves finds the ways to all texts that a type takes.
func (in inputs) leaves(t *ast.Type, way leaf, found *[]leaf) {
	if len(way) > 8 {
		return
	}
	if t.Elem != nil {
		in.leaves(t.Elem, way, found)
		return
	}
	switch d := in.schema.Types[t.NamedType]; {
	case d.Kind == ast.InputObject:
		for _, f := range d.Fields {
			in.leaves(f.Type, append(slices.Clone(way), f.Name), found)
		}
	case d.Kind == ast.Scalar && !slices.Contains([]string{"Int", "Float", "Boolean", "DateTime", "Duration"}, d.Name):
		*found = append(*found, way)
	}
}

// value is a value of a type with NUL at the end of the way; a way that leads elsewhere is nil.
func (in inputs) value(t *ast.Type, name string, way leaf) any {
	if t.Elem != nil {
		return []any{in.value(t.Elem, name, way)}
	}
	d := in.schema.Types[t.NamedType]
	switch {
	case d.Kind == ast.InputObject:
		out := map[string]any{}
		oneOf := d.Directives.ForName("oneOf") != nil
		for i, f := range d.Fields {
			switch {
			case way != nil && way[0] == f.Name:
				out[f.Name] = in.value(f.Type, f.Name, way[1:])
			case f.Type.NonNull && f.DefaultValue == nil, oneOf && way == nil && i == 0:
				out[f.Name] = in.value(f.Type, f.Name, nil)
			}
		}
		return out
	case way != nil:
		return in.poison(d.Name, name)
	case d.Kind == ast.Enum:
		return d.EnumValues[0].Name
	}
	return map[string]any{"ID": in.id(name), "Int": 1, "Float": 1, "Boolean": true, "DateTime": time.Now().UTC().Format(time.RFC3339), "Duration": "PT1M",
		"JSONObject": map[string]any{}, "CronExpression": "* * * * *", "TimeZone": "UTC", "Decimal": "1"}[d.Name]
}

func (in inputs) id(name string) string {
	if id := in.ids[strings.TrimSuffix(name, "s")]; id != "" {
		return id
	}
	return string(xid.New("non"))
}

func (in inputs) poison(scalar, name string) any {
	switch scalar {
	case "ID":
		return "a\x00" + in.id(name)
	case "JSONObject":
		return map[string]any{"a\x00": []any{"b\x00"}}
	case "Cursor", "StreamCursor":
		var text strings.Builder
		ent.Cursor{ID: "a\x00", Value: "b\x00"}.MarshalGQL(&text)
		return strings.Trim(text.String(), `"`)
	}
	return "a\x00b"
}

// Whatever text comes in, wherever: what no column can hold is refused, or made storable, before the database sees it. The
// operations are those of the schema, so that a new one is asked, too.
func TestNoTextOfACallerIsRefusedByTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := inputs{graph.NewSchema(graph.Resolver{}).Schema(), w.someOfEach()}
	asked := 0
	try := func(field *ast.FieldDefinition, wrap string, before map[string]any) {
		t.Helper()
		var ways []leaf
		for _, a := range field.Arguments {
			in.leaves(a.Type, leaf{a.Name}, &ways)
		}
		for _, way := range ways {
			query, variables := in.operation(field, way, wrap)
			maps.Copy(variables, before)
			_, errs := w.Try(t.Context(), query, variables)
			for _, e := range errs {
				if strings.Contains(e.Message, "pq: ") {
					t.Errorf("%s at %s: %s", field.Name, strings.Join(way, "."), e.Message)
				}
			}
			asked++
		}
	}
	for _, f := range in.schema.Query.Fields {
		try(f, "query(%s) { %s }", nil)
	}
	for _, parent := range []string{"workspace", "agent", "task", "routine", "run"} {
		for _, f := range in.schema.Types[strings.ToUpper(parent[:1])+parent[1:]].Fields {
			try(f, "query(%s, $parent: ID!) { "+parent+"(id: $parent) { %s } }", map[string]any{"parent": in.id(parent + "Id")})
		}
	}
	for _, f := range in.schema.Mutation.Fields {
		try(f, "mutation(%s) { %s }", nil)
	}
	if asked < 200 {
		t.Errorf("only %d places were tried", asked)
	}
}

// operation asks for a field with NUL at the end of the way.
func (in inputs) operation(field *ast.FieldDefinition, way leaf, wrap string) (string, map[string]any) {
	var parameters, arguments []string
	variables := map[string]any{}
	for _, a := range field.Arguments {
		if a.Name == way[0] {
			variables[a.Name] = in.value(a.Type, a.Name, way[1:])
		} else if a.Type.NonNull && a.DefaultValue == nil {
			variables[a.Name] = in.value(a.Type, a.Name, nil)
		} else {
			continue
		}
		parameters = append(parameters, fmt.Sprintf("$%s: %s", a.Name, a.Type))
		arguments = append(arguments, fmt.Sprintf("%s: $%s", a.Name, a.Name))
	}
	selection := ""
	if in.schema.Types[field.Type.Name()].IsCompositeType() {
		selection = " { __typename }"
	}
	return fmt.Sprintf(wrap, strings.Join(parameters, ", "), field.Name+"("+strings.Join(arguments, ", ")+")"+selection), variables
}

// someOfEach makes a record of each kind, and names their ids as inputs do.
func (w *world) someOfEach() map[string]string {
	w.t.Helper()
	ada := w.agent("Ada")
	r := w.routine(ada, map[string]any{"triggers": []any{scheduled("0 0 1 1 *", "UTC")}})
	task := w.newTask("Build", nil).Task.ID
	var asked struct {
		RequestApproval struct{ Approval struct{ ID string } }
	}
	if e := w.mutate("requestApproval", "approval { id }", map[string]any{"taskId": task, "requestedByAgentId": ada, "note": "May I?"}, &asked); e != "" {
		w.t.Fatal(e)
	}
	var project struct {
		CreateProject struct{ Project struct{ ID string } }
	}
	if e := w.mutate("createProject", "project { id }", map[string]any{"workspaceId": w.workspace, "name": "P"}, &project); e != "" {
		w.t.Fatal(e)
	}
	run := w.wakeRun(ada)
	return map[string]string{"workspaceId": w.workspace, "agentId": ada, "assigneeId": ada, "requestedByAgentId": ada, "routineId": r.ID, "triggerId": r.Triggers[0].ID,
		"taskId": task, "approvalId": asked.RequestApproval.Approval.ID, "projectId": project.CreateProject.Project.ID, "runId": run}
}
