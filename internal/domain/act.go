package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Act is something that an agent did by a call with its run's token, rather than by its result. A result that asks for the same
// is told so, and nothing is done a second time.
type Act struct {
	Key   string    // equal for equal acts (Action.Key)
	ID    string    // of the record that it made or changed
	State TaskState // that it moved the task to; "" for all but moves

	Mentions []string // the agents that a comment mentioned
}

// Key is equal for actions that ask for the same. A remark beside a move or a decision does not make it another one. Whom a comment
// mentions is not in it, because a result may leave out what was done (Restated.Take).
func (a Action) Key() string {
	said := []any{a.Type}
	switch a.Type {
	case ActionComment:
		said = append(said, strings.TrimSpace(a.Body))
	case ActionMoveTask, ActionCompleteTask:
		said = []any{ActionMoveTask, a.MovesTo()}
	case ActionCreateSubtask:
		said = append(said, strings.TrimSpace(a.Title), strings.TrimSpace(a.Description), a.Assignee, slices.Sorted(slices.Values(a.BlockedBy)), a.RequiresApproval)
	case ActionRequestApproval:
		said = append(said, strings.TrimSpace(a.Question))
	case ActionAddLink:
		said = append(said, a.URL, a.Kind, strings.TrimSpace(a.Title))
	case ActionDecideApproval:
		said = append(said, a.ApprovalID, a.Approved)
	case ActionSelfWake:
		said = append(said, strings.TrimSpace(a.Reason))
		if len(a.Payload) > 0 {
			said = append(said, plainJSON(a.Payload))
		}
	}
	text, err := json.Marshal(said)
	if err != nil { // of a payload that no JSON can say: it equals itself alone by its reason
		text = []byte(a.Reason)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// plainJSON is a value as any reader of JSON has it: calls and results are read by different ones, which keep numbers in different forms.
// What no JSON can say stays as it is.
func plainJSON(value any) any {
	var plain any
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &plain) != nil {
		return value
	}
	return plain
}

// MovesTo is the state that an action asks for; "" for what is no move.
func (a Action) MovesTo() TaskState {
	switch a.Type {
	case ActionMoveTask:
		return a.State
	case ActionCompleteTask:
		return TaskStateDone
	}
	return ""
}

// Restated finds the actions of a result that say once more what the run's agent did by calls before.
type Restated struct {
	acts  []Act
	moves int // how many moves of the result, from its first, were made by calls
}

// NewRestated compares a result's actions with the run's acts, both in their order.
func NewRestated(acts []Act, actions []Action) *Restated {
	var made, asked []TaskState
	for _, a := range acts {
		if a.State != "" {
			made = append(made, a.State)
		}
	}
	for _, a := range actions {
		if to := a.MovesTo(); to != "" && a.Problem == "" {
			asked = append(asked, to)
		}
	}
	return &Restated{acts: acts, moves: restatedMoves(made, asked)}
}

// restatedMoves is how many moves of a result, from its first, repeat those that were made: they stand among them in their order, and the
// last of them is the last that was made. So a result that moves the task elsewhere than the last call did is obeyed.
func restatedMoves(made, asked []TaskState) int {
	for n := len(asked); n > 0 && len(made) > 0; n-- {
		if asked[n-1] == made[len(made)-1] && inOrder(asked[:n-1], made[:len(made)-1]) {
			return n
		}
	}
	return 0
}

// inOrder says whether all of some stand in list in their order.
func inOrder(some, list []TaskState) bool {
	for _, s := range list {
		if len(some) > 0 && some[0] == s {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// Take says whether the next action of the result was done by a call, and by which. The actions come in their order, each once,
// without those that have a Problem. Blockers that name actions ("#1") are to be replaced by what those made.
func (r *Restated) Take(a Action) (Act, bool) {
	if to := a.MovesTo(); to != "" {
		if r.moves == 0 {
			return Act{}, false
		}
		r.moves--
	}
	return r.doneAs(a.Key(), a.Mentions)
}

// doneAs is the newest act of a key, when all acts of it together have mentioned these agents: one that no call has mentioned would
// hear of nothing.
func (r *Restated) doneAs(key string, mentions []string) (newest Act, done bool) {
	var mentioned []string
	for _, act := range r.acts {
		if act.Key == key {
			newest, done = act, true
			mentioned = append(mentioned, act.Mentions...)
		}
	}
	for _, agent := range mentions {
		done = done && slices.Contains(mentioned, agent)
	}
	if !done {
		return Act{}, false
	}
	return newest, true
}
