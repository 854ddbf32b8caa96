package edge

import (
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// gqlparser holds a literal of a @oneOf type to one key; what variables bring, whole or within a literal, it does not look at.

// checkOneOfVariables holds every @oneOf object within the variables to exactly one key, with a value.
func checkOneOfVariables(schema *ast.Schema, oc *graphql.OperationContext) *gqlerror.Error {
	for _, v := range oc.Operation.VariableDefinitions {
		if name := oneOfBreach(schema, v.Type, oc.Variables[v.Variable]); name != "" {
			return badInput(v.Position, "%s takes exactly one of its fields, and not null; see variable $%s", name, v.Variable)
		}
	}
	return nil
}

// oneOfBreach returns the name of the first @oneOf type that the value breaks, or "". It goes as deep as the value, which the parser of JSON bounds.
func oneOfBreach(schema *ast.Schema, t *ast.Type, v any) string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if name := oneOfBreach(schema, elementOf(t), item); name != "" {
				return name
			}
		}
	case []map[string]any: // what gqlparser makes of one object where a list is due
		for _, item := range v {
			if name := oneOfBreach(schema, elementOf(t), item); name != "" {
				return name
			}
		}
	case map[string]any:
		return oneOfBreachObject(schema, schema.Types[t.Name()], v)
	}
	return ""
}

func elementOf(t *ast.Type) *ast.Type {
	if t.Elem != nil {
		return t.Elem
	}
	return t
}

func oneOfBreachObject(schema *ast.Schema, def *ast.Definition, v map[string]any) string {
	if def == nil || def.Kind != ast.InputObject {
		return ""
	}
	one := def.Directives.ForName("oneOf") != nil
	if one && len(v) != 1 {
		return def.Name
	}
	for key, item := range v {
		if one && item == nil {
			return def.Name
		}
		if f := def.Fields.ForName(key); f != nil {
			if name := oneOfBreach(schema, f.Type, item); name != "" {
				return name
			}
		}
	}
	return ""
}

// checkOneOfArguments holds @oneOf literals that contain variables.
func (w *costWalk) checkOneOfArguments(f *ast.Field) {
	for _, a := range f.Arguments {
		if name := w.oneOfBreach(a.Value); name != "" {
			w.fail(badInput(a.Position, "%s takes exactly one of its fields, and not null; see argument %s of %s", name, a.Name, f.Name))
		}
	}
}

func (w *costWalk) oneOfBreach(v *ast.Value) string {
	one := v.Kind == ast.ObjectValue && v.Definition != nil && v.Definition.Directives.ForName("oneOf") != nil
	for _, c := range v.Children {
		if one && c.Value.Kind == ast.Variable && w.variables[c.Value.Raw] == nil {
			return v.Definition.Name
		}
		if name := w.oneOfBreach(c.Value); name != "" {
			return name
		}
	}
	return ""
}
