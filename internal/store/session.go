package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
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

// openSession decides whether the attempt resumes its task's session, and marks that session at work (SPEC S7.2). isNew says that
// the agent's instructions are new to that session.
func (t *tx) openSession(ctx context.Context, run runRow, ag *ent.Agent, instructions string) (resume string, isNew bool, err error) {
	former, err := t.conversation(ctx, run)
	if err != nil || former.ExternalID == "" {
		return "", false, err
	}
	f := domain.SessionFacts{Former: former, Now: t.Now, MaxRuns: ag.SessionMaxRuns}
	if ag.SessionMaxAgeMs != nil {
		f.MaxAge = pgtx.Ptr(time.Duration(*ag.SessionMaxAgeMs) * time.Millisecond)
	}
	if f.Failed, err = t.resumeFailed(ctx, run, former.ExternalID); err != nil {
		return "", false, err
	}
	plan := domain.PlanSession(f)
	if plan.Ends {
		return plan.Resume, false, t.endSession(ctx, run)
	}
	isNew, err = t.markResumed(ctx, run, former.ExternalID, instructions)
	return plan.Resume, isNew, err
}

// markResumed marks the task's session at work, and says whether the agent's instructions are new to it: its last run that ended well
// was told others, or is not kept any more. What a run was told in full, or a new session in its place, is in its contents.
func (t *tx) markResumed(ctx context.Context, run runRow, sessionID, instructions string) (isNew bool, err error) {
	const query = `
-- $1 task, $2 agent, $3 the session, $4 the instructions
UPDATE task_sessions
SET state = 'RUNNING'
WHERE task_id = $1 AND agent_id = $2 AND state <> 'ENDED'
RETURNING NOT coalesce((
  SELECT strpos(CASE WHEN c.full_prompt = '' THEN c.assembled_prompt ELSE c.full_prompt END, $4) > 0
  FROM runs r
  JOIN run_contents c ON c.run_id = r.id
  WHERE r.task_id = $1 AND r.agent_id = $2 AND r.session_id = $3 AND r.status = 'FINISHED'
  ORDER BY r.requested_at DESC, r.id DESC
  LIMIT 1), false)`
	isNew, err = pgtx.QueryOne[bool](ctx, t, query, run.taskID, run.agentID, sessionID, instructions)
	return isNew, pgtx.Wrap("mark the task's session at work", err)
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

// sessionEnd is a live run with the session in which its attempt ended: as the agent named it, and whether it may be resumed.
type sessionEnd struct {
	run       runRow
	named     string
	resumable bool
}

// keepSessions notes in which sessions attempts ended, so that the tasks' next runs resume them, and lets them rest.
func (t *tx) keepSessions(ctx context.Context, list []sessionEnd) error {
	list = slices.DeleteFunc(list, func(x sessionEnd) bool { return x.run.taskID == "" })
	if len(list) == 0 {
		return nil
	}
	former, err := t.conversations(ctx, list)
	if err != nil {
		return err
	}
	var used, replaced []sessionEnd
	var kept []departure
	for _, x := range list {
		switch domain.AfterSession(former[conversing{x.run.taskID, x.run.agentID}], x.named, x.resumable) {
		case domain.SessionUsed:
			used = append(used, x)
		case domain.SessionReplaced:
			replaced = append(replaced, x)
		case domain.SessionKept:
			kept = append(kept, departure{run: x.run})
		}
	}
	if err := t.useSessions(ctx, used); err != nil {
		return err
	}
	if err := t.replaceSessions(ctx, replaced); err != nil {
		return err
	}
	return t.restSessions(ctx, kept)
}

// conversing is an agent with the task that it has a session about.
type conversing struct{ taskID, agentID xid.ID }

// conversations are the sessions of the runs' agents and tasks that have not ended.
func (t *tx) conversations(ctx context.Context, list []sessionEnd) (map[conversing]domain.TaskConversation, error) {
	tasks, agents, _ := whose(list)
	found := map[conversing]domain.TaskConversation{}
	const query = `
SELECT s.task_id, s.agent_id, s.external_id, s.run_count, s.created_at
FROM unnest($1::text[], $2::text[]) AS n (task, agent)
JOIN task_sessions s ON s.task_id = n.task AND s.agent_id = n.agent
WHERE s.state <> 'ENDED'`
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (c domain.TaskConversation, err error) {
		var of conversing
		err = rows.Scan(&of.taskID, &of.agentID, &c.ExternalID, &c.Runs, &c.OpenedAt)
		found[of] = c
		return c, err
	}, query, tasks, agents)
	return found, pgtx.Wrap("read the tasks' sessions", err)
}

// whose are the tasks, agents and runs of ends, as parameters.
func whose(list []sessionEnd) (tasks, agents, runs any) {
	var of [3][]xid.ID
	for _, x := range list {
		of[0], of[1], of[2] = append(of[0], x.run.taskID), append(of[1], x.run.agentID), append(of[2], x.run.id)
	}
	return pgtx.IDs(of[0]), pgtx.IDs(of[1]), pgtx.IDs(of[2])
}

// useSessions counts one run more of sessions that were resumed.
func (t *tx) useSessions(ctx context.Context, list []sessionEnd) error {
	if len(list) == 0 {
		return nil
	}
	tasks, agents, runs := whose(list)
	query := `
UPDATE task_sessions s
SET run_count = run_count + 1, last_used_at = $4, state = '` + string(domain.TaskSessionStateIdle) + `',
  secrets = ` + knownSecrets("n.task", "n.agent", "n.run") + `
FROM unnest($1::text[], $2::text[], $3::text[]) AS n (task, agent, run)
WHERE s.task_id = n.task AND s.agent_id = n.agent AND s.task_id = ANY($1) AND s.state <> 'ENDED'`
	_, err := pgtx.Exec(ctx, t, query, tasks, agents, runs, t.Now)
	return pgtx.Wrap("keep the tasks' sessions", err)
}

// replaceSessions ends what sessions the tasks had, and notes those that the agents named. What a session knew that has ended is
// forgotten, since the new one knows it.
func (t *tx) replaceSessions(ctx context.Context, list []sessionEnd) error {
	if len(list) == 0 {
		return nil
	}
	tasks, agents, runs := whose(list)
	const end = `
UPDATE task_sessions s
SET state = 'ENDED'
FROM unnest($1::text[], $2::text[]) AS n (task, agent)
WHERE s.task_id = n.task AND s.agent_id = n.agent AND s.task_id = ANY($1) AND s.state <> 'ENDED'`
	if _, err := pgtx.Exec(ctx, t, end, tasks, agents); err != nil {
		return fmt.Errorf("end the tasks' sessions: %w", err)
	}
	var workspaces []xid.ID
	var names []string
	for _, x := range list {
		workspaces, names = append(workspaces, x.run.workspaceID), append(names, x.named)
	}
	query := `
-- $1 tasks, $2 agents, $3 runs, whose secrets the sessions may know, $4 ids of the sessions, $5 workspaces, $6 the
-- sessions' names at the agents' side, $7 now
WITH n AS (
  SELECT *
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS n (task, agent, run, id, workspace, named)),
gone AS (
  UPDATE task_sessions s
  SET secrets = NULL
  FROM n
  WHERE s.task_id = n.task AND s.agent_id = n.agent AND s.task_id = ANY($1) AND s.state = 'ENDED' AND s.secrets IS NOT NULL)
INSERT INTO task_sessions (id, workspace_id, task_id, agent_id, external_id, state, run_count, last_used_at,
    created_at, secrets)
SELECT id, workspace, task, agent, named, 'IDLE', 1, $7, $7, ` + knownSecrets("n.task", "n.agent", "n.run") + `
FROM n`
	_, err := pgtx.Exec(ctx, t, query, tasks, agents, runs, pgtx.IDs(newIDs("ses", len(list))), pgtx.IDs(workspaces), pgtx.TextArray(names), t.Now)
	return pgtx.Wrap("keep the tasks' sessions", err)
}

// keepLostSession is keepSessions for an attempt whose owner is gone: its session is what was recorded. A session that
// rouse named, because the agent named none, cannot be resumed. Whether another one can be, the next attempt finds out;
// if not, it opens a new one (SPEC S7.2).
func (t *tx) keepLostSession(ctx context.Context, run runRow) error {
	if run.taskID == "" || run.sessionID == nil {
		return nil
	}
	id, err := xid.Parse(*run.sessionID)
	ours := err == nil && id.Prefix() == "ses"
	return t.keepSessions(ctx, []sessionEnd{{run, *run.sessionID, !ours}})
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
