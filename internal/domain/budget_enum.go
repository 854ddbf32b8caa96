package domain

// BudgetPeriod is how often the spending of a budget starts again at zero.
//
//rouse:enum
type BudgetPeriod string

const (
	BudgetPeriodDay   BudgetPeriod = "DAY"   // day
	BudgetPeriodWeek  BudgetPeriod = "WEEK"  // week
	BudgetPeriodMonth BudgetPeriod = "MONTH" // month
	BudgetPeriodTotal BudgetPeriod = "TOTAL" // for ever
)

// BudgetAction is what exceeding a budget does.
//
//rouse:enum
type BudgetAction string

const (
	BudgetActionPauseAgent BudgetAction = "PAUSE_AGENT" // pause the agent, skip the wake
	BudgetActionNotify     BudgetAction = "NOTIFY"      // tell only
)

// BudgetSubjectKind is what a budget limits.
//
//rouse:enum
type BudgetSubjectKind string

const (
	BudgetSubjectKindWorkspace BudgetSubjectKind = "WORKSPACE" // a workspace
	BudgetSubjectKindProject   BudgetSubjectKind = "PROJECT"   // a project
	BudgetSubjectKindAgent     BudgetSubjectKind = "AGENT"     // an agent
)

// BudgetHoldStatus is the state of a reservation.
//
//rouse:enum
type BudgetHoldStatus string

const (
	BudgetHoldStatusHeld    BudgetHoldStatus = "HELD"    // reserved for a live run
	BudgetHoldStatusSettled BudgetHoldStatus = "SETTLED" // replaced by the real cost
	BudgetHoldStatusVoid    BudgetHoldStatus = "VOID"    // given back
)

// BudgetState is where spending stands.
//
//rouse:enum
type BudgetState string

const (
	BudgetStateUnlimited BudgetState = "UNLIMITED" // no budget applies
	BudgetStateWithin    BudgetState = "WITHIN"    // below the limit
	BudgetStateExceeded  BudgetState = "EXCEEDED"  // the limit is reached
)

// CostGrouping is what costs are added up by.
//
//rouse:enum
type CostGrouping string

const (
	CostGroupingAgent   CostGrouping = "AGENT"   // by agent
	CostGroupingProject CostGrouping = "PROJECT" // by project
	CostGroupingDay     CostGrouping = "DAY"     // by day, UTC
)
