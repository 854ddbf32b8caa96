package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// feed reads the log after a position until none of it waits for another transaction: those of other tests count too, since
// they run on the same server.
func (w *world) feed(after reads.ActivityPosition) []*ent.Activity {
	w.Helper()
	entries, held, err := w.ActivityAfter(w.Context(), w.workspace, after, 1000)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for ; err == nil && held; entries, held, err = w.ActivityAfter(w.Context(), w.workspace, after, 1000) {
		<-again.C
	}
	w.ok(err)
	return entries
}

// codes are the codes of feed.
func (w *world) codes(after reads.ActivityPosition) []string {
	w.Helper()
	var out []string
	for _, e := range w.feed(after) {
		out = append(out, string(e.Code))
	}
	return out
}

// head is behind all that the log holds by now.
func (w *world) head() reads.ActivityPosition {
	w.Helper()
	if all := w.feed(reads.ActivityPosition{}); len(all) > 0 {
		last := all[len(all)-1]
		return reads.ActivityPosition{Tx: last.Tx, ID: last.ID}
	}
	head, err := w.ActivityHead(w.Context())
	return must(w, head, err)
}

func TestTheFeedTellsTheLifeOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	w.window(time.Minute)
	from := w.head()
	w.request(agent, scoped("taskless"))
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.request(agent, scoped("taskless"))
	w.finish(c)
	want := "WAKEUP_QUEUED WAKEUP_REQUESTED WAKEUP_COALESCED RUN_CLAIMED RUN_LAUNCHED WAKEUP_QUEUED RUN_FINISHED"
	if got := strings.Join(w.codes(from), " "); got != want {
		t.Errorf("the feed is %s\nwant        %s", got, want)
	}
	if !w.events.has(event.Activity, w.workspace) {
		t.Error("nobody was told of the feed")
	}
}

func TestTheFeedSaysWhoDidIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	token := xid.New("tok")
	pause := HoldAgent{WorkspaceID: w.workspace, AgentID: agent}
	w.ok(w.PauseAgent(auth.WithPrincipal(t.Context(), auth.Principal{Kind: auth.KindToken, TokenID: token}), pause))
	_, err := w.ResumeAgent(auth.WithPrincipal(t.Context(), auth.Local()), w.workspace, agent)
	w.ok(err)
	w.wake(agent)
	for code, want := range map[string]string{"AGENT_PAUSED": "USER " + string(token), "AGENT_RESUMED": "USER local", "WAKEUP_QUEUED": "SYSTEM router"} {
		if got := one[string](w, `SELECT actor_kind || ' ' || actor FROM activities WHERE code = $1`, code); got != want {
			t.Errorf("%s was done by %s, want %s", code, got, want)
		}
	}
}

func TestAnEntryThatCommitsLateIsNotPassedBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	from := w.head()
	early, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = early.ExecContext(t.Context(), `INSERT INTO activities (id, workspace_id, code, summary, actor_kind, data) VALUES ($1, $2, 'TASK_CHANGED', 'early', 'SYSTEM', '{}')`, xid.New("act"), w.workspace)
	w.ok(err)
	w.pause(agent)
	entries, held, err := w.ActivityAfter(t.Context(), w.workspace, from, 10)
	w.ok(err)
	if len(entries) != 0 || !held {
		t.Errorf("%d entries were given before an older transaction has ended; held is %t", len(entries), held)
	}
	w.ok(early.Commit())
	if got := w.codes(from); !slices.Equal(got, []string{"TASK_CHANGED", "AGENT_PAUSED"}) {
		t.Errorf("the log is %v, want the early entry, then the pause", got)
	}
}

// A connection that has taken on a role counts the transactions of all accounts that may write entries.
func TestAnEntryThatCommitsLateIsNotPassedByUnderAnotherRole(t *testing.T) {
	t.Parallel()
	db, url := pgtest.NewURL(t)
	w := newWorldOn(t, db)
	role := "reader_" + strings.ToLower(strings.ReplaceAll(string(xid.New("rol")), "-", "_"))
	w.sql(`CREATE ROLE ` + role)
	defer func() { w.sql(`DROP OWNED BY ` + role); w.sql(`DROP ROLE ` + role) }()
	w.sql(`GRANT SELECT ON activities TO ` + role)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	underRole, err := postgres.Open(t.Context(), url+separator+"role="+role)
	w.ok(err)
	defer func() { w.ok(underRole.Close()) }()
	reader := New(underRole, Options{Events: w.events, Counters: metrics.New(), Log: w.log, Jitter: func() float64 { return 0 }})
	from := w.head()
	early, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	defer early.Rollback()
	_, err = early.ExecContext(t.Context(), `INSERT INTO activities (id, workspace_id, code, summary, actor_kind, data) VALUES ($1, $2, 'TASK_CHANGED', 'early', 'SYSTEM', '{}')`, xid.New("act"), w.workspace)
	w.ok(err)
	w.agent("echo")
	entries, held, err := reader.ActivityAfter(t.Context(), w.workspace, from, 10)
	w.ok(err)
	if len(entries) != 0 || !held {
		t.Errorf("%d entries were given before an older transaction has ended; held is %t", len(entries), held)
	}
}

// A transaction that stays open in another database of the server appends nothing here, and holds nobody's feed up.
func TestATransactionOfAnotherDatabaseHoldsNoFeedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere, _ := pgtest.Empty(t)
	open, err := elsewhere.BeginTx(t.Context(), nil)
	w.ok(err)
	defer open.Rollback()
	_, err = open.ExecContext(t.Context(), `CREATE TABLE written (n int)`)
	w.ok(err)
	from := must(w, first(w.ActivityHead(t.Context())), nil)
	w.agent("echo")
	for tries := 0; ; tries++ { // what ends in this very moment may be anybody's
		entries, held, err := w.ActivityAfter(t.Context(), w.workspace, from, 10)
		w.ok(err)
		if len(entries) == 1 && !held {
			break
		}
		if tries == 200 {
			t.Fatalf("%d entries, held: %t, while a transaction is open in another database", len(entries), held)
		}
	}
	_, err = open.ExecContext(t.Context(), `INSERT INTO written VALUES (1)`)
	w.ok(err) // it was open all the time
}

func TestInboxItemsAreHandledTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var items []xid.ID
	w.ok(w.inTx(t.Context(), func(tx *tx) error {
		for _, key := range []string{"a", "b"} {
			if err := tx.inbox(t.Context(), item{workspaceID: w.workspace, kind: domain.InboxKindLoopBreaker, dedupe: key, title: "title", body: "body"}); err != nil {
				return err
			}
		}
		return nil
	}))
	items, err := pgtx.Collect(t.Context(), w.db, pgtx.ScanOne[xid.ID], `SELECT id FROM inbox_items ORDER BY id`)
	w.ok(err)
	open := func() int { return one[int](w, `SELECT count(*) FROM inbox_items WHERE resolved_at IS NULL`) }
	w.refused(w.ResolveInboxItems(t.Context(), w.workspace, append(items[:2:2], xid.New("inb"))), domain.UserErrorCodeNotFound)
	w.refused(w.ResolveInboxItems(t.Context(), xid.New("wsp"), items[:1]), domain.UserErrorCodeNotFound)
	if open() != 2 {
		t.Errorf("%d items are open after refusals, want 2", open())
	}
	w.ok(w.ResolveInboxItems(t.Context(), w.workspace, items))
	at := one[time.Time](w, `SELECT resolved_at FROM inbox_items WHERE id = $1`, items[0])
	w.ok(w.ResolveInboxItems(t.Context(), w.workspace, items[:1]))
	if open() != 0 || !at.Equal(one[time.Time](w, `SELECT resolved_at FROM inbox_items WHERE id = $1`, items[0])) {
		t.Error("items are open, or a second call moved the instant")
	}
}
