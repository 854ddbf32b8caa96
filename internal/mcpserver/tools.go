package mcpserver

var ownTask = argument{name: "task_id", kind: text, of: taskID, description: "Your own task's id. It may be left out; another task is refused."}

// tools are all tools, in the order in which a model reads of them.
var tools = []tool{
	{
		name: "get_task", title: "Read a task", reads: true,
		description: "Read your task whole: title, description, state, who is in it, what blocks it, its approvals and its newest comments. " +
			"With task_id, read one of its children, its parent, one of its blockers, or a task whose approval you decide.",
		arguments: []argument{{name: "task_id", kind: text, of: taskID, description: "Which task; yours when it is left out."}},
		do:        getTask,
	},
	{
		name: "get_wake", title: "Read why you were woken", reads: true,
		description: "Read why you were woken for this run: each cause with its details, such as the comment that was written or the approval that was decided.",
		do:          getWake,
	},
	{
		name: "list_agents", title: "List your colleagues", reads: true,
		description: "List the agents of your workspace with id, name, role and state. Use an id as assignee of create_subtask, or in mentions of comment. You are in the list, too.",
		arguments:   []argument{{name: "role", kind: text, description: "Only agents of this role.", values: []string{"COORDINATOR", "SPECIALIST", "WORKER", "ASSISTANT"}}},
		do:          listAgents,
	},
	{
		name: "list_children", title: "List the task's children", reads: true,
		description: "List the subtasks of your task with id, title, state, assignee and whether they are blocked. get_task with a child's id reads its outcome.",
		arguments:   []argument{ownTask},
		do:          listChildren,
	},
	{
		name: "comment", title: "Comment on your task",
		description: "Write a comment on your task: what you found, decided or need. It wakes the task's assignee, unless that is you, and the agents in mentions.",
		arguments: []argument{
			{name: "body", kind: text, required: true, description: "The comment, in Markdown, at most 64 KiB."},
			{name: "mentions", kind: ids, of: agentID, description: "Ids of agents to wake by it (list_agents has them)."},
			ownTask,
		},
		do: comment,
	},
	{
		name: "move_task", title: "Move your task",
		description: "Say where your task stands. BLOCKED: you cannot go on, and the note says why. IN_REVIEW: it is ready for its reviewers. DONE is the same as complete_task.",
		arguments: []argument{
			{name: "state", kind: text, required: true, description: "The new state.", values: []string{"TODO", "IN_PROGRESS", "IN_REVIEW", "BLOCKED", "DONE", "CANCELLED"}},
			{name: "note", kind: text, description: "Why, in a sentence or two."},
			ownTask,
		},
		do: moveTask,
	},
	{
		name: "complete_task", title: "Complete your task",
		description: "Your task is done: end it. When it needs an approval, it goes into review, and you are woken with the decision. Without this the task stays open.",
		arguments:   []argument{ownTask},
		do:          completeTask,
	},
	{
		name: "create_subtask", title: "Make a subtask",
		description: "Make a child of your task, for a colleague or for yourself. Its assignee is woken to do it, and you are woken when all children of your task have ended. Answers with its id.",
		arguments: []argument{
			{name: "title", kind: text, required: true, description: "What is to be done, in one line of at most 200 characters."},
			{name: "description", kind: text, description: "All that its assignee needs to know, who sees neither your prompt nor your work. Markdown, at most 64 KiB."},
			{name: "assignee", kind: text, of: agentID, description: "Id of the agent that is to do it (list_agents has them). Without one nobody is woken."},
			{name: "blocked_by", kind: ids, of: taskID, description: "Ids of tasks that must be done first."},
			{name: "requires_approval", kind: truth, description: "True when its end needs an approval."},
			ownTask,
		},
		do: createSubtask,
	},
	{
		name: "request_approval", title: "Ask for a decision",
		description: "Ask the task's approvers, or a person, for a decision that you may not make yourself. You are woken with the answer: end your run, do not wait for it.",
		arguments: []argument{
			{name: "question", kind: text, required: true, description: "What is to be decided, with what one needs to know for that. At most 64 KiB."},
			ownTask,
		},
		do: requestApproval,
	},
	{
		name: "decide_approval", title: "Decide an approval",
		description: "Decide an approval that waits for you. You must be an approver of its task. What you approve or reject stands at once, and wakes who asked.",
		arguments: []argument{
			{name: "approval_id", kind: text, of: approvalID, required: true, description: "Id of the approval, from your prompt, get_wake or get_task."},
			{name: "approved", kind: truth, required: true, description: "True for yes, false for no."},
			{name: "note", kind: text, description: "Your reason; who asked reads it."},
		},
		do: decideApproval,
	},
	{
		name: "self_wake", title: "Be woken again",
		description: "Have yourself woken once more, in a run without a task that begins soon after this one. For work that your task does not wait for.",
		arguments: []argument{
			{name: "reason", kind: text, required: true, description: "What you want to be reminded of."},
			{name: "payload", kind: object, description: "What you leave yourself for that run, at most 32 KiB of JSON."},
		},
		do: selfWake,
	},
	{
		name: "add_link", title: "Show a link",
		description: "Show people something that you made elsewhere, such as a pull request. It stands on your run and your task, and wakes nobody. The same url again changes its link.",
		arguments: []argument{
			{name: "url", kind: text, required: true, description: "The http or https address, without user and password."},
			{name: "kind", kind: text, description: "What it is; OTHER when it is left out.", values: []string{"PULL_REQUEST", "PREVIEW", "OTHER"}},
			{name: "title", kind: text, description: "What people read, one line of at most 200 characters; the address when it is left out."},
		},
		do: addLink,
	},
	{
		name: "report_progress", title: "Tell how far you are",
		description: "Tell people who watch the run how far you are. It changes nothing and wakes nobody.",
		arguments: []argument{
			{name: "message", kind: text, required: true, description: "What you have done or are about to do, in one sentence."},
			{name: "percent", kind: number, description: "How much of the work is done, 0 to 100."},
		},
		do: reportProgress,
	},
}
