package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// actor is who did something: a person (by the id of the token that was used), an agent, or a component of the scheduler.
type actor struct {
	kind domain.AuthorKind
	name string
}

// localUser is who acts where no token is asked (--auth none), and acted on a loopback address before tokens were.
const localUser = "local"

// system is a component of the scheduler.
func system(component string) actor { return actor{domain.AuthorKindSystem, component} }

// callerOr is the caller whom the API put into ctx; without one, the scheduler's component acts by itself.
func callerOr(ctx context.Context, component string) actor {
	caller, ok := auth.FromContext(ctx)
	switch {
	case !ok || caller.Kind == "":
		return system(component)
	case caller.Kind == auth.KindRun:
		return actor{domain.AuthorKindAgent, string(caller.AgentID)}
	case caller.Kind == auth.KindToken:
		return actor{domain.AuthorKindUser, string(caller.TokenID)}
	}
	return actor{domain.AuthorKindUser, localUser}
}

// entry is a line of the workspace's feed. subjectID names the record it is about; agentID and taskID are what the feed
// can be narrowed to. Data may be nil: agent and task are always among the details (domain.ActivityDetailsOf).
type entry struct {
	workspaceID                             xid.ID
	code                                    domain.ActivityCode
	by                                      actor
	summary                                 string
	subjectID, agentID, taskID, causationID xid.ID
	data                                    map[string]any
}

// details are the entry's data for programs, with the agent and the task that it concerns under the names that readers compare.
func (e entry) details() map[string]any {
	all := map[string]any{}
	if e.agentID != "" {
		all["agent"] = e.agentID
	}
	if e.taskID != "" {
		all["task_id"] = e.taskID
	}
	maps.Copy(all, e.data)
	return all
}

// activityInto begins every insertion into the feed, also those that are part of a larger statement.
const activityInto = `
INSERT INTO activities (id, workspace_id, code, summary, actor_kind, actor, subject_id, agent_id, task_id,
    data, causation_id, occurred_at)`

// note appends an entry to the feed, at the instant of the transaction if it has read the clock.
func (t *tx) note(ctx context.Context, e entry) error {
	encoded, err := encodeData(e.details())
	if err != nil {
		return err
	}
	const query = activityInto + ` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, coalesce($12::timestamptz, clock_timestamp()))`
	err = pgtx.ExecOne(ctx, t, query, xid.New("act"), e.workspaceID, e.code, e.summary, e.by.kind, e.by.name, e.subjectID, e.agentID, e.taskID, encoded, e.causationID, pgtx.NullableTime(t.Now))
	if err != nil {
		return fmt.Errorf("append activity %s: %w", e.code, err)
	}
	t.fed(e.workspaceID)
	return nil
}

// entryRecord is an entry as statements read it that write many.
type entryRecord struct {
	ID        xid.ID            `json:"id"`
	Workspace xid.ID            `json:"workspace"`
	Code      string            `json:"code"`
	Summary   string            `json:"summary"`
	Kind      domain.AuthorKind `json:"kind"`
	Actor     string            `json:"actor"`
	Subject   xid.ID            `json:"subject,omitempty"`
	Agent     xid.ID            `json:"agent,omitempty"`
	Task      xid.ID            `json:"task,omitempty"`
	Data      map[string]any    `json:"data"`
	Causation xid.ID            `json:"causation,omitempty"`
}

// entriesInto appends entryRecords, which the parameter named in it has as JSON, at the instant of the other one.
func entriesInto(records, at string) string {
	return activityInto + `
SELECT id, workspace, code, summary, kind, actor, subject, agent, task, data, causation,
  coalesce(` + at + `::timestamptz, clock_timestamp())
FROM json_to_recordset(` + records + `) AS n (id text, workspace text, code text, summary text, kind text, actor text,
    subject text, agent text, task text, data jsonb, causation text)`
}

// encodeEntries is entries as JSON, and tells those who follow their feeds.
func (t *tx) encodeEntries(entries []entry) ([]byte, error) {
	rows := make([]entryRecord, len(entries))
	for i, e := range entries {
		rows[i] = entryRecord{xid.New("act"), e.workspaceID, string(e.code), e.summary, e.by.kind, e.by.name, e.subjectID, e.agentID, e.taskID, e.details(), e.causationID}
		t.fed(e.workspaceID)
	}
	return encodeData(rows)
}

// listed bounds lists of ids in entries of the feed and in payloads. A count beside them has all.
const listed = 100

func firstListed(ids []xid.ID) []xid.ID { return ids[:min(len(ids), listed)] }

// fed tells those who follow the feed that there is something new in it.
func (t *tx) fed(workspaceID xid.ID) {
	t.Publish(event.Event{Kind: event.Activity, WorkspaceID: workspaceID, ID: workspaceID})
}

// activity appends an entry about a run.
func (t *tx) activity(ctx context.Context, run runRow, code domain.ActivityCode, by actor, summary string, data map[string]any) error {
	return t.note(ctx, entry{workspaceID: run.workspaceID, code: code, by: by, summary: summary, subjectID: run.id, agentID: run.agentID,
		taskID: run.taskID, causationID: run.causationID, data: data})
}

// noteRequests appends one entry for each of an agent's requests, in one statement, and writes as many lines into the log.
// reason says why they ended; "" where they did not. The details are those that the feed's readers compare: reason, task_id
// and agent, of a retry that was cancelled old_agent, who was to try again.
func (t *tx) noteRequests(ctx context.Context, workspaceID xid.ID, requests []xid.ID, code domain.ActivityCode, by actor, summary string, reason domain.EndReason) error {
	if len(requests) == 0 {
		return nil
	}
	const query = activityInto + `
-- $1 code, $2 summary, $3 kind of actor, $4 actor, $5 reason, or "", $6 whether the feed names the agent as
-- the old one, $7 now, $8 ids of the entries, $9 the requests
SELECT n.id, q.workspace_id, $1, $2, $3, $4, q.id, q.agent_id, q.task_id,
  jsonb_strip_nulls(jsonb_build_object('reason', NULLIF($5::text, ''), 'task_id', q.task_id,
      'agent', q.agent_id, 'old_agent', CASE WHEN $6::boolean THEN q.agent_id END)), q.causation_id, $7
FROM unnest($8::text[], $9::text[]) AS n (id, request)
JOIN wakeup_requests q ON q.id = n.request
RETURNING subject_id, agent_id, causation_id`
	noted, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) ([]any, error) {
		var request, agent, causation xid.ID
		err := rows.Scan(&request, &agent, &causation)
		return []any{"wakeup_id", request, "agent_id", agent, "workspace_id", workspaceID, "causation_id", causation}, err
	}, query, code, summary, by.kind, by.name, string(reason), code == domain.ActivityCodeWakeupRetryCancelled, t.Now, pgtx.IDs(newIDs("act", len(requests))),
		pgtx.IDs(requests))
	if err != nil {
		return fmt.Errorf("append activities %s: %w", code, err)
	}
	t.onCommit(func(s *base) {
		for _, keys := range noted {
			s.tell(code, reason, keys...)
		}
	})
	t.fed(workspaceID)
	return nil
}

// tellDropped writes a line into the log for each of a run's requests that ended without a launch.
func (t *tx) tellDropped(run runRow, requests []xid.ID, code domain.ActivityCode, reason domain.EndReason) {
	t.onCommit(func(s *base) {
		for _, request := range requests {
			s.tell(code, reason, keysOf(run, "wakeup_id", request)...)
		}
	})
}

// noActionableTasks is why an idle agent is not launched, as the log spells it.
const noActionableTasks = "no_actionable_tasks"

// tellSettled is tellDropped for a run that was settled. The line of an idle skip names the agent, for those who read logs
// alone.
func (t *tx) tellSettled(ctx context.Context, run runRow, requests []xid.ID, s domain.Settlement) error {
	if s.Activity != domain.ActivityCodeWakeupIdleSkipped {
		t.tellDropped(run, requests, s.Activity, s.Reason)
		return nil
	}
	name, err := pgtx.QueryOne[string](ctx, t, `SELECT name FROM agents WHERE id = $1`, run.agentID)
	if err != nil {
		return fmt.Errorf("read the agent's name: %w", err)
	}
	t.onCommit(func(s *base) {
		for _, request := range requests {
			s.log.Info("wakeup_idle_skipped", keysOf(run, "wakeup_id", request, "agent_name", name, "reason", noActionableTasks)...)
		}
	})
	return nil
}
