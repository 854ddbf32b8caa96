package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/prompt"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Launch is what a worker needs to run one attempt. The sealed values in Executor are bound to ExecutorHolder, the
// record that the spec was taken from. RunToken is plain: only its digest is stored.
type Launch struct {
	Attempt
	WorkspaceID, AgentID, TaskID, RoutineID, CausationID xid.ID
	Prompt                                               string
	Executor                                             domain.ExecutorSpec
	ExecutorHolder                                       xid.ID
	ResumeSessionID                                      string // "": a fresh session
	FullPrompt                                           string // for a new session, should the one to resume be gone; "" for a fresh one
	WakeReason                                           domain.WakeupSource
	WakePayload                                          json.RawMessage
	RunToken                                             auth.Token
	Log                                                  domain.LogAllowance // what is kept of its output
	Former                                               []domain.SealedSet  // of earlier attempts of the run, and of earlier runs of its session, to be masked as well
}

// shownWakes is how many of a run's newest requests the prompt shows in full (SPEC S7.3); more are only counted.
const shownWakes = 50

// Start assembles the prompt from all of the run's requests, writes their receipts (SPEC S3.6) and returns what to
// launch. launch is nil when the attempt was settled instead: agent paused or deleted, cancel asked, all reasons gone, no executor.
func (s *Attempts) Start(ctx context.Context, a Attempt) (launch *Launch, err error) {
	err = s.withLive(ctx, a, func(t *tx, l lane, run runRow) error {
		launch = nil
		ag, err := t.Agent.Query().Where(agent.ID(run.agentID)).WithWorkspace().Only(ctx)
		if err != nil {
			return fmt.Errorf("read the agent: %w", err)
		}
		if settled, err := t.admitStart(ctx, l, run, ag); err != nil || settled {
			return err
		}
		launch, err = t.start(ctx, l, a, run, ag, "")
		return err
	})
	return launch, pgtx.Wrap("start run", err)
}

// admitStart repeats the guards that may have changed since the claim (SPEC S6.2); settled says that they ended the run.
func (t *tx) admitStart(ctx context.Context, l lane, run runRow, ag *ent.Agent) (settled bool, err error) {
	facts := domain.AdmitFacts{AgentStatus: l.status, AgentDeleted: ag.DeletedAt != nil, WakeClass: run.class, CancelRequested: run.cancelRequestedAt != nil}
	if err := t.startTask(ctx, run, &facts); err != nil {
		return false, err
	}
	a := domain.AdmitStart(facts)
	if err := t.dropStale(ctx, run, a.Stale, a.Settle != nil); err != nil || a.Settle == nil {
		return false, err
	}
	return true, t.settleStart(ctx, l, run, *a.Settle)
}

// settleStart ends a claimed run that must not be launched after all.
func (t *tx) settleStart(ctx context.Context, l lane, run runRow, s domain.Settlement) error {
	if err := t.settle(ctx, run, s); err != nil {
		return err
	}
	return t.leaveClaimed(ctx, l, run, leave{attempt: domain.RunAttemptStatusCancelled})
}

// start writes the start of a run for its owner: rouse itself, or with a queue a worker of it. A run whose executor was
// changed to another kind of owner since the claim is due again.
func (t *tx) start(ctx context.Context, l lane, a Attempt, run runRow, ag *ent.Agent, queue string) (*Launch, error) {
	spec, holder, err := t.resolveExecutor(ctx, run, ag)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, t.failWithoutExecutor(ctx, l, run)
	}
	if spec.Queue() != queue {
		return nil, t.giveBack(ctx, l, run, domain.RunAttemptStatusInterrupted, false)
	}
	requests, err := t.promptRequests(ctx, run.id)
	if err != nil {
		return nil, err
	}
	resume, err := t.openSession(ctx, run, ag)
	if err != nil {
		return nil, err
	}
	built, full, err := t.buildPrompt(ctx, run, ag, requests, resume != "")
	if err != nil {
		return nil, err
	}
	token, err := auth.NewRunToken(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a run token: %w", err)
	}
	s := started{spec.Kind(), token, built, full, requests, resume}
	if err := t.writeStart(ctx, run, s); err != nil {
		return nil, err
	}
	if err := t.keepSecrets(ctx, run, spec.Sealed(holder)); err != nil {
		return nil, err
	}
	t.onCommit(func(s *base) {
		s.log.Info("run started", keysOf(run, "source", strings.ToLower(string(run.source)))...)
	})
	launch := launchOf(a, run, *spec, holder, s)
	if run.attempt > 1 || resume != "" {
		if launch.Former, err = t.formerSecrets(ctx, run); err != nil {
			return nil, err
		}
	}
	if resume != "" {
		if err := t.tellSession(ctx, run); err != nil {
			return nil, err
		}
	}
	launch.Log, err = t.logAllowance(ctx, a)
	return launch, err
}

// launchOf is what a worker is given of a started attempt.
func launchOf(a Attempt, run runRow, spec domain.ExecutorSpec, holder xid.ID, s started) *Launch {
	launch := &Launch{Attempt: a, WorkspaceID: run.workspaceID, AgentID: run.agentID, TaskID: run.taskID, RoutineID: run.routineID,
		CausationID: run.causationID, Prompt: s.prompt.Text, Executor: spec, ExecutorHolder: holder, WakeReason: run.source, RunToken: s.token,
		ResumeSessionID: s.resume, FullPrompt: s.full}
	launch.WakePayload = json.RawMessage("{}")
	if len(s.requests) > 0 {
		launch.WakePayload = s.requests[0].payload
	}
	return launch
}

// resolveExecutor picks the spec and names the record it is stored on (SPEC S6.4).
func (t *tx) resolveExecutor(ctx context.Context, run runRow, ag *ent.Agent) (*domain.ExecutorSpec, xid.ID, error) {
	workspace := ag.Edges.Workspace
	var ofTask, ofProject *domain.ExecutorSpec
	var projectID xid.ID
	if run.taskID != "" {
		k, err := t.Task.Query().Where(task.ID(run.taskID)).WithProject().Only(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return nil, "", fmt.Errorf("read the task: %w", err)
		}
		if k != nil {
			ofTask = k.Executor
			if p := k.Edges.Project; p != nil {
				ofProject, projectID = p.Executor, p.ID
			}
		}
	}
	spec := domain.ResolveExecutor(ofTask, ag.Executor, ofProject, workspace.DefaultExecutor)
	switch {
	case spec == nil:
		return nil, "", nil
	case spec == ofTask:
		return spec, run.taskID, nil
	case spec == ofProject:
		return spec, projectID, nil
	case spec == workspace.DefaultExecutor:
		return spec, workspace.ID, nil
	}
	return spec, ag.ID, nil
}

// promptRequests reads the run's requests, oldest first: all that were not delivered yet, or were to an attempt that
// failed. Payloads are read of those that are shown, and of the first, which the command gets in its environment.
func (t *tx) promptRequests(ctx context.Context, runID xid.ID) ([]requestRow, error) {
	const payload = `CASE WHEN row_number() OVER (ORDER BY requested_at DESC, id DESC) <= $2 OR row_number() OVER (ORDER BY requested_at, id) = 1
  THEN payload ELSE '{}'::jsonb END`
	query := `
SELECT ` + requestColumns(payload) + ` FROM wakeup_requests WHERE run_id = $1 AND status IN ('CLAIMED', 'COALESCED') ORDER BY requested_at, id`
	requests, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (requestRow, error) { return scanRequest(rows) }, query, runID, shownWakes)
	if err != nil {
		return nil, fmt.Errorf("read the run's requests: %w", err)
	}
	return requests, nil
}

// buildPrompt assembles the prompt. One that resumes a session gets the delta, and full is what a new session would
// need.
func (t *tx) buildPrompt(ctx context.Context, run runRow, ag *ent.Agent, requests []requestRow, resumes bool) (built prompt.Prompt, full string, err error) {
	wakes, err := t.promptWakes(ctx, requests)
	if err != nil {
		return prompt.Prompt{}, "", err
	}
	shown, err := t.taskInPrompt(ctx, run)
	if err != nil {
		return prompt.Prompt{}, "", err
	}
	if err := t.recordsInPrompt(ctx, run, wakes, shown); err != nil {
		return prompt.Prompt{}, "", err
	}
	remembered, err := t.summaryOf(ctx, run)
	if err != nil {
		return prompt.Prompt{}, "", err
	}
	in := prompt.Input{
		Summary: remembered,
		Agent:   prompt.Agent{Name: ag.Name, Role: ag.Role, Instructions: ag.Instructions},
		Wakes:   wakes,
		Run: prompt.Run{ID: string(run.id), Attempt: run.attempt, AgentID: string(run.agentID),
			WorkspaceID: string(run.workspaceID), Workspace: ag.Edges.Workspace.Name, Task: shown, Actions: domain.ActionsOf(run.taskID != "")},
	}
	built = prompt.Build(in)
	if !resumes {
		return built, "", nil
	}
	in.Delta = true
	return prompt.Build(in), built.Text, nil
}

// promptWakes turns requests into what the prompt says of them; the routines they name are read in one query.
func (t *tx) promptWakes(ctx context.Context, requests []requestRow) ([]prompt.Wake, error) {
	var routineIDs []xid.ID
	for _, q := range requests {
		if q.routineID != "" {
			routineIDs = append(routineIDs, q.routineID)
		}
	}
	routines := map[xid.ID]*ent.Routine{}
	if len(routineIDs) > 0 {
		found, err := t.Routine.Query().Where(routine.IDIn(routineIDs...)).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the routines: %w", err)
		}
		for _, r := range found {
			routines[r.ID] = r
		}
	}
	wakes := make([]prompt.Wake, 0, len(requests))
	for i, q := range requests {
		if i < len(requests)-shownWakes { // only counted
			wakes = append(wakes, prompt.Wake{Source: q.source, At: q.requestedAt})
			continue
		}
		w, err := promptWake(q, routines[q.routineID])
		if err != nil {
			return nil, err
		}
		wakes = append(wakes, w)
	}
	return wakes, nil
}

func promptWake(q requestRow, r *ent.Routine) (prompt.Wake, error) {
	payload, err := domain.DecodePayload(q.source, q.payload)
	if err != nil {
		return prompt.Wake{}, fmt.Errorf("request %s: %w", q.id, err)
	}
	w := prompt.Wake{Source: q.source, At: q.requestedAt, Payload: payload}
	switch p := payload.(type) {
	case *domain.UserPayload:
		w.User = p.UserID
	case *domain.RoutinePayload:
		if r != nil {
			w.Routine, w.Text = r.Name, p.Text
		}
	}
	return w, nil
}

// started is what an attempt starts with.
type started struct {
	kind     domain.ExecutorKind
	token    auth.Token // of the run
	prompt   prompt.Prompt
	full     string // for a new session, should the one to resume be gone
	requests []requestRow
	resume   string
}

// writeStart stores the prompt and its receipts, and moves the attempt on.
func (t *tx) writeStart(ctx context.Context, run runRow, s started) error {
	snapshot, err := contextSnapshot(s.requests)
	if err != nil {
		return err
	}
	details := map[string]any{"executor": s.kind, "wakeupRequests": len(s.requests)}
	if s.resume != "" {
		details["resumedSession"] = s.resume
	}
	data, err := encodeData(details)
	if err != nil {
		return err
	}
	const query = `
WITH r AS (
  UPDATE runs SET started_at = $1, revision = revision + 1, event_seq = event_seq + 1 WHERE id = $2
  RETURNING id, workspace_id, agent_id, task_id, causation_id, event_seq),
act AS (` + activityInto + `
  SELECT $3, workspace_id, '` + string(domain.ActivityCodeRunLaunched) + `', 'The run was launched.', 'SYSTEM', 'queue', id, agent_id, task_id,
    $4::jsonb || jsonb_strip_nulls(jsonb_build_object('agent', agent_id, 'task_id', task_id, 'attempt', $5::int)), causation_id, $1 FROM r),
content AS (
  INSERT INTO run_contents (id, workspace_id, run_id, assembled_prompt, summary_injected, context_snapshot, full_prompt)
  SELECT $6, workspace_id, id, $7, $8, $9, $10 FROM r
  ON CONFLICT (run_id) DO UPDATE SET assembled_prompt = excluded.assembled_prompt, summary_injected = excluded.summary_injected,
    context_snapshot = excluded.context_snapshot, full_prompt = excluded.full_prompt, result = NULL),
att AS (UPDATE run_attempts SET executor = $11, token_digest = $12, heartbeat_at = $1 WHERE run_id = $2 AND number = $5),
receipts AS (
  UPDATE wakeup_requests SET delivered_at = $1 WHERE run_id = $2 AND status IN ('CLAIMED', 'COALESCED') AND delivered_at IS NULL)
INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
SELECT workspace_id, id, event_seq, 'LAUNCHED', $5, $4, $1 FROM r`
	err = pgtx.ExecOne(ctx, t, query, t.Now, run.id, xid.New("act"), data, run.attempt, xid.New("rct"), s.prompt.Text, s.prompt.SummaryInjected, snapshot,
		s.full, string(s.kind), s.token.Digest().String())
	if err != nil {
		return fmt.Errorf("write the start: %w", err)
	}
	t.fed(run.workspaceID)
	t.Publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id})
	return nil
}

// contextSnapshot is what the run was started with: the newest requests' payloads in full, the rest counted.
func contextSnapshot(requests []requestRow) ([]byte, error) {
	type entry struct {
		ID      xid.ID              `json:"id"`
		Source  domain.WakeupSource `json:"source"`
		Reason  string              `json:"reason"`
		Payload json.RawMessage     `json:"payload"`
	}
	shown := requests[max(0, len(requests)-shownWakes):]
	entries := make([]entry, len(shown))
	for i, q := range shown {
		entries[i] = entry{q.id, q.source, q.reason, q.payload}
	}
	snapshot, err := json.Marshal(map[string]any{"wakeupRequests": entries, "count": len(requests)})
	if err != nil {
		return nil, fmt.Errorf("encode the context snapshot: %w", err)
	}
	return snapshot, nil
}
