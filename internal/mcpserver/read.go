package mcpserver

import (
	"context"
	"fmt"
	"strings"
)

// named is a record with a name, as answers show it.
type nameOf struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// author is who wrote or asked something.
type author struct {
	Name, UserID, Channel, Component string
}

func (a *author) words() string {
	switch {
	case a == nil:
		return ""
	case a.Channel != "":
		return "a person on " + a.Channel
	case a.Component != "":
		return "rouse"
	case a.Name != "":
		return a.Name
	}
	return "a person"
}

const authorFields = `__typename ... on Agent { name } ... on UserActor { userId } ... on ChannelActor { channel } ... on SystemActor { component }`

// link is a task that another one names.
type link struct {
	ID       string  `json:"id"`
	Title    string  `json:"title"`
	State    string  `json:"state"`
	Assignee *nameOf `json:"assignee,omitempty"`
	Blocked  bool    `json:"is_blocked,omitempty"`
}

const linkFields = `id title state isBlocked assignee { id name }`

type links struct {
	Edges []struct {
		Node struct {
			ID, Title, State string
			IsBlocked        bool
			Assignee         *nameOf
		}
	}
	PageInfo struct {
		HasNextPage bool
		EndCursor   string
	}
	TotalCount int
}

func (l links) list() []link {
	out := []link{}
	for _, e := range l.Edges {
		out = append(out, link{e.Node.ID, e.Node.Title, e.Node.State, e.Node.Assignee, e.Node.IsBlocked})
	}
	return out
}

// shownTask is a task as get_task answers it.
type shownTask struct {
	link
	Yours            bool            `json:"yours"`
	Description      string          `json:"description"`
	RequiresApproval bool            `json:"requires_approval"`
	Reviewers        []nameOf        `json:"reviewers"`
	Approvers        []nameOf        `json:"approvers"`
	Parent           *link           `json:"parent,omitempty"`
	BlockedBy        []link          `json:"blocked_by"`
	Children         int             `json:"children"`
	Approvals        []shownApproval `json:"approvals"`
	OlderComments    int             `json:"older_comments_left_out,omitempty"`
	Comments         []shownComment  `json:"comments"`
}

type shownApproval struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	Status   string `json:"status"`
	AskedBy  string `json:"asked_by,omitempty"`
	Note     string `json:"note,omitempty"`
}

type shownComment struct {
	By   string `json:"by"`
	At   string `json:"at"`
	Body string `json:"body"`
}

// taskAnswer is a task as the API answers it.
type taskAnswer struct {
	ID, Title, State, Description string
	IsBlocked, RequiresApproval   bool
	Assignee                      *nameOf
	Reviewers, Approvers          []nameOf
	Parent                        *struct{ ID, Title, State string }
	BlockedBy, Children           links
	Approvals                     struct {
		Edges []struct {
			Node struct {
				ID, Question, Status, Note string
				RequestedBy                *author
			}
		}
	}
}

const taskQuery = `query Task($id: ID!) {
  task(id: $id) {
    id title state description isBlocked requiresApproval
    assignee { id name } reviewers { id name } approvers { id name }
    parent { id title state }
    blockedBy(first: 100) { edges { node { ` + linkFields + ` } } }
    children(first: 1) { totalCount }
    approvals(first: 50) { edges { node { id question status note requestedBy { ` + authorFields + ` } } } }
  }
}`

func getTask(ctx context.Context, r *run, given arguments) (any, error) {
	who, err := r.identity(ctx)
	if err != nil {
		return nil, err
	}
	id := given.text("task_id")
	switch {
	case id != "":
	case who.Task == nil:
		return nil, fmt.Errorf("this run has no task. Name a task by task_id, whose approval you decide, or go by get_wake")
	default:
		id = who.Task.ID
	}
	var out struct{ Task *taskAnswer }
	if err := r.api.call(ctx, taskQuery, map[string]any{"id": id}, &out); err != nil {
		return nil, explain(err)
	}
	if out.Task == nil {
		return nil, notReadable(id, who)
	}
	shown := out.Task.shown()
	shown.Yours = who.Task != nil && who.Task.ID == id
	shown.Comments, shown.OlderComments, err = r.comments(ctx, id)
	return shown, err
}

func notReadable(id string, who identity) error {
	own := "your run has no task"
	if who.Task != nil {
		own = fmt.Sprintf("your own task is %s (%s)", who.Task.ID, who.Task.Title)
	}
	return fmt.Errorf("there is no task %s that you may read: %s. You may read it, its children (list_children), its parent, its blockers, and tasks whose approvals you decide. "+
		"What others do elsewhere is not shown to you: if you need it, ask in a comment", id, own)
}

func (t *taskAnswer) shown() *shownTask {
	s := &shownTask{link: link{t.ID, t.Title, t.State, t.Assignee, t.IsBlocked}, Description: t.Description, RequiresApproval: t.RequiresApproval,
		Reviewers: append([]nameOf{}, t.Reviewers...), Approvers: append([]nameOf{}, t.Approvers...), BlockedBy: t.BlockedBy.list(), Children: t.Children.TotalCount, Approvals: []shownApproval{}}
	if t.Parent != nil {
		s.Parent = &link{ID: t.Parent.ID, Title: t.Parent.Title, State: t.Parent.State}
	}
	for _, e := range t.Approvals.Edges {
		s.Approvals = append(s.Approvals, shownApproval{e.Node.ID, e.Node.Question, e.Node.Status, e.Node.RequestedBy.words(), e.Node.Note})
	}
	return s
}

// Bounds of the comments that are shown: an answer that is too long is cut by the agent's program, at a place that nobody chose.
const (
	commentPages = 5 // of 100
	commentBytes = 4 << 10
	commentsAll  = 40 << 10
)

// comments are the newest comments of a task, oldest first, and how many older ones are left out.
func (r *run) comments(ctx context.Context, task string) (shown []shownComment, older int, err error) {
	var all []shownComment
	total, after := 0, ""
	for range commentPages {
		var out struct {
			Task *struct {
				Comments struct {
					TotalCount int
					Edges      []struct {
						Node struct {
							Body, CreatedAt string
							Author          *author
						}
					}
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
		}
		variables := map[string]any{"id": task}
		if after != "" {
			variables["after"] = after
		}
		const query = `query Comments($id: ID!, $after: Cursor) {
  task(id: $id) { comments(first: 100, after: $after) { totalCount edges { node { body createdAt author { ` + authorFields + ` } } } pageInfo { hasNextPage endCursor } } }
}`
		if err := r.api.call(ctx, query, variables, &out); err != nil {
			return nil, 0, explain(err)
		}
		if out.Task == nil {
			break
		}
		total = out.Task.Comments.TotalCount
		for _, e := range out.Task.Comments.Edges {
			all = append(all, shownComment{e.Node.Author.words(), e.Node.CreatedAt, cut(e.Node.Body, commentBytes)})
		}
		if after = out.Task.Comments.PageInfo.EndCursor; !out.Task.Comments.PageInfo.HasNextPage {
			break
		}
	}
	first, size := len(all), 0
	for first > 0 && size+len(all[first-1].Body) <= commentsAll {
		first--
		size += len(all[first].Body)
	}
	return append([]shownComment{}, all[first:]...), total - (len(all) - first), nil
}

// cut is the beginning of a text, with a mark where it was cut.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf(" … (cut: %d bytes more)", len(s)-most)
}

func listChildren(ctx context.Context, r *run, given arguments) (any, error) {
	_, task, err := r.task(ctx, given.text("task_id"))
	if err != nil {
		return nil, err
	}
	var out struct{ Task *struct{ Children links } }
	const query = `query Children($id: ID!) { task(id: $id) { children(first: 100) { totalCount edges { node { ` + linkFields + ` } } } } }`
	if err := r.api.call(ctx, query, map[string]any{"id": task}, &out); err != nil {
		return nil, explain(err)
	}
	if out.Task == nil {
		return nil, fmt.Errorf("your task %s is not there any more. Nothing about it is left to do: end your run", task)
	}
	list := out.Task.Children.list()
	return map[string]any{"children": list, "left_out": out.Task.Children.TotalCount - len(list)}, nil
}

func listAgents(ctx context.Context, r *run, given arguments) (any, error) {
	who, err := r.identity(ctx)
	if err != nil {
		return nil, err
	}
	variables := map[string]any{"workspace": who.WorkspaceID}
	if role := given.text("role"); role != "" {
		variables["filter"] = map[string]any{"role": []string{role}}
	}
	type colleague struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Role  string `json:"role"`
		State string `json:"state"`
		You   bool   `json:"you,omitempty"`
	}
	var out struct {
		Workspace *struct {
			Agents struct {
				TotalCount int
				Edges      []struct {
					Node struct{ ID, Name, Role, Status string }
				}
			}
		}
	}
	const query = `query Agents($workspace: ID!, $filter: AgentFilter) {
  workspace(id: $workspace) { agents(first: 100, filter: $filter) { totalCount edges { node { id name role status } } } }
}`
	if err := r.api.call(ctx, query, variables, &out); err != nil {
		return nil, explain(err)
	}
	list, left := []colleague{}, 0
	if out.Workspace != nil {
		for _, e := range out.Workspace.Agents.Edges {
			list = append(list, colleague{e.Node.ID, e.Node.Name, e.Node.Role, e.Node.Status, e.Node.ID == who.Agent.ID})
		}
		left = out.Workspace.Agents.TotalCount - len(list)
	}
	return map[string]any{"agents": list, "left_out": left}, nil
}

func getWake(ctx context.Context, r *run, _ arguments) (any, error) {
	who, err := r.identity(ctx)
	if err != nil {
		return nil, err
	}
	var out struct {
		OwnRun struct {
			Run struct {
				WakeupRequests struct {
					Edges []struct {
						Node struct {
							Source, Reason, RequestedAt string
							Payload                     map[string]any
						}
					}
					PageInfo struct{ HasNextPage bool }
				}
			}
		}
	}
	if err := r.api.call(ctx, wakeQuery, nil, &out); err != nil {
		return nil, explain(err)
	}
	wakes := []map[string]any{}
	for _, e := range out.OwnRun.Run.WakeupRequests.Edges {
		w := map[string]any{"source": e.Node.Source, "asked_at": e.Node.RequestedAt}
		if e.Node.Reason != "" {
			w["reason"] = e.Node.Reason
		}
		delete(e.Node.Payload, "__typename")
		if len(e.Node.Payload) > 0 {
			w["details"] = e.Node.Payload
		}
		wakes = append(wakes, w)
	}
	answer := map[string]any{"run": who.Run.ID, "attempt": who.Attempt, "agent": nameOf(who.Agent), "wakes": wakes, "more": out.OwnRun.Run.WakeupRequests.PageInfo.HasNextPage}
	if who.Task != nil {
		answer["task"] = map[string]string{"id": who.Task.ID, "title": who.Task.Title}
	}
	return answer, nil
}

const wakeQuery = `query Wake {
  ownRun { run { wakeupRequests(first: 50) { pageInfo { hasNextPage } edges { node { source reason requestedAt payload {
    __typename
    ... on RoutineWakeup { routine { id name } scheduledFor text variables missedTicks missedSince }
    ... on CommentWakeup { task { id title } comment { id body createdAt author { ` + authorFields + ` } } }
    ... on AgentErrorWakeup { failedAgent { id name } error }
    ... on SelfWakeup { reason payload }
    ... on UserWakeup { userId context }
    ... on TaskWakeup { task { id title state } basis }
    ... on BlockersWakeup { task { id title } resolvedBlockers { id title state } }
    ... on ApprovalWakeup { approval { id question } decision: status note }
    ... on BudgetWakeup { agent { id name } percentUsed }
  } } } } } }
}`
