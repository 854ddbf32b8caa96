package graph

import (
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
)

// adviceOn is what to think about in an executor that was saved as a member of the input; empty when it was not saved. No advice
// repeats a value.
func adviceOn(err error, in *model.ExecutorInput, member string) []*model.Advisory {
	out := []*model.Advisory{}
	if err != nil || in == nil {
		return out
	}
	for _, list := range namedValues(in) {
		for i, v := range list.values {
			if !v.Secret || v.Value == nil {
				continue
			}
			if code := domain.SecretAdvice(*v.Value); code != "" {
				path := below([]string{"input", member}, list.path...)
				out = append(out, &model.Advisory{Code: code, Message: domain.AdviceText(code, v.Name), Field: below(path, strconv.Itoa(i), "value")})
			}
		}
	}
	return out
}

// adviceOnChange is adviceOn for an executor that may be absent.
func adviceOnChange(err error, in graphql.Omittable[*model.ExecutorInput], member string) []*model.Advisory {
	return adviceOn(err, in.Value(), member)
}

// valueList is a list of names and values in an executor's input.
type valueList struct {
	path   []string
	values []*model.NameValueInput
}

// namedValues are all lists of names and values in an executor's input.
func namedValues(in *model.ExecutorInput) []valueList {
	switch {
	case in.Command != nil:
		return []valueList{{[]string{"command", "environment"}, in.Command.Environment}}
	case in.Acp != nil:
		return []valueList{{[]string{"acp", "environment"}, in.Acp.Environment}}
	case in.HTTP != nil:
		return []valueList{{[]string{"http", "headers"}, in.HTTP.Headers}}
	case in.Pull != nil && in.Pull.Command != nil:
		return []valueList{{[]string{"pull", "command", "environment"}, in.Pull.Command.Environment}}
	}
	return nil
}
