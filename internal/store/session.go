package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// conversation reads the session of the run's agent and task that has not ended; the zero value without one. The lane
// is held, and a task has one live run of an agent at a time: nobody else changes it.
func (t *tx) conversation(ctx context.Context, run runRow) (c domain.TaskConversation, err error) {
	if run.taskID == "" {
		return c, nil
	}
	const query = `
SELECT external_id, run_count, created_at
FROM task_sessions
WHERE task_id = $1 AND agent_id = $2 AND state <> 'ENDED'`
	err = pgtx.QueryRow(ctx, t, []any{&c.ExternalID, &c.Runs, &c.OpenedAt}, query, run.taskID, run.agentID)
	if pgtx.NoRows(err) {
		return domain.TaskConversation{}, nil
	}
	return c, pgtx.Wrap("read the task's session", err)
}

// openSession decides whether the attempt resumes its task's session, and marks that session at work (SPEC S7.2).
func (t *tx) openSession(ctx context.Context, run runRow, ag *ent.Agent) (resume string, err error) {
	former, err := t.conversation(ctx, run)
	if err != nil || former.ExternalID == "" {
		return "", err
	}
	f := domain.SessionFacts{Former: former, Now: t.Now, MaxRuns: ag.SessionMaxRuns}
	if ag.SessionMaxAgeMs != nil {
		f.MaxAge = pgtx.Ptr(time.Duration(*ag.SessionMaxAgeMs) * time.Millisecond)
	}
	if f.Failed, err = t.resumeFailed(ctx, run, former.ExternalID); err != nil {
		return "", err
	}
	plan := domain.PlanSession(f)
	if plan.Ends {
		return plan.Resume, t.endSession(ctx, run)
	}
	return plan.Resume, t.setSession(ctx, run, domain.TaskSessionStateRunning)
}

// endSession ends the task's session for one that begins anew: what it knew goes with it.
func (t *tx) endSession(ctx context.Context, run runRow) error {
	const query = `
UPDATE task_sessions
SET state = 'ENDED', secrets = NULL
WHERE task_id = $1 AND agent_id = $2 AND state <> 'ENDED'`
	_, err := pgtx.Exec(ctx, t, query, run.taskID, run.agentID)
	return pgtx.Wrap("end the task's session", err)
}

// setSession moves the task's session that has not ended.
func (t *tx) setSession(ctx context.Context, run runRow, state domain.TaskSessionState) error {
	_, err := pgtx.Exec(ctx, t, `
UPDATE task_sessions SET state = $3 WHERE task_id = $1 AND agent_id = $2 AND state <> 'ENDED'`, run.taskID, run.agentID, state)
	return pgtx.Wrap("move the task's session", err)
}

// resumeFailed says whether the run's last attempt resumed the session and failed so that the session may be to blame.
func (t *tx) resumeFailed(ctx context.Context, run runRow, sessionID string) (bool, error) {
	if run.attempt < 2 {
		return false, nil
	}
	const query = `
SELECT a.error_code, coalesce(a.error_message, '')
FROM run_attempts a
JOIN run_events e ON e.run_id = a.run_id AND e.attempt = a.number AND e.kind = 'LAUNCHED'
WHERE a.run_id = $1 AND a.number = $2 AND a.status = 'FAILED' AND a.error_code IS NOT NULL
  AND e.data->>'resumedSession' = $3`
	var code domain.RunErrorCode
	var message string
	err := pgtx.QueryRow(ctx, t, []any{&code, &message}, query, run.id, run.attempt-1, sessionID)
	if pgtx.NoRows(err) {
		return false, nil
	}
	return err == nil && domain.SpoilsSession(code, message), pgtx.Wrap("look at the last attempt", err)
}

// newUse is the part of what an attempt used that its session has not told before, and what it has told now. told is nil for an agent
// that tells of each run by itself. The lane is held, as for conversation.
func (t *tx) newUse(ctx context.Context, run runRow, session string, u *Usage) (since *Usage, told *domain.ToldUsage, err error) {
	if u == nil || !u.SessionTokens && !u.SessionCost || run.taskID == "" || session == "" {
		return u, nil, nil
	}
	const query = `
SELECT coalesce(told_usage, '{}')
FROM task_sessions
WHERE task_id = $1 AND agent_id = $2 AND external_id = $3 AND state <> 'ENDED'`
	before := domain.ToldUsage{}
	raw, err := pgtx.QueryOne[[]byte](ctx, t, query, run.taskID, run.agentID, session)
	if err == nil {
		err = json.Unmarshal(raw, &before)
	}
	if err != nil && !pgtx.NoRows(err) {
		return nil, nil, fmt.Errorf("read what the task's session has used: %w", err)
	}
	fresh, now := u.Since(before)
	return &fresh, &now, nil
}

// keepTold notes what the session of an attempt has told of its use; nil notes nothing. The session was kept.
func (t *tx) keepTold(ctx context.Context, run runRow, session string, told *domain.ToldUsage) error {
	if told == nil {
		return nil
	}
	encoded, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("encode what the task's session has used: %w", err)
	}
	_, err = pgtx.Exec(ctx, t, `
UPDATE task_sessions SET told_usage = $4
WHERE task_id = $1 AND agent_id = $2 AND external_id = $3 AND state <> 'ENDED'`, run.taskID, run.agentID, session, encoded)
	return pgtx.Wrap("note what the task's session has used", err)
}

// keepSession notes which session an attempt ended in, so that the task's next run resumes it, and lets it rest.
func (t *tx) keepSession(ctx context.Context, run runRow, named string, resumable bool) error {
	if run.taskID == "" {
		return nil
	}
	former, err := t.conversation(ctx, run)
	if err != nil {
		return err
	}
	switch domain.AfterSession(former, named, resumable) {
	case domain.SessionUsed:
		const query = `
UPDATE task_sessions
SET run_count = run_count + 1, last_used_at = $3, state = '` + string(domain.TaskSessionStateIdle) + `',
  secrets = ` + knownSecrets + `
WHERE task_id = $1 AND agent_id = $2 AND state <> 'ENDED'`
		_, err = pgtx.Exec(ctx, t, query, run.taskID, run.agentID, t.Now, run.id)
	case domain.SessionReplaced:
		const query = `
-- $1 task, $2 agent, $3 now, $4 run, whose secrets it may know, $5 id of the session, $6 workspace, $7 the
-- session's name at the agent's side
WITH gone AS (
  UPDATE task_sessions
  SET secrets = NULL
  WHERE task_id = $1 AND agent_id = $2 AND state = 'ENDED' AND secrets IS NOT NULL)
INSERT INTO task_sessions (id, workspace_id, task_id, agent_id, external_id, state, run_count, last_used_at,
    created_at, secrets)
SELECT $5, $6, $1, $2, $7, 'IDLE', 1, $3, $3, ` + knownSecrets
		if err := t.setSession(ctx, run, domain.TaskSessionStateEnded); err != nil {
			return err
		}
		_, err = pgtx.Exec(ctx, t, query, run.taskID, run.agentID, t.Now, run.id, xid.New("ses"), run.workspaceID, named)
	case domain.SessionKept:
		return t.restSession(ctx, run)
	}
	return pgtx.Wrap("keep the task's session", err)
}

// keepLostSession is keepSession for an attempt whose owner is gone: its session is what was recorded. A session that
// rouse named, because the agent named none, cannot be resumed. Whether another one can be, the next attempt finds out;
// if not, it opens a new one (SPEC S7.2).
func (t *tx) keepLostSession(ctx context.Context, run runRow) error {
	if run.taskID == "" || run.sessionID == nil {
		return nil
	}
	id, err := xid.Parse(*run.sessionID)
	ours := err == nil && id.Prefix() == "ses"
	return t.keepSession(ctx, run, *run.sessionID, !ours)
}

// restSession lets the session of an attempt rest that ended without using it.
func (t *tx) restSession(ctx context.Context, run runRow) error {
	return t.restSessions(ctx, []departure{{run: run}})
}

// restSessions is for every end of an attempt: the session it was in is at work no more.
func (t *tx) restSessions(ctx context.Context, left []departure) error {
	var tasks, agents []xid.ID
	for _, d := range left {
		if d.run.taskID != "" {
			tasks, agents = append(tasks, d.run.taskID), append(agents, d.run.agentID)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	const query = `
UPDATE task_sessions s
SET state = '` + string(domain.TaskSessionStateIdle) + `'
FROM unnest($1::text[], $2::text[]) AS n (task, agent)
WHERE s.task_id = n.task AND s.agent_id = n.agent AND s.task_id = ANY($1) AND s.state = 'RUNNING'`
	_, err := pgtx.Exec(ctx, t, query, pgtx.IDs(tasks), pgtx.IDs(agents))
	return pgtx.Wrap("let the tasks' sessions rest", err)
}
