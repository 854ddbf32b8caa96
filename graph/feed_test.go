package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lib/pq"
	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/xid"
)

// act is a mutation, what has happened when it comes, and what the feed tells of it: whose kind, code, members of the data, in the
// order of the codes. Silent says why it tells nothing.
type act struct {
	mutation string
	when     string // "" : it is the only row of the mutation, or the usual one
	input    func(w *feedWorld) map[string]any
	tells    []string
	silent   string
}

// acts are all mutations of the API. What an act tells beside itself (a wake that it causes, an item in the inbox) is listed, too.
var acts = []act{
	{mutation: "createAgent", input: func(w *feedWorld) map[string]any { return w.in("name", "Ada", "role", "COORDINATOR") },
		tells: []string{"USER AGENT_CHANGED agent created name role", "USER ROUTINE_CHANGED agent created name routineId triggers"}},
	{mutation: "updateAgent", input: func(w *feedWorld) map[string]any { return of("agentId", w.ada(), "name", "Eve") },
		tells: []string{"USER AGENT_CHANGED agent changed"}},
	{mutation: "pauseAgent", input: func(w *feedWorld) map[string]any { return of("agentId", w.ada(), "note", "lunch") },
		tells: []string{"USER AGENT_PAUSED agent note pauseReason status"}},
	{mutation: "stopAgent", input: func(w *feedWorld) map[string]any { return of("agentId", w.ada(), "note", "for good") },
		tells: []string{"USER AGENT_CHANGED agent note status"}},
	{mutation: "resumeAgent", input: func(w *feedWorld) map[string]any {
		id := w.ada()
		w.must("pauseAgent", "__typename", of("agentId", id))
		return of("agentId", id)
	}, tells: []string{"USER AGENT_RESUMED agent resent resentRequestIds was"}},
	{mutation: "pauseAgents", when: "of which one is stopped", input: func(w *feedWorld) map[string]any {
		stopped := w.agent("Eve")
		w.must("stopAgent", "__typename", of("agentId", stopped))
		return of("agentIds", []string{w.ada(), stopped}, "note", "lunch")
	}, tells: []string{"USER AGENT_PAUSED agent note pauseReason status"}},
	{mutation: "resumeAgents", input: func(w *feedWorld) map[string]any {
		ids := []string{w.ada(), w.agent("Eve")}
		w.must("pauseAgents", "__typename", of("agentIds", ids))
		return of("agentIds", ids)
	}, tells: []string{"USER AGENT_RESUMED agent was", "USER AGENT_RESUMED agent was"}},
	{mutation: "deleteAgent", when: "with a queued run", input: func(w *feedWorld) map[string]any {
		id := w.ada()
		w.wake(id)
		return of("agentId", id)
	}, tells: []string{"USER AGENT_CHANGED agent askedToEndRunIds cancelledRunIds deleted runsAskedToEnd runsCancelled", "USER RUN_CANCELLED agent reason"}},
	{mutation: "wakeAgent", input: func(w *feedWorld) map[string]any { return of("agentId", w.ada(), "userId", "ann") },
		tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source", "USER WAKEUP_REQUESTED agent source userId wakeupRequestId"}},

	{mutation: "requestApproval", input: func(w *feedWorld) map[string]any {
		agent := w.ada()
		return of("taskId", w.build(""), "requestedByAgentId", agent, "note", "May I?")
	}, tells: []string{"SYSTEM INBOX_ITEM_MADE agent inboxItemId kind subjectId task_id title", "USER APPROVAL_REQUESTED agent approvalId completion task_id"}},
	{mutation: "decideApproval", when: "of an agent's question", input: func(w *feedWorld) map[string]any {
		w.asked(w.build(""), w.ada())
		return of("approvalId", w.newest("approvals"), "decision", "APPROVE")
	}, tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source", "USER APPROVAL_DECIDED agent approvalId completion status task_id",
		"USER INBOX_ITEM_HANDLED agent inboxItemId kind subjectId task_id title"}},
	{mutation: "decideApproval", when: "of a completion", input: func(w *feedWorld) map[string]any {
		task := w.newTask("Build", of("requiresApproval", true)).Task.ID
		w.must("moveTask", "__typename", of("taskId", task, "to", "DONE"))
		return of("approvalId", w.newest("approvals"), "decision", "APPROVE")
	}, tells: []string{"USER APPROVAL_DECIDED approvalId completion status task_id", "USER INBOX_ITEM_HANDLED inboxItemId kind subjectId task_id title",
		"USER TASK_CHANGED from step task_id to"}},

	{mutation: "upsertBudget", input: func(w *feedWorld) map[string]any { return of("subject", of("agentId", w.ada()), "limitUsd", "1") },
		tells: []string{"USER BUDGET_CHANGED agent budgetId created limitUsd onExceed period subjectId subjectKind"}},
	{mutation: "upsertBudget", when: "that is crossed at once", input: func(w *feedWorld) map[string]any {
		id := w.ada()
		w.spent(id, "5")
		return of("subject", of("agentId", id), "limitUsd", "1", "alertThresholds", []int{100})
	}, tells: []string{"SYSTEM BUDGET_THRESHOLD agent budgetId limitUsd spentUsd subjectId subjectKind threshold", "SYSTEM INBOX_ITEM_MADE agent inboxItemId kind subjectId title",
		"USER BUDGET_CHANGED agent budgetId created limitUsd onExceed period subjectId subjectKind"}},
	{mutation: "deleteBudget", input: func(w *feedWorld) map[string]any {
		w.must("upsertBudget", "__typename", of("subject", of("agentId", w.ada()), "limitUsd", "1"))
		return of("budgetId", w.newest("budget_policies"))
	}, tells: []string{"USER BUDGET_CHANGED agent budgetId deleted limitUsd onExceed period subjectId subjectKind"}},

	{mutation: "commentOnTask", input: func(w *feedWorld) map[string]any {
		return of("taskId", w.build(w.ada()), "userId", "ann", "body", "Hello")
	},
		tells: []string{"SYSTEM WAKEUP_COALESCED agent runId source task_id", "USER TASK_COMMENTED agent commentId task_id"}},
	{mutation: "testExecutor", input: func(w *feedWorld) map[string]any { return of("agentId", w.ada()) },
		tells: []string{"USER EXECUTOR_TESTED agent checks executor failed"}},
	{mutation: "resolveInboxItems", input: func(w *feedWorld) map[string]any {
		w.asked(w.build(""), w.ada())
		return of("ids", []string{w.newest("inbox_items")})
	}, tells: []string{"USER INBOX_ITEM_HANDLED agent inboxItemId kind subjectId task_id title"}},

	{mutation: "createNotificationChannel", input: func(w *feedWorld) map[string]any {
		return w.in("name", "Phone", "runFailures", true, "target", of("webhook", of("url", "https://example.com/hook")))
	}, tells: []string{"USER NOTIFICATION_CHANNEL_CHANGED channelId created kind name"}},
	{mutation: "updateNotificationChannel", input: func(w *feedWorld) map[string]any { return of("channelId", w.phone(), "enabled", false) },
		tells: []string{"USER NOTIFICATION_CHANNEL_CHANGED changed channelId"}},
	{mutation: "deleteNotificationChannel", input: func(w *feedWorld) map[string]any { return of("channelId", w.phone()) },
		tells: []string{"USER NOTIFICATION_CHANNEL_CHANGED channelId deleted kind name"}},
	{mutation: "testNotificationChannel", input: func(w *feedWorld) map[string]any { return of("channelId", w.phone()) },
		tells: []string{"USER NOTIFICATION_CHANNEL_TESTED channelId delivered"}},

	{mutation: "createProject", input: func(w *feedWorld) map[string]any { return w.in("name", "Site") },
		tells: []string{"USER PROJECT_CHANGED created name projectId"}},
	{mutation: "updateProject", input: func(w *feedWorld) map[string]any {
		w.must("createProject", "__typename", w.in("name", "Site"))
		return of("projectId", w.newest("projects"), "name", "Shop")
	}, tells: []string{"USER PROJECT_CHANGED changed projectId"}},

	{mutation: "createRoutine", input: func(w *feedWorld) map[string]any {
		return w.in("name", "Daily", "assigneeId", w.ada(), "triggers", []any{scheduled("0 9 * * *", "UTC")})
	}, tells: []string{"USER ROUTINE_CHANGED agent created name routineId triggers"}},
	{mutation: "updateRoutine", input: func(w *feedWorld) map[string]any { return of("routineId", w.daily().ID, "name", "Weekly") },
		tells: []string{"USER ROUTINE_CHANGED agent changed routineId"}},
	{mutation: "pauseRoutine", input: func(w *feedWorld) map[string]any { return of("routineId", w.daily().ID) },
		tells: []string{"USER ROUTINE_CHANGED agent routineId status"}},
	{mutation: "resumeRoutine", input: func(w *feedWorld) map[string]any {
		id := w.daily().ID
		w.must("pauseRoutine", "__typename", of("routineId", id))
		return of("routineId", id)
	}, tells: []string{"USER ROUTINE_CHANGED agent routineId status"}},
	{mutation: "archiveRoutine", input: func(w *feedWorld) map[string]any { return of("routineId", w.daily().ID) },
		tells: []string{"USER ROUTINE_CHANGED agent routineId status"}},
	{mutation: "deleteRoutine", input: func(w *feedWorld) map[string]any { return of("routineId", w.daily().ID) },
		tells: []string{"USER ROUTINE_CHANGED agent cancelledRunIds deleted routineId runsCancelled"}},
	{mutation: "fireRoutine", input: func(w *feedWorld) map[string]any { return of("routineId", w.daily().ID) },
		tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source", "USER ROUTINE_FIRED agent routineId source status"}},
	{mutation: "fireRoutine", when: "that the policy skips", input: func(w *feedWorld) map[string]any {
		r := w.routine(w.ada(), of("concurrencyPolicy", "SKIP_IF_ACTIVE"))
		w.must("fireRoutine", "__typename", of("routineId", r.ID))
		return of("routineId", r.ID)
	}, tells: []string{"USER ROUTINE_FIRED agent heldBy reason routineId source status"}},
	{mutation: "backfillRoutine", input: func(w *feedWorld) map[string]any {
		r := w.routine(w.ada(), of("triggers", []any{scheduled("0 9 * * *", "UTC")}))
		return of("routineId", r.ID, "triggerId", r.Triggers[0].ID, "from", "2026-01-05T00:00:00Z", "until", "2026-01-06T00:00:00Z", "dryRun", false)
	}, tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source", "USER ROUTINE_FIRED agent routineId source status triggerId"}},
	{mutation: "createTrigger", input: func(w *feedWorld) map[string]any {
		return of("routineId", w.routine(w.ada(), nil).ID, "spec", scheduled("0 9 * * *", "UTC"))
	}, tells: []string{"USER TRIGGER_CHANGED agent created routineId triggerId"}},
	{mutation: "updateTrigger", input: func(w *feedWorld) map[string]any {
		w.daily()
		return of("triggerId", w.newest("routine_triggers"), "enabled", false)
	},
		tells: []string{"USER TRIGGER_CHANGED agent changed routineId triggerId"}},
	{mutation: "deleteTrigger", input: func(w *feedWorld) map[string]any { w.daily(); return of("triggerId", w.newest("routine_triggers")) },
		tells: []string{"USER TRIGGER_CHANGED agent deleted routineId triggerId"}},
	{mutation: "rotateTriggerSecret", input: func(w *feedWorld) map[string]any {
		w.routine(w.ada(), of("triggers", []any{of("webhook", of("signingMode", "BEARER"))}))
		return of("triggerId", w.newest("routine_triggers"))
	}, tells: []string{"USER TRIGGER_SECRET_ROTATED agent overlap routineId triggerId"}},

	{mutation: "cancelRun", when: "of a queued run", input: func(w *feedWorld) map[string]any { return of("runId", w.wake(w.ada()), "note", "not now") },
		tells: []string{"USER RUN_CANCELLED agent note reason"}},
	{mutation: "cancelRun", when: "of a live run", input: func(w *feedWorld) map[string]any { return of("runId", w.leased().Run.ID, "note", "not now") },
		tells: []string{"USER RUN_CANCEL_REQUESTED agent note reason"}},
	{mutation: "retryRun", when: "of a parked run", input: func(w *feedWorld) map[string]any {
		lease := w.leased()
		w.report("reportRunFailed", "retryAt", lease.input(), of("message", "no"))
		return of("runId", lease.Run.ID, "note", "now")
	}, tells: []string{"USER WAKEUP_RETRY_SCHEDULED agent note until was"}},
	{mutation: "retryRun", when: "of a run that has ended", input: func(w *feedWorld) map[string]any {
		run := w.wake(w.ada())
		w.must("cancelRun", "__typename", of("runId", run))
		return of("runId", run)
	}, tells: []string{"USER WAKEUP_RESENT agent", "USER WAKEUP_RETRY_SCHEDULED agent resent resentRequestIds was"}},

	{mutation: "pauseRoutines", input: func(w *feedWorld) map[string]any { return of("routineIds", []string{w.daily().ID}) },
		tells: []string{"USER ROUTINE_CHANGED agent routineId status"}},
	{mutation: "resumeRoutines", input: func(w *feedWorld) map[string]any {
		ids := []string{w.daily().ID}
		w.must("pauseRoutines", "__typename", of("routineIds", ids))
		return of("routineIds", ids)
	}, tells: []string{"USER ROUTINE_CHANGED agent routineId status"}},
	{mutation: "cancelRuns", when: "of which one is live", input: func(w *feedWorld) map[string]any {
		w.leased()
		w.wake(w.ada())
		return w.in("filter", of(), "dryRun", false, "note", "enough")
	}, tells: []string{"USER RUN_CANCELLED agent note reason", "USER RUN_CANCEL_REQUESTED agent note reason"}},
	{mutation: "retryRuns", when: "of which one is due", input: func(w *feedWorld) map[string]any {
		w.wake(w.ada())
		w.must("cancelRuns", "__typename", w.in("filter", of(), "dryRun", false))
		w.wake(w.agent("Eve"))
		return w.in("filter", of(), "dryRun", false)
	}, tells: []string{"USER WAKEUP_RESENT agent", "USER WAKEUP_RETRY_SCHEDULED agent resent resentRequestIds was"}},
	{mutation: "holdWorkspace", when: "with a live run", input: func(w *feedWorld) map[string]any {
		w.leased()
		return w.in("note", "incident", "cancelLive", true)
	}, tells: []string{"USER RUN_CANCEL_REQUESTED agent note reason", "USER WORKSPACE_HELD fires note since"}},
	{mutation: "releaseWorkspace", input: func(w *feedWorld) map[string]any {
		w.must("holdWorkspace", "__typename", w.in())
		return w.in("note", "over")
	}, tells: []string{"USER WORKSPACE_RELEASED fires note since"}},

	{mutation: "createTask", input: func(w *feedWorld) map[string]any { return w.in("title", "Build", "assigneeId", w.ada()) },
		tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source task_id", "USER TASK_CHANGED agent created task_id"}},
	{mutation: "updateTask", input: func(w *feedWorld) map[string]any { return of("taskId", w.build(""), "title", "Test") },
		tells: []string{"USER TASK_CHANGED changed task_id"}},
	{mutation: "assignTask", when: "of a task that another agent waits for", input: func(w *feedWorld) map[string]any {
		task := w.build(w.ada())
		return of("taskId", task, "assigneeId", w.agent("Eve"))
	}, tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source task_id", "USER TASK_CHANGED agent from task_id to", "USER WAKEUP_STALE_CANCELLED agent reason task_id"}},
	{mutation: "assignTask", when: "of a task that another agent was to try again", input: func(w *feedWorld) map[string]any {
		task := w.build(w.pullAgent())
		lease, _ := w.acquire(nil)
		w.report("reportRunFailed", "retryAt", lease.input(), of("message", "no"))
		return of("taskId", task, "assigneeId", w.agent("Eve"))
	}, tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source task_id", "USER TASK_CHANGED agent from task_id to", "USER WAKEUP_RETRY_CANCELLED agent old_agent reason task_id"}},
	{mutation: "moveTask", when: "to its end, while a run waits", input: func(w *feedWorld) map[string]any { return of("taskId", w.build(w.ada()), "to", "DONE") },
		tells: []string{"USER TASK_CHANGED agent from step task_id to", "USER WAKEUP_STALE_CANCELLED agent reason task_id"}},
	{mutation: "moveTask", when: "to its end, which needs an approval", input: func(w *feedWorld) map[string]any {
		return of("taskId", w.newTask("Build", of("requiresApproval", true)).Task.ID, "to", "DONE")
	}, tells: []string{"SYSTEM INBOX_ITEM_MADE inboxItemId kind subjectId task_id title", "USER APPROVAL_REQUESTED approvalId completion task_id",
		"USER TASK_CHANGED from step task_id to"}},
	{mutation: "setTaskBlockers", input: func(w *feedWorld) map[string]any {
		blocker := w.build("")
		return of("taskId", w.newTask("Test", nil).Task.ID, "blockedByIds", []string{blocker})
	}, tells: []string{"USER TASK_CHANGED blockedBy task_id"}},
	{mutation: "setTaskParticipants", input: func(w *feedWorld) map[string]any {
		return of("taskId", w.build(""), "reviewerIds", []string{w.ada()}, "approverIds", []string{})
	}, tells: []string{"USER TASK_CHANGED approvers reviewers task_id"}},
	{mutation: "archiveTask", input: func(w *feedWorld) map[string]any { return of("taskId", w.build("")) },
		tells: []string{"USER TASK_CHANGED archived task_id"}},
	{mutation: "queueRun", input: func(w *feedWorld) map[string]any {
		task := w.build("")
		return of("taskId", task, "agentId", w.ada(), "reason", "once more")
	}, tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source task_id", "USER WAKEUP_REQUESTED agent note source task_id wakeupRequestId"}},

	{mutation: "createApiToken", input: func(w *feedWorld) map[string]any { return w.in("name", "ci", "scopes", []string{"READ"}) },
		tells: []string{"USER TOKEN_CREATED name prefix scopes tokenId"}},
	{mutation: "createApiToken", when: "of the instance", input: func(*feedWorld) map[string]any { return of("name", "ci", "scopes", []string{"READ"}) },
		silent: "it belongs to no workspace; the log has it"},
	{mutation: "revokeApiToken", input: func(w *feedWorld) map[string]any {
		w.must("createApiToken", "__typename", w.in("name", "ci", "scopes", []string{"READ"}))
		return of("apiTokenId", w.newest("api_tokens"))
	}, tells: []string{"USER TOKEN_REVOKED name prefix scopes tokenId"}},

	{mutation: "acquireRun", input: func(w *feedWorld) map[string]any { w.wake(w.pullAgent()); return w.in("queue", "gpu") },
		tells: []string{"SYSTEM RUN_CLAIMED agent attempt queue", "SYSTEM RUN_LAUNCHED agent attempt executor wakeupRequests"}},
	{mutation: "reportRunStarted", input: func(w *feedWorld) map[string]any { return w.reported("sessionId", "s-1") }, silent: "the run's own events have it"},
	{mutation: "reportRunHeartbeat", input: func(w *feedWorld) map[string]any { return w.reported() }, silent: "it changes nothing but the lease"},
	{mutation: "reportRunProgress", input: func(w *feedWorld) map[string]any { return w.reported("firstSequence", 1) }, silent: "the run's log and events have it"},
	{mutation: "reportRunSucceeded", input: func(w *feedWorld) map[string]any { return w.reported("result", of("summary", "done")) },
		tells: []string{"SYSTEM RUN_FINISHED agent attempt outcome"}},
	{mutation: "reportRunFailed", when: "for now", input: func(w *feedWorld) map[string]any { return w.reported("message", "no") },
		tells: []string{"SYSTEM WAKEUP_RETRY_SCHEDULED agent code failures source until"}},
	{mutation: "reportRunFailed", when: "because of a limit", input: func(w *feedWorld) map[string]any {
		return w.reported("message", "no", "code", "RATE_LIMITED", "retryAfter", "PT1H")
	}, tells: []string{"SYSTEM WAKEUP_RETRY_SCHEDULED agent code failures limits source until"}},
	{mutation: "reportRunFailed", when: "for good", input: func(w *feedWorld) map[string]any { return w.reported("message", "no", "permanent", true) },
		tells: []string{"SYSTEM INBOX_ITEM_MADE agent inboxItemId kind subjectId title", "SYSTEM RUN_FAILED agent code reason"}},
	{mutation: "reportRunWorkingCopy", input: func(w *feedWorld) map[string]any {
		return w.reported("path", "/work/run_1", "repository", "/srv/app", "branch", "rouse/run_1", "headBefore", strings.Repeat("a", 40))
	}, silent: "the run shows it"},
	{mutation: "reportWorkingCopies", when: "of one that is kept", input: func(w *feedWorld) map[string]any {
		return w.in("kept", []any{of("name", "run_1-app", "ownerId", w.leased().Run.ID, "path", "/work/run_1", "reason", "it has a commit that was not pushed")})
	}, tells: []string{"SYSTEM INBOX_ITEM_MADE inboxItemId kind subjectId title"}},
	{mutation: "wakeSelf", input: func(w *feedWorld) map[string]any { w.actsByItsRun(); return of("reason", "look again") },
		tells: []string{"SYSTEM WAKEUP_QUEUED agent runId source"}},
	{mutation: "addLink", input: func(w *feedWorld) map[string]any {
		w.actsByItsRun()
		return of("kind", "PREVIEW", "url", "https://example.com/1")
	}, silent: "the run, its task and the run's own events have it"},
	{mutation: "noteProgress", input: func(w *feedWorld) map[string]any {
		w.actsByItsRun()
		return of("progress", of("message", "half of it"))
	}, silent: "the run's own events have it"},
	{mutation: "reportRunHandedBack", input: func(w *feedWorld) map[string]any { return w.reported() }, silent: "the run's own events have it; it is claimed again"},

	{mutation: "createWorkflow", input: func(w *feedWorld) map[string]any {
		return w.in("name", "Flow", "steps", []any{of("name", "To do", "state", "TODO")})
	}, tells: []string{"USER WORKFLOW_CHANGED created kind name steps workflowId"}},
	{mutation: "createWorkspace", input: func(*feedWorld) map[string]any { return of("name", "Another one") },
		tells: []string{"USER WORKSPACE_CREATED name officeWorkflow slug workspaceId"}},
	{mutation: "updateWorkspaceSettings", input: func(w *feedWorld) map[string]any { return w.in("maxConcurrentRuns", 3) },
		tells: []string{"USER SETTINGS_CHANGED changed"}},
}

// of makes an input of names and values in turn.
func of(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// feedWorld prepares acts. Each has a workspace of its own.
type feedWorld struct{ *world }

// in is an input of the workspace.
func (w *feedWorld) in(pairs ...any) map[string]any {
	return of(append(pairs, "workspaceId", w.workspace)...)
}

func (w *feedWorld) ada() string { return w.agent("Ada") }

// build makes a task, assigned to an agent unless that is "".
func (w *feedWorld) build(agent string) string {
	var more map[string]any
	if agent != "" {
		more = of("assigneeId", agent)
	}
	return w.newTask("Build", more).Task.ID
}

func (w *feedWorld) asked(task, agent string) {
	w.must("requestApproval", "__typename", of("taskId", task, "requestedByAgentId", agent, "note", "May I?"))
}

// daily is a routine with a schedule.
func (w *feedWorld) daily() shownRoutine {
	return w.routine(w.ada(), of("triggers", []any{scheduled("0 9 * * *", "UTC")}))
}

// phone is a channel that tells of failed runs.
func (w *feedWorld) phone() string {
	w.must("createNotificationChannel", "__typename", w.in("name", "Phone", "runFailures", true, "target", of("webhook", of("url", "https://example.com/hook", "secret", "hunter2-hunter2-hunter2"))))
	return w.newest("notification_channels")
}

// leased is a run that a worker has taken.
func (w *feedWorld) leased() *leaseAnswer {
	w.t.Helper()
	w.wake(w.pullAgent())
	lease, problems := w.acquire(nil)
	if lease == nil {
		w.t.Fatal(problems)
	}
	return lease
}

// actsByItsRun lets an agent act by the token of its run.
func (w *feedWorld) actsByItsRun() {
	w.t.Helper()
	run := w.leased().Run.ID
	agent := w.one(`SELECT agent_id FROM runs WHERE id = '` + run + `'`)
	w.Client = w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent), RunID: xid.ID(run), Attempt: 1})
}

// reported is the input of a worker's report about its run.
func (w *feedWorld) reported(pairs ...any) map[string]any {
	return of(append(pairs, "lease", w.leased().input())...)
}

// newest is the id of the workspace's newest record of a table.
func (w *feedWorld) newest(table string) (id string) {
	w.t.Helper()
	w.ok(w.db.QueryRowContext(w.t.Context(), `SELECT id FROM `+table+` WHERE workspace_id = $1 ORDER BY id DESC LIMIT 1`, w.workspace).Scan(&id))
	return id
}

// told is what the feed has, by the entries' ids.
func (w *feedWorld) told() map[string]string {
	w.t.Helper()
	rows, err := w.db.QueryContext(w.t.Context(), `
SELECT id, actor_kind || ' ' || code, ARRAY(SELECT jsonb_object_keys(data) ORDER BY 1) FROM activities`)
	w.ok(err)
	defer rows.Close()
	told := map[string]string{}
	for rows.Next() {
		var id, what string
		var members []string
		w.ok(rows.Scan(&id, &what, pq.Array(&members)))
		told[id] = strings.Join(append([]string{what}, members...), " ")
	}
	w.ok(rows.Err())
	return told
}

// tells does something and returns what the feed has got by it.
func (w *feedWorld) tells(do func()) []string {
	w.t.Helper()
	before := w.told()
	do()
	added := []string{}
	for id, line := range w.told() {
		if _, known := before[id]; !known {
			added = append(added, line)
		}
	}
	slices.Sort(added)
	return added
}

// Every act that comes through the API is told in the feed, by whom and with details for programs; one that is repeated since its
// answer was lost is told once. A mutation that the table does not have fails the test: decide what the feed tells of it.
func TestTheFeedTellsOfEveryMutation(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutableSchema(graph.Config{}).Schema()
	listed := map[string]bool{}
	for _, a := range acts {
		listed[a.mutation] = true
		if (len(a.tells) == 0) != (a.silent != "") {
			t.Errorf("%s %s: say what it tells, or why it tells nothing", a.mutation, a.when)
		}
	}
	for _, f := range schema.Mutation.Fields {
		if !strings.HasPrefix(f.Name, "__") && !listed[f.Name] {
			t.Errorf("the table does not have the mutation %s", f.Name)
		}
	}
	all := newWorld(t)
	for i, a := range acts {
		t.Run(strings.TrimSpace(a.mutation+" "+a.when), func(t *testing.T) {
			fresh := *all
			fresh.t = t
			w := &feedWorld{&fresh}
			w.workspace = w.makeWorkspace(fmt.Sprint("Workspace ", i))
			w.sql(`UPDATE workspaces SET coalescing_window_ms = 0`)
			input := a.input(w)
			repeatable := takesKey(schema, a.mutation)
			if repeatable {
				input["idempotencyKey"] = string(xid.New("key"))
			}
			call := func() { w.must(a.mutation, "__typename", input) }
			if got := w.tells(call); !slices.Equal(got, a.tells) && len(got)+len(a.tells) > 0 {
				t.Errorf("the feed tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(a.tells, "\n"))
			}
			if !repeatable {
				return
			}
			if got := w.tells(call); len(got) > 0 {
				t.Errorf("of the repeated call the feed tells\n%s", strings.Join(got, "\n"))
			}
		})
	}
	if secrets := all.one(`SELECT count(*)::text FROM activities WHERE data::text || summary ~ 'rs[erl]_[0-9A-Za-z_-]{43}' OR data::text || summary LIKE '%hunter2%'`); secrets != "0" {
		t.Errorf("%s entries of the feed have a secret", secrets)
	}
}

// takesKey says whether a mutation's input has an idempotency key.
func takesKey(schema *ast.Schema, mutation string) bool {
	for _, a := range schema.Mutation.Fields.ForName(mutation).Arguments {
		if d := schema.Types[a.Type.Name()]; d != nil && d.Fields.ForName("idempotencyKey") != nil {
			return true
		}
	}
	return false
}

// Who acts by a token is named, also where a workspace's token is made or ended, and what an entry is about has a type.
func TestWhatTheNewEntriesAreAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("createProject", "__typename", map[string]any{"workspaceId": w.workspace, "name": "Site"})
	w.must("createWorkflow", "__typename", map[string]any{"workspaceId": w.workspace, "name": "Flow", "steps": []any{map[string]any{"name": "To do", "state": "TODO"}}})
	w.must("requestApproval", "__typename", map[string]any{"taskId": w.newTask("Build", nil).Task.ID, "requestedByAgentId": w.agent("Ada"), "note": "May I?"})
	var out struct {
		Workspace struct {
			Activity struct {
				Edges []struct {
					Node struct {
						Code    string
						Subject struct{ Typename string }
					}
				}
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { activity(first: 50) { edges { node { code subject { typename: __typename } } } } } }`, map[string]any{"id": w.workspace}, &out)
	got := map[string]string{}
	for _, e := range out.Workspace.Activity.Edges {
		got[e.Node.Code] = e.Node.Subject.Typename
	}
	for code, want := range map[string]string{"PROJECT_CHANGED": "Project", "WORKFLOW_CHANGED": "Workflow", "WORKSPACE_CREATED": "Workspace", "INBOX_ITEM_MADE": "InboxItem", "APPROVAL_REQUESTED": "Approval"} {
		if got[code] != want {
			t.Errorf("%s is about %q, want %s", code, got[code], want)
		}
	}
}
