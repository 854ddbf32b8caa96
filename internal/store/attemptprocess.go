package store

import (
	"context"
	"database/sql"
	"errors"

	"rouse.dev/rouse/internal/store/pgtx"
)

// launchedProcess is a call of RecordProcess.
type launchedProcess struct {
	Attempt
	ProcessGroup
}

// RecordProcess notes the process group on the lease; ErrFenced when the attempt is not the live one any more. Agents that are
// launched at once share a statement.
func (s *Attempts) RecordProcess(ctx context.Context, a Attempt, g ProcessGroup) error {
	x := &launchedProcess{a, g}
	err := s.processes.Ask(ctx, x)
	if errors.Is(err, errHeld) {
		var live map[Attempt]bool
		if live, err = s.noteProcesses(ctx, []*launchedProcess{x}, ""); err == nil && !live[a] {
			err = ErrFenced
		}
	}
	return pgtx.Wrap("record the agent's process group", err)
}

// noteTogether notes process groups in one statement. A lease that somebody holds is left out, and waited for alone.
func (s *Attempts) noteTogether(ctx context.Context, batch []*launchedProcess) []error {
	return pgtx.Together(ctx, batch, func(some []*launchedProcess) ([]error, error) {
		live, err := s.noteProcesses(ctx, some, ` SKIP LOCKED`)
		results := make([]error, len(some))
		for i, x := range some {
			if !live[x.Attempt] {
				results[i] = errHeld
			}
		}
		return results, err
	})
}

// noteProcesses notes process groups on leases that are theirs, and returns the attempts of those.
func (s *Attempts) noteProcesses(ctx context.Context, some []*launchedProcess, wait string) (map[Attempt]bool, error) {
	n := len(some)
	runs, owners, hosts, boots := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	numbers, groups, started := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, x := range some {
		runs[i], numbers[i], owners[i] = string(x.RunID), int64(x.Number), string(x.Owner)
		groups[i], started[i], hosts[i], boots[i] = int64(x.PGID), x.Started, x.Host, x.BootID
	}
	query := `
-- $1 runs, $2 attempts, $3 owners, $4 process groups, $5 when their leaders started, $6 hosts, $7 boots of the hosts
WITH n AS (
  SELECT *
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])
    AS n (run, number, owner, process_group, process_started, host, boot)),
live AS (
  SELECT n.*
  FROM attempt_leases l
  JOIN n ON l.run_id = n.run AND l.attempt = n.number AND l.owner = n.owner
  WHERE l.run_id = ANY($1)
  FOR NO KEY UPDATE OF l` + wait + `)
UPDATE attempt_leases l
SET process_group = n.process_group, process_started = n.process_started, host = n.host, boot_id = n.boot
FROM live n
WHERE l.run_id = n.run AND l.run_id = ANY($1)
RETURNING l.run_id, l.attempt, l.owner`
	live := map[Attempt]bool{}
	_, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (a Attempt, err error) {
		err = rows.Scan(&a.RunID, &a.Number, &a.Owner)
		live[a] = true
		return a, err
	}, query, pgtx.TextArray(runs), pgtx.IntArray(numbers), pgtx.TextArray(owners), pgtx.IntArray(groups), pgtx.IntArray(started), pgtx.TextArray(hosts), pgtx.TextArray(boots))
	return live, err
}
