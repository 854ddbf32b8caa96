package store

import (
	"context"
	"database/sql"
	"errors"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// namedSession is a call of RecordSession.
type namedSession struct {
	Attempt
	id string
}

// RecordSession notes the agent's session on the run and the attempt, before the launch returns
// (AC-OFFICE-LOOP-LIVENESS-002.7), and moves the attempt to RUNNING. An empty id is never stored. ErrFenced when the attempt is not
// the live one any more. Sessions that are named at once share a statement, which needs no lane: nothing of the queue changes.
func (s *Attempts) RecordSession(ctx context.Context, a Attempt, sessionID string) error {
	x := &namedSession{a, sessionID}
	err := s.sessions.Ask(ctx, x)
	if errors.Is(err, errHeld) {
		var live map[Attempt]bool
		if live, err = s.recordSessions(ctx, s.db, []*namedSession{x}, ""); err == nil && !live[a] {
			err = ErrFenced
		}
	}
	return pgtx.Wrap("record session", err)
}

// recordTogether notes sessions in one statement. A run that somebody holds is left out, and waited for alone.
func (s *Attempts) recordTogether(ctx context.Context, batch []*namedSession) []error {
	return pgtx.Together(ctx, batch, func(some []*namedSession) ([]error, error) {
		live, err := s.recordSessions(ctx, s.db, some, ` SKIP LOCKED`)
		results := make([]error, len(some))
		for i, x := range some {
			if !live[x.Attempt] {
				results[i] = errHeld
			}
		}
		return results, err
	})
}

// recordSessions notes sessions on live runs and their attempts, with an event for each, and returns the attempts of those. The end
// of a run counts a launch that named none.
func (s *Attempts) recordSessions(ctx context.Context, q pgtx.Querier, some []*namedSession, wait string) (map[Attempt]bool, error) {
	runs, owners, sessions, numbers := make([]string, len(some)), make([]string, len(some)), make([]string, len(some)), make([]int64, len(some))
	for i, x := range some {
		runs[i], numbers[i], owners[i], sessions[i] = string(x.RunID), int64(x.Number), string(x.Owner), x.id
	}
	query := `
-- $1 runs, $2 attempts, $3 owners, $4 sessions, or ""
WITH n AS (
  SELECT *
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS n (run, number, owner, session)),
live AS (
  -- whoever ends the attempt, or takes it over, changes the run: it is enough to hold that
  SELECT r.workspace_id, r.session_id AS before, n.*
  FROM runs r
  JOIN attempt_leases l ON l.run_id = r.id AND l.attempt = r.attempt
  JOIN n ON n.run = r.id AND n.number = r.attempt AND n.owner = l.owner
  WHERE r.id = ANY($1) AND r.status = 'CLAIMED'
  ORDER BY r.id
  FOR NO KEY UPDATE OF r` + wait + `),
said AS (
  UPDATE runs r
  SET session_id = live.session, revision = revision + 1, event_seq = event_seq + 1
  FROM live
  WHERE r.id = live.run AND r.id = ANY($1) AND live.session <> ''
  RETURNING r.id, r.workspace_id, event_seq, live.number, live.session),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, '` + string(domain.RunEventKindSessionRecorded) + `', number, jsonb_build_object('sessionId', session),
    clock_timestamp()
  FROM said),
attempt AS (
  UPDATE run_attempts a
  SET session_id = said.session, status = '` + string(domain.RunAttemptStatusRunning) + `'
  FROM said
  WHERE a.run_id = said.id AND a.number = said.number AND a.run_id = ANY($1))
SELECT run, number, owner, workspace_id, session <> '', before IS NULL AND session <> ''
FROM live`
	live := map[Attempt]bool{}
	var told []event.Event
	var launched []xid.ID // workspaces
	_, err := pgtx.Collect(ctx, q, func(rows *sql.Rows) (a Attempt, err error) {
		var workspaceID xid.ID
		var said, first bool
		err = rows.Scan(&a.RunID, &a.Number, &a.Owner, &workspaceID, &said, &first)
		live[a] = true
		if said {
			told = append(told, event.Event{Kind: event.Run, WorkspaceID: workspaceID, ID: a.RunID})
		}
		if first {
			launched = append(launched, workspaceID)
		}
		return a, err
	}, query, pgtx.TextArray(runs), pgtx.IntArray(numbers), pgtx.TextArray(owners), pgtx.TextArray(sessions))
	if err != nil {
		return nil, err
	}
	s.events.Publish(told...)
	for _, workspaceID := range launched {
		s.counters.AgentLaunched(workspaceID)
	}
	return live, nil
}

// countLaunch counts a launch at the first session that its attempt stores, so that an agent which renames its session
// is counted once (AC-OFFICE-LOOP-LIVENESS-003.9). run is as it was before.
func (t *tx) countLaunch(run runRow, sessionID string) {
	if sessionID != "" && run.sessionID == nil {
		t.Count(func(c *metrics.Counters) { c.AgentLaunched(run.workspaceID) })
	}
}
