package reads

import (
	"context"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// LogSize is how many bytes the lines of a run's log have after one place and up to another, each with an end of line.
func (s *Reads) LogSize(ctx context.Context, runID xid.ID, after, upTo LogPosition) (int64, error) {
	const query = `
-- $1 run, $2 attempt and $3 line before the part, $4 and $5 those of its end
SELECT coalesce(sum(octet_length(text) + 1), 0)
FROM run_log_lines
WHERE run_id = $1
  AND (attempt, last_seq) > ($2, $3) -- its pieces, by the index
  AND (attempt, seq) > ($2, $3)
  AND (attempt, seq) <= ($4, $5)`
	n, err := pgtx.QueryOne[int64](ctx, s.pool, query, runID, after.Attempt, after.Seq, upTo.Attempt, upTo.Seq)
	return n, pgtx.Wrap("measure a log", err)
}
