package store

import "testing"

// A usual request is claimed, delivered and ended without an entry in any index, because none has a column that these change.
func TestNoIndexOfRequestsHasAColumnThatARequestChangesOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, found := range w.texts(`
SELECT c.relname || ' has ' || a.attname
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_depend d ON d.objid = i.indexrelid AND d.refobjid = i.indrelid
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
WHERE i.indrelid = 'wakeup_requests'::regclass AND a.attname IN ('status', 'claimed_at', 'delivered_at', 'finished_at', 'revision')`) {
		t.Error(found)
	}
	rare := func() string {
		return one[string](w, `SELECT string_agg(concat_ws(' ', unrouted, coalesce(apart::text, 'none'), put_by_at IS NOT NULL), ', ') FROM wakeup_requests`)
	}
	w.wake(w.agent("worker"))
	claimed := w.claimOne()
	w.start(claimed)
	w.finish(claimed)
	if got := rare(); got != "f none f" {
		t.Errorf("a request that was served is %q, want neither unrouted, apart nor put by", got)
	}
}
