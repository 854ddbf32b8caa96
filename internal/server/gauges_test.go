package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// watched is a server's /metrics over a workspace in which something of each kind has happened.
func watched(t *testing.T) (numbers http.Handler, workspace xid.ID) {
	t.Helper()
	db, _ := pgtest.NewURL(t)
	counters := metrics.New()
	s := store.New(db, store.Options{Events: event.New(event.HubOptions{Log: quiet()}), Log: quiet(), Counters: counters, Jitter: func() float64 { return 0 }})
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := s.CreateWorkspace(t.Context(), store.CreateWorkspace{Name: "Shown"})
	ok(err)
	workspace = made.ID
	agent := xid.New("agt")
	_, err = s.CreateAgent(t.Context(), store.CreateAgent{ID: agent, WorkspaceID: workspace, Name: "worker", Role: domain.AgentRoleWorker, MaxConcurrentSessions: 1, Cooldown: time.Hour,
		Executor: &domain.ExecutorSpec{Echo: &domain.EchoSpec{}}})
	ok(err)
	_, _, err = s.UpsertBudget(t.Context(), store.UpsertBudget{WorkspaceID: workspace, SubjectKind: domain.BudgetSubjectKindAgent, SubjectID: agent, LimitUSD: "4",
		Period: domain.BudgetPeriodTotal, OnExceed: domain.BudgetActionNotify})
	ok(err)
	wake := func() {
		_, err := s.Wake(t.Context(), store.Wake{WorkspaceID: workspace, AgentID: agent, UserID: "ann"})
		ok(err)
	}
	wake()
	claimed, err := s.Claim(t.Context(), store.Owner{ID: "prc_1", Host: "here", BootID: "boot", PID: 1, Started: 1}, 1, time.Minute)
	ok(err)
	wake()
	ok(s.Finish(t.Context(), claimed[0].Attempt, store.Success{Summary: "done", Usage: &store.Usage{CostUSD: "1"}}))
	counters.FireLate(workspace, time.Second)
	counters.RoutineRun(workspace, domain.RoutineRunSourceCron, domain.RoutineRunStatusEnqueued, "")
	counters.CronTick(time.Now())
	counters.QueuePass(time.Now())
	counters.Repaired("heads", 0)
	counters.LoopFailed("dispatch")
	server := &Server{store: s, counters: counters}
	return counters.Handler(server.gauges()...), workspace
}

func scraped(t *testing.T, numbers http.Handler) []string {
	t.Helper()
	w := httptest.NewRecorder()
	numbers.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return strings.Split(w.Body.String(), "\n")
}

func TestTheNumbersOfEachWorkspaceAreShown(t *testing.T) {
	t.Parallel()
	numbers, ws := watched(t)
	lines := scraped(t, numbers)
	for _, want := range []string{
		`rouse_workspace_info{slug="shown",workspace="W"} 1`,
		`rouse_loop_verdict{verdict="HEALTHY",workspace="W"} 0`,
		`rouse_loop_verdict{verdict="UNKNOWN",workspace="W"} 1`,
		`rouse_queue_live{workspace="W"} 0`,
		`rouse_queue_claimable{workspace="W"} 0`, // the agent rests
		`rouse_queue_held{hold="PLACE",workspace="W"} 1`,
		`rouse_queue_held{hold="BACKOFF",workspace="W"} 0`,
		`rouse_queue_oldest_claimable_age_seconds{workspace="W"} 0`,
		`rouse_inbox_open{kind="APPROVAL_REQUEST",workspace="W"} 0`,
		`rouse_run_wait_seconds_count{workspace="W"} 1`,
		`rouse_run_duration_seconds_count{workspace="W"} 1`,
		`rouse_attempt_cost_dollars_sum{workspace="W"} 1`,
		`rouse_attempt_cost_dollars_bucket{workspace="W",le="0.25"} 0`,
		`rouse_attempt_cost_dollars_bucket{workspace="W",le="1"} 1`,
		`rouse_fire_lateness_seconds_sum{workspace="W"} 1`,
	} {
		if want = strings.ReplaceAll(want, `"W"`, `"`+string(ws)+`"`); !slices.Contains(lines, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "rouse_budget_used_ratio{") && strings.HasSuffix(line, `subject_kind="AGENT",workspace="`+string(ws)+`"} 0.25`)
	}) {
		t.Error("a quarter of the budget is not shown as used")
	}
	if t.Failed() {
		t.Log(strings.Join(slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "rouse_") }), "\n"))
	}
}

// What the alert rules and the dashboard ask for is what a server shows, with the labels that they group and filter by.
func TestAlertsAndDashboardAskForWhatIsShown(t *testing.T) {
	t.Parallel()
	numbers, _ := watched(t)
	shown := map[string]string{} // names with the labels of one line
	for _, line := range scraped(t, numbers) {
		if name, labels, found := strings.Cut(line, "{"); found || strings.HasPrefix(line, "rouse_") {
			name, _, _ = strings.Cut(name, " ")
			shown[name] = labels
		}
	}
	rules, err := os.ReadFile("../../packaging/prometheus/rouse.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, expressions := range map[string][]string{"rules": ruleExpressions(t, string(rules)), "dashboard": dashboardExpressions(t)} {
		if len(expressions) < 15 {
			t.Errorf("only %d expressions were found in the %s", len(expressions), name)
		}
		for _, expression := range expressions {
			for _, problem := range notShown(expression, shown) {
				t.Errorf("%s: %s: %s", name, expression, problem)
			}
		}
	}
	if problems := notShown(`max by (colour) (rouse_queue_lve{colour="red"})`, shown); len(problems) != 3 {
		t.Errorf("of a wrong expression is said %q, want its name and both labels", problems)
	}
}

var (
	metricName = regexp.MustCompile(`rouse_[a-z_]+`)
	labelList  = regexp.MustCompile(`(?:by|on) \(([a-z_, ]+)\)`)
	labelMatch = regexp.MustCompile(`([a-z_]+)=~?"`)
)

// notShown says which names, and which labels beside them, no line of the scrape has.
func notShown(expression string, shown map[string]string) (problems []string) {
	var labels strings.Builder
	for _, name := range metricName.FindAllString(expression, -1) {
		has, there := shown[name]
		if !there {
			problems = append(problems, name+" is not shown")
		}
		labels.WriteString("," + has)
	}
	var wanted []string
	for _, list := range labelList.FindAllStringSubmatch(expression, -1) {
		wanted = append(wanted, strings.Split(strings.ReplaceAll(list[1], " ", ""), ",")...)
	}
	for _, match := range labelMatch.FindAllStringSubmatch(expression, -1) {
		wanted = append(wanted, match[1])
	}
	ours := []string{"job", "instance"} // Prometheus adds them
	for _, label := range wanted {
		if !slices.Contains(ours, label) && !regexp.MustCompile(`[,{]`+label+`="`).MatchString("{"+labels.String()) {
			problems = append(problems, "no label "+label+" is shown")
		}
	}
	return problems
}

// ruleExpressions are the expressions of the rules: what follows expr up to the next member.
func ruleExpressions(t *testing.T, rules string) (expressions []string) {
	t.Helper()
	for _, rule := range strings.Split(rules, "- alert: ")[1:] {
		_, rest, found := strings.Cut(rule, "expr: ")
		at := regexp.MustCompile(`\n        [a-z]+:`).FindStringIndex(rest)
		if !found || at == nil {
			t.Fatalf("a rule without an expression: %s", rule)
		}
		expressions = append(expressions, strings.Join(strings.Fields(strings.TrimPrefix(rest[:at[0]], "|")), " "))
	}
	return expressions
}

func dashboardExpressions(t *testing.T) (expressions []string) {
	t.Helper()
	text, err := os.ReadFile("../../packaging/grafana/rouse.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID    string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || dashboard.UID == "" {
		t.Fatalf("the dashboard cannot be read: %v", err)
	}
	for _, panel := range dashboard.Panels {
		if panel.Title == "" || len(panel.Targets) == 0 {
			t.Errorf("a panel without a title or a target: %+v", panel)
		}
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	return expressions
}

// A scrape reads those workspaces first that were read the longest ago, shows the others as they were, and forgets what it
// could not read for long.
func TestAScrapeReadsWhatItHasTimeFor(t *testing.T) {
	ids := []xid.ID{"wsp_a", "wsp_b", "wsp_c"}
	var asked []xid.ID
	now := time.Now()
	g := &workspaceGauges{known: map[xid.ID]gauged{
		"wsp_a": {&reads.WorkspaceGauges{}, now.Add(-time.Minute)},
		"wsp_b": {&reads.WorkspaceGauges{}, now.Add(-time.Second)},
		"wsp_d": {&reads.WorkspaceGauges{}, now}, // deleted since
	}}
	g.list = func(context.Context) ([]xid.ID, map[xid.ID]string, error) {
		return slices.Clone(ids), map[xid.ID]string{"wsp_a": "a", "wsp_b": "b", "wsp_c": "c"}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	g.of = func(_ context.Context, id xid.ID) (*reads.WorkspaceGauges, error) {
		asked = append(asked, id)
		cancel() // no time is left after the first
		return &reads.WorkspaceGauges{Verdict: domain.LoopVerdictDead}, nil
	}
	of := func(readings []metrics.Reading) (slugs []string) {
		for _, r := range readings {
			if r.Name == gaugeInfo {
				slugs = append(slugs, r.Labels[1])
			}
		}
		slices.Sort(slugs)
		return slugs
	}
	if shown := of(g.read(ctx)); !slices.Equal(asked, []xid.ID{"wsp_c"}) || !slices.Equal(shown, []string{"a", "b", "c"}) {
		t.Errorf("%v were read, %v shown: want c, which was never read, and all", asked, shown)
	}
	g.known["wsp_a"] = gauged{&reads.WorkspaceGauges{}, now.Add(-time.Hour)}
	asked = nil
	g.of = func(_ context.Context, id xid.ID) (*reads.WorkspaceGauges, error) {
		asked = append(asked, id)
		return nil, errors.New("away")
	}
	if shown := of(g.read(t.Context())); !slices.Equal(asked, []xid.ID{"wsp_a"}) || !slices.Equal(shown, []string{"b", "c"}) {
		t.Errorf("%v were read, %v shown: want a alone, which is too old to be shown when it cannot be read", asked, shown)
	}
}
