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
	workers  func(ctx context.Context, workspaceID xid.ID, queue string) (domain.WorkerFacts, error)
	slots    chan struct{}
}

// newTester makes a tester; serves says that workers wait for their runs at this process.
func newTester(registry executor.Registry, secrets worker.Opener, apiURL string, s *store.Store, serves bool) *tester {
	workers := func(ctx context.Context, workspaceID xid.ID, queue string) (domain.WorkerFacts, error) {
		return s.Workers(ctx, workspaceID, queue, serves)
	}
	return &tester{registry, secrets, apiURL, workers, make(chan struct{}, testsAtOnce)}
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
	if spec != nil && spec.Pull != nil {
		return t.testWorkers(ctx, workspaceID, spec.Pull.Queue)
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

// testWorkers says whether somebody would take the agent's runs; what they run, and whether it works, is seen there.
func (t *tester) testWorkers(ctx context.Context, workspaceID xid.ID, queue string) []domain.Check {
	facts, err := t.workers(ctx, workspaceID, queue)
	if err != nil {
		return []domain.Check{{Name: "workers", Detail: "the database does not tell of workers: " + err.Error(), Hint: "see the log of rouse and of the database"}}
	}
	return []domain.Check{domain.CheckWorkers(facts)}
}
