package domain

import (
	"slices"
	"time"
)

// Budget is a budget policy with its counters, at one instant. Reserved is the sum of the holds of live runs. Told is the
// thresholds for which an alert was made in this period (SPEC S6.5).
type Budget struct {
	ID              string
	SubjectKind     BudgetSubjectKind
	SubjectID       string
	Limit           Money
	Spent, Reserved Money
	Period          BudgetPeriod
	PeriodStart     time.Time
	OnExceed        BudgetAction
	Thresholds      []int // rising
	Told            []int
}

// Start is when the period began that holds the instant. Periods are days, ISO weeks (from Monday) and months in UTC, like
// the days of costs; TOTAL began at the zero time.
func (v BudgetPeriod) Start(at time.Time) time.Time {
	at = at.UTC()
	day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	switch v {
	case BudgetPeriodDay:
		return day
	case BudgetPeriodWeek:
		return day.AddDate(0, 0, -(int(at.Weekday())+6)%7)
	case BudgetPeriodMonth:
		return day.AddDate(0, 0, 1-at.Day())
	}
	return time.Unix(0, 0).UTC()
}

// End is when a period ends that began so; false: never.
func (v BudgetPeriod) End(start time.Time) (time.Time, bool) {
	switch start = start.UTC(); v {
	case BudgetPeriodDay:
		return start.AddDate(0, 0, 1), true
	case BudgetPeriodWeek:
		return start.AddDate(0, 0, 7), true
	case BudgetPeriodMonth:
		return start.AddDate(0, 1, 0), true
	}
	return time.Time{}, false
}

// At is the budget at an instant: in a new period nothing is spent or told yet, while live runs still hold what they hold.
func (b Budget) At(now time.Time) Budget {
	if end, ends := b.Period.End(b.PeriodStart); ends && !now.Before(end) {
		b.PeriodStart, b.Spent, b.Told = b.Period.Start(now), 0, nil
	}
	return b
}

// Exceeded says whether the limit is reached: exactly at it counts (C224).
func (b Budget) Exceeded() bool { return b.Spent >= b.Limit }

// State is where the budget stands.
func (b Budget) State() BudgetState {
	if b.Exceeded() {
		return BudgetStateExceeded
	}
	return BudgetStateWithin
}

// WorstState is the state of spending that several budgets limit. Without a budget, spending is unlimited (C224).
func WorstState(budgets ...Budget) BudgetState {
	state := BudgetStateUnlimited
	for _, b := range budgets {
		if now := b.State(); state != BudgetStateExceeded {
			state = now
		}
	}
	return state
}

// Crossed lists the thresholds that the budget has reached and that had no alert in this period, lowest first (C88,
// C90).
func (b Budget) Crossed() []int {
	var crossed []int
	for _, percent := range b.Thresholds {
		if !slices.Contains(b.Told, percent) && b.Spent.reaches(percent, b.Limit) {
			crossed = append(crossed, percent)
		}
	}
	return crossed
}

// BudgetAnswer is what the budgets that apply to a run say about its launch.
type BudgetAnswer struct {
	Blocked  *Budget // exceeded: the run ends BUDGET_BLOCKED and its agent is paused
	Reserved *Budget // only what live runs hold stands in the way: the run waits
}

// BudgetRetry is how long a run is parked whose budget is reserved by live runs.
const BudgetRetry = 30 * time.Second

// AdmitBudgets runs the guards "budget" and "reserve" (SPEC S6.2) on the budgets that apply to a run, as they are now.
// The workspace's budget comes first, then the project's, then the agent's. A budget with NOTIFY stops no run (C89).
func AdmitBudgets(budgets []Budget) BudgetAnswer {
	order := []BudgetSubjectKind{BudgetSubjectKindWorkspace, BudgetSubjectKindProject, BudgetSubjectKindAgent}
	budgets = slices.Clone(budgets)
	slices.SortStableFunc(budgets, func(a, b Budget) int { return slices.Index(order, a.SubjectKind) - slices.Index(order, b.SubjectKind) })
	var answer BudgetAnswer
	for i := range budgets {
		b := &budgets[i]
		switch {
		case b.OnExceed != BudgetActionPauseAgent:
		case b.Exceeded():
			return BudgetAnswer{Blocked: b}
		case b.Spent+b.Reserved >= b.Limit && answer.Reserved == nil:
			answer.Reserved = b
		}
	}
	return answer
}

// BudgetBlocked ends a run whose budget is spent, without a launch.
var BudgetBlocked = Settlement{Run: RunStatusFinished, Outcome: OutcomeBudgetBlocked, Request: WakeupStatusSkipped,
	Reason: EndReasonBudgetBlocked, Activity: ActivityCodeWakeupBudgetBlocked}

// HoldRuns is of how many of an agent's last runs a hold is the mean.
const HoldRuns = 10

// HoldAmount is what a run reserves: the mean of what the agent's last runs cost, rounded up; nothing for an agent that has
// none yet.
func HoldAmount(lastCosts []Money) Money {
	if len(lastCosts) == 0 {
		return 0
	}
	var sum Money
	for _, cost := range lastCosts {
		sum += cost
	}
	n := Money(len(lastCosts))
	return (sum + n - 1) / n
}

// Bounds of a budget's alert thresholds, in percent.
const (
	maxThresholds = 10
	maxThreshold  = 1000
)

// BudgetSettings are what a person sets of a budget.
type BudgetSettings struct {
	LimitUSD   string
	Thresholds []int
}

// Check reads the limit and puts the thresholds in order, each once; problems name the API's fields.
func (s BudgetSettings) Check() (limit Money, thresholds []int, problems []FieldError) {
	limit, err := ParseMoney(s.LimitUSD)
	switch {
	case err != nil:
		problems = append(problems, FieldError{Field: []string{"limitUsd"}, Code: UserErrorCodeInvalid, Message: err.Error()})
	case limit == 0:
		problems = append(problems, FieldError{Field: []string{"limitUsd"}, Code: UserErrorCodeOutOfRange,
			Message: "a limit is more than 0; to launch nothing, pause the agents; for no limit, delete the budget"})
	}
	thresholds = slices.Compact(slices.Sorted(slices.Values(s.Thresholds)))
	if len(thresholds) > maxThresholds {
		problems = append(problems, FieldError{Field: []string{"alertThresholds"}, Code: UserErrorCodeTooLong, Message: "a budget has at most 10 alert thresholds"})
	}
	for _, percent := range thresholds {
		if percent < 1 || percent > maxThreshold {
			problems = append(problems, FieldError{Field: []string{"alertThresholds"}, Code: UserErrorCodeOutOfRange, Message: "a threshold is 1 to 1000 percent"})
			break
		}
	}
	return limit, thresholds, problems
}
