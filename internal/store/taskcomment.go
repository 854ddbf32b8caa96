package store

import (
	"context"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CommentOnTask is a comment: by AuthorAgentID, through Channel (from Sender), or by a person, whom UserID names to the
// front end.
type CommentOnTask struct {
	WorkspaceID, TaskID, AuthorAgentID xid.ID
	UserID, Channel, Sender            string
	Body                               string
	Mentions                           []xid.ID
	Idempotency
}

// CommentOnTask adds a comment and returns the requests of the wakes it causes (SPEC S5.2).
func (s *Tasks) CommentOnTask(ctx context.Context, in CommentOnTask) (made Made, sent []xid.ID, err error) {
	made, sent, _, err = s.Comment(ctx, in)
	return made, sent, err
}

// Comment is CommentOnTask that says besides why the assignee is not woken; "" when it is. A call that was made before says what
// it said then.
func (s *Tasks) Comment(ctx context.Context, in CommentOnTask) (made Made, sent []xid.ID, unheard domain.NotWoken, err error) {
	if err := domain.AsUserError(domain.CheckLinks("mentionedAgentIds", texts(in.Mentions))); err != nil {
		return Made{}, nil, "", err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "commentOnTask", in.Idempotency, func() (Made, error) {
			var id xid.ID
			id, sent, unheard, err = t.commentOnTask(ctx, in)
			return Made{ID: id}, err
		})
		if err == nil && made.Replayed {
			sent, unheard, err = t.outcomeOfComment(ctx, made.ID)
		}
		return err
	})
	return made, sent, unheard, pgtx.Wrap("comment on task", err)
}

func (t *tx) commentOnTask(ctx context.Context, in CommentOnTask) (xid.ID, []xid.ID, domain.NotWoken, error) {
	tasks, err := t.lockTasks(ctx, in.TaskID)
	if err != nil {
		return "", nil, "", err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return "", nil, "", err
	}
	if err := t.checkAgents(ctx, in.WorkspaceID, "mentionedAgentIds", in.Mentions); err != nil {
		return "", nil, "", err
	}
	if err := t.ReadClock(ctx); err != nil {
		return "", nil, "", err
	}
	c, err := t.causeOf(ctx)
	if err != nil {
		return "", nil, "", err
	}
	if in.AuthorAgentID != "" {
		if err := t.checkAgent(ctx, in.WorkspaceID, in.AuthorAgentID, []string{"authorAgentId"}); err != nil {
			return "", nil, "", err
		}
		c.agentID = in.AuthorAgentID
	}
	return t.comment(ctx, r, newComment{author: authorOf(in, c), channel: in.Channel, body: in.Body, mentions: in.Mentions, causationID: c.causationID}, c)
}

// authorOf is who a comment is by.
func authorOf(in CommentOnTask, c cause) actor {
	switch {
	case c.agentID != "":
		return c.author()
	case in.Channel != "":
		return actor{domain.AuthorKindChannel, in.Sender}
	case in.UserID != "":
		return actor{domain.AuthorKindUser, in.UserID}
	}
	return c.by
}

// comment adds a comment, a person's or an agent's, to a locked task and sends its wakes.
func (t *tx) comment(ctx context.Context, r *taskRow, n newComment, c cause) (xid.ID, []xid.ID, domain.NotWoken, error) {
	if err := domain.AsUserError(domain.CheckCommentBody("body", n.body)); err != nil {
		return "", nil, "", err
	}
	id, err := t.insertComment(ctx, *r, n)
	if err != nil {
		return "", nil, "", err
	}
	facts := domain.CommentFacts{ID: string(id), Task: r.facts(), TaskTitle: r.title, Body: n.body, Mentions: texts(n.mentions)}
	if n.author.kind == domain.AuthorKindAgent {
		facts.AuthorAgentID = n.author.name
	} else {
		facts.AuthorName = n.author.name
	}
	unheard := facts.NotWoken()
	data := map[string]any{"commentId": id}
	if unheard != "" {
		data["notWoken"] = unheard
	}
	if err := t.noteTask(ctx, *r, c, domain.ActivityCodeTaskCommented, "The task was commented on.", data); err != nil {
		return "", nil, "", err
	}
	sent, err := t.sendWakes(ctx, *r, c, domain.WakeupsForComment(facts))
	return id, sent, unheard, err
}

// newComment is a comment to insert.
type newComment struct {
	author      actor
	channel     string
	body        string
	mentions    []xid.ID
	causationID xid.ID
}

func (t *tx) insertComment(ctx context.Context, r taskRow, n newComment) (xid.ID, error) {
	id := xid.New("cmt")
	var agentID xid.ID
	name := n.author.name
	if n.author.kind == domain.AuthorKindAgent {
		agentID, name = xid.ID(n.author.name), ""
	}
	const query = `
INSERT INTO comments (id, workspace_id, causation_id, task_id, author_kind, author_agent_id, author_name,
    channel, body, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	err := pgtx.ExecOne(ctx, t, query, id, r.workspaceID, n.causationID, r.id, n.author.kind, agentID, name, n.channel, n.body, t.Now)
	if err != nil {
		return "", fmt.Errorf("insert comment: %w", err)
	}
	if len(n.mentions) > 0 {
		const mention = `
INSERT INTO comment_mentions (comment_id, agent_id)
SELECT $1, x
FROM unnest($2::text[]) AS x
ON CONFLICT DO NOTHING`
		if _, err := pgtx.Exec(ctx, t, mention, id, pgtx.IDs(n.mentions)); err != nil {
			return "", fmt.Errorf("insert mentions: %w", err)
		}
	}
	return id, nil
}

// outcomeOfComment is what the first call of a comment sent, and why it did not wake the assignee, as the feed tells.
func (t *tx) outcomeOfComment(ctx context.Context, commentID xid.ID) ([]xid.ID, domain.NotWoken, error) {
	const query = `
SELECT a.data->>'notWoken' FROM comments c JOIN activities a ON a.causation_id = c.causation_id
WHERE c.id = $1 AND a.code = 'TASK_COMMENTED' AND a.data->>'commentId' = c.id AND a.data ? 'notWoken'`
	why, err := pgtx.Collect(ctx, t, pgtx.ScanOne[domain.NotWoken], query, commentID)
	if err != nil {
		return nil, "", fmt.Errorf("find why the first call woke no assignee: %w", err)
	}
	sent, err := t.requestsOfComment(ctx, commentID)
	if len(why) == 0 {
		return sent, "", err
	}
	return sent, why[0], err
}

func (t *tx) requestsOfComment(ctx context.Context, commentID xid.ID) ([]xid.ID, error) {
	const query = `
SELECT q.id FROM comments c JOIN wakeup_requests q ON q.causation_id = c.causation_id
WHERE c.id = $1
  AND (q.idempotency_key LIKE 'comment:' || c.id || ':%' OR q.idempotency_key LIKE 'mention:' || c.id || ':%')
ORDER BY q.requested_at, q.id`
	found, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, commentID)
	if err != nil {
		return nil, fmt.Errorf("find the first call's wakeups: %w", err)
	}
	return found, nil
}

// checkAgents refuses agents that are not in the workspace or were deleted.
func (t *tx) checkAgents(ctx context.Context, workspaceID xid.ID, field string, list []xid.ID) error {
	found, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], `SELECT id FROM agents WHERE id = ANY($1) AND workspace_id = $2 AND deleted_at IS NULL`, pgtx.IDs(list), workspaceID)
	if err != nil {
		return fmt.Errorf("look for agents: %w", err)
	}
	var problems []domain.FieldError
	for i, id := range list {
		if !slices.Contains(found, id) {
			problems = append(problems, domain.FieldError{Field: []string{field, fmt.Sprint(i)}, Code: domain.UserErrorCodeNotFound,
				Message: fmt.Sprintf("there is no agent %s in this workspace", id)})
		}
	}
	return domain.AsUserError(problems)
}

// texts are ids as plain text.
func texts(list []xid.ID) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = string(id)
	}
	return out
}
