package server

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Names of the demo.
const (
	demoSlug  = "demo"
	demoAgent = "echo"
)

// demoScript is an agent of six lines: it reads its prompt, says what it does while it does it, and leaves a result.
const demoScript = `prompt=$(cat)
echo "woken by $ROUSE_WAKE_REASON as run $ROUSE_RUN_ID"
sleep 1
echo "the prompt has ${#prompt} characters"
sleep 1
echo '{"summary": "a shell script worked for two seconds", "next_action": "Replace this script by a real agent."}'`

// makeDemo fills an empty private cluster, or any empty database when asked to, as a person would: through the store.
func (s *Server) makeDemo(ctx context.Context) error {
	if !s.files.private && !s.options.Demo {
		return nil
	}
	empty, err := s.store.IsEmpty(ctx)
	if err != nil || !empty {
		return err
	}
	if err := fillDemo(ctx, s.store); err != nil {
		return fmt.Errorf("make the demo workspace: %w", err)
	}
	return nil
}

func fillDemo(ctx context.Context, s *store.Store) error {
	w, err := s.CreateWorkspace(ctx, store.CreateWorkspace{Name: "Demo", Slug: demoSlug, OfficeWorkflow: true})
	if err != nil {
		return err
	}
	echo, err := s.CreateAgent(ctx, demoWorker(w.ID, demoAgent, domain.ExecutorSpec{Echo: &domain.EchoSpec{}}))
	if err != nil {
		return err
	}
	script := domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: []string{"/bin/sh", "-c", demoScript}, Timeout: 5 * time.Minute, Grace: 10 * time.Second}}
	if _, err := s.CreateAgent(ctx, demoWorker(w.ID, "shell", script)); err != nil {
		return err
	}
	_, err = s.CreateRoutine(ctx, store.CreateRoutine{
		WorkspaceID: w.ID, Name: demoRoutine, Description: "A lightweight routine: it wakes its agent without making a task. It fires each minute, and rouse pauses it an hour after it was made.", AssigneeID: echo.ID,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 25,
		Triggers: []store.TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: "* * * * *", Enabled: true}},
	})
	return err
}

// demoWorker is an agent that also works when it has no task: otherwise its heartbeats would be skipped as idle.
func demoWorker(ws xid.ID, name string, spec domain.ExecutorSpec) store.CreateAgent {
	skip := false
	return store.CreateAgent{
		ID: xid.New("agt"), WorkspaceID: ws, Name: name, Role: domain.AgentRoleWorker, MaxConcurrentSessions: 1, Cooldown: 10 * time.Second,
		SkipIdleWakeups: &skip, Executor: &spec, Instructions: "You are a demo. Replace me by a real agent.",
	}
}

// demoAgentID finds the demo's echo agent; "" when it is not there any more.
func demoAgentID(ctx context.Context, reader *ent.Client) (xid.ID, error) {
	ctx = auth.WithPrincipal(ctx, auth.Local())
	id, err := reader.Agent.Query().
		Where(agent.Name(demoAgent), agent.DeletedAtIsNil(), agent.HasWorkspaceWith(workspace.Slug(demoSlug))).FirstID(ctx)
	if ent.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the demo's agent: %w", err)
	}
	return id, nil
}
