package graph

import (
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/internal/domain"
)

// bareWords refuses a word without quotes where the document has a value of a scalar of ours: `description: HIGH`. The library
// leaves their literals alone, and hands a word on as if it were a text. nil: there is none.
func bareWords(operation *graphql.OperationContext) *gqlerror.Error {
	if operation.Operation == nil || operation.Doc == nil {
		return nil
	}
	for _, v := range operation.Operation.VariableDefinitions {
		if err := bareWord(v.DefaultValue, v.Definition); err != nil {
			return err
		}
	}
	if err := bareWordsIn(operation.Operation.SelectionSet); err != nil {
		return err
	}
	for _, f := range operation.Doc.Fragments { // each once, however often it is spread
		if err := bareWordsIn(f.SelectionSet); err != nil {
			return err
		}
	}
	return nil
}

func bareWordsIn(selections ast.SelectionSet) *gqlerror.Error {
	for _, s := range selections {
		var err *gqlerror.Error
		switch s := s.(type) {
		case *ast.Field:
			for _, a := range s.Arguments {
				if err = bareWord(a.Value, a.Value.Definition); err != nil {
					return err
				}
			}
			err = bareWordsIn(s.SelectionSet)
		case *ast.InlineFragment:
			err = bareWordsIn(s.SelectionSet)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bareWord looks at a literal of a type, and within a scalar at all that it holds.
func bareWord(v *ast.Value, of *ast.Definition) *gqlerror.Error {
	if v == nil || of == nil {
		return nil
	}
	if v.Kind == ast.EnumValue && of.Kind == ast.Scalar {
		return &gqlerror.Error{
			Message:    fmt.Sprintf("%s is a word without quotes, which no %s is: put a text into quotes", domain.Brief(v.Raw, 60), of.Name),
			Locations:  []gqlerror.Location{{Line: v.Position.Line, Column: v.Position.Column}},
			Extensions: map[string]any{"code": errcode.ValidationFailed},
		}
	}
	for _, child := range v.Children {
		within := child.Value.Definition
		if of.Kind == ast.Scalar {
			within = of
		}
		if err := bareWord(child.Value, within); err != nil {
			return err
		}
	}
	return nil
}
