//go:build unix

package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/worker"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of calls.
const (
	callLimit    = 15 * time.Second
	acquireWait  = 20 * time.Second // how long the server is asked to wait for work
	acquireLimit = acquireWait + callLimit
)

// lease is a run that this worker holds.
type lease struct {
	launch      *store.Launch
	token       string
	environment []executor.Variable
	secrets     []string // among its values
	claimed     store.Claimed
	since       time.Time
}

// wireLease is a RunLease of the API.
type wireLease struct {
	Run struct {
		ID    xid.ID
		Agent struct{ ID xid.ID }
	}
	Attempt         int
	LeaseToken      string
	Duration        string
	Prompt          string
	ResumeSessionID string
	FullPrompt      string
	Command         *struct {
		Preset, WorkingDirectory string
		Argv                     []string
		Timeout, Grace           string
		MCP                      bool
		MCPServers               []domain.ToolServer
	}
	Environment []struct {
		Name, Value string
		Secret      *bool // nil from a server that does not say
	}
	TaskID   xid.ID
	Checkout *struct {
		Repository, Ref string
		Per             domain.CheckoutPer
		Setup           []string
		Keep            string
	}
}

// olderQuery is acquireQuery for a server that knows neither working copies, servers of tools, nor variables that are no secrets.
var olderQuery = strings.NewReplacer("{ name value secret }", "{ name value }", " taskId checkout { repository ref per setup keep }", "",
	" mcp mcpServers { name command environment url headers { name variable } }", "").Replace(acquireQuery)

const acquireQuery = `mutation($input: AcquireRunInput!) { acquireRun(input: $input) { userErrors { code message } lease {
  run { id agent { id } } attempt leaseToken duration prompt resumeSessionId fullPrompt environment { name value secret }
  command { preset argv workingDirectory timeout grace mcp mcpServers { name command environment url headers { name variable } } } taskId checkout { repository ref per setup keep } } } }`

// acquire waits for a run of the queue, for that time at most; nil when none came. A call without an answer is made
// again under the same name, so that a run which its lost answer gave is not lost with it.
func (s *Store) acquire(ctx context.Context, patience time.Duration) (*lease, error) {
	var out struct {
		AcquireRun struct {
			Lease      *wireLease
			UserErrors userErrors
		}
	}
	if s.call == "" {
		s.call = xid.New("acq")
	}
	input := map[string]any{"idempotencyKey": s.call, "workspaceId": s.workspace, "queue": s.queue, "waitUpTo": fmt.Sprintf("PT%dS", int(patience.Seconds()))}
	err := s.client.do(ctx, acquireLimit, s.acquireQuery(), map[string]any{"input": s.introduced(input)}, &out)
	for s.learnsOfOlder(err) { // nothing was taken: the call was not understood
		err = s.client.do(ctx, acquireLimit, s.acquireQuery(), map[string]any{"input": s.introduced(input)}, &out)
	}
	if err != nil {
		return nil, err
	}
	s.call = ""
	err = out.AcquireRun.UserErrors.err()
	if errors.Is(err, store.ErrFenced) {
		return nil, nil // what the lost answer gave is over, and the server tries it again: nothing was launched here
	}
	if err != nil || out.AcquireRun.Lease == nil {
		return nil, err
	}
	return s.take(out.AcquireRun.Lease)
}

func (s *Store) acquireQuery() string {
	if s.older {
		return olderQuery
	}
	return acquireQuery
}

// introduced is the input of a call with what the worker says of itself, for a server that takes it.
func (s *Store) introduced(input map[string]any) map[string]any {
	delete(input, "worker")
	if !s.nameless {
		input["worker"] = s.info
	}
	return input
}

// learnsOfOlder says whether a call was refused because the server is older than the worker, in a way that was not known yet.
func (s *Store) learnsOfOlder(err error) bool {
	answer, refused := errors.AsType[*Refused](err)
	if !refused {
		return false
	}
	switch m := answer.Message; {
	case !s.older && (strings.Contains(m, `"checkout"`) || strings.Contains(m, `"taskId"`)):
		s.older = true
	case !s.nameless && strings.Contains(m, "worker"):
		s.nameless = true
	default:
		return false
	}
	return true
}

// take notes a lease, so that the pool finds it.
func (s *Store) take(w *wireLease) (*lease, error) {
	l := &lease{token: w.LeaseToken, since: time.Now()}
	for _, v := range w.Environment {
		l.environment = append(l.environment, executor.Variable{Name: v.Name, Value: v.Value})
		if v.Secret == nil && !isPublic(v.Name) || v.Secret != nil && *v.Secret {
			l.secrets = append(l.secrets, v.Value)
		}
	}
	period, err := parseDuration(w.Duration)
	if err != nil {
		return nil, err
	}
	a := store.Attempt{RunID: w.Run.ID, Number: w.Attempt, Owner: s.self}
	l.claimed = store.Claimed{Attempt: a, WorkspaceID: s.workspace, AgentID: w.Run.Agent.ID, Lease: period}
	l.launch = &store.Launch{Attempt: a, WorkspaceID: s.workspace, AgentID: w.Run.Agent.ID, TaskID: w.TaskID, Prompt: w.Prompt, ResumeSessionID: w.ResumeSessionID, FullPrompt: w.FullPrompt}
	for i := range l.environment {
		switch v := &l.environment[i]; v.Name {
		case "ROUSE_API_URL":
			v.Value = s.client.endpoint // as this machine reaches it
		case "ROUSE_RUN_TOKEN":
			if l.launch.RunToken, err = auth.ParseToken(v.Value); err != nil {
				return nil, err
			}
		}
	}
	if l.launch.Executor, err = s.specOf(w); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[a] = l
	return l, nil
}

// specOf is what to run: what the lease says, else the worker's own.
func (s *Store) specOf(w *wireLease) (domain.ExecutorSpec, error) {
	checkout, err := checkoutOf(w)
	if err != nil {
		return domain.ExecutorSpec{}, err
	}
	if w.Command == nil {
		own := s.command
		if own != nil && checkout != nil {
			own = new(*own)
			own.Checkout = checkout
		}
		return domain.ExecutorSpec{Command: own}, nil
	}
	c := &domain.CommandSpec{Checkout: checkout, Preset: w.Command.Preset, Argv: w.Command.Argv, WorkingDirectory: w.Command.WorkingDirectory, NoTools: !w.Command.MCP,
		ToolServers: w.Command.MCPServers}
	if c.Timeout, err = parseDuration(w.Command.Timeout); err != nil {
		return domain.ExecutorSpec{}, err
	}
	c.Grace, err = parseDuration(w.Command.Grace)
	return domain.ExecutorSpec{Command: c}, err
}

// checkoutOf is what a lease says of a working copy; nil: the run has none.
func checkoutOf(w *wireLease) (*domain.CheckoutSpec, error) {
	if w.Checkout == nil {
		return nil, nil
	}
	keep, err := parseDuration(w.Checkout.Keep)
	return &domain.CheckoutSpec{Repository: w.Checkout.Repository, Ref: w.Checkout.Ref, Per: w.Checkout.Per, Setup: w.Checkout.Setup, Keep: keep}, err
}

// errNoCommand ends a run for which nobody said what to run.
var errNoCommand = errors.New("this worker has no command of its own, and the agent's pull executor names none: start the worker with one " +
	"(rouse worker … -- claude -p), or set command in the executor")

// Prepare makes the executor's request of a run that this worker holds. The secrets among the agent's variables and all
// tokens are masked in what it says.
func (s *Store) Prepare(l *store.Launch) (executor.Request, error) {
	held := s.find(l.Attempt)
	if held == nil {
		return executor.Request{}, fmt.Errorf("run %s is not held by this worker", l.RunID)
	}
	if l.Executor.Command == nil {
		return executor.Request{}, errNoCommand
	}
	secrets := append([]string{held.token, s.client.token.Reveal()}, held.secrets...)
	return worker.Request(l, held.environment, secrets...), nil
}

// isPublic says whether a variable holds no secret, where the server does not say: those that the server sets, but for the run token.
func isPublic(name string) bool {
	return len(name) > 6 && name[:6] == "ROUSE_" && name != "ROUSE_RUN_TOKEN"
}
