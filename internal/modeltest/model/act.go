package model

// Act is one thing that the result of a run asks for (SPEC S7.5).
type Act struct {
	Kind     string // comment, move_task, complete_task, create_subtask, self_wake
	State    string // of move_task
	Assignee *Agent // of create_subtask
}

func (w *World) act(run *Run, a Act) {
	t, by := run.Task, run.By()
	switch {
	case a.Kind == "self_wake":
		w.insert(&Request{Agent: run.Agent, Source: "SELF", Scope: "taskless", Event: true, Hops: by.hops})
	case t == nil || t.Archived:
	case a.Kind == "comment":
		w.comment(t, nil, by)
	case a.Kind == "move_task":
		w.move(t, a.State, by)
	case a.Kind == "complete_task":
		w.move(t, "DONE", by)
	case a.Kind == "create_subtask":
		w.create(&Task{State: "TODO", Board: t.Board, Project: t.Project, Parent: t, Assignee: a.Assignee}, by)
	}
}
