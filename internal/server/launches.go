package server

import (
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/worker"
)

// launches opens for workers elsewhere what the pool opens for its own runs.
type launches struct {
	secrets worker.Opener
	apiURL  string
}

// Environment is what the agent of a launch is given, in plain text.
func (l launches) Environment(launch *store.Launch) ([]*model.EnvironmentVariable, error) {
	variables, isSecret, err := worker.Environment(l.secrets, launch, l.apiURL)
	if err != nil {
		return nil, err
	}
	out := make([]*model.EnvironmentVariable, len(variables))
	for i, v := range variables {
		out[i] = &model.EnvironmentVariable{Name: v.Name, Value: v.Value, Secret: isSecret(v.Name)}
	}
	return out, nil
}

// Mask hides sealed values in a text.
func (l launches) Mask(sets []domain.SealedSet) func(string) string {
	return worker.Mask(l.secrets, sets)
}
