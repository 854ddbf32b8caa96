//go:build unix

package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// says is a program that speaks as a preset's does: it prints what one of them printed, says something on standard error, and ends
// with a code.
func says(t *testing.T, recorded, stderr, code string) string {
	t.Helper()
	output := "/dev/null"
	if recorded != "" {
		var err error
		if output, err = filepath.Abs(filepath.Join("..", "preset", "testdata", "recorded", recorded+".jsonl")); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "agent")
	script := "#!/bin/sh\ncat >/dev/null\ncat '" + output + "'\necho '" + stderr + "' >&2\nexit " + code + "\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// SPEC S8.8: an account that is refused is not tried again, and the message says what to do. A limit and an overload are.
func TestWhoRefusesAnAccountIsNotAskedAgain(t *testing.T) {
	c := newCommand(t, Options{})
	for _, test := range []struct {
		name, preset, recorded, stderr, code string
		want                                 domain.RunErrorCode
		do                                   string
	}{
		{"a bad key of Claude", "claude", "claude-401", "", "1", domain.RunErrorCodeAuth, "rouse agent-shell"},
		{"Claude without a login", "claude", "claude-login", "", "1", domain.RunErrorCodeAuth, "rouse agent-shell"},
		{"Claude without credit", "claude", "claude-billing", "", "1", domain.RunErrorCodeBilling, "no credit"},
		{"a bad key of Codex", "codex", "codex-401", "", "1", domain.RunErrorCodeAuth, "rouse agent-shell"},
		{"Codex without a plan", "codex", "codex-quota", "", "1", domain.RunErrorCodeBilling, "no credit"},
		{"a bad key of Gemini", "gemini", "gemini-401", "", "144", domain.RunErrorCodeAuth, "rouse agent-shell"},
		{"Gemini without a login, by its words", "gemini", "", "Invalid auth method selected.", "1", domain.RunErrorCodeAuth, "rouse agent-shell"},
		{"Gemini without a login, by its exit code", "gemini", "", "Fehler", "41", domain.RunErrorCodeAuth, "rouse agent-shell"},
		{"a limit of Claude", "claude", "claude-limit", "", "1", domain.RunErrorCodeRateLimited, "429"},
		{"an overload", "claude", "claude-529", "", "1", domain.RunErrorCodeOther, "Overloaded"},
		{"another exit code", "claude", "", "no such option", "41", domain.RunErrorCodeCrash, "no such option"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := c.Run(t.Context(), presetRequestOf(test.preset, says(t, test.recorded, test.stderr, test.code)), &recorder{})
			f := failureOf(t, err)
			if permanent := test.want == domain.RunErrorCodeAuth || test.want == domain.RunErrorCodeBilling; f.Code != test.want || f.Permanent != permanent || !strings.Contains(f.Message, test.do) {
				t.Errorf("got %s, permanent %t: %s", f.Code, f.Permanent, f.Message)
			}
		})
	}
}

// Gemini CLI refuses to run where nobody can be asked whether it trusts the folder; the executor's own word goes before.
func TestAPresetsEnvironment(t *testing.T) {
	c := newCommand(t, Options{})
	program := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"trust is $GEMINI_CLI_TRUST_WORKSPACE\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, environment := range map[string][]Variable{"STDOUT trust is true": nil, "STDOUT trust is false": {{"GEMINI_CLI_TRUST_WORKSPACE", "false"}}} {
		req, sink := presetRequestOf("gemini", program), &recorder{}
		req.Environment = environment
		if _, err := c.Run(t.Context(), req, sink); err != nil || sink.text() != want {
			t.Errorf("%v: %q, %v", environment, sink.text(), err)
		}
	}
}

// What an agent does with keys of its own, and what it says of them, is not its account.
func TestAnAgentsWordsAboutKeysAreNotItsAccount(t *testing.T) {
	c := newCommand(t, Options{})
	program := filepath.Join(t.TempDir(), "agent")
	script := `#!/bin/sh
cat >/dev/null
cat <<'END'
{"type":"result","subtype":"success","is_error":false,"result":"{\"error\":\"the deployment answered 401 Unauthorized: invalid api key\"}","session_id":"s-1"}
END
`
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := c.Run(t.Context(), presetRequestOf("claude", program), &recorder{})
	if f := failureOf(t, err); f.Code != domain.RunErrorCodeOther || f.Permanent {
		t.Errorf("got %+v", f)
	}
	_, err = c.Run(t.Context(), shell(`echo '401 Unauthorized: invalid api key' >&2; exit 1`), &recorder{})
	if f := failureOf(t, err); f.Code != domain.RunErrorCodeCrash || f.Permanent {
		t.Errorf("got %+v", f)
	}
}

// A session is lost when the program says so, and is kept through every other trouble.
func TestATroubleOfTheProviderKeepsTheSession(t *testing.T) {
	c := newCommand(t, Options{})
	for _, recorded := range []string{"claude-401", "claude-limit", "claude-529", "claude-billing"} {
		req := presetRequestOf("claude", says(t, recorded, "", "1"))
		req.ResumeSessionID, req.FullPrompt = "s-1", "all of it"
		sink := &recorder{}
		if result, err := c.Run(t.Context(), req, sink); err == nil || result.Fresh || strings.Contains(sink.text(), "could not be resumed") {
			t.Errorf("%s: %+v, %v\n%s", recorded, result, err, sink.text())
		}
	}
	req := presetRequestOf("claude", says(t, "claude-unknown", "", "1"))
	req.ResumeSessionID, req.FullPrompt = "s-1", "all of it"
	sink := &recorder{}
	if result, _ := c.Run(t.Context(), req, sink); !result.Fresh || !strings.Contains(sink.text(), "could not be resumed") {
		t.Errorf("an unknown session is not given up: %+v\n%s", result, sink.text())
	}
}

// The test of an executor asks the program first whether it is logged in, at no cost, and does not prompt one that is not.
func TestWhetherAProgramIsLoggedInIsAskedFirst(t *testing.T) {
	registry := NewRegistry(newCommand(t, Options{}), loopback)
	program := func(answer, code string) string {
		path := filepath.Join(t.TempDir(), "agent")
		script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo 1.0; exit; }\n[ \"$1\" = auth ] && { echo '" + answer + "'; exit " + code + "; }\necho prompted >&2; exit 3\n"
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		name, answer, code string
		environment        []Variable
		want               string // names of the checks; a failed one is in capitals
	}{
		{"logged in", `{ "loggedIn": true }`, "0", nil, "program version login ANSWER"},
		{"not logged in", `{ "loggedIn": false }`, "1", nil, "program version LOGIN"},
		{"not logged in, with a key", `{ "loggedIn": false }`, "1", []Variable{{"ANTHROPIC_API_KEY", "x"}}, "program version ANSWER"},
		{"a version that does not tell", "unknown command", "2", nil, "program version ANSWER"},
	} {
		req := presetRequestOf("claude", program(test.answer, test.code))
		req.Prompt, req.Environment = TestPrompt, test.environment
		var got []string
		for _, c := range registry.Probe(t.Context(), req, true) {
			if !c.OK {
				c.Name = strings.ToUpper(c.Name)
			}
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", test.name, got, test.want)
		}
	}
}
