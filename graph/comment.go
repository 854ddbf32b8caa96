package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/comment"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of the name of an author who wrote through a channel, in characters.
const (
	channelMax = 64
	senderMax  = 200
)

// commentOnTask adds a comment. By a run's token it is its agent's (SPEC S7.4).
func (r *Resolver) commentOnTask(ctx context.Context, in model.CommentOnTaskInput) (*model.CommentOnTaskPayload, error) {
	out := &model.CommentOnTaskPayload{WakeupRequests: noWakeups(), MentionsNotWoken: []*model.MentionNotWoken{}}
	said, err := r.readComment(ctx, in)
	if err != nil {
		return out, err
	}
	made, heard, err := r.Store.Comment(ctx, said)
	if err != nil {
		return out, err
	}
	if out.WakeupRequests, err = r.routed(ctx, heard.Sent); err != nil {
		return out, err
	}
	if why := heard.NotWoken; why != "" {
		out.NotWoken, out.NotWokenMessage = &why, new(why.Text())
	}
	if out.MentionsNotWoken, err = mentionedInVain(ctx, heard.InVain); err != nil {
		return out, err
	}
	out.Replayed = made.Replayed
	out.Comment, err = r.Reader.Comment.Get(ctx, made.ID)
	return out, err
}

// mentionedInVain shows the agents that a comment mentions and does not wake.
func mentionedInVain(ctx context.Context, list []domain.UnwokenMention) ([]*model.MentionNotWoken, error) {
	out := make([]*model.MentionNotWoken, len(list))
	for i, m := range list {
		a, err := linked(ctx, load(ctx).agents, xid.ID(m.AgentID))
		if err != nil {
			return []*model.MentionNotWoken{}, err
		}
		out[i] = &model.MentionNotWoken{Agent: a, Reason: m.Why, Message: m.Why.Text()}
	}
	return out, nil
}

// readComment is the comment that an input asks for.
func (r *Resolver) readComment(ctx context.Context, in model.CommentOnTaskInput) (store.CommentOnTask, error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err == nil {
		err = checkAuthor(in)
	}
	if err != nil {
		return store.CommentOnTask{}, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return store.CommentOnTask{}, err
	}
	mask, err := r.agentMask(ctx)
	if err != nil {
		return store.CommentOnTask{}, err
	}
	said := store.CommentOnTask{WorkspaceID: x.WorkspaceID, TaskID: x.ID, AuthorAgentID: idOf(in.AuthorAgentID), UserID: valueOf(in.UserID), Body: mask(in.Body),
		Mentions: in.MentionedAgentIds, Idempotency: once}
	if in.Channel != nil {
		said.Channel, said.Sender = in.Channel.Channel, valueOf(in.Channel.Sender)
	}
	if caller, _ := auth.FromContext(ctx); caller.Kind == auth.KindRun {
		said.AuthorAgentID, said.UserID, said.Channel, said.Sender = caller.AgentID, "", "", ""
	}
	return said, nil
}

// checkAuthor refuses a comment of several authors, and names that no column takes.
func checkAuthor(in model.CommentOnTaskInput) error {
	problems := &inputProblems{}
	if moreThanOne(in.Channel != nil, in.UserID != nil, in.AuthorAgentID != nil) {
		problems.add(nil, domain.UserErrorCodeInvalid, "name at most one of channel, userId and authorAgentId")
	}
	problems.list = append(problems.list, domain.CheckUserID(valueOf(in.UserID), "userId")...)
	if c := in.Channel; c != nil {
		problems.list = append(problems.list, domain.NotOneLine("a channel's name", c.Channel, "channel", "channel")...)
		problems.list = append(problems.list, domain.NotOneLine("a sender's name", valueOf(c.Sender), "channel", "sender")...)
		if n := len([]rune(c.Channel)); n == 0 || n > channelMax {
			problems.add([]string{"channel", "channel"}, domain.UserErrorCodeInvalid, "must be 1..%d characters", channelMax)
		}
		if len([]rune(valueOf(c.Sender))) > senderMax {
			problems.add([]string{"channel", "sender"}, domain.UserErrorCodeTooLong, "must be at most %d characters", senderMax)
		}
	}
	return domain.AsUserError(problems.list)
}

func moreThanOne(given ...bool) bool {
	n := 0
	for _, g := range given {
		if g {
			n++
		}
	}
	return n > 1
}

// pageOfComments lists a task's comments, oldest first; their ids sort so.
func (r *Resolver) pageOfComments(ctx context.Context, taskID xid.ID, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.CommentConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err != nil {
		return nil, err
	}
	edge := func(x *ent.Comment) *ent.CommentEdge { return x.ToEdge(nil) }
	read, err := readPage(ctx, r.Reader.Comment.Query().Where(comment.TaskID(taskID)), p, inOrderMade, func(x *ent.Comment) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list comments: %w", err)
	}
	return &ent.CommentConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}
