package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

type viewed struct {
	Viewer struct {
		Kind  string
		Token *struct {
			Name, ExpiresAt string
			Scopes          []string
		}
		Workspace *struct{ ID string }
		Can       []string
	}
}

const viewerQuery = `{ viewer { kind token { name scopes expiresAt } workspace { id } can } }`

func TestEachCallerMayAskWhoItIsAndWhatItMayDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := xid.ID(w.workspace)
	w.sql(`INSERT INTO api_tokens (id, workspace_id, name, prefix, digest, scopes, expires_at) VALUES
		('tok_00000000000000000000000001', $1, 'of the office', 'rse_a', 'a', '["OPERATE"]', '2130-01-01'),
		('tok_00000000000000000000000002', NULL, 'of the instance', 'rse_b', 'b', '["ADMIN", "EXECUTE"]', NULL),
		('tok_00000000000000000000000003', $1, 'of a worker', 'rse_c', 'c', '["EXECUTE"]', NULL)`, w.workspace)
	w.agent("alice")
	w.wake(w.agent("bob"))
	attempt := w.start()
	agent := xid.ID(w.one(`SELECT agent_id FROM runs WHERE id = '` + attempt.RunID.String() + `'`))
	of := func(id string, workspace xid.ID, scopes ...domain.TokenScope) auth.Principal {
		return auth.Principal{Kind: auth.KindToken, TokenID: xid.ID(id), WorkspaceID: workspace, Scopes: scopes}
	}
	for name, c := range map[string]struct {
		caller auth.Principal
		want   string
	}{
		"nobody's token is asked for":           {auth.Local(), "LOCAL none none READ,OPERATE,ADMIN,EXECUTE"},
		"a token of the workspace":              {of("tok_00000000000000000000000001", own, domain.TokenScopeOperate), "TOKEN of the office until 2130 own READ,OPERATE"},
		"a token of the instance":               {of("tok_00000000000000000000000002", "", domain.TokenScopeAdmin, domain.TokenScopeExecute), "TOKEN of the instance for ever none READ,OPERATE,ADMIN,EXECUTE"},
		"a worker's token that may not READ":    {of("tok_00000000000000000000000003", own, domain.TokenScopeExecute), "TOKEN of a worker for ever own EXECUTE"},
		"an agent, whose token is no API token": {auth.Principal{Kind: auth.KindRun, WorkspaceID: own, AgentID: agent, RunID: attempt.RunID, Attempt: 1}, "RUN none own RUN"},
	} {
		var out viewed
		w.As(c.caller).Do(t.Context(), viewerQuery, nil, &out)
		v := out.Viewer
		token, workspace := "none", "none"
		if v.Token != nil {
			token = v.Token.Name + " for ever"
			if v.Token.ExpiresAt != "" {
				token = v.Token.Name + " until " + v.Token.ExpiresAt[:4]
			}
		}
		if v.Workspace != nil && v.Workspace.ID == w.workspace {
			workspace = "own"
		}
		if got := fmt.Sprintf("%s %s %s %s", v.Kind, token, workspace, strings.Join(v.Can, ",")); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Who serves, who works, and what each has at hand: of a process as it tells the store, of a worker as it calls.
func TestProcessesAndWorkersAreListedWithTheirRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := store.Process{ID: "prc_00000000000000000000000001", Host: "office", PID: 7, Version: "1.2", Slots: 4}
	w.ok(w.store.ProcessRuns(t.Context(), mine))
	w.ok(w.store.ProcessRuns(t.Context(), store.Process{ID: "prc_00000000000000000000000002", Host: "spare", PID: 8, Version: "1.2", Standby: true}))
	w.ok(w.store.ProcessRuns(t.Context(), store.Process{ID: "prc_00000000000000000000000003", Host: "gone", PID: 9}))
	w.ok(w.store.ProcessEnds(t.Context(), "prc_00000000000000000000000003"))
	w.sql(`INSERT INTO processes (id, host, pid, version, standby, slots, started_at, seen_at) VALUES ('prc_00000000000000000000000004', 'killed', 1, '', false, 1, now() - interval '1 day', now() - interval '61 minutes')`)

	puller := w.pullAgent()
	w.wake(puller)
	lease, problems := w.acquire(map[string]any{"worker": map[string]any{"name": "gpu one", "host": "rack-1", "version": "1.3"}})
	if lease == nil {
		t.Fatal(problems)
	}
	w.sql(`INSERT INTO api_tokens (id, workspace_id, name, prefix, digest, scopes) VALUES ('tok_00000000000000000000000003', $1, 'of a worker', 'rse_c', 'c', '["EXECUTE"]')`, w.workspace)
	quiet := auth.Principal{Kind: auth.KindToken, TokenID: "tok_00000000000000000000000003", WorkspaceID: xid.ID(w.workspace), Scopes: []domain.TokenScope{domain.TokenScopeExecute}}
	for _, queue := range []string{"gpu", "cpu"} {
		w.As(quiet).Do(t.Context(), `mutation($id: ID!, $q: String!) { acquireRun(input: {workspaceId: $id, queue: $q}) { lease { attempt } } }`, map[string]any{"id": w.workspace, "q": queue}, &struct{}{})
	}
	w.wake(w.agent("alice"))
	claimed, err := w.store.Claim(t.Context(), store.Owner{ID: mine.ID, Host: "office"}, 1, time.Minute)
	w.ok(err)

	var out struct {
		Workspace struct {
			Processes []struct {
				Name, Host, Version, LastSeenAt string
				Standby                         bool
				Slots                           int
				Runs                            []struct{ ID string }
			}
			Workers []struct {
				Name, Host, Version, LastSeenAt string
				Queues                          []string
				Runs                            []struct{ ID string }
			}
			Runs struct {
				Edges []struct {
					Node struct {
						ID       string
						Attempts []struct {
							Owner *struct{ Kind, Name, Host, Version string }
						}
					}
				}
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { processes { name host version lastSeenAt standby slots runs { id } } workers { name host version lastSeenAt queues runs { id } }
		runs { edges { node { id attempts { owner { kind name host version } } } } } } }`, map[string]any{"id": w.workspace}, &out)
	var shown []string
	for _, p := range out.Workspace.Processes {
		runs := make([]string, len(p.Runs))
		for i, r := range p.Runs {
			runs[i] = r.ID
		}
		shown = append(shown, fmt.Sprintf("%s %s standby %v slots %d %v", p.Name, p.Version, p.Standby, p.Slots, runs))
	}
	slices.Sort(shown)
	if want := []string{fmt.Sprintf("office:7 1.2 standby false slots 4 [%s]", claimed[0].RunID), "spare:8 1.2 standby true slots 0 []"}; !slices.Equal(shown, want) {
		t.Errorf("processes %q, want %q", shown, want)
	}
	shown = nil
	for _, k := range out.Workspace.Workers {
		runs := make([]string, len(k.Runs))
		for i, r := range k.Runs {
			runs[i] = r.ID
		}
		shown = append(shown, fmt.Sprintf("%s at %q %s %v %v", k.Name, k.Host, k.Version, k.Queues, runs))
	}
	slices.Sort(shown)
	if want := []string{fmt.Sprintf(`gpu one at "rack-1" 1.3 [gpu] [%s]`, lease.Run.ID), `of a worker at ""  [cpu gpu] []`}; !slices.Equal(shown, want) {
		t.Errorf("workers %q, want %q", shown, want)
	}
	owners := map[string]string{}
	for _, e := range out.Workspace.Runs.Edges {
		for _, a := range e.Node.Attempts {
			owners[e.Node.ID] = "none"
			if a.Owner != nil {
				owners[e.Node.ID] = fmt.Sprintf("%s %s %s %s", a.Owner.Kind, a.Owner.Name, a.Owner.Host, a.Owner.Version)
			}
		}
	}
	if got := owners[lease.Run.ID]; got != "WORKER gpu one rack-1 1.3" {
		t.Errorf("the worker's run has owner %q", got)
	}
	if got := owners[claimed[0].RunID.String()]; got != "PROCESS office:7 office 1.2" {
		t.Errorf("the process's run has owner %q", got)
	}
}

// A worker's signs of life are written now and then, and too long words are refused whole.
func TestAWorkerSaysWhoItIsWithoutAWriteForEachCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pullAgent()
	who := map[string]any{"worker": map[string]any{"name": "gpu one", "host": "rack-1"}}
	w.acquire(who)
	w.sql(`UPDATE workers SET seen_at = '2020-01-01'`)
	w.acquire(who)
	if n := w.one(`SELECT count(*)::text FROM workers WHERE seen_at = '2020-01-01'`); n != "1" {
		t.Errorf("%s workers were left alone by the second call at once, want 1", n)
	}
	_, problems := w.acquire(map[string]any{"worker": map[string]any{"name": strings.Repeat("x", 201), "version": "a\x00"}})
	if got, want := problems.String(), "INVALID input.worker.name, INVALID input.worker.version"; got != want {
		t.Errorf("problems %s, want %s", got, want)
	}
}
