package graph_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/console"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
)

// countingDB is a database of its own whose statements are counted; BEGIN and COMMIT are none.
func countingDB(t *testing.T) (*sql.DB, *atomic.Int64) {
	t.Helper()
	_, url := pgtest.NewURL(t)
	connector, err := pq.NewConnector(url)
	if err != nil {
		t.Fatal(err)
	}
	n := &atomic.Int64{}
	db := sql.OpenDB(countingConnector{connector, n})
	t.Cleanup(func() {
		if err := db.Close(); err != nil && !errors.Is(err, net.ErrClosed) { // whoever gave a query up has closed its connection
			t.Error(err)
		}
	})
	return db, n
}

type countingConnector struct {
	driver.Connector
	n *atomic.Int64
}

func (c countingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return countingConn{conn.(pqConn), c.n}, nil
}

// pqConn is what database/sql uses of a connection of lib/pq.
type pqConn interface {
	driver.Conn
	driver.QueryerContext
	driver.ExecerContext
	driver.ConnBeginTx
}

type countingConn struct {
	pqConn
	n *atomic.Int64
}

func (c countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.n.Add(1)
	return c.pqConn.QueryContext(ctx, query, args)
}

func (c countingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.n.Add(1)
	return c.pqConn.ExecContext(ctx, query, args)
}

// countedWorld is a world whose statements are counted.
type countedWorld struct {
	*world
	n *atomic.Int64
}

func newCountedWorld(t *testing.T) countedWorld {
	db, n := countingDB(t)
	return countedWorld{newWorldOn(t, db), n}
}

// count runs a query or mutation that must succeed, and says how many statements it took.
func (w countedWorld) count(query string, variables map[string]any) (json.RawMessage, int64) {
	w.t.Helper()
	before := w.n.Load()
	data, errs := w.Try(w.t.Context(), query, variables)
	if len(errs) > 0 {
		w.t.Fatalf("%s: %v", query, errs)
	}
	if text := string(data); strings.Contains(text, `"code":"`) && strings.Contains(text, `"field":`) {
		w.t.Fatalf("%s: %s", query, text)
	}
	return data, w.n.Load() - before
}

// countStream reads a stream to its end.
func (w countedWorld) countStream(query string, variables map[string]any) (items int, statements int64) {
	w.t.Helper()
	before, next := w.n.Load(), w.Subscribe(w.t.Context(), query, variables)
	for ; ; items++ {
		data, errs := next()
		if len(errs) > 0 {
			w.t.Fatalf("%s: %v", query, errs)
		}
		if data == nil {
			return items, w.n.Load() - before
		}
	}
}

// fill gives the workspace n agents, each with a run that waits and a routine, and one finished run with n events and lines
// of its log. It returns one agent, a routine, a run that waits and the one that is finished.
func (w countedWorld) fill(n int) (agent, routine, waits, finished string) {
	w.t.Helper()
	agent = w.agent("Worker")
	finished = w.wakeRun(agent)
	w.ok(w.store.Finish(w.t.Context(), w.start(), store.Success{Summary: "done"}))
	for i := range n {
		waits = w.wakeRun(w.agent(fmt.Sprint("Agent ", i)))
		var out struct {
			CreateRoutine struct{ Routine struct{ ID string } }
		}
		input := map[string]any{"workspaceId": w.workspace, "name": fmt.Sprint("Routine ", i), "assigneeId": agent,
			"triggers": []any{map[string]any{"schedule": map[string]any{"cron": "0 9 * * *", "timeZone": "UTC"}}}}
		if e := w.mutate("createRoutine", "routine { id }", input, &out); e != "" {
			w.t.Fatal(e)
		}
		routine = out.CreateRoutine.Routine.ID
	}
	w.sql(`INSERT INTO run_log_pieces (attempt, first_seq, last_seq, bytes, streams, texts, micros, workspace_id, run_id) SELECT 1, x, x, 4, '{STDOUT}', '{line}', '{0}', $1, $2 FROM generate_series(1, $3::int) AS x`, w.workspace, finished, n)
	w.sql(`WITH more AS (UPDATE runs SET event_seq = event_seq + $3::int WHERE id = $2 RETURNING event_seq)
INSERT INTO run_events (seq, kind, attempt, data, workspace_id, run_id) SELECT event_seq - x, 'PROGRESS', 1, '{}', $1, $2 FROM more, generate_series(0, $3::int - 1) AS x`, w.workspace, finished, n)
	return agent, routine, waits, finished
}

// operationOf is the text of the console's operation with this number.
func operationOf(t *testing.T, number string) string {
	t.Helper()
	files, err := fs.Glob(console.Operations(), number+"-*.graphql")
	if err != nil || len(files) != 1 {
		t.Fatalf("operation %s: %v, %v", number, files, err)
	}
	text, err := fs.ReadFile(console.Operations(), files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// consoleStatements says how many statements each of the console's operations takes in a workspace with n rows of each kind.
func consoleStatements(t *testing.T, n int) map[string]int64 {
	w := newCountedWorld(t)
	agent, routine, waits, finished := w.fill(n)
	out := map[string]int64{}
	for _, x := range []struct {
		number string
		input  map[string]any
	}{
		{"01", map[string]any{"name": "Mine", "slug": "mine", "defaultTimeZone": "UTC"}},
		{"02", map[string]any{"workspaceId": w.workspace, "name": "counter", "role": "WORKER", "cooldown": "PT0S", "executor": map[string]any{"command": map[string]any{"argv": []string{"true"}}}}},
		{"03", map[string]any{"workspaceId": w.workspace, "name": "Every five minutes", "description": "Look around.", "assigneeId": agent,
			"triggers": []any{map[string]any{"schedule": map[string]any{"cron": "*/5 * * * *", "timeZone": "UTC"}}}}},
		{"04", map[string]any{"agentId": agent, "userId": "me", "context": map[string]any{"note": "x"}}},
		{"05", map[string]any{"routineId": routine, "variables": map[string]any{}}},
		{"10", map[string]any{"runId": waits, "note": "x"}},
	} {
		_, out[x.number] = w.count(operationOf(t, x.number), map[string]any{"input": x.input})
	}
	var page struct {
		Workspace struct {
			Runs struct {
				Edges []struct {
					Node struct {
						Status  string
						Agent   struct{ Name string }
						Waiting *struct{ Hold string }
					}
				}
			}
		}
	}
	var data json.RawMessage
	data, out["06"] = w.count(operationOf(t, "06"), map[string]any{"slug": "test"})
	decode(t, data, &page)
	for _, e := range page.Workspace.Runs.Edges {
		if e.Node.Agent.Name == "" || (e.Node.Status == "QUEUED") != (e.Node.Waiting != nil) {
			t.Errorf("the list has %+v", e.Node)
		}
	}
	data, out["07"] = w.count(operationOf(t, "07"), map[string]any{"id": finished})
	if got := strings.Count(string(data), `"text":`); got != n {
		t.Errorf("the run shows %d lines, want %d", got, n)
	}
	var items int
	if items, out["08"] = w.countStream(operationOf(t, "08"), map[string]any{"runId": finished}); items != 1 {
		t.Errorf("the run was sent %d times", items)
	}
	if items, out["09"] = w.countStream(operationOf(t, "09"), map[string]any{"runId": finished}); items <= 2*n {
		t.Errorf("the stream had %d items, want more than %d", items, 2*n)
	}
	return out
}

// What the console asks for costs the same however much there is to show; the numbers may fall, and rise only with a reason.
func TestTheConsolesOperationsTakeAFixedNumberOfStatements(t *testing.T) {
	t.Parallel()
	// 04, 05: a wake and a fire are routed in their own transactions, so that a second one and its commit are spared.
	most := map[string]int64{"01": 15, "02": 7, "03": 10, "04": 22, "05": 19, "06": 11, "07": 5, "08": 2, "09": 7, "10": 10}
	few, many := consoleStatements(t, 3), consoleStatements(t, 30)
	for number, bound := range most {
		if few[number] != many[number] {
			t.Errorf("operation %s takes %d statements with 3 rows of each kind and %d with 30", number, few[number], many[number])
		}
		if many[number] > bound || many[number] == 0 {
			t.Errorf("operation %s takes %d statements, want at most %d", number, many[number], bound)
		}
	}
}

func TestNodesTakesAFixedNumberOfStatements(t *testing.T) {
	t.Parallel()
	w := newCountedWorld(t)
	w.fill(3)
	w.sql(`INSERT INTO inbox_items (id, workspace_id, kind, title) SELECT 'inb_' || lpad(x::text, 26, '0'), $1, 'LOOP_BREAKER', 'x' FROM generate_series(1, 40) AS x`, w.workspace)
	w.sql(`INSERT INTO activities (id, workspace_id, code, summary, actor_kind, actor, data) SELECT 'act_' || lpad(x::text, 26, '0'), $1, 'WAKEUP_QUEUED', 'x', 'SYSTEM', 'test', '{}' FROM generate_series(1, 40) AS x`, w.workspace)
	for range 4 {
		w.Do(t.Context(), `mutation($w: ID!) { createApiToken(input: {workspaceId: $w, name: "ci", scopes: [READ]}) { apiToken { id } } }`, map[string]any{"w": w.workspace}, &struct{}{})
	}
	const query = `query($ids: [ID!]!) { nodes(ids: $ids) { id __typename } }`
	count := func(each int) (statements int64) {
		t.Helper()
		var ids []string
		for _, table := range []string{"inbox_items", "activities", "api_tokens", "agents"} {
			var some []string
			w.ok(w.db.QueryRow(`SELECT array_agg(id ORDER BY id DESC) FROM (SELECT id FROM `+table+` ORDER BY id LIMIT $1) AS x`, each).Scan(pq.Array(&some)))
			ids = append(ids, some...)
		}
		data, statements := w.count(query, map[string]any{"ids": ids})
		var out struct {
			Nodes []*struct{ ID string }
		}
		decode(t, data, &out)
		if got := slices.IndexFunc(out.Nodes, func(x *struct{ ID string }) bool { return x == nil }); len(out.Nodes) != len(ids) || got >= 0 {
			t.Errorf("of %d nodes %d came, one is null at %d", len(ids), len(out.Nodes), got)
		}
		for i, x := range out.Nodes {
			if x != nil && x.ID != ids[i] {
				t.Errorf("node %d is %s, want %s", i, x.ID, ids[i])
			}
		}
		return statements
	}
	if few, many := count(2), count(4); few != many {
		t.Errorf("%d statements for two of each kind, %d for four", few, many)
	}
	var ids []string
	w.ok(w.db.QueryRow(`SELECT array_agg(id) FROM (SELECT id FROM activities UNION ALL SELECT id FROM inbox_items LIMIT 100) AS x`).Scan(pq.Array(&ids)))
	if _, n := w.count(query, map[string]any{"ids": ids}); n != 2 {
		t.Errorf("%d records of two kinds took %d statements", len(ids), n)
	}
}
