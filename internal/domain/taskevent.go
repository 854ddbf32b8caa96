package domain

import (
	"fmt"
	"slices"
)

// TaskFacts is a task as far as the wakes that its changes cause depend on it. The zero value is a task before it was made.
type TaskFacts struct {
	ID           string
	Office       bool // the loop may act on it (SPEC S5.1)
	State        TaskState
	Archived     bool
	AssigneeID   string
	StepID       string
	StepActions  []StepAction // of its step
	Reviewers    []string
	Approvers    []string
	OpenBlockers int
	// AssignmentQueued says of a task that the loop may not act on any more that its assignment is still queued, from before.
	AssignmentQueued bool
	// Generation makes the keys of its wakes: it rises with each assignment, each change of the state, the blockers or the
	// participants, and each end of a blocker or child (SPEC S3.3).
	Generation int
}

// Live says whether there is still something to do about the task.
func (f TaskFacts) Live() bool { return f.ID != "" && !f.State.Ended() && !f.Archived }

// TaskWake is a wake that a change causes: what the request says, and the key that makes it one.
type TaskWake struct {
	AgentID       string
	Source        WakeupSource
	Basis         WakeBasis // of TASK_ASSIGNED
	PersonWaiting bool      // a mention, a person's queueRun or move to In Progress: no window (SPEC S3.7)
	Reason        string    // short label
	Payload       Payload
	Key           string
}

// TaskChange is one change of one task, under its row lock. After.Generation has been raised where Generation says so.
type TaskChange struct {
	Before, After TaskFacts
	// ByAgentID is the agent whose run makes the change, or that a person names as its author; "" for people. Its own
	// change of a task never wakes it (SPEC S5.2).
	ByAgentID string
	// ReturnCommentID is the comment that says why the task came back from review.
	ReturnCommentID string
	// EndedBlockers are those that ended or were taken off, for the payload.
	EndedBlockers []string
}

// NextGeneration is the generation after a change; blockerOrChildEnded says that it was the end of such a task.
func (c TaskChange) NextGeneration(blockerOrChildEnded bool) int {
	a, b := c.Before, c.After
	if blockerOrChildEnded || a.AssigneeID != b.AssigneeID || a.State != b.State || a.StepID != b.StepID || a.Office != b.Office ||
		a.OpenBlockers != b.OpenBlockers || !slices.Equal(a.Reviewers, b.Reviewers) || !slices.Equal(a.Approvers, b.Approvers) {
		return a.Generation + 1
	}
	return a.Generation
}

// WakeupsFor lists the wakes that a change of a task causes (SPEC S5.2, S5.3). A task that has ended causes none,
// except at the end of its last blocker, because requests about it may still wait for that. A task that the loop may
// not act on causes only what a step asks for.
func WakeupsFor(c TaskChange) []TaskWake {
	var wakes []TaskWake
	if !c.After.Live() {
		if !c.After.Archived {
			wakes = c.unblockedWakes()
		}
		return wakes
	}
	if c.After.Office {
		wakes = append(wakes, c.assigneeWakes()...)
		wakes = append(wakes, c.reviewWakes()...)
	}
	wakes = append(wakes, c.unblockedWakes()...)
	return append(wakes, c.stepWakes(wakes)...)
}

// assigneeWakes wake the assignee because it got the task, because the task was started, or because it came back from
// review.
func (c TaskChange) assigneeWakes() []TaskWake {
	a, b := c.Before, c.After
	if b.AssigneeID == "" || b.AssigneeID == c.ByAgentID {
		return nil
	}
	started := c.started()
	switch {
	case started && a.State == TaskStateInReview && c.ReturnCommentID != "":
		return []TaskWake{commentWake(b.ID, c.ReturnCommentID, b.AssigneeID, c.personStarted())}
	case started, a.AssigneeID != b.AssigneeID, !a.Office:
		return []TaskWake{{AgentID: b.AssigneeID, Source: WakeupSourceTaskAssigned, Basis: WakeBasisAssignee, Reason: "task assigned", PersonWaiting: c.personStarted(),
			Payload: &TaskPayload{TaskID: b.ID, Basis: WakeBasisAssignee},
			Key:     fmt.Sprintf("task_assigned:%s:%s:%d", b.ID, b.AssigneeID, b.Generation)}}
	}
	return nil
}

// started says whether the task was moved to IN_PROGRESS. personStarted says whether a person moved it, and so waits
// for the agent.
func (c TaskChange) started() bool {
	return c.Before.ID != "" && c.Before.State != c.After.State && c.After.State == TaskStateInProgress
}

func (c TaskChange) personStarted() bool { return c.started() && c.ByAgentID == "" }

// reviewWakes call the reviewers of a task that came into review, and those who join while it is there.
func (c TaskChange) reviewWakes() []TaskWake {
	if c.After.State != TaskStateInReview {
		return nil
	}
	var wakes []TaskWake
	for _, agent := range c.After.Reviewers {
		if agent == c.ByAgentID || c.Before.State == TaskStateInReview && slices.Contains(c.Before.Reviewers, agent) {
			continue
		}
		wakes = append(wakes, TaskWake{AgentID: agent, Source: WakeupSourceTaskAssigned, Basis: WakeBasisReviewer, Reason: "review wanted",
			Payload: &TaskPayload{TaskID: c.After.ID, Basis: WakeBasisReviewer},
			Key:     fmt.Sprintf("review:%s:%s:%d", c.After.ID, agent, c.After.Generation)})
	}
	return wakes
}

// unblockedWakes wake the assignee when the last open blocker is gone, whoever ended it (SPEC S5.3). The task is an
// office task, or was one when its assignment was queued: without the wake that assignment would wait for ever.
func (c TaskChange) unblockedWakes() []TaskWake {
	if !c.After.Office && !c.After.AssignmentQueued {
		return nil
	}
	if c.Before.OpenBlockers == 0 || c.After.OpenBlockers > 0 || c.After.AssigneeID == "" {
		return nil
	}
	resolved := c.EndedBlockers
	if resolved == nil {
		resolved = []string{}
	}
	return []TaskWake{{AgentID: c.After.AssigneeID, Source: WakeupSourceTaskBlockersResolved, Reason: "blockers resolved",
		Payload: &BlockersPayload{TaskID: c.After.ID, ResolvedBlockerIDs: resolved},
		Key:     fmt.Sprintf("blockers_resolved:%s:%d", c.After.ID, c.After.Generation)}}
}

// stepWakes do what entering the step asks for, in any workflow, unless the assignee is woken anyway.
func (c TaskChange) stepWakes(others []TaskWake) []TaskWake {
	a, b := c.Before, c.After
	if a.StepID == b.StepID || b.AssigneeID == "" || b.AssigneeID == c.ByAgentID {
		return nil
	}
	asked := slices.Contains(b.StepActions, StepActionQueueRun) || a.ID == "" && slices.Contains(b.StepActions, StepActionAutoStartAgent)
	if !asked || slices.ContainsFunc(others, func(w TaskWake) bool { return w.AgentID == b.AssigneeID }) {
		return nil
	}
	w := QueueRunWake(b.ID, b.AssigneeID, "step entered", fmt.Sprintf("%s.%d", b.StepID, b.Generation))
	w.PersonWaiting = c.personStarted()
	return []TaskWake{w}
}

// QueueRunWake is the wake of a run that was asked for by name: by a step's action, or by the mutation queueRun. key is
// the mutation's idempotency key, "" without one.
func QueueRunWake(taskID, agentID, reason, key string) TaskWake {
	w := TaskWake{AgentID: agentID, Source: WakeupSourceTaskAssigned, Basis: WakeBasisExplicit, Reason: reason,
		Payload: &TaskPayload{TaskID: taskID, Basis: WakeBasisExplicit}}
	if key != "" {
		w.Key = fmt.Sprintf("queue_run:%s:%s:%s", taskID, agentID, key)
	}
	return w
}

// ChildrenCompletedWake tells a parent's assignee that none of its children is open any more; nil when there is nobody to
// tell. The parent's generation has been raised by the child's end.
func ChildrenCompletedWake(parent TaskFacts, openChildren int) []TaskWake {
	if !parent.Live() || !parent.Office || parent.AssigneeID == "" || openChildren > 0 {
		return nil
	}
	return []TaskWake{{AgentID: parent.AssigneeID, Source: WakeupSourceTaskChildrenCompleted, Reason: "children completed",
		Payload: &TaskPayload{TaskID: parent.ID}, Key: fmt.Sprintf("children_completed:%s:%d", parent.ID, parent.Generation)}}
}

// CommentFacts is a comment as far as its wakes depend on it.
type CommentFacts struct {
	ID            string
	Task          TaskFacts
	TaskTitle     string
	Body          string
	AuthorAgentID string // "" for people and channels
	AuthorName    string // of people and channels
	Mentions      []string
}

// NotWoken is why a comment does not wake its task's assignee, or an agent that it mentions.
//
//rouse:enum
type NotWoken string

const (
	NotWokenTaskEnded  NotWoken = "TASK_ENDED"  // there is nothing left to do about the task
	NotWokenNoAssignee NotWoken = "NO_ASSIGNEE" // it is nobody's
	NotWokenNotOffice  NotWoken = "NOT_OFFICE"  // the loop does not act on it
	NotWokenAuthor     NotWoken = "AUTHOR"      // the comment is the assignee's own

	NotWokenSelfMention NotWoken = "SELF_MENTION" // of an agent that is mentioned: it wrote the comment itself
)

// notWokenTexts say for people why nobody is woken, and what to do.
var notWokenTexts = map[NotWoken]string{
	NotWokenTaskEnded:  "the task has ended, so its assignee is not woken: move it back (moveTask), or mention an agent (mentionedAgentIds)",
	NotWokenNoAssignee: "the task has no assignee, so nobody is woken: assign it (assignTask), or mention an agent (mentionedAgentIds)",
	NotWokenNotOffice:  "the loop does not act on this task, so its assignee is not woken: ask for a run (queueRun), give the task a project, or mention the agent (mentionedAgentIds)",
	NotWokenAuthor:     "the comment is the assignee's own, and does not wake it",

	NotWokenSelfMention: "the agent mentions itself, and a comment never wakes its author: mention another agent (mentionedAgentIds), or let the agent wake itself (self_wake in its result) or be woken (wakeAgent)",
}

// Text says it for people, with what to do.
func (v NotWoken) Text() string { return notWokenTexts[v] }

// NotWoken says why the comment does not wake the task's assignee; "" when it does. One that is mentioned all the same is
// woken by that.
func (c CommentFacts) NotWoken() NotWoken {
	switch {
	case c.Task.AssigneeID == "":
		return NotWokenNoAssignee
	case c.Task.AssigneeID == c.AuthorAgentID:
		return NotWokenAuthor
	case !c.Task.Live():
		return NotWokenTaskEnded
	case !c.Task.Office:
		return NotWokenNotOffice
	}
	return ""
}

// UnwokenMention is an agent that a comment mentions and does not wake.
type UnwokenMention struct {
	AgentID string
	Why     NotWoken
}

// MentionsNotWoken lists the agents that the comment mentions in vain: its own author.
func (c CommentFacts) MentionsNotWoken() []UnwokenMention {
	if c.AuthorAgentID == "" || !slices.Contains(c.Mentions, c.AuthorAgentID) {
		return nil
	}
	return []UnwokenMention{{c.AuthorAgentID, NotWokenSelfMention}}
}

// WakeupsForComment lists the wakes of a comment: COMMENT for the assignee of an office task that is open, and USER for each agent that
// is mentioned. The assignee's own mention is its COMMENT, without a window (SPEC S5.2). The author is never woken.
func WakeupsForComment(c CommentFacts) []TaskWake {
	var wakes []TaskWake
	told := map[string]bool{c.AuthorAgentID: true, "": true}
	if assignee := c.Task.AssigneeID; c.NotWoken() == "" && !told[assignee] {
		told[assignee] = true
		wakes = append(wakes, commentWake(c.Task.ID, c.ID, assignee, slices.Contains(c.Mentions, assignee)))
	}
	for _, agent := range c.Mentions {
		if told[agent] {
			continue
		}
		told[agent] = true
		wakes = append(wakes, c.mentionWake(agent))
	}
	return wakes
}

func commentWake(taskID, commentID, agentID string, personWaiting bool) TaskWake {
	return TaskWake{AgentID: agentID, Source: WakeupSourceComment, PersonWaiting: personWaiting, Reason: "comment",
		Payload: &CommentPayload{TaskID: taskID, CommentID: commentID}, Key: "comment:" + commentID + ":" + agentID}
}

func (c CommentFacts) mentionWake(agentID string) TaskWake {
	who := c.AuthorName
	if c.AuthorAgentID != "" {
		who = c.AuthorAgentID
	}
	return TaskWake{AgentID: agentID, Source: WakeupSourceUser, PersonWaiting: true, Reason: "mentioned",
		Payload: &UserPayload{UserID: who, Context: map[string]any{"task_id": c.Task.ID, "task_title": c.TaskTitle, "comment_id": c.ID,
			"comment": CutText(c.Body, maxCommentBody, " [… cut; the comment has all of it]")}},
		Key: "mention:" + c.ID + ":" + agentID}
}
