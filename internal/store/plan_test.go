package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// plans measures statements on one connection, whose prepared plans were made while the tables were empty.
type plans struct {
	*world
	conn *sql.Conn
}

// claimStatements are the statements of a pass whose cost may depend on the queue, with their arguments.
func claimStatements(workspace, agent xid.ID) []struct{ name, query, types, args string } {
	lane, tenant := `'`+string(agent)+`'`, `'`+string(workspace)+`'`
	return []struct{ name, query, types, args string }{
		{"parked_lanes", parkedLanesQuery, "int, text[]", "64, '{}'"},
		{"parked_runs", parkedRunsQuery, "text, timestamptz, int", lane + ", clock_timestamp(), 1000"},
		{"promote", promoteQuery, "text[], text[], boolean[], text", `'{run_parked}', '{task:parked}', '{true}', ` + lane},
		{"unpark", unparkQuery, "text, text, text", `'run_parked', ` + lane + `, 'task:parked'`},
		{"due_lanes", dueLanesQuery, "int, text[]", "16, '{}'"},
		{"lock_due", lockDueQuery, "text[]", `ARRAY[` + lane + `]`},
		{"head", headQuery, "text", lane},
		{"change_lane", changeLaneQuery, "text, int, boolean, timestamptz, timestamptz", lane + ", 0, false, now(), now()"},
		{"release_scopes", releaseScopesQuery, "text[], text[]", `ARRAY[` + lane + `, ` + lane + `], '{task:7,task:8}'`},
		{"end_attempts", endAttemptsQuery, "text[], bigint[], text[], text[], text[], timestamptz, text[], text[], text[]",
			`'{run_parked}', '{1}', '{SUCCEEDED}', '{""}', '{""}', now(), ARRAY[` + lane + `], '{task:7}', '{""}'`},
		{"leave_lanes", leaveLanesQuery, "text[], bigint[], boolean[], text, int, timestamptz", `ARRAY[` + lane + `], '{0}', '{true}', ` + tenant + `, 0, now()`},
		{"backlog_lanes", backlogLanesQuery, "text, int", "'', 5"},
		{"unrouted", unroutedQuery, "text[], int", `ARRAY[` + lane + `], 500`},
		{"scopes", scopesQuery, "text[], text[]", `ARRAY[` + lane + `, ` + lane + `], ARRAY['task:7', 'task:700']`},
		{"fix_heads", fixHeadsQuery, "text[]", `ARRAY[` + lane + `]`},
		{"fire_queue", fireQueueQuery, "text[], text[], text[], boolean[], int, timestamptz", `ARRAY[` + lane + `], ARRAY['rtn_1'], ARRAY['x'], ARRAY[true], 100, clock_timestamp()`},
		{"unrouted_agents", unroutedAgentsQuery, "int", "100"},
		{"next_instant", nextInstantQuery, "", ""},
		{"unpark_lanes", unparkLanesQuery, "text, text, text[], int, text[]", tenant + ", 'default', '{}', 64, '{}'"},
		{"moved_lanes", movedLanesQuery, "text, int, text[]", tenant + ", 64, '{}'"},
		{"offer_lanes", offerLanesQuery, "text, text, text[], int, int, text[]", tenant + ", 'default', '{}', 16, 1000, '{}'"},
	}
}

// buffers is how many pages each statement touches, and their sum. What they change is rolled back.
func (p *plans) buffers(agent xid.ID) (each map[string]int, sum int) {
	p.Helper()
	each = map[string]int{}
	for _, s := range claimStatements(p.workspace, agent) {
		n := p.explain(s.name, s.args)
		each[s.name] = n
		sum += n
	}
	return each, sum
}

func (p *plans) explain(name, args string) int {
	p.Helper()
	ctx := context.WithoutCancel(p.Context())
	p.exec(`BEGIN`)
	defer p.exec(`ROLLBACK`)
	execute := name
	if args != "" {
		execute += "(" + args + ")"
	}
	var text []byte
	if err := p.conn.QueryRowContext(ctx, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE `+execute).Scan(&text); err != nil {
		p.Fatalf("explain %s: %v", name, err)
	}
	var out []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &out); err != nil {
		p.Fatal(err)
	}
	for node := range strings.SplitSeq(string(text), `"Node Type": `) {
		for _, table := range []string{"runs", "wakeup_requests"} {
			if strings.HasPrefix(node, `"Seq Scan"`) && strings.Contains(node, `"Relation Name": "`+table+`"`) {
				p.Errorf("%s reads a whole table:\n%s", name, text)
			}
		}
	}
	return out[0].Plan.Hit + out[0].Plan.Read
}

func (p *plans) exec(query string, args ...any) {
	p.Helper()
	if _, err := p.conn.ExecContext(context.WithoutCancel(p.Context()), query, args...); err != nil {
		p.Fatalf("%s: %v", query, err)
	}
}

// newPlans prepares the statements on empty tables that nobody will analyse unless the test does.
func newPlans(t *testing.T) (*plans, xid.ID) {
	t.Helper()
	p := &plans{world: newWorld(t)}
	busy := p.agent("busy")
	for _, table := range []string{"runs", "wakeup_requests", "agent_lanes", "workspace_lanes"} {
		p.sql(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = false)`)
	}
	conn, err := p.db.Conn(t.Context())
	p.ok(err)
	t.Cleanup(func() { p.ok(conn.Close()) })
	p.conn = conn
	p.exec(`SET plan_cache_mode = force_generic_plan`)
	for _, s := range claimStatements(p.workspace, busy) {
		types := ""
		if s.types != "" {
			types = "(" + s.types + ")"
		}
		p.exec(`PREPARE ` + s.name + types + ` AS ` + s.query)
	}
	p.buffers(busy) // the plan for ever, unless the tables are analysed
	return p, busy
}

// fill gives an agent due runs, one of them with many unrouted requests behind it, up to n, and the lane its head.
func (p *plans) fill(agent xid.ID, from, n int) {
	p.Helper()
	p.exec(`SET session_replication_role = replica`) // foreign keys are looked at one by one
	p.exec(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
SELECT 'run_' || $1 || lpad(i::text, 8, '0'), $2, $1, 'cau', 'task:' || i, 'SELF', 'EVENT', 'QUEUED', '2026-01-01Z'::timestamptz + i * interval '1 second'
FROM generate_series($3::int, $4::int) i`, agent, p.workspace, from, n)
	p.exec(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, recovered, resends, hops, retry_count)
SELECT 'wkp_' || lpad(i::text, 8, '0'), $2, $1, 'cau', 'task:' || i, 'SELF', 'EVENT', false, 'test', '{}', 'QUEUED', false, 0, 0, 0
FROM generate_series($3::int, $4::int) i`, agent, p.workspace, from, n)
	p.exec(`RESET session_replication_role`)
	p.sql(`UPDATE agent_lanes SET (head_at, head_id) = (SELECT requested_at, id FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason IS NULL
  ORDER BY requested_at, id LIMIT 1) WHERE agent_id = $1`, agent)
}

// TestAClaimTouchesNoMorePagesWhenTheQueueIsLong compares the pages that a claim touches at 30,000 queued runs with those
// at 1,000: with plans made on empty tables, and with plans made anew once the full tables are analysed.
func TestAClaimTouchesNoMorePagesWhenTheQueueIsLong(t *testing.T) {
	t.Parallel()
	p, busy := newPlans(t)
	p.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, parked_reason, parked_until)
VALUES ('run_parked', $1, $2, 'cau', 'task:parked', 'SELF', 'EVENT', 'QUEUED', 'BACKOFF', clock_timestamp() - interval '1 second')`, p.workspace, busy)
	p.fill(busy, 1, 1000)
	_, short := p.buffers(busy)
	p.fill(busy, 1001, 30_000)
	coldEach, cold := p.buffers(busy)
	p.sql(`ANALYZE`)
	fullEach, full := p.buffers(busy)
	t.Logf("pages of a claim: %d at 1,000 runs; at 30,000 runs %d never analysed, %d analysed", short, cold, full)
	if cold > 2*short {
		t.Errorf("never analysed: %d pages at 30,000 runs, %d at 1,000: %v", cold, short, coldEach)
	}
	if full > 2*short {
		t.Errorf("analysed: %d pages at 30,000 runs, %d at 1,000: %v", full, short, fullEach)
	}
	begin := time.Now()
	stats, err := p.QueueStats(t.Context(), p.workspace)
	p.ok(err)
	t.Logf("queue numbers at 30,000 queued: %v: %+v", time.Since(begin), stats)
	runs := must(p.world, first(pgtx.Collect(t.Context(), p.db, pgtx.ScanOne[xid.ID], `SELECT id FROM runs ORDER BY requested_at DESC LIMIT 100`)), nil)
	begin = time.Now()
	waiting, err := p.Waiting(t.Context(), runs, nil)
	p.ok(err)
	t.Logf("why the 100 newest of 30,000 wait: %v (%d answers)", time.Since(begin), len(waiting))
}

// TestACycleGoesByKeysAlthoughTheTablesWereAnalysedWhileNothingRan compares pages with few and with many live runs, due lanes and
// unrouted requests, by plans that were made when there were next to none: as a server has them that was idle for a minute.
func TestACycleGoesByKeysAlthoughTheTablesWereAnalysedWhileNothingRan(t *testing.T) {
	t.Parallel()
	p, busy := newPlans(t)
	const many = 2_000
	p.sql(`INSERT INTO agent_lanes (agent_id, workspace_id) SELECT 'agt_other' || i, $1 FROM generate_series(1, $2::int) i`, p.workspace, many)
	p.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, claimed_at, finished_at)
SELECT 'run_' || i, $1, $2, 'cau', 'task:' || i, 'SELF', 'EVENT', 'FINISHED', now(), now() FROM generate_series(1, $3::int) i`, p.workspace, busy, many)
	p.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, run_id, recovered, resends, hops, retry_count)
SELECT 'wkp_' || i, $1, 'agt_other' || i, 'cau', 'task:' || i, 'SELF', 'EVENT', false, 'test', '{}', 'FINISHED', 'run_' || i, false, 0, 0, 0 FROM generate_series(1, $2::int) i`, p.workspace, many)
	p.sql(`ANALYZE`)
	lane := `ARRAY['` + string(busy) + `']`
	statements := []struct{ name, query, types, args string }{
		{"lock_claimed", lockClaimedQuery, "text[], bigint[], text[], text[], text", `'{run_7}', '{0}', '{prc}', ` + lane + `, '1s'`},
		{"find_due", findDueQuery, "int, text[]", `4, '{}'`},
		{"recipients", recipientsQuery, "text[], int", lane + `, 10`},
	}
	few := map[string]int{}
	for _, s := range statements {
		p.exec(`PREPARE ` + s.name + ` (` + s.types + `) AS ` + s.query)
		few[s.name] = p.explain(s.name, s.args)
	}
	p.sql(`UPDATE runs SET status = 'CLAIMED', finished_at = NULL`)
	p.sql(`UPDATE agent_lanes SET head_at = now() - interval '1 minute', head_id = 'run_of_' || agent_id`)
	p.sql(`UPDATE wakeup_requests SET status = 'QUEUED', run_id = NULL`)
	for _, s := range statements {
		if n := p.explain(s.name, s.args); n > few[s.name]+60 {
			t.Errorf("%s touches %d pages with %d of each, and %d with few", s.name, n, many, few[s.name])
		}
	}
}

// TestAFullWorkspaceInFrontDelaysNobody is C309: ten thousand due lanes of a workspace at its ceiling, and ten thousand
// resting ones, are in front of ten runs of others.
func TestAFullWorkspaceInFrontDelaysNobody(t *testing.T) {
	t.Parallel()
	p, _ := newPlans(t)
	full, err := p.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Full", OfficeWorkflow: true})
	p.ok(err)
	for i := range 10 {
		p.wake(p.agent(fmt.Sprint("other", i)))
	}
	before := p.explain("due_lanes", "16, '{}'")
	lanes := func(prefix string, workspace xid.ID, rest string) {
		p.sql(`INSERT INTO agent_lanes (agent_id, workspace_id, head_at, head_id, eligible_at)
SELECT $1 || i, $2, '2020-01-01Z'::timestamptz + i * interval '1 second', 'run_' || $1 || i, clock_timestamp() + $3::interval FROM generate_series(1, 10000) i`, prefix, workspace, rest)
	}
	lanes("agt_full", full.ID, "-1 second")
	p.sql(`UPDATE workspace_lanes SET max_running = 0 WHERE workspace_id = $1`, full.ID)
	behindFull := p.explain("due_lanes", "16, '{}'")
	lanes("agt_rest", p.workspace, "1 hour")
	behindResting := p.explain("due_lanes", "16, '{}'")
	t.Logf("pages to find due lanes: %d; behind a full workspace of 10,000 lanes %d; and behind 10,000 resting lanes %d", before, behindFull, behindResting)
	if behindFull > before+20 || behindResting > before+400 {
		t.Errorf("C309 pages to find due lanes: %d, %d, %d", before, behindFull, behindResting)
	}
	begin := time.Now()
	if got := p.claim(16); len(got) != 10 {
		t.Errorf("C309 claimed %d of the other workspace's runs, want 10", len(got))
	}
	t.Logf("claim of 10 behind them: %v", time.Since(begin))
	p.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL WHERE agent_id ~ '^agt_(full|rest)'`)
	p.sql(`DELETE FROM attempt_leases WHERE run_id = (SELECT min(run_id) FROM attempt_leases)`)
	begin = time.Now()
	if suspects := must(p.world, first(pgtx.Collect(t.Context(), p.db, pgtx.ScanOne[xid.ID], suspectLanesQuery)), nil); len(suspects) != 1 {
		t.Errorf("%d lanes look wrong, want the one whose lease is gone", len(suspects))
	}
	t.Logf("look for lanes to repair among 20,000: %v", time.Since(begin))
}
