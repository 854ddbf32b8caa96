package store

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// wakings are wakes of agents of their own, every second one with a key.
func (w *world) wakings(n int) (batch []*waking) {
	w.Helper()
	for i := range n {
		x := &waking{Wake: Wake{WorkspaceID: w.workspace, AgentID: w.agent(string(xid.New("agent"))), UserID: "ann"}}
		if i%2 == 1 {
			x.Idempotency = Idempotency{Key: string(xid.New("key")), InputDigest: "d"}
		}
		batch = append(batch, x)
	}
	return batch
}

// wantWoken fails the test unless each wake has one request, which is routed, and its key's answer.
// wakingsAgain forgets what became of wakes, and wakes their agents anew: to make sixty others takes a second.
func (w *world) wakingsAgain(before []*waking) (batch []*waking) {
	w.Helper()
	for _, query := range []string{`DELETE FROM wakeup_requests`, `DELETE FROM runs`, `UPDATE agent_lanes SET head_at = NULL, head_id = NULL`} {
		w.sql(query)
	}
	for _, x := range before {
		again := &waking{Wake: x.Wake}
		if x.Key != "" {
			again.Idempotency = Idempotency{Key: string(xid.New("key")), InputDigest: "d"}
		}
		batch = append(batch, again)
	}
	return batch
}

func (w *world) wantWoken(batch []*waking) {
	w.Helper()
	w.sound()
	var agents []xid.ID
	var keys []string
	for _, x := range batch {
		agents, keys = append(agents, x.AgentID), append(keys, x.Key)
	}
	woken := w.pairs(`
SELECT q.agent_id, concat_ws(' ', count(*), count(DISTINCT q.run_id), min(r.status), min(r.coalesced_count), min(q.id))
FROM wakeup_requests q JOIN runs r ON r.id = q.run_id WHERE q.agent_id = ANY($1) GROUP BY q.agent_id`, pgtx.IDs(agents))
	results := w.pairs(`SELECT key, result_id FROM mutation_keys WHERE key = ANY($1)`, pgtx.TextArray(keys))
	for _, x := range batch {
		if got := woken[string(x.AgentID)]; got != fmt.Sprint("1 1 QUEUED 1 ", x.made.ID) {
			w.Errorf("%s: %s", x.made.ID, got)
		}
		if result := results[x.Key]; x.Key != "" && result != string(x.made.ID) {
			w.Errorf("the key's result is %s, want %s", result, x.made.ID)
		}
	}
}

// pairs reads two columns of texts, the first of which tells the rows apart.
func (w *world) pairs(query string, args ...any) map[string]string {
	w.Helper()
	out := map[string]string{}
	_, err := pgtx.Collect(w.Context(), w.db, func(rows *sql.Rows) (none struct{}, err error) {
		var key, value string
		err = rows.Scan(&key, &value)
		out[key] = value
		return none, err
	}, query, args...)
	w.ok(err)
	return out
}

// C48, S3.2: whichever statement of a batch of wakes fails, each has one request and one run in the end, and its key says so.
func TestAFaultAfterAnyStatementOfABatchOfWakesLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newWorld(t)
			s, f := w.faulty()
			failed := 0
			agents := w.wakings(size)
			for n := int64(1); ; n++ {
				batch := w.wakingsAgain(agents)
				f.left.Store(n)
				f.hit.Store(nil)
				results := s.wakeTogether(t.Context(), batch)
				f.left.Store(0)
				query := f.hit.Load()
				for i, err := range results {
					if err == nil {
						continue
					}
					if size > 1 && len(results) > 1 || !errors.Is(err, errFault) {
						t.Errorf("after %q: %v", *query, err)
					}
					if _, err := w.Wake(t.Context(), batch[i].Wake); err != nil { // its caller asks again
						t.Error(err)
					}
					batch[i].made.ID = one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE agent_id = $1`, batch[i].AgentID)
				}
				for _, x := range batch { // what failed after the causes is routed later
					if !x.made.Routed {
						w.route(x.AgentID)
					}
				}
				w.wantWoken(batch)
				if query == nil || t.Failed() {
					break
				}
				failed++
			}
			if failed < 3 {
				t.Errorf("only %d statements failed", failed)
			}
		})
	}
}

// S3.3: of wakes that come at once with one key, one is made, and the others are told of it; what is refused keeps neither its key
// nor the others.
func TestWakesThatComeAtOnceAreEachAnsweredForThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, other := w.agent("worker"), w.agent("other")
	ask := func(agent xid.ID, key, digest string) Wake {
		return Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann", Idempotency: Idempotency{Key: key, InputDigest: digest}}
	}
	calls := []Wake{ask(agent, "k", "d"), ask(agent, "k", "d"), ask("agt_none", "gone", "d"), ask(other, "", "")}
	made, problems := make([]Made, len(calls)), make([]error, len(calls))
	w.Queue.wakes.Gather(len(calls))
	var wg sync.WaitGroup
	for i, in := range calls {
		wg.Go(func() { made[i], problems[i] = w.Wake(t.Context(), in) })
	}
	wg.Wait()
	w.ok(errors.Join(problems[0], problems[1], problems[3]))
	if made[0].ID != made[1].ID || made[0].Replayed == made[1].Replayed || !made[3].Routed {
		t.Errorf("%+v", made)
	}
	refused, is := errors.AsType[*domain.UserError](problems[2])
	if !is || refused.Problems[0].Code != domain.UserErrorCodeNotFound {
		t.Errorf("an agent that is not there: %v", problems[2])
	}
	if n := one[int](w, `SELECT count(*) FROM mutation_keys WHERE key = 'gone'`); n != 0 {
		t.Error("a refused wake keeps its key")
	}
	if _, err := w.Wake(t.Context(), ask(agent, "k", "another")); !isRefusal(err) {
		t.Errorf("the key with another input: %v", err)
	}
	w.sound()
}

// A wake of an idle agent locks the lane, reads the agent, and writes all at once, and a batch of them takes no more statements.
func TestAWakeTakesThreeStatements(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	for _, n := range []int{1, 16} {
		batch := make([]*waking, n)
		for i := range batch {
			batch[i] = &waking{Wake: Wake{WorkspaceID: w.workspace, AgentID: w.agent(fmt.Sprint("worker ", n, i)), UserID: "ann"}}
		}
		before := statements.Load()
		w.ok(errors.Join(w.wakeTogether(t.Context(), batch)...))
		if made := statements.Load() - before; made != 3 {
			t.Errorf("%d wakes took %d statements", n, made)
		}
	}
	w.sound()
}

// docs/queue.md rule 4: a new run becomes its lane's head only where it is the oldest that is due.
func TestAWakeLowersTheHeadThatIsNewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	head := func() string {
		return one[string](w, `SELECT coalesce(head_id, '') FROM agent_lanes WHERE agent_id = $1`, agent)
	}
	first := w.runOf(w.request(agent, scoped("task:first")))
	w.request(agent, scoped("task:second"))
	if head() != string(first) {
		t.Errorf("the head is %q, want the first run: %q", head(), first)
	}
	w.sql(`UPDATE runs SET requested_at = requested_at + interval '1 day' WHERE agent_id = $1`, agent)
	w.sql(`UPDATE agent_lanes SET head_at = head_at + interval '1 day' WHERE agent_id = $1`, agent)
	newest := w.runOf(w.request(agent, scoped("task:third")))
	if head() != string(newest) {
		t.Errorf("the head is %q, want the run that is older than all others: %q", head(), newest)
	}
	w.sound()
}

// S3.2: a wake does not wait for a lane that somebody holds: its request is written, and routed later.
func TestAWakeDoesNotWaitForItsLane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	holder, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = holder.ExecContext(t.Context(), `SELECT 1 FROM agent_lanes WHERE agent_id = $1 FOR UPDATE`, agent)
	w.ok(err)
	made, err := w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann"})
	if err != nil || made.Routed {
		t.Errorf("%+v, %v", made, err)
	}
	w.ok(holder.Rollback())
	w.route(agent)
	w.wantRun(w.runOf(made.ID), domain.RunStatusQueued, "")
}

// S3.2: a cause stands although what it made cannot be routed.
func TestAWakeThatCannotBeRoutedStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	w.sql(`CREATE TRIGGER refuse BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION refuse()`)
	made, err := w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann"})
	if err != nil || made.Routed {
		t.Errorf("%+v, %v", made, err)
	}
	w.sql(`DROP TRIGGER refuse ON runs`)
	w.route(agent)
	w.wantRun(w.runOf(made.ID), domain.RunStatusQueued, "")
}
