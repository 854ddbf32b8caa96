package domain

import "slices"

// BudgetCharge names what a run is charged to: its workspace, its agent, and the project of its task, "" without one.
type BudgetCharge struct{ WorkspaceID, AgentID, ProjectID string }

// Applies says whether a run is charged to the budget.
func (b Budget) Applies(c BudgetCharge) bool {
	switch b.SubjectKind {
	case BudgetSubjectKindAgent:
		return b.SubjectID == c.AgentID
	case BudgetSubjectKindProject:
		return c.ProjectID != "" && b.SubjectID == c.ProjectID
	}
	return b.SubjectID == c.WorkspaceID
}

// left is what may still be spent of the budget besides what live runs hold; below zero when they went too far.
func (b Budget) left() Money { return b.Limit - b.Spent - b.Reserved }

// Frees says whether the budget has more room than before, so that runs which wait for it are looked at again. Causes
// are a higher limit, a hold that ended, a new period, and a change to NOTIFY.
func (b Budget) Frees(before Budget) bool {
	if before.OnExceed != BudgetActionPauseAgent {
		return false
	}
	return b.OnExceed != BudgetActionPauseAgent || b.left() > 0 && (b.left() > before.left() || !b.PeriodStart.Equal(before.PeriodStart))
}

// ExpectedCost estimates what a run will cost: the mean cost of its agent's last runs. For an agent without runs it is
// the mean cost of the workspace's last attempts. known is false when there are neither.
func ExpectedCost(ofAgent, ofWorkspace []Money) (expected Money, known bool) {
	if len(ofAgent) > 0 {
		return HoldAmount(ofAgent), true
	}
	return HoldAmount(ofWorkspace), len(ofWorkspace) > 0
}

// BudgetHold is what a run reserves of one budget.
type BudgetHold struct {
	BudgetID string
	Amount   Money
}

// BudgetLedger is the budgets of a claim at one instant, with what it has reserved so far. Expected is what a run of each
// agent will cost; an agent that is not in it is one of whom nobody knows.
type BudgetLedger struct {
	Budgets  []Budget
	Expected map[string]Money
}

// Clone is a ledger to try things on.
func (l BudgetLedger) Clone() BudgetLedger {
	l.Budgets = slices.Clone(l.Budgets)
	return l
}

// Admit runs the budget guards on a run (SPEC S6.2).
func (l BudgetLedger) Admit(c BudgetCharge) BudgetAnswer {
	var list []Budget
	for _, b := range l.Budgets {
		if b.Applies(c) {
			list = append(list, b)
		}
	}
	return AdmitBudgets(list)
}

// Reserve is what a run holds of each budget that applies to it, which is in the ledger from then on. A run of unknown cost
// holds all that is left of a budget that pauses agents: until it has told, no other run is charged to that.
func (l *BudgetLedger) Reserve(c BudgetCharge) []BudgetHold {
	expected, known := l.Expected[c.AgentID]
	var holds []BudgetHold
	for i := range l.Budgets {
		b := &l.Budgets[i]
		if !b.Applies(c) {
			continue
		}
		amount := expected
		if !known && b.OnExceed == BudgetActionPauseAgent {
			amount = max(b.left(), 0)
		}
		b.Reserved += amount
		holds = append(holds, BudgetHold{BudgetID: b.ID, Amount: amount})
	}
	return holds
}
