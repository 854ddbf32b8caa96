package graph

import (
	"context"
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
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

// shownAdvice is advice as the API shows it. It names a member of the input when the input has it.
func shownAdvice(list []domain.Advice, members ...string) []*model.Advisory {
	out := []*model.Advisory{}
	for _, a := range list {
		shown := &model.Advisory{Code: a.Code, Message: a.Message}
		if a.Member != "" && slices.Contains(members, a.Member) {
			shown.Field = []string{"input", a.Member}
		}
		out = append(out, shown)
	}
	return out
}

// routineAdvice is what to think about in a routine.
func routineAdvice(ctx context.Context, id xid.ID) ([]domain.Advice, error) {
	facts, err := load(ctx).advice.Load(ctx, id)
	if err != nil || facts == nil {
		return nil, err
	}
	return domain.AdviseRoutine(*facts), nil
}

// routineWarnings is what to think about in a routine that was saved, or whose trigger was.
func (r *Resolver) routineWarnings(ctx context.Context, id xid.ID, members ...string) ([]*model.Advisory, error) {
	if !asksForWarnings(ctx) {
		return []*model.Advisory{}, nil
	}
	facts, err := r.Store.RoutineAdvice(ctx, []xid.ID{id})
	if err != nil || facts[id] == nil {
		return []*model.Advisory{}, err
	}
	return shownAdvice(domain.AdviseRoutine(*facts[id]), members...), nil
}

// agentWarnings is what to think about in an agent that was saved.
func (r *Resolver) agentWarnings(ctx context.Context, id xid.ID, members ...string) ([]*model.Advisory, error) {
	if !asksForWarnings(ctx) {
		return nil, nil
	}
	facts, err := r.Store.AgentAdvice(ctx, id)
	if err != nil {
		return nil, err
	}
	return shownAdvice(domain.AdviseAgent(facts), members...), nil
}

// asksForWarnings says whether the mutation's answer shows warnings: what they follow from is read for them alone.
func asksForWarnings(ctx context.Context) bool {
	return slices.ContainsFunc(shownOf(ctx), func(f graphql.CollectedField) bool { return f.Name == "warnings" })
}

// named is the name of a member when the input has it.
func named(member string, has bool) string {
	if has {
		return member
	}
	return ""
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
