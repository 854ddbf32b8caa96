package store

import (
	"context"
	"database/sql"
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
	made, heard, err := s.Comment(ctx, in)
	return made, heard.Sent, err
}

// CommentHeard is who hears of a comment: the requests that it sends, why it does not wake the assignee ("" when it does), and
// the agents that it mentions in vain.
type CommentHeard struct {
	Sent     []xid.ID
	NotWoken domain.NotWoken
	InVain   []domain.UnwokenMention
}

// Comment is CommentOnTask that says besides who is not woken, and why. A call that was made before says what it said then.
func (s *Tasks) Comment(ctx context.Context, in CommentOnTask) (made Made, heard CommentHeard, err error) {
	if err := domain.AsUserError(domain.CheckLinks("mentionedAgentIds", texts(in.Mentions))); err != nil {
		return Made{}, CommentHeard{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "commentOnTask", in.Idempotency, func() (Made, error) {
			var id xid.ID
			id, heard, err = t.commentOnTask(ctx, in)
			return Made{ID: id}, err
		})
		if err == nil && made.Replayed {
			heard, err = t.outcomeOfComment(ctx, made.ID)
		}
		return err
	})
	return made, heard, pgtx.Wrap("comment on task", err)
}

func (t *tx) commentOnTask(ctx context.Context, in CommentOnTask) (id xid.ID, heard CommentHeard, err error) {
	run, err := t.actingRun(ctx)
	if err != nil {
		return "", heard, err
	}
	tasks, err := t.lockTasks(ctx, in.TaskID)
	if err != nil {
		return "", heard, err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return "", heard, err
	}
	if err := t.checkAgents(ctx, in.WorkspaceID, "mentionedAgentIds", in.Mentions); err != nil {
		return "", heard, err
	}
	if err := t.ReadClock(ctx); err != nil {
		return "", heard, err
	}
	c, err := t.causeOf(ctx)
	if err != nil {
		return "", heard, err
	}
	if in.AuthorAgentID != "" {
		if err := t.checkAgent(ctx, in.WorkspaceID, in.AuthorAgentID, []string{"authorAgentId"}); err != nil {
			return "", heard, err
		}
		c.agentID = in.AuthorAgentID
	}
	id, heard, err = t.comment(ctx, r, newComment{author: authorOf(in, c), channel: in.Channel, body: in.Body, mentions: in.Mentions, causationID: c.causationID}, c)
	if err != nil {
		return "", heard, err
	}
	return id, heard, t.noteAct(ctx, run, domain.Action{Type: domain.ActionComment, Body: in.Body, Mentions: texts(in.Mentions)}, id)
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
func (t *tx) comment(ctx context.Context, r *taskRow, n newComment, c cause) (id xid.ID, heard CommentHeard, err error) {
	if err := domain.AsUserError(domain.CheckCommentBody("body", n.body)); err != nil {
		return "", heard, err
	}
	if id, err = t.insertComment(ctx, *r, n); err != nil {
		return "", heard, err
	}
	facts := domain.CommentFacts{ID: string(id), Task: r.facts(), TaskTitle: r.title, Body: n.body, Mentions: texts(n.mentions)}
	if n.author.kind == domain.AuthorKindAgent {
		facts.AuthorAgentID = n.author.name
	} else {
		facts.AuthorName = n.author.name
	}
	heard = CommentHeard{NotWoken: facts.NotWoken(), InVain: facts.MentionsNotWoken()}
	if err := t.noteTask(ctx, *r, c, domain.ActivityCodeTaskCommented, "The task was commented on.", heard.details(id)); err != nil {
		return "", heard, err
	}
	heard.Sent, err = t.sendWakes(ctx, *r, c, domain.WakeupsForComment(facts))
	return id, heard, err
}

// details are what the feed tells of a comment.
func (h CommentHeard) details(id xid.ID) map[string]any {
	data := map[string]any{"commentId": id}
	if h.NotWoken != "" {
		data["notWoken"] = h.NotWoken
	}
	var inVain []string
	for _, m := range h.InVain {
		inVain = append(inVain, m.AgentID)
	}
	if inVain != nil {
		data["mentionsNotWoken"] = inVain
	}
	return data
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

// outcomeOfComment is what the first call of a comment sent, and whom it did not wake, as the feed tells.
func (t *tx) outcomeOfComment(ctx context.Context, commentID xid.ID) (heard CommentHeard, err error) {
	const query = `
SELECT coalesce(a.data->>'notWoken', ''), coalesce(m.id, '') FROM comments c JOIN activities a ON a.causation_id = c.causation_id
LEFT JOIN LATERAL jsonb_array_elements_text(a.data->'mentionsNotWoken') AS m (id) ON true
WHERE c.id = $1 AND a.code = 'TASK_COMMENTED' AND a.data->>'commentId' = c.id`
	_, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var inVain string
		err := rows.Scan(&heard.NotWoken, &inVain)
		if inVain != "" {
			heard.InVain = append(heard.InVain, domain.UnwokenMention{AgentID: inVain, Why: domain.NotWokenSelfMention})
		}
		return struct{}{}, err
	}, query, commentID)
	if err != nil {
		return heard, fmt.Errorf("find whom the first call did not wake: %w", err)
	}
	heard.Sent, err = t.requestsOfComment(ctx, commentID)
	return heard, err
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
	if len(list) == 0 {
		return nil
	}
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
