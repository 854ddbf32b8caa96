package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
)

// Unfinished is what an attempt brought back that did not succeed: it failed, was cancelled, or was handed back. The members
// are as in Success. The actions of Result are not carried out.
type Unfinished struct {
	Result    map[string]any
	SessionID string
	Resumable bool
	Fresh     bool
	Usage     *Usage
}

// takenIn is a live run whose attempt did not succeed, with what the attempt brought back, and why its actions are refused.
type takenIn struct {
	run *runRow
	Unfinished
	why string
}

// takeIn keeps what attempts brought back that did not succeed, before their ends are written: what they used, their sessions,
// the prompts they were told, and their results. The actions that the results ask for are refused, and the event of an
// attempt's end lists them with the reason (SPEC S7.5). The runs have them.
func (t *tx) takeIn(ctx context.Context, list []takenIn) error {
	spent, sessions, told := make([]spending, len(list)), make([]sessionEnd, len(list)), make([]*domain.ToldUsage, len(list))
	for i, x := range list {
		used, now, err := t.newUse(ctx, *x.run, x.SessionID, x.Usage)
		if err != nil {
			return err
		}
		spent[i], sessions[i], told[i] = spending{x.run, used}, sessionEnd{*x.run, x.SessionID, x.Resumable}, now
	}
	if err := t.spendAll(ctx, spent); err != nil {
		return err
	}
	if err := t.keepSessions(ctx, sessions); err != nil {
		return err
	}
	for i, x := range list {
		if err := t.keepTold(ctx, *x.run, x.SessionID, told[i]); err != nil {
			return err
		}
		if err := t.keepPrompt(ctx, *x.run, x.Fresh); err != nil {
			return err
		}
		if err := t.keepResultObject(ctx, *x.run, x.Result); err != nil {
			return err
		}
		for _, a := range domain.ParseActions(x.Result, x.run.taskID != "") {
			o := outcome{Type: a.Type, Problem: a.Problem}
			if o.Problem == "" {
				o.Problem = "not carried out: " + x.why
			}
			x.run.refused = append(x.run.refused, o)
		}
	}
	return nil
}

// endData is the data of the event that an attempt of the run ends with: what is given, the actions that were refused, and
// what it said of its use that cannot be read.
func (r runRow) endData(data map[string]any) map[string]any {
	if r.unread != "" {
		data["unreadUsage"] = r.unread
	}
	if r.charged != "" {
		data["chargedUsd"] = r.charged
	}
	if len(r.refused) > 0 {
		data["actions"] = r.refused
	}
	return data
}
