package graph

import (
	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// changeOf tells a field of an update that is absent from one that is null.
func changeOf[T any](o graphql.Omittable[*T]) domain.Change[T] {
	return domain.Change[T]{Set: o.IsSet(), Value: o.Value()}
}

// changeOfList is changeOf for a list, which null and an empty one clear.
func changeOfList[T any](o graphql.Omittable[[]T]) domain.Change[[]T] {
	if !o.IsSet() {
		return domain.Change[[]T]{}
	}
	return domain.To(o.Value())
}

// changeOfID is changeOf for an id that the rules see as text.
func changeOfID(o graphql.Omittable[*xid.ID]) domain.Change[string] {
	c := domain.Change[string]{Set: o.IsSet()}
	if id := o.Value(); id != nil {
		c.Value = new(string(*id))
	}
	return c
}

// changeOfExecutor reads a new executor, its values sealed for the record holder.
func changeOfExecutor(o graphql.Omittable[*model.ExecutorInput], path []string, holder xid.ID, sealer Sealer) (domain.Change[domain.ExecutorSpec], error) {
	spec, err := executorSpec(o.Value(), path, holder, sealer)
	return domain.Change[domain.ExecutorSpec]{Set: o.IsSet(), Value: spec}, err
}

// checkTexts refuses an input with a text that the database cannot hold.
func checkTexts(input any) error {
	_, err := idempotency(input, nil)
	return err
}

// removedIf are the secrets that a change removed: none where it failed. The list is never nil.
func removedIf(err error, removed []string) []string {
	if err != nil {
		return []string{}
	}
	return append([]string{}, removed...)
}
