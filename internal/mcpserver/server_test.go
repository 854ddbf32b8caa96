package mcpserver

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rouse.dev/rouse/internal/secret"
)

var update = flag.Bool("update", false, "write the golden file again")

// connected is a client of the server, whose API answers as f does.
func connected(t *testing.T, f http.HandlerFunc) *mcp.ClientSession {
	t.Helper()
	ts := httptest.NewServer(f)
	t.Cleanup(ts.Close)
	api, err := NewAPI(ts.URL, secret.NewString("rsr_secret"))
	if err != nil {
		t.Fatal(err)
	}
	api.pauses = []time.Duration{0, 0, 0}
	here, there := mcp.NewInMemoryTransports()
	if _, err := New(api, "1.0").Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "program", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // it is of no use to anybody any more
	return session
}

func call(t *testing.T, s *mcp.ClientSession, name string, given any) (text string, refused bool) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: given})
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// What a model reads of the tools is looked at by a person: go test ./internal/mcpserver -run Golden -update writes it again.
func TestTheToolsAreThoseOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	s := connected(t, func(http.ResponseWriter, *http.Request) { t.Error("to tell of the tools, the API is not needed") })
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(map[string]any{"instructions": s.InitializeResult().Instructions, "tools": listed.Tools}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/tools.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the tools are not those of %s (go test ./internal/mcpserver -run Golden -update):\n%s", golden, got)
	}
}

const own = `{"data":{"ownRun":{"workspaceId":"wsp_1","attempt":1,"run":{"id":"run_1"},"agent":{"id":"agt_1","name":"Ada"},"task":{"id":"tsk_1","title":"Work"}}}}`

// A server that restarts costs a model nothing: the same call is made again, with the same key, until it is answered. What stays
// unanswered is told with what to do.
func TestACallWithoutAnAnswerIsMadeAgainWithItsKey(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	keys := make(chan string, 10)
	s := connected(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer rsr_secret" {
			t.Errorf("called with %q", r.Header.Get("Authorization"))
		}
		var asked struct {
			Query     string
			Variables struct {
				Input struct{ IdempotencyKey string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		answer := own
		if strings.HasPrefix(asked.Query, "mutation") {
			keys <- asked.Variables.Input.IdempotencyKey
			switch calls.Add(1) {
			case 1:
				w.WriteHeader(http.StatusBadGateway)
				answer = "<html>bad gateway</html>"
			case 2:
				answer = `{"errors":[{"message":"this server is ending","extensions":{"code":"UNAVAILABLE"}}]}`
			default:
				answer = `{"data":{"payload":{"comment":{"id":"cmt_1"},"replayed":false,"wakeupRequests":[],"userErrors":[]}}}`
			}
		}
		_, _ = io.WriteString(w, answer)
	})
	if text, refused := call(t, s, "comment", map[string]any{"body": "hi"}); refused || !strings.Contains(text, "cmt_1") {
		t.Errorf("answered %t, %s", refused, text)
	}
	first := <-keys
	if second, third := <-keys, <-keys; first == "" || second != first || third != first {
		t.Errorf("the keys are %q, %q and %q", first, second, third)
	}
}

func TestWhatTheAPIRefusesIsToldWithWhatToDo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, says string }{
		"no server":           {`no`, "rouse did not answer (status 200"},
		"and what to do then": {`no`, "what was done is not done twice. If that fails, too, put the action into your last answer"},
		"the attempt's end":   {`{"errors":[{"message":"the attempt that this run token belongs to has ended","extensions":{"code":"UNAUTHENTICATED"}}]}`, "has ended. Stop working"},
		"a scope":             {`{"errors":[{"message":"a run's token may not do this","extensions":{"code":"FORBIDDEN"}}]}`, "No tool can do that for you. Ask a person"},
		"an agent":            {`{"data":{"payload":{"userErrors":[{"code":"NOT_FOUND","message":"there is no agent agt_2","field":["input","mentionedAgentIds","0"]}]}}}`, "mentions: there is no agent agt_2. list_agents has the ids"},
		"a text":              {`{"data":{"payload":{"userErrors":[{"code":"TOO_LONG","message":"must be at most 64 KiB","field":["input","body"]}]}}}`, "body: must be at most 64 KiB. Nothing was done. Change that and call again."},
		"a state":             {`{"data":{"payload":{"userErrors":[{"code":"INVALID_STATE","message":"the task waits for a decision","field":["input","taskId"]}]}}}`, "task_id: the task waits for a decision. Nothing was changed. Look at the task with get_task"},
	} {
		s := connected(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			answer := test.answer
			if strings.Contains(string(body), "OwnRun") {
				answer = own
			}
			_, _ = io.WriteString(w, answer)
		})
		text, refused := call(t, s, "comment", map[string]any{"body": "hi"})
		if !refused || !strings.HasPrefix(text, "comment was refused: ") || !strings.Contains(text, test.says) || strings.Contains(text, "rsr_secret") {
			t.Errorf("%s: %t, %s", name, refused, text)
		}
	}
}

func TestArgumentsThatDoNotFitAreAllNamed(t *testing.T) {
	t.Parallel()
	s := connected(t, func(http.ResponseWriter, *http.Request) { t.Error("a call that does not fit reaches the API") })
	for given, says := range map[string]string{
		`{"titel":"x","assignee":7,"blocked_by":["a",1],"requires_approval":"yes"}`: `assignee must be a text, blocked_by must be a list of texts, requires_approval must be true or false, there is no argument "titel", title is missing; nothing was done.`,
		`{"title":""}`:   "title is missing",
		`{"title":null}`: "title is missing",
		`[]`:             "its arguments are no JSON object",
	} {
		text, refused := call(t, s, "create_subtask", json.RawMessage(given))
		if !refused || !strings.Contains(text, says) || !strings.Contains(text, "Call create_subtask with: title (a text, required), description (a text, may be left out)") {
			t.Errorf("%s: %s", given, text)
		}
	}
}

// The server ends when its program has gone away: nobody is left to end it.
func TestTheServerEndsWithItsInput(t *testing.T) {
	t.Parallel()
	api, err := NewAPI("http://127.0.0.1:1/graphql", secret.NewString("rsr_x"))
	if err != nil {
		t.Fatal(err)
	}
	in, program := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(context.Background(), New(api, "1"), in, discard{}) }()
	if err := program.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

func TestWithoutARunThereIsNoServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ address, token, says string }{
		{"", "rsr_x", "ROUSE_API_URL"}, {"file:///etc/passwd", "rsr_x", "ROUSE_API_URL"}, {"http://127.0.0.1:8080/graphql", "", "ROUSE_RUN_TOKEN"},
	} {
		if _, err := NewAPI(test.address, secret.NewString(test.token)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
