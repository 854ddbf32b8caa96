package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/xid"
)

// A log is read whole, goes on by bytes or by its cursor, and is shown to those alone who see the run.
func TestALogIsServedAsTextAndGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.NewURL(t)
	s := NewTokens(&Database{DB: db, log: quiet()}).store
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	const run, other = "run_00000000000000000000000001", "run_00000000000000000000000002"
	exec(`INSERT INTO workspaces (id, name, slug, default_time_zone, recovery_lookback_hours, coalescing_window_ms) VALUES ('wsp_1', 'One', 'one', 'UTC', 24, 0), ('wsp_2', 'Two', 'two', 'UTC', 24, 0)`)
	exec(`INSERT INTO agents (id, workspace_id, name, role, skip_idle_wakeups) VALUES ('agt_1', 'wsp_1', 'ada', 'WORKER', false)`)
	exec(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, claimed_at) SELECT id, 'wsp_1', 'agt_1', 'cau', id, 'USER', 'EVENT', 'CLAIMED', now() FROM unnest(ARRAY['` + run + `', '` + other + `']) id`)
	add := func(attempt, from, to int) {
		var texts []string
		for i := from; i <= to; i++ {
			texts = append(texts, fmt.Sprintf("line %d.%d é", attempt, i))
		}
		exec(`INSERT INTO run_log_pieces (workspace_id, run_id, attempt, first_seq, last_seq, bytes, streams, texts, micros)
			SELECT 'wsp_1', $1, $2, $3::int, $4::int, 0, array_fill('STDOUT'::log_stream, ARRAY[$4::int - $3::int + 1]), string_to_array($5, '|'), array_fill(1::bigint, ARRAY[$4::int - $3::int + 1])`,
			run, attempt, from, to, strings.Join(texts, "|"))
	}
	add(1, 1, 250) // more than one page
	add(2, 1, 3)
	token := func(digest, scopes string, workspace any) {
		exec(`INSERT INTO api_tokens (id, workspace_id, name, prefix, digest, scopes) VALUES ($1, $2, 't', 'p', $3, $4)`, xid.New("tok"), workspace, digestOf(digest), scopes)
	}
	token("reader", `["READ"]`, "wsp_1")
	token("stranger", `["ADMIN"]`, "wsp_2")
	token("worker", `["EXECUTE"]`, "wsp_1")
	l := &runLogs{gatekeeper: &gatekeeper{tokens: s, sockets: &liveSockets{}}, strangers: edge.NewStrangers(edge.StrangerLimits{}), runs: s.Reader(), logs: s, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	mux := http.NewServeMux()
	mux.Handle(runLogPath, l)
	get := func(path, token, bytes string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if bytes != "" {
			r.Header.Set("Range", bytes)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	path := "/runs/" + run + "/log"
	whole := get(path, "reader", "")
	if text := whole.Body.String(); whole.Code != http.StatusOK || strings.Count(text, "\n") != 253 || !strings.HasPrefix(text, "line 1.1 é\nline 1.2 é\n") || !strings.HasSuffix(text, "line 2.3 é\n") ||
		whole.Header().Get("Content-Length") != fmt.Sprint(len(text)) || whole.Header().Get(logHead) != "2.3" {
		t.Errorf("the whole log: %d %v, %d bytes", whole.Code, whole.Header(), len(text))
	}
	add(2, 4, 5)
	size := whole.Body.Len()
	rest := "line 2.4 é\nline 2.5 é\n"
	for name, w := range map[string]*httptest.ResponseRecorder{"by bytes": get(path, "reader", fmt.Sprintf("bytes=%d-", size)), "by its cursor": get(path+"?after=2.3", "reader", "")} {
		if w.Body.String() != rest || w.Header().Get(logHead) != "2.5" {
			t.Errorf("what came since, %s: %d %v %q", name, w.Code, w.Header(), w.Body)
		}
	}
	if w := get(path, "reader", fmt.Sprintf("bytes=%d-", size)); w.Code != http.StatusPartialContent || w.Header().Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", size, size+len(rest)-1, size+len(rest)) {
		t.Errorf("a range: %d %v", w.Code, w.Header())
	}
	if w := get(path+"?after=2.5", "reader", ""); w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get(logHead) != "2.5" {
		t.Errorf("nothing new: %d %v %q", w.Code, w.Header(), w.Body)
	}
	for name, c := range map[string]struct {
		path, token, bytes string
		want               int
	}{
		"without a token":               {path, "", "", http.StatusUnauthorized},
		"by an unknown token":           {path, "nobody", "", http.StatusUnauthorized},
		"by one that may not READ":      {path, "worker", "", http.StatusForbidden},
		"by one of another workspace":   {path, "stranger", "", http.StatusNotFound},
		"of a run that is not there":    {"/runs/run_00000000000000000000000009/log", "reader", "", http.StatusNotFound},
		"of a run without lines":        {"/runs/" + other + "/log", "reader", "", http.StatusOK},
		"from bytes that are not there": {path, "reader", "bytes=99999999-", http.StatusRequestedRangeNotSatisfiable},
		"from no place":                 {path + "?after=x", "reader", "", http.StatusBadRequest},
	} {
		if w := get(c.path, c.token, c.bytes); w.Code != c.want {
			t.Errorf("a log %s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
	ctx := auth.WithPrincipal(t.Context(), auth.Principal{Kind: auth.KindRun, WorkspaceID: "wsp_1", AgentID: "agt_1", RunID: run, Attempt: 1})
	for id, want := range map[xid.ID]int{run: http.StatusOK, other: http.StatusNotFound} {
		if status, _ := l.sees(ctx, id); status != want {
			t.Errorf("an agent and the log of %s: %d, want %d", id, status, want)
		}
	}
}
