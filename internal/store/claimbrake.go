package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// parkBraked lets a run that nobody attends to wait until its agent's window of such launches is over, and tells a person, once in a
// window, what was found (SPEC S3.10).
func (c *claimer) parkBraked(ctx context.Context, l lane, run runRow, limit domain.LaunchLimit) error {
	window := l.window(&limit, c.Now)
	until, _ := window.Full()
	const park = `
UPDATE runs
SET parked_reason = 'LOOP_BREAKER', parked_until = $2, revision = revision + 1
WHERE id = $1 AND status = 'QUEUED'`
	if err := pgtx.ExecOne(ctx, c, park, run.id, until); err != nil {
		return fmt.Errorf("park run until the agent may be launched again: %w", err)
	}
	if err := c.runEvent(ctx, run, domain.RunEventKindGuard, 0, map[string]any{"parked": domain.ParkedReasonLoopBreaker, "until": until}); err != nil {
		return err
	}
	if err := c.tellLoop(ctx, run, limit, window.Since, until); err != nil {
		return err
	}
	return c.releaseScope(ctx, run.agentID, run.scope)
}

// countLaunches writes down how many unattended launches a locked lane has had.
func (c *claimer) countLaunches(ctx context.Context, l *lane) error {
	const query = `UPDATE agent_lanes SET launches = $2, launches_since = $3 WHERE agent_id = $1`
	return pgtx.Wrap("count unattended launches", pgtx.ExecOne(ctx, c, query, l.agentID, l.launches, l.launchesSince))
}

// tellLoop puts into the inbox what an agent was launched by so often. There is one item for a window, for good: its id is made of
// both, so that it is not made again after it was handled.
func (c *claimer) tellLoop(ctx context.Context, run runRow, limit domain.LaunchLimit, since, until time.Time) error {
	window := string(run.agentID) + " " + strconv.FormatInt(since.UnixMicro(), 10)
	id := xid.Derived("inb", "launches "+window)
	told, err := pgtx.QueryOne[bool](ctx, c, `SELECT EXISTS (SELECT 1 FROM inbox_items WHERE id = $1)`, id)
	if err != nil || told {
		return pgtx.Wrap("look whether a person was told of the loop", err)
	}
	loop, err := c.findLoop(ctx, run, since)
	if err != nil {
		return err
	}
	loop.Limit, loop.Span, loop.Until = limit, c.Now.Sub(since), until
	loop.CausationID = string(run.causationID)
	title, body := loop.Text()
	return c.inbox(ctx, item{id: id, workspaceID: run.workspaceID, kind: domain.InboxKindLoopBreaker, dedupe: "launches:" + window, title: title, body: body,
		subject: run.agentID, causationID: run.causationID, about: run.agentID, taskID: run.taskID})
}

// loopQuery groups the unattended launches of the window by what caused them, among an agent's newest runs. A run has descended from
// another one of its agent when an earlier hop of its chain was one.
const loopQuery = `
-- $1 agent, $2 when the window began, $3 how many runs are looked at
SELECT r.source, coalesce(o.name, ''), r.own, count(*)
FROM (
  SELECT n.source, n.routine_id,
    EXISTS (
      SELECT 1
      FROM runs p
      WHERE p.causation_id = n.causation_id AND p.agent_id = n.agent_id AND p.hops < n.hops) AS own
  FROM (
    SELECT source, routine_id, causation_id, agent_id, hops, unattended, claimed_at
    FROM runs
    WHERE agent_id = $1
    ORDER BY requested_at DESC, id DESC
    LIMIT $3) n
  WHERE n.unattended AND n.claimed_at >= $2) r
LEFT JOIN routines o ON o.id = r.routine_id
GROUP BY 1, 2, 3
ORDER BY 4 DESC, 1, 2, 3
LIMIT 1`

// loopRuns bounds the runs in which a loop's pattern is looked for.
const loopRuns = 500

func (c *claimer) findLoop(ctx context.Context, run runRow, since time.Time) (domain.LaunchLoop, error) {
	found, err := pgtx.Collect(ctx, c, func(rows *sql.Rows) (f domain.LaunchLoop, err error) {
		return f, rows.Scan(&f.Source, &f.Routine, &f.Own, &f.Times)
	}, loopQuery, run.agentID, since, loopRuns)
	if err != nil || len(found) == 0 {
		return domain.LaunchLoop{Source: run.source}, pgtx.Wrap("look for what launched the agent so often", err)
	}
	return found[0], nil
}
