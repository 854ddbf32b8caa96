package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// everyCost adds up all entries one by one.
func everyCost(by domain.CostGrouping) string {
	key, day := map[domain.CostGrouping]string{domain.CostGroupingAgent: `agent_id`, domain.CostGroupingProject: `coalesce(project_id, '')`, domain.CostGroupingDay: `''`}[by], `'0001-01-01Z'::timestamptz`
	if by == domain.CostGroupingDay {
		day = `date_trunc('day', created_at, 'UTC')`
	}
	return `SELECT ` + key + `, ` + day + `, sum(cost_usd), sum(input_tokens)::bigint, sum(output_tokens)::bigint, count(DISTINCT run_id) FROM cost_entries
WHERE workspace_id = $1 AND created_at >= $2 AND created_at < $3 GROUP BY 1, 2`
}

// spender writes costs of runs that are made up.
type spender struct {
	*world
	rand             *rand.Rand
	agents, projects []xid.ID
	runs             []xid.ID
	agentOf          map[xid.ID]xid.ID
	attempts         map[xid.ID]int
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// spend is an attempt's cost: of a new run, or of one that had others before, in whatever project its task is now.
func (s *spender) spend(to execer, at time.Time) {
	s.Helper()
	run := xid.New("run")
	if len(s.runs) > 0 && s.rand.IntN(3) == 0 {
		run = s.runs[s.rand.IntN(len(s.runs))]
	} else {
		s.runs, s.agentOf[run] = append(s.runs, run), s.agents[s.rand.IntN(len(s.agents))]
	}
	s.attempts[run]++
	var project any
	if n := s.rand.IntN(4); n < len(s.projects) {
		project = string(s.projects[n])
	}
	_, err := to.ExecContext(s.Context(), `INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, project_id, input_tokens, output_tokens, cost_usd, created_at)
VALUES ($1, $2, 'cau', $3, $4, $5, $6, $7, $8, $9, $10)`, xid.New("cst"), s.workspace, run, s.attempts[run], s.agentOf[run], project, s.rand.IntN(1000), s.rand.IntN(100),
		fmt.Sprintf("%d.%06d", s.rand.IntN(3), s.rand.IntN(1_000_000)), at)
	s.ok(err)
}

// sameCosts compares the sums of a time with those of every entry, and with what a budget of that time has spent.
func (s *spender) sameCosts(from, until time.Time) {
	s.Helper()
	for _, by := range []domain.CostGrouping{domain.CostGroupingAgent, domain.CostGroupingProject, domain.CostGroupingDay} {
		got := s.rowsOf(`SELECT coalesce(subject, ''), day, cost::numeric, x.a, x.b, x.c FROM (`+reads.CostsQuery(by)+`) x (subject, day, cost, a, b, c)`, false, s.workspace, from, until, by, 1000)
		want := s.rowsOf(everyCost(by), false, s.workspace, from, until)
		if !reflect.DeepEqual(got, want) {
			s.Fatalf("by %s from %v until %v, counted until %v:\n%s\nwant\n%s", by, from, until, s.costsTallied(), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for kind, subject := range map[domain.BudgetSubjectKind]xid.ID{domain.BudgetSubjectKindWorkspace: s.workspace, domain.BudgetSubjectKindAgent: s.agents[0], domain.BudgetSubjectKindProject: s.projects[0]} {
		b := guard.Budget{WorkspaceID: s.workspace, Budget: domain.Budget{PeriodStart: from, SubjectKind: kind, SubjectID: string(subject)}}
		var got domain.Money
		s.ok(s.inTx(s.Context(), func(t *tx) (err error) { got, err = t.spentOf(s.Context(), b); return err }))
		column := map[domain.BudgetSubjectKind]string{domain.BudgetSubjectKindWorkspace: "workspace_id", domain.BudgetSubjectKindAgent: "agent_id", domain.BudgetSubjectKindProject: "project_id"}[kind]
		want := must(s.world, first(domain.ParseMoney(one[string](s.world, `SELECT coalesce(sum(cost_usd), 0)::text FROM cost_entries WHERE created_at >= $1 AND `+column+` = $2`, from, subject))), nil)
		if got != want {
			s.Fatalf("a budget of %s since %v has spent %s, want %s", kind, from, got, want)
		}
	}
}

func (w *world) costsTallied() time.Time {
	w.Helper()
	return one[time.Time](w, `SELECT until FROM cost_tally_mark`).UTC()
}

func (w *world) tallyCosts() {
	w.Helper()
	for more := true; more; {
		var err error
		more, err = w.TallyCosts(w.Context())
		w.ok(err)
	}
}

// Over histories that are made up, whatever is counted already, sums are those of every entry: by agent, project and day, of whole
// days and of parts of hours. Runs have costs in several hours and days, and in several projects. One transaction commits late.
func TestSumsOfCostsAreThoseOfEveryEntry(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test repeats by its seed
			w := newWorld(t)
			other := w.on(t)
			other.workspace = must(w, first(w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Other"})), nil).ID
			all := []*spender{}
			for _, x := range []*world{w, other} {
				s := &spender{world: x.on(t), rand: r, agentOf: map[xid.ID]xid.ID{}, attempts: map[xid.ID]int{}}
				for i := range 3 {
					s.agents = append(s.agents, x.agent(fmt.Sprint("worker ", i)))
				}
				for i := range 2 {
					s.projects = append(s.projects, x.project(fmt.Sprint("project ", i)))
				}
				all = append(all, s)
			}
			now := w.now()
			ago := func() time.Time { return now.Add(-time.Duration(r.IntN(5*24*3600)) * time.Second) }
			instant := func() time.Time {
				switch r.IntN(3) {
				case 0:
					return ago().UTC().Truncate(24 * time.Hour)
				case 1:
					return ago().UTC().Truncate(time.Hour)
				}
				return ago()
			}
			check := func() {
				t.Helper()
				for _, s := range all {
					for range 2 {
						a, b := instant(), instant()
						if b.Before(a) {
							a, b = b, a
						}
						s.sameCosts(a, b.Add(time.Microsecond))
					}
					s.sameCosts(now.Add(-30*24*time.Hour), now.Add(time.Hour))
				}
			}
			for range 80 {
				all[r.IntN(2)].spend(w.db, ago())
			}
			check()
			late, err := w.db.BeginTx(t.Context(), nil) // its entry is of long ago, as far as its column says
			w.ok(err)
			all[0].spend(late, now.Add(-30*time.Hour))
			w.tallyCosts()
			if until := w.costsTallied(); until.After(now.Add(-30 * time.Hour)) {
				t.Errorf("hours up to %v are counted beside a transaction that writes a cost before", until)
			}
			w.ok(late.Commit())
			for more, step := true, 0; more; step++ {
				more, err = w.TallyCosts(t.Context())
				w.ok(err)
				check()
				if step < 2 { // the first one notes what is settled
					more = true
				}
			}
			if until := w.costsTallied(); until.Before(now.Add(-2 * time.Hour)) {
				t.Errorf("only hours up to %v are counted", until)
			}
			all[1].spend(w.db, now)
			check()
			for range 130 { // each hour of the five days is looked at
				if wrong := must(w, first(w.suspectCosts(t.Context())), nil); len(wrong) > 0 {
					t.Fatalf("the repair suspects %v, which are right", wrong)
				}
			}
		})
	}
}

// A sum that its entries do not add up to is put right, whether it is wrong, missing or of nothing, of an hour or of a day.
func TestSumsThatAreWrongAreRepaired(t *testing.T) {
	for name, spoil := range map[string]string{
		"an hour says another cost":      `UPDATE cost_tallies SET cost_usd = cost_usd + 1 WHERE NOT day AND kind = 'AGENT'`,
		"an hour counts another run":     `UPDATE cost_tallies SET runs = runs + 1 WHERE NOT day AND kind = 'DAY'`,
		"an hour has no sum":             `DELETE FROM cost_tallies WHERE NOT day AND kind = 'DAY'`,
		"a day says another cost":        `UPDATE cost_tallies SET cost_usd = cost_usd + 1 WHERE day AND kind = 'PROJECT'`,
		"a day has no sum":               `DELETE FROM cost_tallies WHERE day`,
		"an entry came when it was late": `INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, cost_usd, created_at) SELECT 'cst_late', workspace_id, causation_id, run_id, 2, agent_id, 2, created_at FROM cost_entries`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := &spender{world: w, rand: rand.New(rand.NewPCG(1, 1)), agents: []xid.ID{w.agent("worker")}, projects: []xid.ID{w.project("project")}, agentOf: map[xid.ID]xid.ID{}, attempts: map[xid.ID]int{}} //nolint:gosec // a test repeats by its seed
			at := w.now().Add(-50 * time.Hour)
			s.spend(w.db, at)
			w.tallyCosts()
			w.tallyCosts()
			w.sql(spoil)
			if done := must(w, first(w.Repair(t.Context())), nil); done != (Repairs{Costs: 1}) {
				t.Errorf("the repair put right %+v", done)
			}
			s.sameCosts(at.UTC().Truncate(24*time.Hour), w.now())
			s.sameCosts(at.Add(-time.Hour), w.now())
			for range 3 {
				if done := must(w, first(w.Repair(t.Context())), nil); done != (Repairs{}) {
					t.Errorf("the next repair put right %+v", done)
				}
			}
		})
	}
}

// What the sums of a month read does not grow with its costs, once they are counted.
func TestSumsOfAMonthReadFewEntries(t *testing.T) {
	w := newWorld(t)
	agent := w.agent("worker")
	now := w.now()
	rows := func(by domain.CostGrouping) (n int) {
		t.Helper()
		w.sql(`ANALYZE cost_entries`)
		w.sql(`ANALYZE cost_tallies`)
		var text []byte
		w.ok(w.db.QueryRowContext(t.Context(), `EXPLAIN (ANALYZE, FORMAT JSON) `+reads.CostsQuery(by), w.workspace, now.Add(-30*24*time.Hour), now, by, 1000).Scan(&text))
		var out []struct{ Plan readNode }
		w.ok(json.Unmarshal(text, &out))
		return int(out[0].Plan.read())
	}
	fill := func(kind string, n int) {
		w.sql(`INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, cost_usd, created_at)
SELECT 'cst_' || $3::text || i, $1, 'cau', 'run_' || $3::text || i % ($4::int * 9 / 10), 1 + i / ($4::int * 9 / 10), $2, 0.01, date_trunc('hour', $5::timestamptz, 'UTC') - interval '1 minute' - i * interval '31 days' / $4::int
FROM generate_series(0, $4::int - 1) i`, w.workspace, agent, kind, n, now)
	}
	fill("few", 2_000)
	w.tallyCosts()
	w.tallyCosts()
	few := map[domain.CostGrouping]int{}
	groupings := []domain.CostGrouping{domain.CostGroupingAgent, domain.CostGroupingProject, domain.CostGroupingDay}
	for _, by := range groupings {
		few[by] = rows(by)
	}
	fill("many", 20_000)
	w.sql(`TRUNCATE cost_tallies`)
	w.sql(`UPDATE cost_tally_mark SET until = 'epoch'`)
	before := rows(domain.CostGroupingAgent)
	w.tallyCosts()
	w.tallyCosts()
	for _, by := range groupings {
		many := rows(by)
		t.Logf("by %s: %d and %d rows", by, few[by], many)
		if many > 2*few[by]+100 {
			t.Errorf("by %s %d rows are read of a month with 2,000 costs, and %d of one with ten times as many", by, few[by], many)
		}
	}
	if before < 20_000 {
		t.Errorf("%d rows are read of costs that are not counted: the test shows nothing", before)
	}
}

// readNode is a part of a plan as EXPLAIN (FORMAT JSON) shows it.
type readNode struct {
	Relation string     `json:"Relation Name"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Filtered float64    `json:"Rows Removed by Filter"`
	Plans    []readNode `json:"Plans"`
}

func (n readNode) read() (rows float64) {
	if n.Relation != "" {
		rows = (n.Rows + n.Filtered) * n.Loops
	}
	for _, part := range n.Plans {
		rows += part.read()
	}
	return rows
}

// BenchmarkCosts adds up 30 days, to this moment, with a million costs of 100 agents, before and after they are counted.
func BenchmarkCosts(b *testing.B) {
	w := newWorldOn(b, pgtest.New(b))
	w.sql(`INSERT INTO agents (id, workspace_id, name, role, skip_idle_wakeups) SELECT 'agt_' || i, $1, 'agent ' || i, 'WORKER', false FROM generate_series(0, 99) i`, w.workspace)
	tx, err := w.db.BeginTx(b.Context(), nil)
	w.ok(err)
	_, err = tx.ExecContext(b.Context(), `SET LOCAL session_replication_role = replica`) // foreign keys are looked at one by one
	w.ok(err)
	_, err = tx.ExecContext(b.Context(), `INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, cost_usd, input_tokens, created_at)
SELECT 'cst_' || i, $1, 'cau', 'run_' || i % 950000, 1 + i / 950000, 'agt_' || i % 100, 0.012345, 1000, clock_timestamp() - i * interval '30 days' / 1000000
FROM generate_series(0, 999999) i`, w.workspace)
	w.ok(err)
	w.ok(tx.Commit())
	w.sql(`VACUUM ANALYZE cost_entries`)
	read := func(by domain.CostGrouping) float64 {
		began := time.Now()
		for range 3 {
			_, err := w.Costs(b.Context(), w.workspace, began.Add(-30*24*time.Hour), began, by)
			w.ok(err)
		}
		return float64(time.Since(began).Microseconds()) / 3000
	}
	for b.Loop() {
		b.ReportMetric(read(domain.CostGroupingAgent), "uncounted-ms")
		began := time.Now()
		w.tallyCosts()
		w.tallyCosts()
		b.ReportMetric(time.Since(began).Seconds(), "counting-s")
		w.sql(`ANALYZE cost_tallies`)
		b.ReportMetric(read(domain.CostGroupingAgent), "by-agent-ms")
		b.ReportMetric(read(domain.CostGroupingProject), "by-project-ms")
		b.ReportMetric(read(domain.CostGroupingDay), "by-day-ms")
		b.ReportMetric(0, "ns/op")
	}
}
