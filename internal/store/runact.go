package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// actData is what a run's event tells of something that its agent did by a call.
type actData struct {
	Action domain.ActionType `json:"action"`
	ID     xid.ID            `json:"id,omitempty"`
	State  domain.TaskState  `json:"state,omitempty"`
	Key    string            `json:"key"`

	Mentions []string `json:"mentions,omitempty"`
}

// actingRun locks the run whose token the caller has, so that what the agent does by a call comes before the run's end, or is refused
// (SPEC S7.7). It is nil for any other caller. Lanes that the call needs are locked before it, and tasks after it.
func (t *tx) actingRun(ctx context.Context) (*runRow, error) {
	caller, _ := auth.FromContext(ctx)
	if caller.Kind != auth.KindRun {
		return nil, nil
	}
	const query = `SELECT ` + runColumns + ` FROM runs r WHERE r.id = $1 AND r.status = 'CLAIMED' AND r.attempt = $2 FOR NO KEY UPDATE`
	runs, err := pgtx.Collect(ctx, t, scanRun, query, caller.RunID, caller.Attempt)
	if err != nil {
		return nil, fmt.Errorf("lock the caller's run: %w", err)
	}
	if len(runs) == 0 {
		return nil, domain.Refuse(domain.UserErrorCodeStaleLease, "the attempt that this run token belongs to has ended, so that nothing was done: end the agent's work")
	}
	return &runs[0], nil
}

// noteAct notes in a run's life what its agent did by a call; nil: the caller is no run. It says of what an action names which record it
// made or changed, so that the result's equal action is not done again.
func (t *tx) noteAct(ctx context.Context, run *runRow, a domain.Action, id xid.ID) error {
	if run == nil {
		return nil
	}
	return t.runEvent(ctx, *run, domain.RunEventKindActed, run.attempt, actData{a.Type, id, a.MovesTo(), a.Key(), a.Mentions})
}

// actsOf are what a run's agent did by calls, in their order, over all attempts.
func (t *tx) actsOf(ctx context.Context, runID xid.ID) ([]domain.Act, error) {
	const query = `SELECT data FROM run_events WHERE run_id = $1 AND kind = 'ACTED' ORDER BY seq`
	acts, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (domain.Act, error) {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return domain.Act{}, err
		}
		var d actData
		err := json.Unmarshal(text, &d)
		return domain.Act{Key: d.Key, ID: string(d.ID), State: d.State, Mentions: d.Mentions}, err
	}, query, runID)
	return acts, pgtx.Wrap("read what the run's agent did by calls", err)
}

// actingOnce is actingRun for what can be done only once. before says that the run's agent did it by an earlier call: that call was
// made again, because its answer was lost.
func (t *tx) actingOnce(ctx context.Context, a domain.Action) (run *runRow, before bool, err error) {
	if run, err = t.actingRun(ctx); err != nil || run == nil {
		return run, false, err
	}
	acts, err := t.actsOf(ctx, run.id)
	key := a.Key()
	return run, slices.ContainsFunc(acts, func(act domain.Act) bool { return act.Key == key }), err
}

// errNoRunsToken is a defect of the program: the API asks for a run's token.
var errNoRunsToken = errors.New("only the token of a run may do this")
