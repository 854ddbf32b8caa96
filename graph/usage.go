package graph

import (
	"regexp"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// unreadBytesMax bounds what an agent said of its use and nobody can read.
const unreadBytesMax = 1 << 10

var decimalCost = regexp.MustCompile(`^\d{1,9}(\.\d{1,6})?$`)

// usageOf reads what a worker says of its use; nil when it says nothing.
func usageOf(in *model.RunUsageInput) (*store.Usage, error) {
	if in == nil {
		return nil, nil
	}
	p := &inputProblems{}
	for _, of := range []struct {
		name string
		n    int
	}{{"inputTokens", in.InputTokens}, {"outputTokens", in.OutputTokens}} {
		if of.n < 0 { // and at most MaxTokens, as any Int
			p.add([]string{"usage", of.name}, domain.UserErrorCodeOutOfRange, "must be from 0 to %d", domain.MaxTokens)
		}
	}
	if !decimalCost.MatchString(in.CostUsd) {
		p.add([]string{"usage", "costUsd"}, domain.UserErrorCodeInvalid, "must be a decimal of at least 0 with at most six decimals, e.g. \"0.25\"")
	}
	if len(valueOf(in.Unread)) > unreadBytesMax {
		p.add([]string{"usage", "unread"}, domain.UserErrorCodeTooLong, "must be at most %d bytes", unreadBytesMax)
	}
	usage := &store.Usage{InputTokens: int64(in.InputTokens), OutputTokens: int64(in.OutputTokens), CostUSD: in.CostUsd, CostUnread: in.CostUnread, Unread: valueOf(in.Unread),
		SessionTokens: in.SessionTokens, SessionCost: in.SessionCost}
	if in.CostUnread {
		usage.CostUSD = ""
	}
	return usage, domain.AsUserError(p.list)
}
