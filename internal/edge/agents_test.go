package edge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/xid"
)

// byName takes a token for the name of an agent at work, and "owner" for the owner.
func byName(ctx context.Context, c Credentials) (context.Context, error) {
	if c.Token == "owner" {
		return auth.WithPrincipal(ctx, auth.Local()), nil
	}
	return auth.WithPrincipal(ctx, auth.Principal{Kind: auth.KindRun, AgentID: xid.ID(c.Token)}), nil
}

// askAs sends a query; ctx is that of the connection.
func (f *fixture) askAs(ctx context.Context, token string) int {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/graphql", strings.NewReader(`{"query":"{hello}"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Code
}

// An agent that asks for more than its share waits for itself: neither its owner nor another agent does.
func TestAnAgentHasAShareOfTheServer(t *testing.T) {
	f := newFixture(t, Options{Authenticate: byName, Limits: Limits{PerAgent: 2, Agents: 3, QueryTimeout: 20 * time.Millisecond}})
	left, leave := context.WithCancel(t.Context())
	leave() // whoever waits is told at once
	greedy, err := byName(t.Context(), Credentials{Token: "greedy"})
	if err != nil {
		t.Fatal(err)
	}
	var end []func()
	for range 2 {
		free, refused := f.agents.enter(greedy)
		done, ok := f.agents.work(greedy)
		if refused != nil || !ok {
			t.Fatal("an agent does not get its share")
		}
		end = append(end, free, done)
	}
	if status := f.askAs(left, "greedy"); status != http.StatusServiceUnavailable {
		t.Errorf("a third request of the agent: %d", status)
	}
	for _, other := range []string{"owner", "modest"} {
		if status := f.askAs(t.Context(), other); status != http.StatusOK {
			t.Errorf("%s: %d", other, status)
		}
	}
	modest, err := byName(t.Context(), Credentials{Token: "modest"})
	if err != nil {
		t.Fatal(err)
	}
	done, ok := f.agents.work(modest)
	if !ok {
		t.Fatal("the agents do not get their share")
	}
	for token, want := range map[string]int{"owner": http.StatusOK, "another": http.StatusServiceUnavailable} { // its time is over
		if status := f.askAs(t.Context(), token); status != want {
			t.Errorf("all agents are at work, and %s gets %d, want %d", token, status, want)
		}
	}
	done()
	for _, free := range end {
		free()
	}
	if status := f.askAs(t.Context(), "greedy"); status != http.StatusOK {
		t.Errorf("after the end of its requests: %d", status)
	}
}
