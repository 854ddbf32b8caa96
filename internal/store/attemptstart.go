package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/prompt"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Start is for a run that came from its claim without a Launch: it starts it, or says what is wrong. It assembles the prompt from
// all of the run's requests, writes their receipts (SPEC S3.6) and returns what to launch. launch is nil when the attempt was
// settled instead: agent paused or deleted, cancel asked, all reasons gone, no executor.
func (s *Attempts) Start(ctx context.Context, a Attempt) (launch *Launch, err error) {
	x := &transition{Attempt: a, kind: toStart}
	if err := s.transit(ctx, x); err != nil {
		return nil, pgtx.Wrap("start run", err)
	}
	return x.launch, nil
}

// starting is a run on the way to its launch. Its lane and its run are locked.
type starting struct {
	Attempt
	run   runRow // as it is once it is claimed
	fresh bool   // it is claimed with its start, and no attempt or lease of it is there yet
	queue string // whose workers are to own it; "": rouse itself

	agent  *ent.Agent
	task   *ent.Task // nil: none, or it is gone
	spec   *domain.ExecutorSpec
	holder xid.ID // the record that spec was taken from

	requests []requestRow
	resume   string // the session to resume

	reinstructed bool // that session was told other instructions, as far as is known
	colleagues   []prompt.Colleague

	prompt prompt.Prompt
	full   string     // for a new session, should the one to resume be gone
	token  auth.Token // of the run

	launch *Launch
}

func (t *tx) startLive(ctx context.Context, list []*transition) error {
	starts := make([]*starting, len(list))
	for i, x := range list {
		starts[i] = &starting{Attempt: x.Attempt, run: x.run}
	}
	err := t.startAll(ctx, starts)
	for i, x := range list {
		x.launch = starts[i].launch
	}
	return err
}

// startAll starts claimed runs for their owners, each thing that is read or written in one statement for all. Those that
// must not be launched after all are ended instead, and have no launch.
func (t *tx) startAll(ctx context.Context, starts []*starting) error {
	if len(starts) == 0 {
		return nil
	}
	if err := t.readAgents(ctx, starts); err != nil {
		return err
	}
	starts, err := t.admitStarts(ctx, starts)
	if err != nil {
		return err
	}
	if starts, err = t.withExecutors(ctx, starts); err != nil || len(starts) == 0 {
		return err
	}
	if _, err = t.prepare(ctx, starts, math.MaxInt); err != nil {
		return err
	}
	if err := t.writeStarts(ctx, starts, hold{}); err != nil {
		return err
	}
	return t.makeLaunches(ctx, starts)
}

// readAgents reads the agents and their workspaces, as much of them as a start looks at. The statement is one for any number of
// agents, so that it is planned once for each connection.
func (t *tx) readAgents(ctx context.Context, starts []*starting) error {
	const query = `
SELECT a.id, a.workspace_id, a.name, a.role, a.instructions, a.executor, a.session_max_runs, a.session_max_age_ms,
  a.deleted_at, w.name, w.default_executor
FROM agents a
JOIN workspaces w ON w.id = a.workspace_id
WHERE a.id = ANY($1)`
	byID := map[xid.ID]*ent.Agent{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		a, w := &ent.Agent{}, &ent.Workspace{}
		var own, common []byte
		if err = rows.Scan(&a.ID, &a.WorkspaceID, &a.Name, &a.Role, &a.Instructions, &own, &a.SessionMaxRuns, &a.SessionMaxAgeMs, &a.DeletedAt, &w.Name, &common); err != nil {
			return struct{}{}, err
		}
		w.ID, a.Edges.Workspace, byID[a.ID] = a.WorkspaceID, w, a
		if a.Executor, err = decodeSpec(own); err == nil {
			w.DefaultExecutor, err = decodeSpec(common)
		}
		return struct{}{}, err
	}, query, pgtx.IDs(idsBy(starts, func(x *starting) xid.ID { return x.run.agentID })))
	if err != nil {
		return fmt.Errorf("read the agents: %w", err)
	}
	for _, x := range starts {
		if x.agent = byID[x.run.agentID]; x.agent == nil {
			return fmt.Errorf("read the agents: %s is gone", x.run.agentID)
		}
	}
	return nil
}

// decodeSpec reads a stored executor; nil: there is none.
func decodeSpec(text []byte) (spec *domain.ExecutorSpec, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	return spec, json.Unmarshal(text, &spec)
}

// idsBy are different ids of what starts, none of them empty.
func idsBy(starts []*starting, of func(*starting) xid.ID) []xid.ID {
	list := make([]xid.ID, 0, len(starts))
	for _, x := range starts {
		if id := of(x); id != "" {
			list = append(list, id)
		}
	}
	return pgtx.Distinct(list)
}

// admitStarts repeats the guards that may have changed since the claim (SPEC S6.2), and returns the runs that they let start.
// The tasks are locked.
func (t *tx) admitStarts(ctx context.Context, starts []*starting) (admitted []*starting, err error) {
	runs := make([]runRow, len(starts))
	for i, x := range starts {
		runs[i] = x.run
	}
	guards, err := t.readGuards(ctx, runs)
	if err != nil {
		return nil, err
	}
	for _, x := range starts {
		run := x.run
		facts := domain.AdmitFacts{AgentStatus: t.locked[run.agentID].status, AgentDeleted: x.agent.DeletedAt != nil, WakeClass: run.class, CancelRequested: run.cancelRequestedAt != nil}
		if run.taskID != "" {
			guards[run.id].Into(&facts, run.retryCount > 0)
		}
		a := domain.AdmitStart(facts)
		if err := t.dropStale(ctx, run, a.Stale, a.Settle != nil); err != nil {
			return nil, err
		}
		if a.Settle == nil {
			admitted = append(admitted, x)
			continue
		}
		if err := t.settle(ctx, run, *a.Settle); err != nil {
			return nil, err
		}
		t.leaveClaimed(run, leave{attempt: domain.RunAttemptStatusCancelled})
	}
	return admitted, nil
}

// withExecutors finds out how each run is executed, and returns those that their owner may execute. A run whose executor was
// changed to another kind of owner since the claim is due again.
func (t *tx) withExecutors(ctx context.Context, starts []*starting) (fit []*starting, err error) {
	if err := t.readExecutors(ctx, starts); err != nil {
		return nil, err
	}
	for _, x := range starts {
		switch {
		case x.spec == nil:
			err = t.failWithoutExecutor(ctx, x.run)
		case x.spec.Queue() != x.queue:
			err = t.giveBack(ctx, x.run, domain.RunAttemptStatusInterrupted, false)
		default:
			fit = append(fit, x)
		}
		if err != nil {
			return nil, err
		}
	}
	return fit, nil
}

// readExecutors reads the runs' tasks, and finds out how each run is executed.
func (t *tx) readExecutors(ctx context.Context, starts []*starting) error {
	tasks, err := t.tasksWithProjects(ctx, idsBy(starts, func(x *starting) xid.ID { return x.run.taskID }))
	for _, x := range starts {
		x.task = tasks[x.run.taskID]
		x.spec, x.holder = executorFor(x.agent, x.task)
	}
	return err
}

func (t *tx) tasksWithProjects(ctx context.Context, list []xid.ID) (map[xid.ID]*ent.Task, error) {
	if len(list) == 0 {
		return nil, nil
	}
	tasks, err := t.Task.Query().Where(task.IDIn(list...)).WithProject().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tasks: %w", err)
	}
	byID := make(map[xid.ID]*ent.Task, len(tasks))
	for _, k := range tasks {
		byID[k.ID] = k
	}
	return byID, nil
}

// executorFor picks how runs of an agent about a task (nil: none) are executed, and names the record that says so (SPEC S6.4).
func executorFor(ag *ent.Agent, k *ent.Task) (*domain.ExecutorSpec, xid.ID) {
	workspace := ag.Edges.Workspace
	var ofTask, ofProject *domain.ExecutorSpec
	var taskID, projectID xid.ID
	if k != nil {
		ofTask, taskID = k.Executor, k.ID
		if p := k.Edges.Project; p != nil {
			ofProject, projectID = p.Executor, p.ID
		}
	}
	switch spec := domain.ResolveExecutor(ofTask, ag.Executor, ofProject, workspace.DefaultExecutor); spec {
	case nil:
		return nil, ""
	case ofTask:
		return spec, taskID
	case ofProject:
		return spec, projectID
	case workspace.DefaultExecutor:
		return spec, workspace.ID
	default:
		return spec, ag.ID
	}
}

// resolveExecutor is executorFor for a run.
func (t *tx) resolveExecutor(ctx context.Context, run runRow, ag *ent.Agent) (*domain.ExecutorSpec, xid.ID, error) {
	var of []xid.ID
	if run.taskID != "" {
		of = []xid.ID{run.taskID}
	}
	tasks, err := t.tasksWithProjects(ctx, of)
	if err != nil {
		return nil, "", err
	}
	spec, holder := executorFor(ag, tasks[run.taskID])
	return spec, holder, nil
}

// makeLaunches keeps what the attempts are launched with, and makes what their owners are given.
func (t *tx) makeLaunches(ctx context.Context, starts []*starting) (err error) {
	for _, x := range starts {
		run := x.run
		if !x.fresh { // whose lease is written with them
			if err := t.keepSecrets(ctx, run, x.spec.Sealed(x.holder)); err != nil {
				return err
			}
		}
		t.onCommit(func(s *base) {
			s.log.Info("run started", keysOf(run, "source", strings.ToLower(string(run.source)))...)
		})
		x.launch = x.launchOf()
		if run.attempt > 1 || x.resume != "" {
			if x.launch.Former, err = t.formerSecrets(ctx, run); err != nil {
				return err
			}
		}
		if x.resume != "" {
			if err := t.tellSession(ctx, run); err != nil {
				return err
			}
		}
		if x.launch.Log, err = t.logAllowance(ctx, x.Attempt); err != nil {
			return err
		}
	}
	return nil
}

// launchOf is what a worker is given of a started attempt.
func (x *starting) launchOf() *Launch {
	run := x.run
	launch := &Launch{Attempt: x.Attempt, WorkspaceID: run.workspaceID, AgentID: run.agentID, TaskID: run.taskID, RoutineID: run.routineID,
		CausationID: run.causationID, Prompt: x.prompt.Text, Executor: *x.spec, ExecutorHolder: x.holder, WakeReason: run.source, RunToken: x.token,
		ResumeSessionID: x.resume, FullPrompt: x.full}
	launch.WakePayload = json.RawMessage("{}")
	if len(x.requests) > 0 {
		launch.WakePayload = x.requests[0].payload
	}
	return launch
}
