package server

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/worker"
	"rouse.dev/rouse/internal/xid"
)

// testsAtOnce bounds how many executors are tested at the same time: each may start an agent beside the queue.
const testsAtOnce = 4

// tester looks whether executors work, outside the queue.
type tester struct {
	registry executor.Registry
	secrets  worker.Opener
	apiURL   string
	slots    chan struct{}
}

func newTester(registry executor.Registry, secrets worker.Opener, apiURL string) *tester {
	return &tester{registry, secrets, apiURL, make(chan struct{}, testsAtOnce)}
}

// TestExecutor looks whether the executor spec of an agent works; holder is the record that it is stored on. ask gives it a
// trivial prompt, too.
func (t *tester) TestExecutor(ctx context.Context, workspaceID, agentID xid.ID, spec *domain.ExecutorSpec, holder xid.ID, ask bool) []domain.Check {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	default:
		return []domain.Check{{Name: "test", Detail: "other executors are being tested", Hint: "try again in half a minute"}}
	}
	launch := &store.Launch{Attempt: store.Attempt{RunID: xid.New("run"), Number: 1}, WorkspaceID: workspaceID, AgentID: agentID,
		Prompt: executor.TestPrompt, ExecutorHolder: holder, WakeReason: domain.WakeupSourceUser}
	if spec != nil {
		launch.Executor = *spec
	}
	request, err := worker.RequestHere(t.secrets, launch, t.apiURL)
	if err != nil {
		return []domain.Check{{Name: "secrets", Detail: err.Error(), Hint: "enter the values again with updateAgent or updateWorkspaceSettings, or start rouse with the key that sealed them"}}
	}
	return t.registry.Probe(ctx, request, ask)
}
