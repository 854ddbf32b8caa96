package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/inboxitem"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// inboxMax bounds resolveInboxItems.
const inboxMax = 100

// pageOfInbox lists what a person should look at, newest first.
func (r *Resolver) pageOfInbox(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int, f *model.InboxFilter) (*model.InboxItemConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	q := r.Reader.InboxItem.Query().Where(inboxitem.WorkspaceID(workspaceID))
	filterInbox(q, f)
	p.branches = branchesOfInbox(f)
	at := func(x *ent.InboxItem) ent.Cursor { return ent.Cursor{ID: x.ID, Value: x.CreatedAt} }
	read, err := readPage(ctx, q, p, ordering{kind: byTime, column: inboxitem.FieldCreatedAt, desc: true}, at)
	if err != nil {
		return nil, fmt.Errorf("list inbox items: %w", err)
	}
	return &model.InboxItemConnection{PageInfo: &read.info, TotalCount: read.total, Edges: edges(read.rows, func(x *ent.InboxItem) *model.InboxItemEdge {
		return &model.InboxItemEdge{Cursor: at(x), Node: &model.InboxItem{InboxItem: x}}
	})}, nil
}

// filterInbox adds the conditions of f. Without one, what is open is meant.
func filterInbox(q *ent.InboxItemQuery, f *model.InboxFilter) {
	if f == nil || f.Open == nil || *f.Open {
		q.Where(inboxitem.ResolvedAtIsNil())
	}
	if f != nil && f.Kind != nil {
		q.Where(inboxitem.KindIn(f.Kind...))
	}
	if f != nil && f.AgentID != nil {
		q.Where(where(`{t}."agent_id" = ?`, f.AgentID.String()))
	}
}

// resolveInboxItems marks items handled that the caller sees, all of one workspace.
func (r *Resolver) resolveInboxItems(ctx context.Context, ids []xid.ID) ([]*model.InboxItem, error) {
	switch {
	case len(ids) == 0:
		return nil, domain.RefuseField([]string{"ids"}, domain.UserErrorCodeRequired, "name the items that are handled")
	case len(ids) > inboxMax:
		return nil, domain.RefuseField([]string{"ids"}, domain.UserErrorCodeTooLong, "at most %d items are handled at once", inboxMax)
	}
	seen, err := r.Reader.InboxItem.Query().Where(inboxitem.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for inbox items: %w", err)
	}
	workspaceID := xid.ID("") // of the first; the store refuses items of another one
	if len(seen) > 0 {
		workspaceID = seen[0].WorkspaceID
	}
	if err := r.Store.ResolveInboxItems(ctx, workspaceID, ids); err != nil {
		return nil, err
	}
	return r.inboxItems(ctx, ids)
}

// inboxItems reads items in the order asked.
func (r *Resolver) inboxItems(ctx context.Context, ids []xid.ID) ([]*model.InboxItem, error) {
	found, err := r.Reader.InboxItem.Query().Where(inboxitem.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read inbox items: %w", err)
	}
	byID := make(map[xid.ID]*model.InboxItem, len(found))
	for _, item := range found {
		byID[item.ID] = &model.InboxItem{InboxItem: item}
	}
	var out []*model.InboxItem
	for _, id := range ids {
		if item := byID[id]; item != nil {
			out = append(out, item)
		}
	}
	return out, nil
}
