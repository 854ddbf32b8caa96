package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/prompt"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// shownWakes is how many of a run's newest requests the prompt shows in full (SPEC S7.3); more are only counted.
const shownWakes = 50

// readRequests reads the requests of runs that start.
func (t *tx) readRequests(ctx context.Context, starts []*starting) error {
	requests, err := t.promptRequests(ctx, idsBy(starts, func(x *starting) xid.ID { return x.run.id })...)
	for _, x := range starts {
		x.requests = requests[x.run.id]
	}
	return err
}

// promptRequests reads the requests of runs, oldest first: all that were not delivered yet, or were to an attempt that
// failed. Payloads are read of those that are shown, and of the first, which the command gets in its environment.
func (t *tx) promptRequests(ctx context.Context, runs ...xid.ID) (map[xid.ID][]requestRow, error) {
	const payload = `CASE WHEN row_number() OVER (PARTITION BY run_id ORDER BY requested_at DESC, id DESC) <= $2
  OR row_number() OVER (PARTITION BY run_id ORDER BY requested_at, id) = 1 THEN payload ELSE '{}'::jsonb END`
	query := `
SELECT ` + requestColumns(payload) + `, run_id FROM wakeup_requests WHERE run_id = ANY($1) AND ` + guard.RequestLives + ` ORDER BY requested_at, id`
	byRun := map[xid.ID][]requestRow{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var run xid.ID
		q, err := scanRequest(rows, &run)
		byRun[run] = append(byRun[run], q)
		return struct{}{}, err
	}, query, pgtx.IDs(runs), shownWakes)
	if err != nil {
		return nil, fmt.Errorf("read the runs' requests: %w", err)
	}
	return byRun, nil
}

// taskWeight is what a run about a task takes of the room besides its prompt: its records take some statements to read, during
// which the lanes are locked.
const taskWeight = promptBytesPerClaim / 16

// weight is what a prepared start takes of the room of a claim.
func (x *starting) weight() int {
	n := len(x.prompt.Text) + len(x.full)
	if x.task != nil {
		n += taskWeight
	}
	return n
}

// prepare decides about the sessions of runs that start and assembles their prompts, from the first run on, until there is no
// room for more. It returns those that are prepared: the first one always is.
func (t *tx) prepare(ctx context.Context, starts []*starting, room int) ([]*starting, error) {
	if len(starts) == 0 {
		return nil, nil
	}
	if err := t.readRequests(ctx, starts); err != nil {
		return nil, err
	}
	routines, err := t.routinesOf(ctx, starts)
	if err != nil {
		return nil, err
	}
	runs := make([]runRow, len(starts))
	for i, x := range starts {
		runs[i] = x.run
	}
	summaries, err := t.readSummaries(ctx, runs)
	if err != nil {
		return nil, err
	}
	if err := t.readColleagues(ctx, starts); err != nil {
		return nil, err
	}
	for i, x := range starts {
		if room <= 0 {
			return starts[:i], nil
		}
		if x.resume, x.reinstructed, err = t.openSession(ctx, x.run, x.agent, prompt.Instructions(x.told())); err != nil {
			return nil, err
		}
		if err := t.buildPrompt(ctx, x, routines, summaries[chainOf(x.run)]); err != nil {
			return nil, err
		}
		room -= x.weight()
	}
	return starts, nil
}

// buildPrompt assembles a prompt. One that resumes a session gets the delta, and full is what a new session would need.
func (t *tx) buildPrompt(ctx context.Context, x *starting, routines map[xid.ID]*ent.Routine, summary string) error {
	wakes, err := promptWakes(x.requests, routines)
	if err != nil {
		return err
	}
	shown, err := t.taskInPrompt(ctx, x.run, x.task)
	if err != nil {
		return err
	}
	if err := t.recordsInPrompt(ctx, x.run, wakes, shown); err != nil {
		return err
	}
	in := prompt.Input{
		Summary: summary,
		Agent:   x.told(),
		Wakes:   wakes,
		Run: prompt.Run{ID: string(x.run.id), Attempt: x.run.attempt, AgentID: string(x.run.agentID), WorkspaceID: string(x.run.workspaceID),
			Task: shown, Actions: domain.ActionsOf(x.run.taskID != ""), Tools: x.spec.AgentTools(), Colleagues: x.colleagues},
	}
	if x.prompt = prompt.Build(in); x.resume != "" {
		in.Delta, in.Reinstructed = true, x.reinstructed
		x.full, x.prompt = x.prompt.Text, prompt.Build(in)
	}
	return nil
}

// told is what the agent is told of itself.
func (x *starting) told() prompt.Agent {
	return prompt.Agent{Name: x.agent.Name, Role: x.agent.Role, Instructions: x.agent.Instructions, Workspace: x.agent.Edges.Workspace.Name}
}

// readColleagues reads whom the coordinators among the agents may give work to.
func (t *tx) readColleagues(ctx context.Context, starts []*starting) error {
	coordinators := slices.DeleteFunc(slices.Clone(starts), func(x *starting) bool { return x.agent.Role != domain.AgentRoleCoordinator })
	if len(coordinators) == 0 {
		return nil
	}
	found := map[xid.ID][]prompt.Colleague{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (c prompt.Colleague, err error) {
		var of xid.ID
		err = rows.Scan(&of, &c.ID, &c.Name, &c.Role, &c.About, &c.Status)
		found[of] = append(found[of], c)
		return c, err
	}, colleaguesQuery, pgtx.IDs(idsBy(coordinators, func(x *starting) xid.ID { return x.run.agentID })), promptColleagues, aboutColleague)
	for _, x := range coordinators {
		x.colleagues = found[x.run.agentID]
	}
	return pgtx.Wrap("read the coordinators' colleagues", err)
}

// routinesOf reads the routines that the requests of runs name.
func (t *tx) routinesOf(ctx context.Context, starts []*starting) (map[xid.ID]*ent.Routine, error) {
	var list []xid.ID
	for _, x := range starts {
		for _, q := range x.requests {
			if q.routineID != "" {
				list = append(list, q.routineID)
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	found, err := t.Routine.Query().Where(routine.IDIn(pgtx.Distinct(list)...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the routines: %w", err)
	}
	routines := make(map[xid.ID]*ent.Routine, len(found))
	for _, r := range found {
		routines[r.ID] = r
	}
	return routines, nil
}

// promptWakes turns requests into what the prompt says of them.
func promptWakes(requests []requestRow, routines map[xid.ID]*ent.Routine) ([]prompt.Wake, error) {
	wakes := make([]prompt.Wake, 0, len(requests))
	for i, q := range requests {
		if i < len(requests)-shownWakes { // only counted
			wakes = append(wakes, prompt.Wake{Source: q.source, At: q.requestedAt})
			continue
		}
		w, err := promptWake(q, routines[q.routineID])
		if err != nil {
			return nil, err
		}
		wakes = append(wakes, w)
	}
	return wakes, nil
}

func promptWake(q requestRow, r *ent.Routine) (prompt.Wake, error) {
	payload, err := domain.DecodePayload(q.source, q.payload)
	if err != nil {
		return prompt.Wake{}, fmt.Errorf("request %s: %w", q.id, err)
	}
	w := prompt.Wake{Source: q.source, At: q.requestedAt, Payload: payload}
	switch p := payload.(type) {
	case *domain.UserPayload:
		w.User = p.UserID
	case *domain.RoutinePayload:
		if r != nil {
			w.Routine, w.Text = r.Name, p.Text
		}
	}
	return w, nil
}
