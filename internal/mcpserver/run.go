package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// run is the run whose token the server has. It is asked for once, at the first call.
type run struct {
	api *API

	mu  sync.Mutex
	who *identity
}

// identity is who acts, and about which task.
type identity struct {
	WorkspaceID string
	Attempt     int
	Run         struct{ ID string }
	Agent       struct{ ID, Name string }
	Task        *struct{ ID, Title string }
}

func (r *run) identity(ctx context.Context) (identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.who != nil {
		return *r.who, nil
	}
	var out struct{ OwnRun identity }
	const query = `query OwnRun { ownRun { workspaceId attempt run { id } agent { id name } task { id title } } }`
	if err := r.api.call(ctx, query, nil, &out); err != nil {
		return identity{}, explain(err)
	}
	r.who = &out.OwnRun
	return *r.who, nil
}

// task is the run's own task. given is the task that a call names, or "": another one is refused.
func (r *run) task(ctx context.Context, given string) (who identity, task string, err error) {
	who, err = r.identity(ctx)
	switch {
	case err != nil:
		return who, "", err
	case who.Task == nil:
		return who, "", errors.New("this run has no task, so that there is none to act on. Nothing was done. " +
			"Say what you found in your last answer; decide_approval, self_wake and report_progress work without a task")
	case given != "" && given != who.Task.ID:
		return who, "", fmt.Errorf("%s is not your task. You act on your own task alone, which is %s (%s); nothing was done. "+
			"Leave task_id out to act on yours. To have something done about another task, make a subtask of yours (create_subtask), or say it in a comment on yours", given, who.Task.ID, who.Task.Title)
	}
	return who, who.Task.ID, nil
}

// change makes a mutation, whose payload goes into out with its userErrors.
func (r *run) change(ctx context.Context, mutation string, input map[string]any, out any) error {
	var data struct {
		Payload json.RawMessage
	}
	if err := r.api.call(ctx, mutation, map[string]any{"input": input}, &data); err != nil {
		return explain(err)
	}
	var problems struct{ UserErrors userErrors }
	if err := json.Unmarshal(data.Payload, &problems); err != nil {
		return fmt.Errorf("read the API's answer: %w", err)
	}
	if err := problems.UserErrors.refused(); err != nil {
		return explain(err)
	}
	if err := json.Unmarshal(data.Payload, out); err != nil {
		return fmt.Errorf("read the API's answer: %w", err)
	}
	return nil
}

// once is the idempotency key of an input: a client that repeats a call in the same run repeats nothing.
func (who identity) once(input map[string]any) string {
	text, err := json.Marshal(input)
	if err != nil { // made of texts, truths and lists of them
		panic(err)
	}
	sum := sha256.Sum256(text)
	return "mcp:" + who.Run.ID + ":" + hex.EncodeToString(sum[:])
}
