package graph

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"

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
	if err == nil {
		err = p.check(byTime)
	}
	if err != nil {
		return nil, err
	}
	q := r.Reader.InboxItem.Query().Where(inboxitem.WorkspaceID(workspaceID))
	filterInbox(q, f)
	out := &model.InboxItemConnection{Edges: []*model.InboxItemEdge{}}
	if asksFor(ctx, "totalCount") {
		if out.TotalCount, err = q.Clone().Count(ctx); err != nil {
			return nil, fmt.Errorf("count inbox items: %w", err)
		}
	}
	if after != nil {
		at := after.Value.(time.Time)
		q.Where(inboxitem.CreatedAtLTE(at), inboxitem.Or(inboxitem.CreatedAtLT(at), inboxitem.IDLT(after.ID)))
	}
	items, err := q.Order(inboxitem.ByCreatedAt(sql.OrderDesc()), inboxitem.ByID(sql.OrderDesc())).Limit(*p.first + 1).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list inbox items: %w", err)
	}
	for _, item := range items[:min(len(items), *p.first)] {
		out.Edges = append(out.Edges, &model.InboxItemEdge{Cursor: ent.Cursor{ID: item.ID, Value: item.CreatedAt}, Node: &model.InboxItem{InboxItem: item}})
	}
	out.PageInfo = pageInfo(after, len(items) > *p.first, len(out.Edges), func(i int) ent.Cursor { return out.Edges[i].Cursor })
	return out, nil
}

// filterInbox adds the conditions of f. Without one, what is open is meant.
func filterInbox(q *ent.InboxItemQuery, f *model.InboxFilter) {
	if f == nil || f.Open == nil || *f.Open {
		q.Where(inboxitem.ResolvedAtIsNil())
	}
	if f != nil && len(f.Kind) > 0 {
		q.Where(inboxitem.KindIn(f.Kind...))
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
