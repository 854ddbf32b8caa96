package graph

import (
	"context"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// nodesMax bounds Query.nodes.
const nodesMax = 100

// Prefixes of records that entgql does not know, since the API shows them by types of its own.
const (
	tokenPrefix    = "tok"
	activityPrefix = "act"
	inboxPrefix    = "inb"
	budgetPrefix   = "bud"
	channelPrefix  = "nch"
)

func isApart(id xid.ID) bool {
	return slices.Contains([]string{tokenPrefix, activityPrefix, inboxPrefix, budgetPrefix, channelPrefix}, id.Prefix())
}

// apartNode reads a record that entgql does not know.
func apartNode(ctx context.Context, id xid.ID) (ent.Noder, error) {
	l := load(ctx)
	switch id.Prefix() {
	case activityPrefix:
		row, err := l.activities.Load(ctx, id)
		if err != nil || row == nil {
			return nil, err
		}
		return &model.Activity{Activity: row}, nil
	case inboxPrefix:
		row, err := l.inboxItems.Load(ctx, id)
		if err != nil || row == nil {
			return nil, err
		}
		return &model.InboxItem{InboxItem: row}, nil
	case channelPrefix:
		return channelNode(ctx, id)
	case budgetPrefix:
		return record(l.budgets.Load(ctx, id))
	}
	return tokenNode(ctx, id)
}

// readHeadFirst reads the log's head before a workspace and all that is shown of it. What changes after that comes by
// workspaceActivity(after: eventCursor), so nothing falls between the two.
func readHeadFirst(ctx context.Context, ids ...xid.ID) error {
	if !slices.ContainsFunc(ids, func(id xid.ID) bool { return id.Prefix() == "wsp" }) {
		return nil
	}
	_, err := load(ctx).head()
	return err
}

// node reads any record by its id; nil when it is absent or not the caller's.
func (r *Resolver) node(ctx context.Context, id xid.ID) (ent.Noder, error) {
	if err := readHeadFirst(ctx, id); err != nil {
		return nil, err
	}
	if isApart(id) {
		return apartNode(ctx, id)
	}
	row, err := r.Reader.Noder(forNode(ctx), id, ent.WithNodeType(ent.NodeType))
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return faceOf(row), err
}

// nodes reads up to 100 records, one statement for each table among them.
func (r *Resolver) nodes(ctx context.Context, ids []xid.ID) ([]ent.Noder, error) {
	if len(ids) > nodesMax {
		return nil, badInput("nodes takes at most %d ids, %d were given", nodesMax, len(ids))
	}
	if err := readHeadFirst(ctx, ids...); err != nil {
		return nil, err
	}
	load(ctx).expectRecords(ids)
	out := make([]ent.Noder, len(ids))
	var asked []xid.ID
	for i, id := range ids {
		if !isApart(id) {
			asked = append(asked, id)
			continue
		}
		row, err := apartNode(ctx, id)
		if err != nil {
			return nil, err
		}
		out[i] = row
	}
	found, err := r.noders(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if !isApart(id) {
			out[i], found = faceOf(found[0]), found[1:]
		}
	}
	return out, nil
}

// noders does what entgql's Noders does, but writes no error into the response for a record that is absent: that is
// null. Only other errors count.
func (r *Resolver) noders(ctx context.Context, ids []xid.ID) ([]ent.Noder, error) {
	apart := graphql.WithResponseContext(forNode(ctx), graphql.DefaultErrorPresenter, graphql.DefaultRecover)
	found, err := r.Reader.Noders(apart, ids, ent.WithNodeType(ent.NodeType))
	if ent.IsNotFound(err) {
		return make([]ent.Noder, len(ids)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	for _, e := range graphql.GetErrors(apart) {
		if !ent.IsNotFound(e) && e.Extensions["code"] != "NOT_FOUND" { // entgql's own error for an id without a row
			return nil, fmt.Errorf("read nodes: %w", e)
		}
	}
	return found, nil
}

// tokenNode reads an API token, for those who may manage tokens.
func tokenNode(ctx context.Context, id xid.ID) (ent.Noder, error) {
	if caller, _ := auth.FromContext(ctx); !caller.Allows(domain.TokenScopeAdmin) {
		return nil, nil
	}
	row, err := load(ctx).tokens.Load(ctx, id)
	if err != nil || row == nil {
		return nil, err
	}
	return &model.ApiToken{ApiToken: row}, nil
}

// faceOf gives a trigger the type that its id names.
func faceOf(row ent.Noder) ent.Noder {
	if t, ok := row.(*ent.RoutineTrigger); ok {
		return model.TriggerOf(t)
	}
	return row
}

// workspace finds the workspace that is named, or the one that the caller belongs to.
func (r *Resolver) workspace(ctx context.Context, id *xid.ID, slug *string) (*ent.Workspace, error) {
	caller, _ := auth.FromContext(ctx)
	if asksFor(ctx, "eventCursor") {
		if _, err := load(ctx).head(); err != nil {
			return nil, err
		}
	}
	switch {
	case id != nil && slug != nil:
		return nil, badInput("name the workspace by id or by slug, not by both")
	case slug != nil:
		if err := checkText("slug", slug); err != nil {
			return nil, err
		}
		return visible(r.Reader.Workspace.Query().Where(workspace.Slug(*slug)).Only(ctx))
	case id != nil:
		return visible(r.Reader.Workspace.Get(ctx, *id))
	case caller.WorkspaceID != "":
		return visible(r.Reader.Workspace.Get(ctx, caller.WorkspaceID))
	}
	return nil, badInput("name the workspace by id or slug: this caller belongs to none (workspaces lists them)")
}
