//go:build agents

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/modelserver"
)

// toolProgram is a program from npm's registry, with what makes it ask the scripted model and nobody else.
type toolProgram struct {
	name      string
	variables func(url string) map[string]string
	files     func(url string) map[string]string // below its home
	arguments []string
	acp       []string // the command line by which it speaks the Agent Client Protocol
}

var toolPrograms = []toolProgram{
	{name: "claude", acp: []string{"claude-agent-acp"}, variables: func(url string) map[string]string {
		return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-test", "CLAUDE_CODE_MAX_RETRIES": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false"}
	}},
	{name: "codex", acp: []string{"codex-acp"}, variables: func(string) map[string]string { return map[string]string{"OPENAI_API_KEY": "sk-test"} }, files: func(url string) map[string]string {
		return map[string]string{".codex/config.toml": "model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"" + url +
			"/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"}
	}},
	{name: "gemini", arguments: []string{"--model", "gemini-2.5-pro"}, acp: []string{"gemini", "--acp"}, variables: func(url string) map[string]string {
		return map[string]string{"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "g-test"}
	}, files: func(string) map[string]string {
		return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`}
	}},
	{name: "opencode", acp: []string{"opencode", "acp"}, variables: func(string) map[string]string {
		return map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
	}, files: func(url string) map[string]string {
		return map[string]string{".config/opencode/opencode.json": `{"model":"scripted/m","small_model":"scripted/m","provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","name":"scripted",` +
			`"options":{"baseURL":"` + url + `/v1","apiKey":"sk-test"},"models":{"m":{"name":"m","limit":{"context":100000,"output":8000}}}}}}`}
	}},
}

// settle makes the program's home, which the agents' account may change, and gives the program's executor.
func (p toolProgram) settle(t *testing.T, url string, acp bool) map[string]any {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "internal", "executor", "testdata", "agents", "node_modules", ".bin"))
	if err == nil {
		_, err = os.Stat(filepath.Join(bin, p.name))
	}
	if err != nil {
		t.Fatalf("the program is not installed (make test-agents does that): %v", err)
	}
	home := newWorkshop(t)
	files := map[string]string{"work/README": "Work here.\n"}
	if p.files != nil {
		for name, text := range p.files(url) {
			files[name] = text
		}
	}
	for name, text := range files {
		path := home.path(name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err = filepath.WalkDir(home.dir, func(path string, _ os.DirEntry, err error) error { return errors.Join(err, os.Chmod(path, 0o777)) })
	if err != nil {
		t.Fatal(err)
	}
	environment := []any{map[string]any{"name": "HOME", "value": home.dir}, map[string]any{"name": "PATH", "value": bin + ":" + os.Getenv("PATH")}}
	for name, value := range p.variables(url) {
		environment = append(environment, map[string]any{"name": name, "value": value})
	}
	spec := map[string]any{"argv": append([]string{filepath.Join(bin, p.name)}, p.arguments...), "workingDirectory": home.path("work"), "environment": environment, "timeout": "PT3M"}
	if acp {
		spec["preset"], spec["argv"] = p.acp[0], []string{filepath.Join(bin, p.acp[0])}
		return map[string]any{"acp": spec}
	}
	spec["preset"] = p.name
	return map[string]any{"command": spec}
}

// scriptedModel starts a model on a loopback address.
func scriptedModel(t *testing.T) (url string, model *modelserver.Server) {
	t.Helper()
	model = &modelserver.Server{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: model, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // what is still asked is answered to nobody
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String(), model
}

// Today's programs are handed the tools of their run: the model finds a colleague, makes a subtask for it, is refused a task that is not
// its own and goes on, and completes its task. The completion in its last words is not done again. `make test-agents` runs this.
func TestRealAgentsWorkByTools(t *testing.T) {
	o := openOffice(t)
	foreign, _ := o.create(map[string]any{"title": "Foreign", "description": "secret plans"})
	for i, p := range append(toolPrograms, toolPrograms...) {
		name, acp := p.name, i >= len(toolPrograms)
		if acp {
			name = strings.Join(p.acp, " ") + " by ACP"
		}
		t.Run(name, func(t *testing.T) {
			url, model := scriptedModel(t)
			o := office{o.journey.on(t, o.program), o.workshop, o.house}
			colleague := "Colleague of " + name
			ben := o.agent(colleague, map[string]any{"echo": map[string]any{}})
			ada := o.agent("Ada with "+name, p.settle(t, url, acp))
			task, made := o.create(map[string]any{"title": "Count", "assigneeId": ada, "description": strings.Join([]string{
				`@@tool *list_agents {}`,
				`@@tool *create_subtask {"title":"Count the red ones","assignee":"{{id of ` + colleague + `}}"}`,
				`@@tool *get_task {"task_id":"` + foreign + `"}`,
				`@@tool *comment {"task_id":"` + foreign + `","body":"hi"}`,
				`@@tool *complete_task {}`,
				`@@say {"summary":"counted","actions":[{"type":"complete_task"}]}`,
			}, "\n")})
			if len(made.WakeupRequests) != 1 {
				t.Fatalf("made %+v", made)
			}
			run := o.wakeup(made.WakeupRequests[0].ID).Run.ID
			eventually(t, "the end of the run", 5*time.Minute, func() bool { return !slices.Contains([]string{"QUEUED", "CLAIMED"}, o.run(run).Status) })
			view := o.run(run)
			if view.Status != "FINISHED" || view.Summary != "counted" {
				t.Errorf("the run: %+v\n%s\noffered: %v", view, strings.Join(view.lines(), "\n"), offered(model))
			}
			o.wantTask(task, "DONE")
			var out struct {
				Task struct {
					Children struct {
						Edges []struct {
							Node struct {
								Title    string
								Assignee struct{ ID string }
							}
						}
					}
				}
				Run struct {
					Events struct {
						Edges []struct {
							Node struct {
								Kind string
								Data map[string]any
							}
						}
					}
				}
			}
			o.request(`query($t: ID!, $r: ID!) { task(id: $t) { children { edges { node { title assignee { id } } } } } run(id: $r) { events(first: 100) { edges { node { kind data } } } } }`,
				map[string]any{"t": task, "r": run}, &out)
			if c := out.Task.Children.Edges; len(c) != 1 || c[0].Node.Title != "Count the red ones" || c[0].Node.Assignee.ID != ben {
				t.Errorf("the subtasks are %+v", c)
			}
			var acts []string
			for _, e := range out.Run.Events.Edges {
				switch e.Node.Kind {
				case "ACTED":
					acts = append(acts, fmt.Sprint(e.Node.Data["action"]))
				case "FINISHED":
					acts = append(acts, fmt.Sprint(e.Node.Data["actions"]))
				}
			}
			if got := strings.Join(acts, " "); !strings.HasPrefix(got, "create_subtask move_task [map[before:true done:true") {
				t.Errorf("the run acted so: %s\n%s", got, strings.Join(view.lines(), "\n"))
			}
		})
	}
}

func offered(model *modelserver.Server) []string {
	for _, c := range model.Calls() {
		if len(c.Tools) > 0 {
			return c.Tools
		}
	}
	return nil
}
