package auth

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

const (
	read    = domain.TokenScopeRead
	operate = domain.TokenScopeOperate
	admin   = domain.TokenScopeAdmin
	execute = domain.TokenScopeExecute
	run     = domain.TokenScopeRun
)

var everyScope = []domain.TokenScope{read, operate, admin, execute, run}

func TestAllows(t *testing.T) {
	token := func(scopes ...domain.TokenScope) Principal { return Principal{Kind: KindToken, Scopes: scopes} }
	for name, test := range map[string]struct {
		caller Principal
		want   []domain.TokenScope
	}{
		"READ reads":                         {token(read), []domain.TokenScope{read}},
		"OPERATE also reads":                 {token(operate), []domain.TokenScope{read, operate}},
		"ADMIN also operates and reads":      {token(admin), []domain.TokenScope{read, operate, admin}},
		"EXECUTE implies nothing else":       {token(execute), []domain.TokenScope{execute}},
		"scopes add up":                      {token(read, execute), []domain.TokenScope{read, execute}},
		"a token without scopes may nothing": {token(), nil},
		"a token cannot have RUN":            {token(run, admin), []domain.TokenScope{read, operate, admin}},
		"an unknown scope gives nothing":     {token("ROOT", ""), nil},
		"where no token is asked a caller may all but act for a run": {Local(), []domain.TokenScope{read, operate, admin, execute}},
		"a run may what RUN allows":                                  {Principal{Kind: KindRun}, []domain.TokenScope{run}},
		"a run gains nothing by listed scopes":                       {Principal{Kind: KindRun, Scopes: everyScope}, []domain.TokenScope{run}},
		"nobody may nothing":                                         {Principal{}, nil},
		"nobody gains nothing by listed scopes":                      {Principal{Scopes: everyScope}, nil},
		"an unknown kind of caller may nothing":                      {Principal{Kind: "ROOT", Scopes: everyScope}, nil},
		"where no token is asked, no scopes need to be listed":       {Principal{Kind: KindLocal, Scopes: []domain.TokenScope{}}, []domain.TokenScope{read, operate, admin, execute}},
	} {
		for _, scope := range append(slices.Clone(everyScope), "", "ROOT") {
			if got, want := test.caller.Allows(scope), slices.Contains(test.want, scope); got != want {
				t.Errorf("%s: Allows(%q) is %v", name, scope, got)
			}
		}
	}
}

func TestEveryScopeIsDecided(t *testing.T) {
	for _, scope := range read.Values() {
		if _, ok := implied[domain.TokenScope(scope)]; !ok && scope != string(run) {
			t.Errorf("scope %s is missing from the table", scope)
		}
	}
}

func TestAllowsAny(t *testing.T) {
	agent := Principal{Kind: KindRun}
	reader := Principal{Kind: KindToken, Scopes: []domain.TokenScope{read}}
	if !agent.AllowsAny(operate, run) || reader.AllowsAny(operate, run) || !reader.AllowsAny(read) {
		t.Error("one of the scopes must be enough, and none of them not")
	}
	if Local().AllowsAny() {
		t.Error("no scopes are enough")
	}
}

func TestIsInstance(t *testing.T) {
	for name, test := range map[string]struct {
		caller Principal
		want   bool
	}{
		"where no token is asked a caller sees all": {Local(), true},
		"an instance token sees all":                {Principal{Kind: KindToken}, true},
		"a workspace token sees its own":            {Principal{Kind: KindToken, WorkspaceID: "wsp_mine"}, false},
		"a run sees its own":                        {Principal{Kind: KindRun, WorkspaceID: "wsp_mine"}, false},
		"a run without a workspace sees none":       {Principal{Kind: KindRun}, false},
		"nobody sees nothing":                       {Principal{}, false},
	} {
		if got := test.caller.IsInstance(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestExpiredAt(t *testing.T) {
	end := time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		ends, now time.Time
		want      bool
	}{
		"without an end":           {time.Time{}, end, false},
		"before the end":           {end, end.Add(-time.Nanosecond), false},
		"at the end":               {end, end, true},
		"after it":                 {end, end.Add(time.Hour), true},
		"at it, in another zone":   {end, end.In(time.FixedZone("", 3600)), true},
		"before it, in other zone": {end, end.Add(-time.Second).In(time.FixedZone("", 7200)), false},
	} {
		if got := (Principal{ExpiresAt: test.ends}).ExpiredAt(test.now); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestCheckScopes(t *testing.T) {
	for name, test := range map[string]struct {
		scopes []domain.TokenScope
		says   string
	}{
		"all that a token can have": {[]domain.TokenScope{read, operate, admin, execute}, ""},
		"none":                      {nil, "at least one"},
		"RUN":                       {[]domain.TokenScope{read, run}, "scheduler"},
		"an unknown one":            {[]domain.TokenScope{"ROOT"}, `"ROOT"`},
	} {
		err := CheckScopes(test.scopes)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAContextCarriesTheCaller(t *testing.T) {
	if p, ok := FromContext(context.Background()); ok || p.Kind != "" || p.IsInstance() {
		t.Errorf("an empty context carries %v", p)
	}
	ctx := WithPrincipal(context.Background(), Principal{Kind: KindRun, RunID: "run_1", Attempt: 2})
	if p, ok := FromContext(ctx); !ok || p.RunID != "run_1" || p.Attempt != 2 {
		t.Errorf("got %v", p)
	}
}

func TestACallerIsLoggedByItsIds(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "caller", Principal{Kind: KindToken, TokenID: "tok_1", WorkspaceID: "wsp_1"})
	if got := out.String(); !strings.Contains(got, "caller.kind=token caller.token_id=tok_1 caller.workspace_id=wsp_1\n") {
		t.Errorf("got %s", got)
	}
}
