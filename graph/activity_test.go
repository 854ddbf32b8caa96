package graph_test

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/graph/graphtest"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func decode(t *testing.T, data json.RawMessage, out any) {
	t.Helper()
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
}

const entryFields = `{ id cursor code summary data causationId actor { __typename ... on UserActor { userId } ... on SystemActor { component } }
	subject { __typename ... on Agent { name } ... on Run { outcome } ... on WakeupRequest { status } } }`

// activityNode is an entry as entryFields shows it.
type activityNode struct {
	ID, Cursor, Code, Summary string
	Data                      map[string]any
	CausationID               *string
	Actor                     struct {
		Typename          string `json:"__typename"`
		UserID, Component string
	}
	Subject *struct {
		Typename     string `json:"__typename"`
		Name, Status string
	}
}

func TestTheFeedIsPagedFilteredAndShowsWhoAndWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent("Ada")
	w.mutate("pauseAgent", "agent { id }", map[string]any{"agentId": id, "note": "lunch"}, nil)
	w.mutate("resumeAgent", "agent { id }", map[string]any{"agentId": id}, nil)
	w.wake(id)
	feed := func(args string) (entries []activityNode, next bool, cursor string) {
		t.Helper()
		var out struct {
			Workspace struct {
				Activity struct {
					Edges    []struct{ Node activityNode }
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
		}
		w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { activity(`+args+`) { edges { node `+entryFields+` } pageInfo { hasNextPage endCursor } } } }`, map[string]any{"id": w.workspace}, &out)
		for _, e := range out.Workspace.Activity.Edges {
			entries = append(entries, e.Node)
		}
		return entries, out.Workspace.Activity.PageInfo.HasNextPage, out.Workspace.Activity.PageInfo.EndCursor
	}
	codes := func(entries []activityNode) (out []string) {
		for _, e := range entries {
			out = append(out, e.Code)
		}
		return out
	}
	first, more, cursor := feed("first: 4")
	if got := codes(first); !more || !slices.Equal(got, []string{"WAKEUP_QUEUED", "WAKEUP_REQUESTED", "AGENT_RESUMED", "AGENT_PAUSED"}) {
		t.Fatalf("newest first: %v", got)
	}
	if e := first[0]; e.Actor.Component != "router" || e.Subject == nil || e.Subject.Typename != "WakeupRequest" || e.Subject.Status != "QUEUED" || e.CausationID == nil {
		t.Errorf("the queued wakeup is %+v", e)
	}
	if e := first[3]; e.Actor.UserID != "local" || e.Subject == nil || e.Subject.Name != "Ada" || e.Data["note"] != "lunch" || e.CausationID != nil {
		t.Errorf("the pause is %+v", e)
	}
	if rest, _, _ := feed(`first: 3, after: "` + cursor + `"`); !slices.Equal(codes(rest), []string{"AGENT_CHANGED", "WORKSPACE_CREATED"}) {
		t.Errorf("then came %v", codes(rest))
	}
	for filter, want := range map[string][]string{
		`code: [AGENT_PAUSED, AGENT_RESUMED]`:          {"AGENT_RESUMED", "AGENT_PAUSED"},
		`agentId: "` + id + `", code: [RUN_FAILED]`:    nil,
		`causationId: "` + *first[0].CausationID + `"`: {"WAKEUP_QUEUED", "WAKEUP_REQUESTED"},
		`since: "2999-01-01T00:00:00Z"`:                nil,
		`taskId: "` + string(xid.New("tsk")) + `"`:     nil,
	} {
		if got, _, _ := feed(`filter: {` + filter + `}`); !slices.Equal(codes(got), want) {
			t.Errorf("%s: %v, want %v", filter, codes(got), want)
		}
	}
	var node struct{ Node activityNode }
	w.Do(t.Context(), `query($id: ID!) { node(id: $id) { ... on Activity `+entryFields+` } }`, map[string]any{"id": first[0].ID}, &node)
	if node.Node.Code != "WAKEUP_QUEUED" {
		t.Errorf("the node is %+v", node)
	}
}

// A person who acts by a token is told with its id and its name; one whose token the reader does not see, by its id.
func TestTheFeedNamesTheTokenThatWasUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	token, err := w.store.CreateToken(t.Context(), store.NewToken{Name: "local token of desk:/srv/rouse", Prefix: "rse_", Digest: "digest", Scopes: []domain.TokenScope{domain.TokenScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	owner := auth.Principal{Kind: auth.KindToken, TokenID: token, Scopes: []domain.TokenScope{domain.TokenScopeAdmin}}
	if err := w.store.PauseAgent(auth.WithPrincipal(t.Context(), owner), store.HoldAgent{WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.ResumeAgent(auth.WithPrincipal(t.Context(), auth.Local()), xid.ID(w.workspace), xid.ID(agent)); err != nil {
		t.Fatal(err)
	}
	const read = `query($id: ID!) { workspace(id: $id) { activity(first: 2) { edges { node { actor { ... on UserActor { userId name } } } } } } }`
	reader := auth.Principal{Kind: auth.KindToken, TokenID: "tok_2", WorkspaceID: xid.ID(w.workspace), Scopes: []domain.TokenScope{domain.TokenScopeRead}}
	for _, as := range []struct {
		who  string
		c    auth.Principal
		want string
	}{
		{"the owner", owner, "local token of desk:/srv/rouse"},
		{"a reader of the workspace, to whom a token of the instance does not exist", reader, "–"},
	} {
		var out struct {
			Workspace struct {
				Activity struct {
					Edges []struct {
						Node struct {
							Actor struct {
								UserID string
								Name   *string
							}
						}
					}
				}
			}
		}
		graphtest.New(t, graph.NewSchema(graph.Resolver{Store: w.store, Reader: w.store.Reader()}), as.c).Do(t.Context(), read, map[string]any{"id": w.workspace}, &out)
		edges := out.Workspace.Activity.Edges
		if len(edges) != 2 {
			t.Fatalf("%s sees %+v", as.who, edges)
		}
		name := "–"
		if n := edges[1].Node.Actor.Name; n != nil {
			name = *n
		}
		if edges[1].Node.Actor.UserID != token.String() || name != as.want || edges[0].Node.Actor.UserID != "local" || edges[0].Node.Actor.Name != nil {
			t.Errorf("%s sees %+v, named %s", as.who, edges, name)
		}
	}
}

// follow subscribes to the workspace's log and gives a function that waits for the next entry's code.
func (w *world) follow(args string) func() string {
	next := w.Subscribe(w.t.Context(), `subscription($id: ID!) { workspaceActivity(workspaceId: $id`+args+`) { code cursor } }`, map[string]any{"id": w.workspace})
	return func() string {
		w.t.Helper()
		data, errs := next()
		if len(errs) > 0 || data == nil {
			w.t.Fatalf("the stream ended: %v", errs)
		}
		var out struct{ WorkspaceActivity struct{ Code string } }
		decode(w.t, data, &out)
		return out.WorkspaceActivity.Code
	}
}

func (w *world) eventCursor() string {
	w.t.Helper()
	var out struct{ Workspace struct{ EventCursor string } }
	w.Do(w.t.Context(), `query($id: ID!) { workspace(id: $id) { eventCursor } }`, map[string]any{"id": w.workspace}, &out)
	return out.Workspace.EventCursor
}

func TestTheFeedIsFollowedStoredFirstThenLiveEachOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent("Ada")
	cursor := w.eventCursor()
	w.mutate("pauseAgent", "agent { id }", map[string]any{"agentId": id}, nil)
	next := w.follow(`, after: "` + cursor + `"`)
	var got []string
	for len(got) == 0 || got[len(got)-1] != "AGENT_PAUSED" { // an entry before the cursor may come while others' transactions ran
		got = append(got, next())
	}
	narrow := w.follow(`, after: "` + cursor + `", filter: {code: [WAKEUP_QUEUED]}`)
	w.mutate("resumeAgent", "agent { id }", map[string]any{"agentId": id}, nil)
	w.wake(id)
	got = []string{next(), next(), next()}
	if want := []string{"AGENT_RESUMED", "WAKEUP_REQUESTED", "WAKEUP_QUEUED"}; !slices.Equal(got, want) {
		t.Errorf("live came %v, want %v", got, want)
	}
	if got := narrow(); got != "WAKEUP_QUEUED" {
		t.Errorf("through the filter came %s", got)
	}
}

func TestAnEntryThatCommitsLateComesInItsOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent("Ada")
	cursor := w.eventCursor()
	early, err := w.db.BeginTx(t.Context(), &sql.TxOptions{})
	w.ok(err)
	_, err = early.ExecContext(t.Context(), `INSERT INTO activities (id, workspace_id, code, summary, actor_kind, actor, data) VALUES ($1, $2, 'TASK_CHANGED', 'early', 'SYSTEM', 'test', '{}')`, xid.New("act"), w.workspace)
	w.ok(err)
	next := w.follow(`, after: "` + cursor + `", filter: {code: [TASK_CHANGED, AGENT_PAUSED]}`)
	came := make(chan []string, 1)
	go func() { came <- []string{next(), next()} }()
	w.mutate("pauseAgent", "agent { id }", map[string]any{"agentId": id}, nil)
	w.ok(early.Commit())
	if got := <-came; !slices.Equal(got, []string{"TASK_CHANGED", "AGENT_PAUSED"}) {
		t.Errorf("there came %v: the earlier transaction committed later, and must come first", got)
	}
}

func TestForeignLogsAndCursorsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.makeWorkspace("Other")
	stranger := w.As(auth.Principal{Kind: auth.KindToken, WorkspaceID: xid.ID(other), Scopes: []domain.TokenScope{domain.TokenScopeRead}})
	const follow = `subscription($id: ID!, $after: StreamCursor) { workspaceActivity(workspaceId: $id, after: $after) { code } }`
	if _, errs := stranger.Subscribe(t.Context(), follow, map[string]any{"id": w.workspace})(); codeOf(errs) != graph.CodeNotFound {
		t.Errorf("a stranger follows: %v", errs)
	}
	if _, errs := w.Subscribe(t.Context(), follow, map[string]any{"id": other, "after": w.eventCursor()})(); codeOf(errs) != graph.CodeBadInput {
		t.Errorf("with another workspace's cursor: %v", errs)
	}
}

func TestTheInboxIsListedAndHandled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.createAgent("Ada", nil).CreateAgent.Agent.ID // without an executor its runs give up at once
	run := w.wake(id)
	w.start()
	type item struct {
		ID, Kind   string
		ResolvedAt *string
		Subject    *struct{ ID string }
	}
	inbox := func(args string) (items []item, total int) {
		t.Helper()
		var out struct {
			Workspace struct {
				Inbox struct {
					TotalCount int
					Edges      []struct{ Node item }
				}
			}
		}
		w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { inbox`+args+` { totalCount edges { node { id kind resolvedAt subject { ... on Run { id } } } } } } }`, map[string]any{"id": w.workspace}, &out)
		for _, e := range out.Workspace.Inbox.Edges {
			items = append(items, e.Node)
		}
		return items, out.Workspace.Inbox.TotalCount
	}
	items, total := inbox("")
	if total != 1 || items[0].Kind != "AGENT_ERROR" || items[0].Subject == nil || items[0].Subject.ID != run {
		t.Fatalf("the inbox is %+v", items)
	}
	if e := w.mutate("resolveInboxItems", "items { id }", map[string]any{"ids": []string{items[0].ID, string(xid.New("inb"))}}, nil); e != "NOT_FOUND input.ids.1" {
		t.Errorf("one that is not there: %q", e)
	}
	if e := w.mutate("resolveInboxItems", "items { id }", map[string]any{"ids": []string{}}, nil); e != "REQUIRED input.ids" {
		t.Errorf("none: %q", e)
	}
	var out struct{ ResolveInboxItems struct{ Items []item } }
	if e := w.mutate("resolveInboxItems", "items { id resolvedAt }", map[string]any{"ids": []string{items[0].ID}}, &out); e != "" || out.ResolveInboxItems.Items[0].ResolvedAt == nil {
		t.Errorf("handled: %q %+v", e, out)
	}
	if _, total := inbox(""); total != 0 {
		t.Errorf("%d items are open", total)
	}
	if all, _ := inbox("(filter: {open: false, kind: [AGENT_ERROR]})"); len(all) != 1 {
		t.Errorf("of all there are %+v", all)
	}
	var node struct{ Node struct{ Title string } }
	w.Do(t.Context(), `query($id: ID!) { node(id: $id) { ... on InboxItem { title } } }`, map[string]any{"id": items[0].ID}, &node)
	if !strings.Contains(node.Node.Title, "gave up") {
		t.Errorf("the node is %+v", node)
	}
}
