package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/graph/graphtest"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// client serves what needs no database.
func client(t *testing.T, caller auth.Principal) *graphtest.Client {
	return graphtest.New(t, graph.NewSchema(graph.Resolver{
		Store:  &store.Store{},
		Reader: ent.NewClient(),
		Process: func() model.ProcessInfo {
			return model.ProcessInfo{Version: "1.0", StartedAt: time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC), Scheduler: model.SchedulerStateRunning}
		},
	}), caller)
}

func token(scopes ...domain.TokenScope) auth.Principal {
	return auth.Principal{Kind: auth.KindToken, WorkspaceID: "wsp_1", Scopes: scopes}
}

func TestCallersMayDoWhatTheirScopesAllow(t *testing.T) {
	t.Parallel()
	const (
		read   = `{ process { version startedAt } }`
		create = `mutation { createWorkspace(input: {name: "x"}) { userErrors { code } } }`
		cancel = `mutation { cancelRun(input: {runId: "run_00000000000000000000000000"}) { userErrors { code } } }`
		follow = `subscription { runUpdated(runId: "run_00000000000000000000000000") { id } }`
	)
	for name, c := range map[string]struct {
		caller auth.Principal
		query  string
		want   string
	}{
		"nobody reads":                            {auth.Principal{}, read, graph.CodeUnauthenticated},
		"nobody follows":                          {auth.Principal{}, follow, graph.CodeUnauthenticated},
		"who needs no token reads":                {auth.Local(), read, ""},
		"READ reads":                              {token(domain.TokenScopeRead), read, ""},
		"OPERATE reads":                           {token(domain.TokenScopeOperate), read, ""},
		"EXECUTE does not read":                   {token(domain.TokenScopeExecute), read, graph.CodeForbidden},
		"a run does not read":                     {auth.Principal{Kind: auth.KindRun, WorkspaceID: "wsp_1"}, read, graph.CodeForbidden},
		"a run does not follow":                   {auth.Principal{Kind: auth.KindRun, WorkspaceID: "wsp_1"}, follow, graph.CodeForbidden},
		"a run cancels nothing":                   {auth.Principal{Kind: auth.KindRun, WorkspaceID: "wsp_1"}, cancel, graph.CodeForbidden},
		"READ does not cancel":                    {token(domain.TokenScopeRead), cancel, graph.CodeForbidden},
		"OPERATE makes no workspace":              {token(domain.TokenScopeOperate), create, graph.CodeForbidden},
		"ADMIN of a workspace makes no other":     {token(domain.TokenScopeAdmin), create, graph.CodeForbidden},
		"a workspace is named once":               {token(domain.TokenScopeAdmin), `{ workspace(id: "wsp_00000000000000000000000000", slug: "x") { id } }`, graph.CodeBadInput},
		"the instance must name a workspace":      {auth.Local(), `{ workspace { id } }`, graph.CodeBadInput},
		"ADMIN of a workspace, token of instance": {token(domain.TokenScopeAdmin), `mutation { createApiToken(input: {name: "x", scopes: [READ]}) { token } }`, graph.CodeForbidden},
		"more ids than nodes takes are refused":   {auth.Local(), `query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, graph.CodeBadInput},
	} {
		ids := make([]string, 101)
		for i := range ids {
			ids[i] = "run_00000000000000000000000000"
		}
		api := client(t, c.caller)
		ask := api.Try
		if c.query == follow {
			ask = func(ctx context.Context, query string, variables map[string]any) (json.RawMessage, gqlerror.List) {
				return api.Subscribe(ctx, query, nil)()
			}
		}
		_, errs := ask(context.Background(), c.query, map[string]any{"ids": ids})
		if got := codeOf(errs); got != c.want {
			t.Errorf("%s: %q (%v), want %q", name, got, errs, c.want)
		}
	}
}

// codeOf is the code of the first error, "" without one.
func codeOf(errs gqlerror.List) string {
	if len(errs) == 0 {
		return ""
	}
	if e, ok := errors.AsType[*graph.Error](errs[0]); ok {
		return e.Code
	}
	return "other"
}

func TestInstantsAreWrittenInUTCWithMilliseconds(t *testing.T) {
	t.Parallel()
	var out struct{ Process struct{ StartedAt string } }
	client(t, auth.Local()).Do(context.Background(), `{ process { startedAt } }`, nil, &out)
	if out.Process.StartedAt != "2026-04-25T09:00:00.000Z" {
		t.Errorf("startedAt is %s", out.Process.StartedAt)
	}
}
