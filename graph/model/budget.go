package model

import (
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Budget is a budget policy as it stands at an instant.
type Budget struct {
	ID, WorkspaceID                 xid.ID
	Revision                        int
	SubjectKind                     domain.BudgetSubjectKind
	SubjectID                       xid.ID
	LimitUsd, SpentUsd, ReservedUsd string
	PercentUsed                     float64
	State                           domain.BudgetState
	Period                          domain.BudgetPeriod
	PeriodStart                     time.Time
	AlertThresholds                 []int
	OnExceed                        domain.BudgetAction
	ResetsAt                        *time.Time
}

// IsNode marks a member of interface Node.
func (*Budget) IsNode() {}

// IsVersioned marks a member of interface Versioned.
func (*Budget) IsVersioned() {}

// DomainBudget reads a row as the rules see it.
func DomainBudget(row *ent.BudgetPolicy) (b domain.Budget, err error) {
	b = domain.Budget{ID: string(row.ID), SubjectKind: row.SubjectKind, SubjectID: row.SubjectID, Period: row.Period, PeriodStart: row.PeriodStart,
		OnExceed: row.OnExceed, Thresholds: row.AlertThresholds, Told: row.ToldThresholds}
	for _, amount := range []struct {
		to   *domain.Money
		text string
	}{{&b.Limit, row.LimitUsd}, {&b.Spent, row.SpentUsd}, {&b.Reserved, row.ReservedUsd}} {
		if *amount.to, err = domain.ParseMoney(amount.text); err != nil {
			return b, fmt.Errorf("read budget %s: %w", row.ID, err)
		}
	}
	return b, nil
}

// BudgetOf shows a row as it stands now.
func BudgetOf(row *ent.BudgetPolicy, now time.Time) (*Budget, error) {
	b, err := DomainBudget(row)
	if err != nil {
		return nil, err
	}
	b = b.At(now)
	out := &Budget{ID: row.ID, WorkspaceID: row.WorkspaceID, Revision: row.Revision, SubjectKind: b.SubjectKind, SubjectID: xid.ID(b.SubjectID), LimitUsd: b.Limit.String(),
		SpentUsd: b.Spent.String(), ReservedUsd: b.Reserved.String(), PercentUsed: b.Spent.Percent(b.Limit), State: b.State(), Period: b.Period,
		PeriodStart: b.PeriodStart, AlertThresholds: append([]int{}, b.Thresholds...), OnExceed: b.OnExceed}
	if end, ends := b.Period.End(b.PeriodStart); ends {
		out.ResetsAt = &end
	}
	return out, nil
}

// CostGroup is a sum of costs.
type CostGroup struct {
	SubjectID                 *xid.ID
	Day                       *time.Time
	CostUsd                   string
	InputTokens, OutputTokens int64
	Runs                      int
}
