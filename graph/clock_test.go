package graph_test

import (
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/pgtest"
)

// ahead is how far the database's clock is ahead in newAheadWorld: more than a month and than any grace.
const ahead = 40 * 24 * time.Hour

// newAheadWorld is a world whose database has another clock than this process.
func newAheadWorld(t *testing.T) *world {
	t.Helper()
	plain, address := pgtest.NewURL(t)
	_, err := plain.ExecContext(t.Context(), `CREATE SCHEMA ahead;
CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() + interval '40 days' $$`)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", "ahead,pg_catalog,public")
	u.RawQuery = query.Encode()
	connector, err := pq.NewConnector(u.String())
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return newWorldOn(t, db)
}

func TestWhatTheAPIShowsOfTimeIsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	w := newAheadWorld(t)
	agent := w.agent("Ada")
	w.schedule(agent)
	start := time.Now()
	w.sql(`UPDATE routine_triggers SET next_run_at = $1`, start.Add(ahead-2*time.Hour)) // for this process in 38 days
	w.sql(`INSERT INTO budget_policies (id, workspace_id, subject_kind, subject_id, limit_usd, period, alert_thresholds, period_start, spent_usd)
SELECT 'bud_01k00000000000000000000000', $1, 'AGENT', $2, 10, 'MONTH', '[80]', date_trunc('month', $3::timestamptz, 'UTC'), 20`, w.workspace, agent, start)
	var out struct {
		Workspace struct {
			UpcomingFires []struct{ At time.Time }
			Budgets       struct {
				Edges []struct {
					Node struct {
						State, SpentUsd string
						PeriodStart     time.Time
					}
				}
			}
			Routines struct {
				Edges []struct {
					Node struct{ Triggers []struct{ Condition string } }
				}
			}
		}
		Agent         struct{ BudgetState string }
		Node          struct{ SpentUsd string }
		NextFireTimes struct{ Times []time.Time }
	}
	w.Do(t.Context(), `query($w: ID!, $a: ID!, $until: DateTime!) {
  workspace(id: $w) {
    upcomingFires(until: $until) { at }
    budgets { edges { node { state spentUsd periodStart } } }
    routines { edges { node { triggers { ... on ScheduleTrigger { condition } } } } }
  }
  agent(id: $a) { budgetState }
  node(id: "bud_01k00000000000000000000000") { ... on Budget { spentUsd } }
  nextFireTimes(cron: "0 * * * *", timeZone: "UTC", n: 1) { times }
}`, map[string]any{"w": w.workspace, "a": agent, "until": start.Add(ahead + 3*24*time.Hour)}, &out)
	if len(out.Workspace.UpcomingFires) == 0 {
		t.Error("there are no fires in the next three days")
	}
	budget := out.Workspace.Budgets.Edges[0].Node
	if budget.State != "WITHIN" || budget.SpentUsd != "0" || !budget.PeriodStart.After(start) || out.Node.SpentUsd != "0" || out.Agent.BudgetState != "WITHIN" {
		t.Errorf("what was spent in a month that is over counts: %+v, %s, %s", budget, out.Node.SpentUsd, out.Agent.BudgetState)
	}
	if got := out.Workspace.Routines.Edges[0].Node.Triggers[0].Condition; got != "OVERDUE" {
		t.Errorf("a trigger that should have fired two hours ago is %s", got)
	}
	if at := out.NextFireTimes.Times[0]; at.Before(start.Add(ahead)) || at.After(time.Now().Add(ahead+time.Hour)) {
		t.Errorf("the next full hour is %v", at)
	}
}
