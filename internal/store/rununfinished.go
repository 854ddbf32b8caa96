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

// takeIn keeps what an attempt brought back that did not succeed, before its end is written: what it used, its session,
// the prompt it was told, and its result. The actions that the result asks for are refused, and the event of the
// attempt's end lists them with the reason (SPEC S7.5). The run that is returned has them.
func (t *tx) takeIn(ctx context.Context, run runRow, u Unfinished, why string) (runRow, error) {
	used, told, err := t.newUse(ctx, run, u.SessionID, u.Usage)
	if err != nil {
		return run, err
	}
	if run, err = t.spend(ctx, run, used); err != nil {
		return run, err
	}
	if err := t.keepSession(ctx, run, u.SessionID, u.Resumable); err != nil {
		return run, err
	}
	if err := t.keepTold(ctx, run, u.SessionID, told); err != nil {
		return run, err
	}
	if err := t.keepPrompt(ctx, run, u.Fresh); err != nil {
		return run, err
	}
	if err := t.keepResultObject(ctx, run, u.Result); err != nil {
		return run, err
	}
	for _, a := range domain.ParseActions(u.Result, run.taskID != "") {
		o := outcome{Type: a.Type, Problem: a.Problem}
		if o.Problem == "" {
			o.Problem = "not carried out: " + why
		}
		run.refused = append(run.refused, o)
	}
	return run, nil
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
