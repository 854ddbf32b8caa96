package graph_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/graph/graphtest"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/feedtest"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// hub hands the store's signals to those who watch runs.
type hub struct {
	mu       sync.Mutex
	watchers map[xid.ID][]chan struct{}
}

func (h *hub) Publish(events ...event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		for _, c := range h.watchers[e.ID] {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

func (h *hub) WatchRun(_ context.Context, runID xid.ID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan struct{}, 1)
	h.watchers[runID] = append(h.watchers[runID], c)
	return c
}

func (h *hub) WatchActivity(ctx context.Context, workspaceID xid.ID) <-chan struct{} {
	return h.WatchRun(ctx, workspaceID)
}

func (h *hub) WatchOffers(ctx context.Context, workspaceID xid.ID) <-chan struct{} {
	return h.WatchRun(ctx, workspaceID)
}

// labels "seals" by naming the place, so that tests see the binding.
type labels struct{}

func (labels) Seal(_, boundTo string) (string, error) { return "sealed for " + boundTo, nil }

// Environment "opens" what was sealed as hunter2.
func (labels) Environment(l *store.Launch) ([]*model.EnvironmentVariable, error) {
	out := []*model.EnvironmentVariable{{Name: "ROUSE_RUN_TOKEN", Value: l.RunToken.Reveal()}}
	if c := l.Executor.Pull.Command; c != nil {
		for _, v := range c.Environment {
			out = append(out, &model.EnvironmentVariable{Name: v.Name, Value: "hunter2"})
		}
	}
	return out, nil
}

// Mask hides hunter2, and the numbers that stand for secrets.
// Send delivers to every channel but those to the host refused.
func (labels) Send(_ context.Context, channelID xid.ID, target domain.NotificationTarget, n domain.Notice) store.Sent {
	if t := target.Webhook; t != nil && strings.Contains(t.URL, "refused") {
		return store.Sent{Status: 500, Detail: "the receiver answered 500"}
	}
	return store.Sent{Delivered: retry.Delivered{OK: true}, Status: 200}
}

func (labels) Mask([]domain.SealedSet) func(string) string {
	return func(text string) string {
		return strings.NewReplacer("hunter2", "***", "81745023", "***").Replace(text)
	}
}

// TestExecutor tells what it was given.
func (labels) TestExecutor(_ context.Context, workspaceID, agentID xid.ID, spec *domain.ExecutorSpec, holder xid.ID, ask bool) []domain.Check {
	return []domain.Check{
		{Name: "kind", OK: ask, Detail: string(spec.Kind()) + " of " + holder.String()[:3]},
		{Name: "agent", Detail: workspaceID.String()[:3] + " " + agentID.String()[:3], Hint: "do something"},
	}
}

// world is the API on a database of its own, with one workspace whose coalescing window is closed.
type world struct {
	*graphtest.Client
	t         *testing.T
	db        *sql.DB
	store     *store.Store
	hub       *hub
	schema    graphql.ExecutableSchema
	workspace string
	streamEnd func(error) // is told why a stream ends that should not; by default it fails the test
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, pgtest.New(t))
}

func newWorldOn(t *testing.T, db *sql.DB) *world {
	t.Helper()
	w := &world{t: t, streamEnd: func(err error) { t.Errorf("a stream ended with %v", err) }}
	h := &hub{watchers: map[xid.ID][]chan struct{}{}}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s := store.New(db, store.Options{Events: h, Counters: metrics.New(), Log: log, Jitter: func() float64 { return 0 }})
	feedtest.Watch(t, db)
	if err := s.Activate(t.Context()); err != nil {
		t.Fatal(err)
	}
	schema := graph.NewSchema(graph.Resolver{
		Store: s, Reader: s.Reader(), Signals: h, Sealer: labels{}, Launches: labels{}, Tester: labels{}, Notifier: labels{}, Log: log, Poll: time.Minute,
		EndStream: func(_ context.Context, err error) { w.streamEnd(err) },
	})
	w.Client, w.db, w.store, w.hub, w.schema = graphtest.New(t, schema, auth.Local()), db, s, h, schema
	w.workspace = w.makeWorkspace("Test")
	w.sql(`UPDATE workspaces SET coalescing_window_ms = 0`)
	w.sql(`INSERT INTO instance_facts (id, name, value) VALUES ('fct_1', 'scheduler_seen', '2126-01-01T00:00:00Z')`) // as if a scheduler ran all the time
	return w
}

func (w *world) sql(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.ExecContext(w.t.Context(), query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

// userErrors is what payloads carry.
type userErrors []struct {
	Code, Message string
	Field         []string
}

func (e userErrors) String() string {
	var all []string
	for _, x := range e {
		all = append(all, x.Code+" "+strings.Join(x.Field, "."))
	}
	return strings.Join(all, ", ")
}

func (w *world) makeWorkspace(name string) string {
	w.t.Helper()
	var out struct {
		CreateWorkspace struct {
			Workspace  struct{ ID string }
			UserErrors userErrors
		}
	}
	w.Do(w.t.Context(), `mutation($name: String!) { createWorkspace(input: {name: $name}) { workspace { id } userErrors { code message field } } }`, map[string]any{"name": name}, &out)
	if len(out.CreateWorkspace.UserErrors) > 0 {
		w.t.Fatal(out.CreateWorkspace.UserErrors)
	}
	return out.CreateWorkspace.Workspace.ID
}

type agentPayload struct {
	CreateAgent struct {
		Agent      *struct{ ID string }
		Replayed   bool
		UserErrors userErrors
	}
}

// createAgent makes an agent; more fields of the input come as a JSON object.
func (w *world) createAgent(name string, more map[string]any) agentPayload {
	w.t.Helper()
	input := map[string]any{"workspaceId": w.workspace, "name": name, "role": "WORKER", "cooldown": "PT0S"}
	for k, v := range more {
		input[k] = v
	}
	var out agentPayload
	w.Do(w.t.Context(), `mutation($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } replayed userErrors { code message field } } }`, map[string]any{"input": input}, &out)
	return out
}

func (w *world) agent(name string) string {
	w.t.Helper()
	out := w.createAgent(name, map[string]any{"executor": map[string]any{"echo": map[string]any{}}})
	if out.CreateAgent.Agent == nil {
		w.t.Fatal(out.CreateAgent.UserErrors)
	}
	return out.CreateAgent.Agent.ID
}

// wake wakes an agent and gives the run that serves it.
func (w *world) wake(agentID string) string {
	w.t.Helper()
	var out struct {
		WakeAgent struct {
			WakeupRequest struct {
				Status string
				Run    *struct{ ID string }
			}
			UserErrors userErrors
		}
	}
	w.Do(w.t.Context(), `mutation($id: ID!) { wakeAgent(input: {agentId: $id, userId: "ada", context: {n: 1}}) { wakeupRequest { status run { id } } userErrors { code message field } } }`, map[string]any{"id": agentID}, &out)
	if out.WakeAgent.WakeupRequest.Run == nil {
		w.t.Fatalf("the answer shows no run: %+v", out)
	}
	return out.WakeAgent.WakeupRequest.Run.ID
}

// start claims and starts the one due run.
func (w *world) start() store.Attempt {
	w.t.Helper()
	claimed, err := w.store.Claim(w.t.Context(), store.Owner{ID: xid.New("prc"), Host: "here", BootID: "boot", PID: 1, Started: 1}, 1, time.Minute)
	if err != nil || len(claimed) != 1 {
		w.t.Fatalf("claimed %v, %v", claimed, err)
	}
	if claimed[0].Launch == nil { // nobody said how to execute it
		_, err := w.store.Start(w.t.Context(), claimed[0].Attempt)
		w.ok(err)
	}
	return claimed[0].Attempt
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAnAgentIsMadeReadAndItsSecretsAreNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createAgent("Ada", map[string]any{"executor": map[string]any{"command": map[string]any{
		"argv": []string{"claude", "-p"}, "environment": []any{map[string]any{"name": "API_KEY", "value": "hunter2"}}, "timeout": "PT1H",
	}}})
	if len(made.CreateAgent.UserErrors) > 0 {
		t.Fatal(made.CreateAgent.UserErrors)
	}
	id := made.CreateAgent.Agent.ID
	var out struct {
		Agent struct {
			Name, Status, Cooldown   string
			AvailableAt, PauseReason *string
			ActiveRunCount           int
			Workspace                struct{ Slug string }
			Executor                 struct {
				Typename    string `json:"__typename"`
				Argv        []string
				Environment []string
				Timeout     string
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!) { agent(id: $id) { name status cooldown availableAt pauseReason activeRunCount workspace { slug }
		executor { __typename ... on CommandExecutor { argv environment timeout } } } }`, map[string]any{"id": id}, &out)
	a := out.Agent
	compare(t, "the agent",
		is("name", a.Name, "Ada"),
		is("status", a.Status, "IDLE"),
		is("cooldown", a.Cooldown, "PT0S"),
		is("availableAt", a.AvailableAt, nil),
		is("activeRunCount", a.ActiveRunCount, 0),
		is("workspace's slug", a.Workspace.Slug, "test"))
	if a.Executor.Typename != "CommandExecutor" || !slices.Equal(a.Executor.Environment, []string{"API_KEY"}) || a.Executor.Timeout != "PT1H" {
		t.Errorf("executor is %+v", a.Executor)
	}
	var stored string
	w.ok(w.db.QueryRow(`SELECT executor::text FROM agents WHERE id = $1`, id).Scan(&stored))
	if strings.Contains(stored, "hunter2") || !strings.Contains(stored, "sealed for "+id+"/API_KEY") {
		t.Errorf("stored as %s", stored)
	}
}

func TestWhatIsWrongWithAnAgentIsAUserError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("Ada")
	executor := func(v any) map[string]any { return map[string]any{"executor": v} }
	for name, c := range map[string]struct {
		agent string
		more  map[string]any
		want  string
	}{
		"a name twice":             {"Ada", nil, "TAKEN input.name"},
		"no name":                  {" ", nil, "REQUIRED input.name"},
		"NUL":                      {"a\x00", nil, "INVALID input.name"},
		"no such workspace":        {"x", map[string]any{"workspaceId": xid.New("wsp")}, "NOT_FOUND input.workspaceId"},
		"no such manager":          {"x", map[string]any{"managerId": xid.New("agt")}, "NOT_FOUND input.managerId"},
		"too many sessions":        {"x", map[string]any{"maxConcurrentSessions": 51}, "OUT_OF_RANGE input.maxConcurrentSessions"},
		"two executors":            {"x", executor(map[string]any{"echo": map[string]any{}, "command": map[string]any{"argv": []string{"a"}}}), "INVALID input.executor"},
		"no executor member":       {"x", executor(map[string]any{}), "INVALID input.executor"},
		"no program":               {"x", executor(map[string]any{"command": map[string]any{}}), "REQUIRED input.executor.command.argv"},
		"an empty idempotency key": {"x", map[string]any{"idempotencyKey": ""}, "INVALID input.idempotencyKey"},
	} {
		out := w.createAgent(c.agent, c.more)
		if got := out.CreateAgent.UserErrors.String(); got != c.want || out.CreateAgent.Agent != nil {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAKeyMakesARepeatedCallReturnTheFirstResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := map[string]any{"idempotencyKey": "k1"}
	first, second := w.createAgent("Ada", key), w.createAgent("Ada", key)
	if first.CreateAgent.Replayed || !second.CreateAgent.Replayed || first.CreateAgent.Agent.ID != second.CreateAgent.Agent.ID {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if other := w.createAgent("Eve", key); other.CreateAgent.UserErrors.String() != "IDEMPOTENCY_KEY_REUSED input.idempotencyKey" {
		t.Errorf("another input with the key: %v", other.CreateAgent.UserErrors)
	}
}

func TestARoutineIsMadeWithItsTriggersAndFired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("Ada")
	var made struct {
		CreateRoutine struct {
			Clamped []string
			Routine struct {
				ID, Kind   string
				NextFireAt *string
				Assignee   struct{ Name string }
				Triggers   []struct {
					Typename string `json:"__typename"`
					ID, Cron string
					TimeZone string
					Routine  struct{ ID string }
				}
			}
			UserErrors userErrors
		}
	}
	const create = `mutation($input: CreateRoutineInput!) { createRoutine(input: $input) { clamped routine { id kind nextFireAt assignee { name }
		triggers { __typename id routine { id } ... on ScheduleTrigger { cron timeZone } } } userErrors { code message field } } }`
	input := map[string]any{"workspaceId": w.workspace, "name": "Daily", "assigneeId": agentID, "catchUpMax": 5000, "description": "Look at {{branch}}.",
		"triggers": []any{map[string]any{"schedule": map[string]any{"cron": "0 9 * * *", "timeZone": "Europe/Lisbon"}}, map[string]any{"manual": map[string]any{}}}}
	w.Do(t.Context(), create, map[string]any{"input": input}, &made)
	r := made.CreateRoutine.Routine
	if r.Kind != "LIGHTWEIGHT" || r.NextFireAt == nil || r.Assignee.Name != "Ada" || len(r.Triggers) != 2 || !slices.Equal(made.CreateRoutine.Clamped, []string{"catchUpMax"}) {
		t.Fatalf("routine is %+v", made)
	}
	if s := r.Triggers[0]; s.Typename != "ScheduleTrigger" || s.Cron != "0 9 * * *" || s.TimeZone != "Europe/Lisbon" || s.Routine.ID != r.ID || r.Triggers[1].Typename != "ManualTrigger" {
		t.Errorf("triggers are %+v", r.Triggers)
	}

	var fired struct {
		FireRoutine struct {
			RoutineRun struct {
				ID, Status, Source string
				Variables          map[string]any
				Trigger            struct {
					Typename string `json:"__typename"`
				}
				WakeupRequest struct {
					Run     struct{ ID string }
					Payload struct {
						Typename   string `json:"__typename"`
						RoutineRun struct{ ID string }
						Trigger    struct{ ID string }
					}
				}
			}
			UserErrors userErrors
		}
	}
	const fire = `mutation($input: FireRoutineInput!) { fireRoutine(input: $input) { routineRun { id status source variables trigger { __typename }
		wakeupRequest { run { id } payload { __typename ... on RoutineWakeup { routineRun { id } trigger { id } } } } } userErrors { code message field } } }`
	w.Do(t.Context(), fire, map[string]any{"input": map[string]any{"routineId": r.ID, "triggerId": r.Triggers[1].ID, "variables": map[string]any{"branch": "main"}}}, &fired)
	x := fired.FireRoutine.RoutineRun
	if x.Status != "ENQUEUED" || x.Source != "MANUAL" || x.Variables["branch"] != "main" || x.Trigger.Typename != "ManualTrigger" {
		t.Errorf("fire is %+v, %v", x, fired.FireRoutine.UserErrors)
	}
	if p := x.WakeupRequest.Payload; x.WakeupRequest.Run.ID == "" || p.Typename != "RoutineWakeup" || p.RoutineRun.ID != x.ID || p.Trigger.ID != r.Triggers[1].ID {
		t.Errorf("wakeup is %+v", x.WakeupRequest)
	}

	input["name"], input["triggers"] = "Never", []any{map[string]any{"schedule": map[string]any{"cron": "0 9 31 2 *"}}}
	w.Do(t.Context(), create, map[string]any{"input": input}, &made)
	if got := made.CreateRoutine.UserErrors.String(); got != "CRON_NEVER_FIRES input.triggers.0.schedule.cron" {
		t.Errorf("a cron that never fires: %q", got)
	}
}

func TestListsArePagedFilteredAndReadByNameNotAlias(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"Cy", "Ada", "Bob"} {
		w.agent(name)
	}
	agents := func(args string) (names []string, next, cursor string) {
		t.Helper()
		var out struct {
			Workspace struct {
				Page struct {
					Total int
					List  []struct {
						Cursor string
						Node   struct{ Called string }
					}
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
		}
		w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { page: agents(`+args+`) { total: totalCount list: edges { cursor node { called: name } } pageInfo { hasNextPage endCursor } } } }`, map[string]any{"id": w.workspace}, &out)
		for _, e := range out.Workspace.Page.List {
			names = append(names, e.Node.Called)
		}
		return names, fmt.Sprint(out.Workspace.Page.PageInfo.HasNextPage, " ", out.Workspace.Page.Total), out.Workspace.Page.PageInfo.EndCursor
	}
	names, next, cursor := agents(`first: 2, orderBy: {field: NAME}`)
	if !slices.Equal(names, []string{"Ada", "Bob"}) || next != "true 3" {
		t.Errorf("first page: %v, %s", names, next)
	}
	if names, next, _ = agents(`first: 2, orderBy: {field: NAME}, after: "` + cursor + `"`); !slices.Equal(names, []string{"Cy"}) || next != "false 3" {
		t.Errorf("second page: %v, %s", names, next)
	}
	if names, _, _ = agents(`last: 2, orderBy: {field: NAME}`); !slices.Equal(names, []string{"Bob", "Cy"}) {
		t.Errorf("from the end: %v", names)
	}
	if names, _, _ = agents(`filter: {search: "b", status: [IDLE, PAUSED]}`); !slices.Equal(names, []string{"Bob"}) {
		t.Errorf("filtered: %v", names)
	}
	if names, _, _ = agents(`filter: {status: [WORKING]}`); len(names) != 0 {
		t.Errorf("none works: %v", names)
	}
	names, _, cursor = agents(`first: 1, orderBy: {field: CREATED_AT, direction: DESC}`)
	if more, _, _ := agents(`first: 2, orderBy: {field: CREATED_AT, direction: DESC}, after: "` + cursor + `"`); !slices.Equal(append(names, more...), []string{"Bob", "Ada", "Cy"}) {
		t.Errorf("newest first: %v, then %v", names, more)
	}
	_, errs := w.Try(t.Context(), `query($id: ID!) { workspace(id: $id) { agents(first: 2, after: "`+cursor+`") { totalCount } } }`, map[string]any{"id": w.workspace})
	if codeOf(errs) != graph.CodeBadInput {
		t.Errorf("a cursor of another order: %v", errs)
	}
}

func TestHistoryIsPagedFromTheNewestOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for i := range 5 {
		want = append([]string{w.wake(w.agent(fmt.Sprint("agent ", i)))}, want...)
	}
	for _, list := range []string{"runs", "runs(orderBy: {field: REQUESTED_AT, direction: ASC})"} {
		var got []string
		for after := ""; ; {
			var out struct {
				Workspace struct {
					Runs struct {
						TotalCount int
						Edges      []struct{ Node struct{ ID string } }
						PageInfo   struct {
							HasNextPage bool
							EndCursor   string
						}
					}
				}
			}
			args := "first: 2" + after
			field := "runs(" + args + ")"
			if strings.HasSuffix(list, ")") {
				field = strings.TrimSuffix(list, ")") + ", " + args + ")"
			}
			w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { `+field+` { ...count edges { node { id } } ... on RunConnection { pageInfo { hasNextPage endCursor } } } } } fragment count on RunConnection { totalCount }`,
				map[string]any{"id": w.workspace}, &out)
			for _, e := range out.Workspace.Runs.Edges {
				got = append(got, e.Node.ID)
			}
			if out.Workspace.Runs.TotalCount != 5 {
				t.Errorf("%s: totalCount is %d", field, out.Workspace.Runs.TotalCount)
			}
			if !out.Workspace.Runs.PageInfo.HasNextPage {
				break
			}
			after = `, after: "` + out.Workspace.Runs.PageInfo.EndCursor + `"`
		}
		if list != "runs" {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", list, got, want)
		}
	}
}

func TestTwoAliasesOfOneEdgeBothHaveTheirColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runID := w.wake(w.agent("Ada"))
	var out struct {
		Node struct {
			Status string
			A      struct{ Name string }
			B      struct{ Role string }
			List   struct {
				Edges []struct {
					Node struct{ Payload struct{ UserID string } }
				}
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!) { node(id: $id) { ... on Run { status a: agent { name } b: agent { role }
		list: wakeupRequests { edges { node { payload { ... on UserWakeup { userId } } } } } } } }`, map[string]any{"id": runID}, &out)
	if out.Node.Status != "QUEUED" || out.Node.A.Name != "Ada" || out.Node.B.Role != "WORKER" || out.Node.List.Edges[0].Node.Payload.UserID != "ada" {
		t.Errorf("got %+v", out)
	}
}

func TestNodesComeInTheOrderAskedWithNullForTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("Ada")
	runID := w.wake(agentID)
	ids := []string{runID, string(xid.New("run")), agentID, string(xid.New("zzz")), w.workspace, string(xid.New("tok")), runID}
	var out struct{ Nodes []*struct{ ID string } }
	w.Do(t.Context(), `query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, map[string]any{"ids": ids}, &out)
	for i, want := range []string{runID, "", agentID, "", w.workspace, "", runID} {
		if got := out.Nodes[i]; (got == nil) != (want == "") || got != nil && got.ID != want {
			t.Errorf("node %d is %v, want %q", i, got, want)
		}
	}
	w.Do(t.Context(), `query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, map[string]any{"ids": ids[1:2]}, &out)
	if len(out.Nodes) != 1 || out.Nodes[0] != nil {
		t.Errorf("one absent id gives %v", out.Nodes)
	}
}

func TestNothingCrossesTheBorderOfAWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("Ada")
	runID := w.wake(agentID)
	stranger := w.As(auth.Principal{Kind: auth.KindToken, WorkspaceID: xid.ID(w.makeWorkspace("Other")), Scopes: []domain.TokenScope{domain.TokenScopeAdmin}})
	ids := map[string]any{"agent": agentID, "run": runID, "workspace": w.workspace}
	var seen map[string]any
	stranger.Do(t.Context(), `query($agent: ID!, $run: ID!, $workspace: ID!) { agent(id: $agent) { id } run(id: $run) { id } node(id: $run) { id } workspace(id: $workspace) { id } }`, ids, &seen)
	for field, v := range seen {
		if v != nil {
			t.Errorf("%s shows %v", field, v)
		}
	}
	var all struct {
		Workspaces struct {
			Edges []struct{ Node struct{ Name string } }
		}
	}
	stranger.Do(t.Context(), `{ workspaces { edges { node { name } } } }`, nil, &all)
	if len(all.Workspaces.Edges) != 1 || all.Workspaces.Edges[0].Node.Name != "Other" {
		t.Errorf("a stranger sees %+v", all)
	}
	var out map[string]struct{ UserErrors userErrors }
	stranger.Do(t.Context(), `mutation($agent: ID!, $run: ID!, $workspace: ID!) {
		wakeAgent(input: {agentId: $agent, userId: "eve"}) { userErrors { code message field } }
		cancelRun(input: {runId: $run}) { userErrors { code message field } }
		createAgent(input: {workspaceId: $workspace, name: "x", role: WORKER}) { userErrors { code message field } }
		createApiToken(input: {workspaceId: $workspace, name: "x", scopes: [READ]}) { userErrors { code message field } } }`, ids, &out)
	for field, want := range map[string]string{"wakeAgent": "input.agentId", "cancelRun": "input.runId", "createAgent": "input.workspaceId", "createApiToken": "input.workspaceId"} {
		if got := out[field].UserErrors.String(); got != "NOT_FOUND "+want {
			t.Errorf("%s: %q", field, got)
		}
	}
	if _, errs := stranger.Subscribe(t.Context(), `subscription($run: ID!) { runUpdated(runId: $run) { id } }`, map[string]any{"run": runID})(); codeOf(errs) != graph.CodeNotFound {
		t.Errorf("a stranger follows: %v", errs)
	}
}

func TestAQueuedRunIsCancelledOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.wake(w.agent("Ada"))
	var out struct {
		CancelRun struct {
			Run        *struct{ Status, TerminalShape string }
			UserErrors userErrors
		}
	}
	const cancel = `mutation($id: ID!) { cancelRun(input: {runId: $id, note: "no"}) { run { status terminalShape } userErrors { code message field } } }`
	w.Do(t.Context(), cancel, map[string]any{"id": id}, &out)
	if out.CancelRun.Run == nil || out.CancelRun.Run.Status != "CANCELLED" || out.CancelRun.Run.TerminalShape != "UNLAUNCHED_SKIPPED" {
		t.Errorf("cancelled: %+v", out)
	}
	out.CancelRun.Run = nil
	w.Do(t.Context(), cancel, map[string]any{"id": id}, &out)
	if out.CancelRun.Run != nil || out.CancelRun.UserErrors.String() != "ALREADY_TERMINAL input.runId" {
		t.Errorf("cancelled again: %+v", out)
	}
}

func TestARunIsFollowedLiveAndReadAfterwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.wake(w.agent("Ada"))
	vars := map[string]any{"id": id}
	follow := w.Subscribe(t.Context(), `subscription($id: ID!) { runEvents(runId: $id, includeLogs: true) { ... on RunEvent { kind cursor } ... on RunLogLine { text } } }`, vars)
	states := w.Subscribe(t.Context(), `subscription($id: ID!) { runUpdated(runId: $id) { status agent { status } } }`, vars)
	next := func(from func() (json.RawMessage, []string)) string {
		t.Helper()
		data, texts := from()
		if data == nil {
			return "end"
		}
		return strings.Join(texts, " ")
	}
	item := func() (json.RawMessage, []string) {
		data, errs := follow()
		var out struct{ RunEvents struct{ Kind, Text string } }
		if len(errs) > 0 || data != nil && json.Unmarshal(data, &out) != nil {
			t.Fatalf("%s %v", data, errs)
		}
		return data, []string{out.RunEvents.Kind + out.RunEvents.Text}
	}
	state := func() (json.RawMessage, []string) {
		data, errs := states()
		var out struct {
			RunUpdated struct {
				Status string
				Agent  struct{ Status string }
			}
		}
		if len(errs) > 0 || data != nil && json.Unmarshal(data, &out) != nil {
			t.Fatalf("%s %v", data, errs)
		}
		return data, []string{out.RunUpdated.Status, out.RunUpdated.Agent.Status}
	}
	if first, status := next(item), next(state); first != "CREATED" || status != "QUEUED IDLE" {
		t.Fatalf("at first came %s and %s", first, status)
	}
	a := w.start()
	w.ok(w.store.RecordSession(t.Context(), a, "session-1"))
	now := time.Now()
	w.ok(w.store.AppendLog(t.Context(), a, []store.LogLine{{Seq: 1, Stream: domain.LogStreamStdout, Text: "one", At: now}, {Seq: 2, Stream: domain.LogStreamStderr, Text: "two", At: now.Add(time.Millisecond)}}))
	var came []string
	for len(came) == 0 || came[len(came)-1] != "two" {
		came = append(came, next(item))
	}
	if !slices.Contains(came, "CLAIMED") || !slices.Contains(came, "LAUNCHED") || !slices.Contains(came, "one") {
		t.Errorf("live came %v", came)
	}
	if got := next(state); got != "CLAIMED WORKING" {
		t.Errorf("the state is %s", got)
	}
	w.ok(w.store.Finish(t.Context(), a, store.Success{Summary: "done", Result: map[string]any{"n": 1}, SessionID: "session-1", Usage: &store.Usage{InputTokens: 10, OutputTokens: 2, CostUSD: "0.25"}}))
	for came[len(came)-1] != "end" {
		came = append(came, next(item))
	}
	if !slices.Equal(came[len(came)-2:], []string{"FINISHED", "end"}) {
		t.Errorf("it ended with %v", came)
	}
	last := ""
	for got := next(state); got != "end"; got = next(state) {
		last = got
	}
	if last != "FINISHED IDLE" {
		t.Errorf("the last state is %s", last)
	}
	w.checkFinished(id)
}

// checkFinished reads everything about the run that TestARunIsFollowedLiveAndReadAfterwards made.
func (w *world) checkFinished(id string) {
	t := w.t
	t.Helper()
	var out struct {
		Run struct {
			Status, TerminalShape, Summary, Outcome, SessionID string
			AssembledPrompt                                    *string
			ContextSnapshot, Result                            map[string]any
			Usage                                              struct {
				InputTokens int
				CostUsd     string
			}
			Attempts []struct {
				Number int
				Status string
			}
			EventCursor string
			Events      struct {
				Edges []struct {
					Cursor string
					Node   struct{ Kind string }
				}
			}
			Logs struct {
				Edges []struct {
					Cursor string
					Node   struct{ Text string }
				}
				PageInfo struct{ HasNextPage bool }
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!) { run(id: $id) { status terminalShape summary outcome sessionId assembledPrompt contextSnapshot result usage { inputTokens costUsd }
		attempts { number status } eventCursor events { edges { cursor node { kind } } } logs(first: 1, filter: {search: "O", stream: [STDOUT]}) { edges { cursor node { text } } pageInfo { hasNextPage } } } }`, map[string]any{"id": id}, &out)
	r := out.Run
	compare(t, "the run",
		is("status", r.Status, "FINISHED"),
		is("terminalShape", r.TerminalShape, "LAUNCHED_COMPLETED"),
		is("summary", r.Summary, "done"),
		is("sessionId", r.SessionID, "session-1"),
		holds("assembledPrompt is shown", r.AssembledPrompt != nil),
		is[any]("n of the result", r.Result["n"], 1.0),
		is("costUsd", r.Usage.CostUsd, "0.250000"))
	if len(r.Attempts) != 1 || r.Attempts[0].Status != "SUCCEEDED" || len(r.ContextSnapshot) == 0 {
		t.Errorf("attempts are %+v, context is %v", r.Attempts, r.ContextSnapshot)
	}
	if len(r.Logs.Edges) != 1 || r.Logs.Edges[0].Node.Text != "one" || r.Logs.PageInfo.HasNextPage {
		t.Errorf("logs are %+v", r.Logs)
	}
	var page struct {
		Run struct {
			Events struct {
				Edges []struct{ Node struct{ Kind string } }
			}
			Logs struct {
				Edges []struct{ Node struct{ Text string } }
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!, $event: Cursor!, $line: Cursor!) { run(id: $id) { events(first: 1, after: $event) { edges { node { kind } } } logs(after: $line) { edges { node { text } } } } }`,
		map[string]any{"id": id, "event": r.Events.Edges[0].Cursor, "line": r.Logs.Edges[0].Cursor}, &page)
	if len(page.Run.Events.Edges) != 1 || page.Run.Events.Edges[0].Node.Kind != r.Events.Edges[1].Node.Kind || len(page.Run.Logs.Edges) != 1 || page.Run.Logs.Edges[0].Node.Text != "two" {
		t.Errorf("the next pages are %+v", page)
	}
	if data, errs := w.Subscribe(t.Context(), `subscription($id: ID!, $after: StreamCursor) { runEvents(runId: $id, after: $after, includeLogs: true) { __typename } }`,
		map[string]any{"id": id, "after": r.EventCursor})(); data != nil || errs != nil {
		t.Errorf("after the head came %s %v", data, errs)
	}
}

func TestATokenIsMadeShownOnceListedAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var made struct {
		CreateApiToken struct {
			ApiToken   struct{ ID, Prefix string }
			Token      string
			UserErrors userErrors
		}
	}
	const create = `mutation($input: CreateApiTokenInput!) { createApiToken(input: $input) { apiToken { id prefix } token userErrors { code message field } } }`
	w.Do(t.Context(), create, map[string]any{"input": map[string]any{"workspaceId": w.workspace, "name": "ci", "scopes": []string{"OPERATE"}}}, &made)
	token := made.CreateApiToken
	if !strings.HasPrefix(token.Token, "rse_") || !strings.HasPrefix(token.Token, token.ApiToken.Prefix) {
		t.Fatalf("made %+v", made)
	}
	var list struct {
		Workspace struct {
			ApiTokens struct {
				Edges []struct{ Node struct{ ID, Name string } }
			}
		}
		Node struct{ Scopes []string }
	}
	w.Do(t.Context(), `query($w: ID!, $id: ID!) { workspace(id: $w) { apiTokens { edges { node { id name } } } } node(id: $id) { ... on ApiToken { scopes } } }`,
		map[string]any{"w": w.workspace, "id": token.ApiToken.ID}, &list)
	if e := list.Workspace.ApiTokens.Edges; len(e) != 1 || e[0].Node.Name != "ci" || !slices.Equal(list.Node.Scopes, []string{"OPERATE"}) {
		t.Errorf("listed %+v", list)
	}
	var revoked struct {
		RevokeApiToken struct{ ApiToken struct{ RevokedAt *string } }
	}
	w.Do(t.Context(), `mutation($id: ID!) { revokeApiToken(input: {apiTokenId: $id}) { apiToken { revokedAt } userErrors { code } } }`, map[string]any{"id": token.ApiToken.ID}, &revoked)
	if revoked.RevokeApiToken.ApiToken.RevokedAt == nil {
		t.Error("the token is not revoked")
	}
	for name, input := range map[string]map[string]any{
		"RUN":       {"scopes": []string{"RUN"}},
		"no scopes": {"scopes": []string{}},
		"the past":  {"scopes": []string{"READ"}, "expiresAt": "2020-01-01T00:00:00Z"},
	} {
		input["workspaceId"], input["name"] = w.workspace, "x"
		w.Do(t.Context(), create, map[string]any{"input": input}, &made)
		if len(made.CreateApiToken.UserErrors) != 1 {
			t.Errorf("%s is taken: %+v", name, made)
		}
	}
}

func TestTheShapeFilterAgreesWithTheShapeOfEveryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("Ada")
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, session_id, end_reason, requested_at, claimed_at, finished_at)
		SELECT 'run_' || lpad(row_number() OVER ()::text, 26, '0'), $1, $2, 'cau_1', 'taskless', 'USER', 'EVENT', s, o, x, r, t, now(),
			CASE WHEN s NOT IN ('QUEUED', 'CLAIMED') THEN now() END
		FROM unnest(ARRAY['FINISHED', 'FAILED', 'CANCELLED', 'QUEUED']) s, unnest(ARRAY['processed', 'idle_skipped', 'odd', NULL]) o,
			unnest(ARRAY['s1', NULL]) x, unnest(ARRAY['CANCELLED_BY_USER', NULL]) r, unnest(ARRAY[now() + interval '1 minute', now() - interval '1 day']) t`, w.workspace, agentID)
	var total int
	for _, shape := range domain.TerminalShape("").Values() {
		var out struct {
			Workspace struct {
				Runs struct {
					TotalCount int
					Edges      []struct {
						Node struct{ TerminalShape string }
					}
				}
			}
		}
		w.Do(t.Context(), `query($id: ID!, $shape: TerminalShape!) { workspace(id: $id) { runs(first: 100, filter: {terminalShape: [$shape]}) { totalCount edges { node { terminalShape } } } } }`,
			map[string]any{"id": w.workspace, "shape": shape}, &out)
		for _, e := range out.Workspace.Runs.Edges {
			if e.Node.TerminalShape != shape {
				t.Errorf("the filter %s gives a run of shape %q", shape, e.Node.TerminalShape)
			}
		}
		if out.Workspace.Runs.TotalCount == 0 {
			t.Errorf("no run of shape %s", shape)
		}
		total += out.Workspace.Runs.TotalCount
	}
	if total != 3*4*2*2*2 {
		t.Errorf("the filters give %d of %d ended runs", total, 3*4*2*2*2)
	}
}
