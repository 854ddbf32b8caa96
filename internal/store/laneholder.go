package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// tellLockHolders tells the log, once in a while, who holds the rows that lanes wait for, when that lasts: a session of psql, say,
// or a process that was stopped in the middle of a transaction. Nothing failed, and nobody else waits.
func (s *Queue) tellLockHolders(ctx context.Context, lasting []xid.ID, timedOut map[xid.ID]error) {
	for _, agentID := range lasting {
		table, place, known := rowOf(timedOut[agentID])
		holder := ""
		if known {
			var err error
			if holder, err = s.holderOf(ctx, table, place); err != nil {
				s.limitedLog.Warn(s.log, "who holds a row could not be read", err)
			}
		}
		if holder == "" {
			holder = "a session that is not seen: it let go of the row meanwhile, or this account may not see it"
		}
		s.limitedLog.Warn(s.log, "runs of an agent wait because somebody holds a row that their claim needs; end that transaction",
			fmt.Errorf("a row of %s that agent %s needs is held by %s", table, agentID, holder))
	}
}

// lockContext is how PostgreSQL says which row a statement waited for.
var lockContext = regexp.MustCompile(`tuple (\(\d+,\d+\)) in relation "([^"]+)"`)

// rowOf is the table and the place of the row that a statement waited for in vain.
func rowOf(err error) (table, place string, known bool) {
	pe, ok := errors.AsType[*pq.Error](err)
	if !ok {
		return "", "", false
	}
	found := lockContext.FindStringSubmatch(pe.Where)
	if found == nil {
		return "", "", false
	}
	return found[2], found[1], true
}

// holderOf names the session that has locked the row at a place of a table; "" when none is seen.
func (s *Queue) holderOf(ctx context.Context, table, place string) (string, error) {
	query := `
SELECT format('process %s of account %s, %s', a.pid, a.usename,
    coalesce(nullif(a.application_name, ''), 'without a name'))
FROM ` + pq.QuoteIdentifier(table) + ` r
JOIN pg_stat_activity a ON a.backend_xid = r.xmax
WHERE r.ctid = $1::tid
LIMIT 1`
	holder, err := pgtx.QueryOne[string](ctx, s.db, query, place)
	if pgtx.NoRows(err) {
		return "", nil
	}
	return holder, pgtx.Wrap("read who holds the row", err)
}
