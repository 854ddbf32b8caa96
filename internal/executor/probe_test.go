//go:build unix

package executor

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

func checksText(checks []domain.Check) string {
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&b, "%v %s: %s\n", c.OK, c.Name, c.Detail)
	}
	return b.String()
}

func TestProbe(t *testing.T) {
	registry := NewRegistry(newCommand(t, Options{}), loopback)
	stub, err := filepath.Abs("testdata/presets/claude")
	if err != nil {
		t.Fatal(err)
	}
	command := func(c domain.CommandSpec) domain.ExecutorSpec {
		c.Timeout, c.Grace = time.Minute, time.Second
		return domain.ExecutorSpec{Command: &c}
	}
	callable := func(url string) domain.ExecutorSpec {
		return domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: url, Timeout: time.Minute}}
	}
	for _, test := range []struct {
		name string
		spec domain.ExecutorSpec
		want []string // of each check
	}{
		{"no executor", domain.ExecutorSpec{}, []string{"false executor: none"}},
		{"echo says that it is no agent", domain.ExecutorSpec{Echo: &domain.EchoSpec{}}, []string{"true executor: echo", "true answer: "}},
		{"a preset", command(domain.CommandSpec{Preset: "claude", Argv: []string{stub}}), []string{"true program: " + stub, "true version: 2.0.1 (Claude Code)", "true answer: "}},
		{"a program that is not there", command(domain.CommandSpec{Argv: []string{"/no/such/agent"}}), []string{"false program: the program /no/such/agent does not exist"}},
		{"a folder that is not there", command(domain.CommandSpec{Argv: []string{"/bin/cat"}, WorkingDirectory: "/no/such"}), []string{"false folder: the working directory /no/such does not exist"}},
		{"an unknown preset", command(domain.CommandSpec{Preset: "clippy"}), []string{"false preset: "}},
		{"a command that answers", command(domain.CommandSpec{Argv: []string{"/bin/sh", "-c", `cat >/dev/null; echo '{"summary":"ready"}'`}}), []string{"true program: /bin/sh", "true answer: "}},
		{"a command that fails", command(domain.CommandSpec{Argv: []string{"/bin/sh", "-c", "echo log in first >&2; exit 1"}}), []string{"true program", "false answer: the command exited with code 1"}},
		{"an ACP agent that is none", domain.ExecutorSpec{ACP: &domain.ACPSpec{Argv: []string{"/bin/true"}, WorkingDirectory: t.TempDir(), Timeout: time.Minute}},
			[]string{"true program: /bin/true", "false answer: the agent ended before it had answered initialize"}},
		{"a service", callable(service(t, write(200, `{"summary":"ready"}`))), []string{"true connection: ", "true answer: "}},
		{"a service that reports later", callable(service(t, write(202, ""))), []string{"true connection: ", "true answer: the service accepted the run"}},
		{"a service that refuses", callable(service(t, write(403, "no"))), []string{"true connection: ", "false answer: the agent service answered 403 Forbidden"}},
		{"a service that is not there", callable("http://127.0.0.1:1/"), []string{"false connection: the agent service was not reached"}},
		{"a service on an address that is not allowed", callable("http://10.255.255.1/"), []string{"false connection: the address 10.255.255.1 is not public"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			checks := registry.Probe(t.Context(), Request{RunID: "run_1", AgentID: "agt_1", Prompt: TestPrompt, Spec: test.spec}, true)
			if len(checks) != len(test.want) {
				t.Fatalf("got\n%s", checksText(checks))
			}
			for i, c := range checks {
				if got := checksText([]domain.Check{c}); !strings.HasPrefix(got, test.want[i]) {
					t.Errorf("got %s, want %s", got, test.want[i])
				}
				if !c.OK && c.Hint == "" {
					t.Errorf("%s fails without a hint", c.Name)
				}
			}
		})
	}
}

func TestEachThingThatKeepsAnExecutorFromWorkingHasItsHint(t *testing.T) {
	registry := NewRegistry(newCommand(t, Options{}), loopback)
	command := func(argv []string, folder string) domain.ExecutorSpec {
		return domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: argv, WorkingDirectory: folder, Timeout: time.Minute}}
	}
	callable := func(url string) domain.ExecutorSpec {
		return domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: url, Timeout: time.Minute}}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		spec        domain.ExecutorSpec
		check, hint string
	}{
		{"a private address", callable("http://10.0.0.3:8080/"), "connection", "--http-allow 10.0.0.3/32 (ROUSE_HTTP_ALLOW)"},
		{"a private address of the newer kind", callable("http://[fd00::3]/"), "connection", "--http-allow fd00::3/128"},
		{"a cloud's metadata", callable("http://169.254.169.254/"), "connection", "--http-allow 169.254.169.254/32"},
		{"a public address without encryption", callable("http://8.8.8.8/"), "connection", "begin with https"},
		{"a name that nobody knows", callable("https://no-such-host.invalid/"), "connection", "name service"},
		{"a port where nobody listens", callable("http://127.0.0.1:1/"), "connection", "see whether the service runs"},
		{"a folder that is not there", command([]string{"/bin/cat"}, "/no/such"), "folder", "make it"},
		{"a folder that is none", command([]string{"/bin/cat"}, file), "folder", "change workingDirectory"},
		{"a folder that is not absolute", command([]string{"/bin/cat"}, "here"), "folder", "change workingDirectory"},
		{"a program that is not there", command([]string{"/no/such"}, ""), "program", "it has to be there for"},
		{"no executor", domain.ExecutorSpec{}, "executor", "set one on the agent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checks := registry.Probe(t.Context(), Request{RunID: "run_1", AgentID: "agt_1", Prompt: TestPrompt, Spec: c.spec}, true)
			if last := checks[len(checks)-1]; last.OK || last.Name != c.check || !strings.Contains(last.Hint, c.hint) {
				t.Errorf("got %+v, want a hint with %q", last, c.hint)
			}
		})
	}
}

func TestProbeAsksOnlyWhenItIsToldTo(t *testing.T) {
	asked := false
	url := service(t, func(http.ResponseWriter, *http.Request) { asked = true })
	registry := NewRegistry(newCommand(t, Options{}), loopback)
	checks := registry.Probe(t.Context(), Request{Spec: domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: url}}}, false)
	if len(checks) != 1 || !checks[0].OK || asked {
		t.Errorf("got %s, asked %v", checksText(checks), asked)
	}
}

func TestProbeMasks(t *testing.T) {
	registry := NewRegistry(newCommand(t, Options{}), nil)
	req := shell(`echo "my key is $KEY"; exit 1`, Variable{"KEY", "hunter2"})
	req.Mask = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
	if text := checksText(registry.Probe(t.Context(), req, true)); strings.Contains(text, "hunter2") || !strings.Contains(text, "my key is ***") {
		t.Errorf("got %s", text)
	}
}

// TestProbeLooksAtAFolderAsTheAgentsAccount: whether it may write there, and what git will say; each with the line that mends it.
func TestProbeLooksAtAFolderAsTheAgentsAccount(t *testing.T) {
	folder, err := os.MkdirTemp("", "rouse-probe-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	for _, err := range []error{exec.Command("git", "init", "-q", folder).Run(), os.Chmod(folder, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	o, home := Options{}, t.TempDir()
	environment := []Variable{{"GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"}, {"HOME", home}} // as an ordinary user, who can own nothing else
	if os.Geteuid() == 0 {
		const uid = 39990000
		home, environment = folder+"-home", nil
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(home) })
		if err := os.Chown(home, uid, uid); err != nil {
			t.Fatal(err)
		}
		o = Options{Credential: &syscall.Credential{Uid: uid, Gid: uid}, User: "somebody", Home: home}
	}
	registry := NewRegistry(newCommand(t, o), nil)
	req := shell("true", environment...)
	req.Spec.Command.WorkingDirectory = folder
	look := func() string {
		var b strings.Builder
		for _, c := range registry.Probe(t.Context(), req, false) {
			fmt.Fprintf(&b, "%v %s: %s\n→ %s\n", c.OK, c.Name, c.Detail, c.Hint)
		}
		return b.String()
	}
	text := look()
	if os.Geteuid() == 0 {
		for _, want := range []string{"false folder: " + folder + " belongs to root, and the account that agents run as (uid 39990000 somebody) may not write in it",
			"→ let it: setfacl -R -m u:39990000:rwX,d:u:39990000:rwX " + folder, "rouse agent-shell --workspace wsp_1 --agent-user somebody -- git config"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
	line := "git config --global --add safe.directory " + folder
	if !strings.Contains(text, "false git: git refuses to work in "+folder) || !strings.Contains(text, line) {
		t.Fatalf("got\n%s", text)
	}
	mend := shell(line, environment...)
	mend.Spec.Command.WorkingDirectory = "/"
	if _, err := registry[domain.ExecutorCommand].Run(t.Context(), mend, &recorder{}); err != nil {
		t.Fatal(err)
	}
	if text := look(); strings.Contains(text, "false git") {
		t.Errorf("after the line:\n%s", text)
	}
}

// Rights for an agent in / or in a folder below it would open the machine.
func TestNobodyIsToldToOpenTheMachine(t *testing.T) {
	for folder, shared := range map[string]bool{"/": false, "/srv": false, "/srv/": false, "/srv/project": true} {
		hint := Options{}.folderHint(folder)
		if got := strings.Contains(hint, "setfacl"); got != shared {
			t.Errorf("%s: %s", folder, hint)
		}
	}
}
