package domain

import (
	"reflect"
	"testing"
	"time"
)

func instantOf(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestBudgetPeriods(t *testing.T) {
	for _, c := range []struct {
		name            string
		period          BudgetPeriod
		at, start, ends string // ends "": never
	}{
		{"a day in UTC, wherever it is asked for", BudgetPeriodDay, "2026-03-01T00:30:00+02:00", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"a week begins on Monday", BudgetPeriodWeek, "2026-11-29T19:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"a Monday begins its own week", BudgetPeriodWeek, "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
		{"a month", BudgetPeriodMonth, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"the last month of a year", BudgetPeriodMonth, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"for ever", BudgetPeriodTotal, "2026-12-31T23:59:59Z", "1970-01-01T00:00:00Z", ""},
	} {
		start := c.period.Start(instantOf(t, c.at))
		if !start.Equal(instantOf(t, c.start)) {
			t.Errorf("%s: begins %s, want %s", c.name, start, c.start)
		}
		end, ends := c.period.End(start)
		if ends != (c.ends != "") || ends && !end.Equal(instantOf(t, c.ends)) {
			t.Errorf("%s: ends %s (%v), want %s", c.name, end, ends, c.ends)
		}
	}
}

func TestBudgetAlerts(t *testing.T) {
	month := instantOf(t, "2026-11-01T00:00:00Z")
	budget := func(spent Money, told ...int) Budget {
		return Budget{Limit: 1000, Spent: spent, Thresholds: []int{80, 90, 100}, Told: told, Period: BudgetPeriodMonth, PeriodStart: month}
	}
	for _, c := range []struct {
		name     string
		budget   Budget
		crossed  []int
		exceeded bool
	}{
		{"C88 799 of 1000: nothing", budget(799), nil, false},
		{"C88 800 of 1000: 80 is told", budget(800), []int{80}, false},
		{"C88 999 of 1000, 90 told: nothing more", budget(999, 80, 90), nil, false},
		{"C88 1000 of 1000: 100 is told, and it is exceeded", budget(1000, 80, 90), []int{100}, true},
		{"C90 95 %: 90 is told", budget(950, 80), []int{90}, false},
		{"C90 96 % in the same period: nothing more", budget(960, 80, 90), nil, false},
		{"one run crosses all", budget(2000), []int{80, 90, 100}, true},
		{"a threshold that was set after a higher one was told is told by itself", budget(950, 90), []int{80}, false},
		{"one that was told under a lower limit is not told again", budget(950, 80, 100), []int{90}, false},
		{"C90 the next month begins with nothing told", budget(960, 80, 90, 100).At(instantOf(t, "2026-12-01T00:00:00Z")), nil, false},
		{"the last instant of the month is of the month", budget(1000, 80, 90, 100).At(instantOf(t, "2026-11-30T23:59:59Z")), nil, true},
	} {
		if got := c.budget.Crossed(); !reflect.DeepEqual(got, c.crossed) {
			t.Errorf("%s: crossed %v, want %v", c.name, got, c.crossed)
		}
		if got := c.budget.Exceeded(); got != c.exceeded {
			t.Errorf("%s: exceeded is %v", c.name, got)
		}
	}
	next := budget(960, 80, 90).At(instantOf(t, "2027-01-15T00:00:00Z"))
	if next.Spent != 0 || !next.PeriodStart.Equal(instantOf(t, "2027-01-01T00:00:00Z")) {
		t.Errorf("two months later the budget is %+v", next)
	}
	total := Budget{Limit: 10, Spent: 10, Period: BudgetPeriodTotal}.At(instantOf(t, "2099-01-01T00:00:00Z"))
	if !total.Exceeded() {
		t.Error("a budget without an end began anew")
	}
}

func TestBudgetGuards(t *testing.T) {
	budget := func(kind BudgetSubjectKind, spent, reserved Money, action BudgetAction) Budget {
		return Budget{ID: string(kind), SubjectKind: kind, Limit: 100, Spent: spent, Reserved: reserved, OnExceed: action}
	}
	const workspace, project, agent = BudgetSubjectKindWorkspace, BudgetSubjectKindProject, BudgetSubjectKindAgent
	pause, notify := BudgetActionPauseAgent, BudgetActionNotify
	for _, c := range []struct {
		name              string
		budgets           []Budget
		blocked, reserved string
	}{
		{"C224 no policy means unlimited", nil, "", ""},
		{"below the limit", []Budget{budget(agent, 99, 0, pause)}, "", ""},
		{"C224 exactly at the limit is exceeded", []Budget{budget(agent, 100, 0, pause)}, "AGENT", ""},
		{"C89 exceeded with NOTIFY goes on", []Budget{budget(agent, 200, 50, notify)}, "", ""},
		{"C89 exceeded with PAUSE_AGENT does not", []Budget{budget(workspace, 200, 0, notify), budget(agent, 200, 0, pause)}, "AGENT", ""},
		{"live runs hold the rest", []Budget{budget(agent, 60, 40, pause)}, "", "AGENT"},
		{"live runs hold not all of the rest", []Budget{budget(agent, 60, 39, pause)}, "", ""},
		{"spent is worse than held", []Budget{budget(workspace, 60, 40, pause), budget(agent, 100, 0, pause)}, "AGENT", ""},
		{"the widest budget is named first", []Budget{budget(agent, 100, 0, pause), budget(project, 100, 0, pause), budget(workspace, 100, 0, pause)}, "WORKSPACE", ""},
	} {
		got := AdmitBudgets(c.budgets)
		name := func(b *Budget) string {
			if b == nil {
				return ""
			}
			return b.ID
		}
		if name(got.Blocked) != c.blocked || name(got.Reserved) != c.reserved {
			t.Errorf("%s: blocked by %q, reserved by %q; want %q and %q", c.name, name(got.Blocked), name(got.Reserved), c.blocked, c.reserved)
		}
	}
}

func TestWorstState(t *testing.T) {
	within, exceeded := Budget{Limit: 2, Spent: 1}, Budget{Limit: 2, Spent: 2}
	for _, c := range []struct {
		name    string
		budgets []Budget
		want    BudgetState
	}{
		{"C224 no policy", nil, BudgetStateUnlimited},
		{"one within", []Budget{within}, BudgetStateWithin},
		{"the worse of two", []Budget{exceeded, within}, BudgetStateExceeded},
	} {
		if got := WorstState(c.budgets...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestHoldIsTheMeanOfTheLastRuns(t *testing.T) {
	for _, c := range []struct {
		name  string
		costs []Money
		want  Money
	}{
		{"no run yet", nil, 0}, {"one run", []Money{7}, 7}, {"rounded up", []Money{1, 2}, 2}, {"free runs count", []Money{0, 0, 9}, 3},
	} {
		if got := HoldAmount(c.costs); got != c.want {
			t.Errorf("%s: holds %d, want %d", c.name, got, c.want)
		}
	}
}

func TestBudgetSettings(t *testing.T) {
	limit, thresholds, problems := BudgetSettings{LimitUSD: "10.50", Thresholds: []int{100, 80, 100}}.Check()
	if limit != 10_500_000 || !reflect.DeepEqual(thresholds, []int{80, 100}) || problems != nil {
		t.Errorf("read %d, %v, %v", limit, thresholds, problems)
	}
	for text, code := range map[string]UserErrorCode{"0": UserErrorCodeOutOfRange, "0.00": UserErrorCodeOutOfRange, "-5": UserErrorCodeInvalid, "ten": UserErrorCodeInvalid} {
		if _, _, problems := (BudgetSettings{LimitUSD: text}).Check(); len(problems) != 1 || problems[0].Code != code {
			t.Errorf("a limit of %q gives %v, want %s", text, problems, code)
		}
	}
	for _, bad := range [][]int{{0}, {1001}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}} {
		if _, _, problems := (BudgetSettings{LimitUSD: "1", Thresholds: bad}).Check(); len(problems) != 1 {
			t.Errorf("thresholds %v give %v", bad, problems)
		}
	}
}
