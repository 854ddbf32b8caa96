-- +goose Up
-- Indexes of the filters and orders of the API's lists. Each is built under a lock that keeps writers out of its table
-- (docs/operations.md, Upgrade). Items of the inbox learn which agent they concern from the feed.
CREATE INDEX runs_of_agent_apart ON runs (agent_id, status, requested_at, id) WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX runs_by_error ON runs (workspace_id, error_code, requested_at, id) WHERE error_code IS NOT NULL;
CREATE INDEX runs_by_outcome ON runs (workspace_id, outcome, requested_at, id) WHERE outcome IS NOT NULL AND outcome <> 'processed';
CREATE INDEX runs_by_source ON runs (workspace_id, source, wake_class, requested_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_by_duration ON runs (workspace_id, ((extract(epoch FROM finished_at - claimed_at) * 1000000)::bigint), id) WHERE finished_at - claimed_at >= interval '1 second';
CREATE INDEX runs_by_cost ON runs (workspace_id, cost_usd, id) WHERE cost_usd > 0;
CREATE INDEX wakeup_requests_by_reason ON wakeup_requests (workspace_id, end_reason, requested_at, id) WHERE end_reason IS NOT NULL;
CREATE INDEX wakeup_requests_recovered ON wakeup_requests (workspace_id, requested_at, id) WHERE recovered;
CREATE INDEX wakeup_requests_of_routine ON wakeup_requests (routine_id, requested_at, id) WHERE routine_id IS NOT NULL;
DROP INDEX wakeuprequest_task_id;
CREATE INDEX wakeup_requests_of_task ON wakeup_requests (task_id, requested_at, id) WHERE task_id IS NOT NULL;
CREATE INDEX activities_routine ON activities ((data ->> 'routineId'), occurred_at, id) WHERE code IN ('ROUTINE_CHANGED', 'ROUTINE_FIRED', 'TRIGGER_CHANGED', 'TRIGGER_SECRET_ROTATED', 'WEBHOOK_REJECTED');
CREATE INDEX activities_actor ON activities (workspace_id, actor, occurred_at, id) WHERE actor_kind <> 'SYSTEM';
ALTER TABLE inbox_items ADD COLUMN agent_id character varying NULL;
UPDATE inbox_items i SET agent_id = a.agent_id FROM activities a WHERE a.subject_id = i.id AND a.code = 'INBOX_ITEM_MADE' AND a.agent_id IS NOT NULL;
CREATE INDEX inbox_items_of_agent ON inbox_items (workspace_id, agent_id, created_at, id) WHERE agent_id IS NOT NULL;
CREATE INDEX task_reviewers_of_agent ON task_reviewers (agent_id, task_id);
CREATE INDEX task_approvers_of_agent ON task_approvers (agent_id, task_id);
CREATE INDEX tasks_to_approve ON tasks (workspace_id, id) WHERE requires_approval;
CREATE INDEX approvals_by_status ON approvals (workspace_id, status, created_at, id);
CREATE INDEX approvals_listed ON approvals (workspace_id, created_at, id);

-- +goose Down
DROP INDEX approvals_listed;
DROP INDEX approvals_by_status;
DROP INDEX tasks_to_approve;
DROP INDEX task_approvers_of_agent;
DROP INDEX task_reviewers_of_agent;
DROP INDEX inbox_items_of_agent;
ALTER TABLE inbox_items DROP COLUMN agent_id;
DROP INDEX activities_actor;
DROP INDEX activities_routine;
DROP INDEX wakeup_requests_of_task;
CREATE INDEX wakeuprequest_task_id ON wakeup_requests (task_id) WHERE task_id IS NOT NULL;
DROP INDEX wakeup_requests_of_routine;
DROP INDEX wakeup_requests_recovered;
DROP INDEX wakeup_requests_by_reason;
DROP INDEX runs_by_cost;
DROP INDEX runs_by_duration;
DROP INDEX runs_by_source;
DROP INDEX runs_by_outcome;
DROP INDEX runs_by_error;
DROP INDEX runs_of_agent_apart;
