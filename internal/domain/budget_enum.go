package domain

import "io"

// BudgetPeriod is how often the spending of a budget starts again at zero.
type BudgetPeriod string

const (
	BudgetPeriodDay   BudgetPeriod = "DAY"   // day
	BudgetPeriodWeek  BudgetPeriod = "WEEK"  // week
	BudgetPeriodMonth BudgetPeriod = "MONTH" // month
	BudgetPeriodTotal BudgetPeriod = "TOTAL" // for ever
)

var budgetPeriodValues = []BudgetPeriod{
	BudgetPeriodDay,
	BudgetPeriodWeek,
	BudgetPeriodMonth,
	BudgetPeriodTotal,
}

// Values lists every BudgetPeriod, for the database check and the API enum.
func (BudgetPeriod) Values() []string { return enumValues(budgetPeriodValues) }

// MarshalGQL writes the value as the API spells it.
func (v BudgetPeriod) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *BudgetPeriod) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, budgetPeriodValues) }

// BudgetAction is what exceeding a budget does.
type BudgetAction string

const (
	BudgetActionPauseAgent BudgetAction = "PAUSE_AGENT" // pause the agent, skip the wake
	BudgetActionNotify     BudgetAction = "NOTIFY"      // tell only
)

var budgetActionValues = []BudgetAction{
	BudgetActionPauseAgent,
	BudgetActionNotify,
}

// Values lists every BudgetAction, for the database check and the API enum.
func (BudgetAction) Values() []string { return enumValues(budgetActionValues) }

// MarshalGQL writes the value as the API spells it.
func (v BudgetAction) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *BudgetAction) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, budgetActionValues) }

// BudgetSubjectKind is what a budget limits.
type BudgetSubjectKind string

const (
	BudgetSubjectKindWorkspace BudgetSubjectKind = "WORKSPACE" // a workspace
	BudgetSubjectKindProject   BudgetSubjectKind = "PROJECT"   // a project
	BudgetSubjectKindAgent     BudgetSubjectKind = "AGENT"     // an agent
)

var budgetSubjectKindValues = []BudgetSubjectKind{
	BudgetSubjectKindWorkspace,
	BudgetSubjectKindProject,
	BudgetSubjectKindAgent,
}

// Values lists every BudgetSubjectKind, for the database check and the API enum.
func (BudgetSubjectKind) Values() []string { return enumValues(budgetSubjectKindValues) }

// MarshalGQL writes the value as the API spells it.
func (v BudgetSubjectKind) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *BudgetSubjectKind) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, budgetSubjectKindValues)
}

// BudgetHoldStatus is the state of a reservation.
type BudgetHoldStatus string

const (
	BudgetHoldStatusHeld    BudgetHoldStatus = "HELD"    // reserved for a live run
	BudgetHoldStatusSettled BudgetHoldStatus = "SETTLED" // replaced by the real cost
	BudgetHoldStatusVoid    BudgetHoldStatus = "VOID"    // given back
)

var budgetHoldStatusValues = []BudgetHoldStatus{
	BudgetHoldStatusHeld,
	BudgetHoldStatusSettled,
	BudgetHoldStatusVoid,
}

// Values lists every BudgetHoldStatus, for the database check and the API enum.
func (BudgetHoldStatus) Values() []string { return enumValues(budgetHoldStatusValues) }

// MarshalGQL writes the value as the API spells it.
func (v BudgetHoldStatus) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *BudgetHoldStatus) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, budgetHoldStatusValues)
}

// BudgetState is where spending stands.
type BudgetState string

const (
	BudgetStateUnlimited BudgetState = "UNLIMITED" // no budget applies
	BudgetStateWithin    BudgetState = "WITHIN"    // below the limit
	BudgetStateExceeded  BudgetState = "EXCEEDED"  // the limit is reached
)

var budgetStateValues = []BudgetState{
	BudgetStateUnlimited,
	BudgetStateWithin,
	BudgetStateExceeded,
}

// Values lists every BudgetState, for the API enum.
func (BudgetState) Values() []string { return enumValues(budgetStateValues) }

// MarshalGQL writes the value as the API spells it.
func (v BudgetState) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *BudgetState) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, budgetStateValues) }

// CostGrouping is what costs are added up by.
type CostGrouping string

const (
	CostGroupingAgent   CostGrouping = "AGENT"   // by agent
	CostGroupingProject CostGrouping = "PROJECT" // by project
	CostGroupingDay     CostGrouping = "DAY"     // by day, UTC
)

var costGroupingValues = []CostGrouping{
	CostGroupingAgent,
	CostGroupingProject,
	CostGroupingDay,
}

// Values lists every CostGrouping, for the API enum.
func (CostGrouping) Values() []string { return enumValues(costGroupingValues) }

// MarshalGQL writes the value as the API spells it.
func (v CostGrouping) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *CostGrouping) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, costGroupingValues) }
