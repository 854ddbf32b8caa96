//go:build unix

package executor

import (
	"encoding/json"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

func TestTheLastResultOfAModelsWords(t *testing.T) {
	const actions = `"actions":[{"type":"complete_task"}]`
	for _, c := range []struct{ name, words, want string }{
		{"the object alone", `{"summary":"s"}`, `{"summary":"s"}`},
		{"on the last line", "All done.\n{\"summary\":\"s\"}", `{"summary":"s"}`},
		{"in a fence", "All done.\n```json\n{\"summary\":\"s\"}\n```\n", `{"summary":"s"}`},
		{"in a fence on one line", "```json {\"error\":\"no key\"} ```", `{"error":"no key"}`},
		{"in a fence of tildes", "~~~\n{\"error\":\"no key\"}\n~~~", `{"error":"no key"}`},
		{"on several lines", "All done.\n{\n  \"summary\": \"s\",\n  " + actions + "\n}", `{"summary":"s",` + actions + `}`},
		{"on several lines in a fence, with words behind", "```json\n{\n  " + actions + "\n}\n```\n\nThat is all.", `{` + actions + `}`},
		{"with words behind it on its line", `{"summary":"s"} I hope that helps!`, `{"summary":"s"}`},
		{"with words before it on its line", `Result: {"summary":"s"}`, `{"summary":"s"}`},
		{"line breaks and tabs within a text", "{\"summary\":\"one\n\ttwo\"}", `{"summary":"one\n\ttwo"}`},
		{"the last one of two", `{"summary":"first"}` + "\n" + `{"summary":"last"}`, `{"summary":"last"}`},
		{"another object behind it", `{"summary":"s"}` + "\nThe file is {\"a\":1}", `{"summary":"s"}`},
		{"braces of code before it", "func f() {\n  return \"}\"\n}\n{\"summary\":\"s\"}", `{"summary":"s"}`},
		{"an open brace before it", "use { to open\n{\"summary\":\"s\"}", `{"summary":"s"}`},
		{"braces in its texts", `{"summary":"a } b { c \" d"}`, `{"summary":"a } b { c \" d"}`},
		{"a mark before it", "\ufeff\x1b[1m{\"summary\":\"s\"}\x1b[0m", `{"summary":"s"}`},
		{"a number that JSON does not have", `{"summary":"s","n":NaN}`, `{"n":"NaN","summary":"s"}`},
		{"an object that is quoted in a sentence", `The API answered {"error":"not found"}, so I made the page.`, ``},
		{"an object that is quoted in a fence", "It said:\n```json\n{\"message\":\"not found\"}\n```\nI made the page.", ``},
		{"a log record", `{"level":"info","message":"done"}`, ``},
		{"an object within another", `{"data":{"summary":"s"}}`, ``},
		{"no object", `All done {with braces}.`, ``},
		{"an object that does not end", `{"summary":"s"`, ``},
		{"nothing", ``, ``},
	} {
		object, ok := lastResult(c.words)
		got := ""
		if ok {
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		if want := c.want; got != want && !sameJSON(t, got, want) {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	if a == "" || b == "" {
		return a == b
	}
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	return compactJSON(x) == compactJSON(y)
}

// A message of braces is read in a time that grows with its length, and not with its square.
func TestAMessageOfBracesIsReadWithinBounds(t *testing.T) {
	words := strings.Repeat("{", maxWords)
	if _, ok := lastResult(words); ok {
		t.Error("a result is found in braces")
	}
	looked := 0
	for at := 0; looked <= mostLooked(len(words)); at++ {
		n, _ := objectLen([]byte(words[at:]))
		looked += n
	}
	if looked > 20*len(words) {
		t.Errorf("%d bytes are looked at for %d", looked, len(words))
	}
}

// What a terminal would obey stands before a result, its actions and its cost, and hides none of them.
func TestAResultBehindATerminalSequence(t *testing.T) {
	c := newCommand(t, Options{})
	for name, before := range map[string]string{"a title": `\033]0;done\007`, "a mark": `\357\273\277`, "a colour": `\033[32m`, "a line begun anew": `90 %%\r\033[K`} {
		result, err := c.Run(t.Context(), shell(`printf '`+before+`{"summary":"s","actions":[{"type":"complete_task"}],"usage":{"cost_usd":5}}\033[0m\n'`), &recorder{})
		if err != nil || result.Object["actions"] == nil || result.Usage == nil || result.Usage.CostUSD != "5" {
			t.Errorf("%s: %+v, %+v, %v", name, result.Object, result.Usage, err)
		}
	}
}

func TestActionsThatNobodyCanReadAreTold(t *testing.T) {
	c := newCommand(t, Options{})
	for name, printed := range map[string]string{"a broken object": `{"actions":[{"type":"complete_task"}`, "another form": `{"result":"x","more":{"actions":[]}}`} {
		sink := &recorder{}
		if _, err := c.Run(t.Context(), shell(`echo '`+printed+`'`), sink); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(sink.text(), `SYSTEM the agent's last words hold "actions", of which none was done`) {
			t.Errorf("%s: nothing is told:\n%s", name, sink.text())
		}
	}
	sink := &recorder{}
	if _, err := c.Run(t.Context(), shell(`echo '{"actions":[]}'`), sink); err != nil || strings.Contains(sink.text(), "none was done") {
		t.Errorf("actions that are read are told of as lost: %v\n%s", err, sink.text())
	}
}

// A worker's `claude -p --output-format json` prints the model's words as a text within its own object.
func TestTheWordsWithinTheObjectOfAProgramAreLookedInto(t *testing.T) {
	c := newCommand(t, Options{})
	words := "Done:\\n```json\\n{\\n\\\"summary\\\": \\\"made it\\\", \\\"actions\\\": [{\\\"type\\\": \\\"complete_task\\\"}], \\\"usage\\\": {\\\"cost_usd\\\": 9999}\\n}\\n```"
	result, err := c.Run(t.Context(), shell(`cat <<'END'
{"type":"result","subtype":"success","is_error":false,"result":"`+words+`","session_id":"5f1c","total_cost_usd":0.25,"usage":{"input_tokens":3,"cache_read_input_tokens":1000,"cache_creation_input_tokens":100,"output_tokens":7}}
END`), &recorder{})
	if err != nil || result.Object["summary"] != "made it" || result.Object["actions"] == nil || result.SessionID != "5f1c" || !result.Resumable {
		t.Errorf("got %+v, %v", result, err)
	}
	if want := (Usage{InputTokens: 1103, OutputTokens: 7, CostUSD: "0.25"}); result.Usage == nil || *result.Usage != want {
		t.Errorf("its use is %+v, want %+v", result.Usage, want)
	}
	result, err = c.Run(t.Context(), shell(`echo '{"type":"result","subtype":"error","is_error":true,"result":"{\"summary\":\"s\"}"}'`), &recorder{})
	if err == nil {
		t.Errorf("an error of the program is a success: %+v", result)
	}
}

// A model does not know what it used: what it says of that neither hides a cost nor makes one.
func TestAModelsWordsAboutItsUseCountForNothing(t *testing.T) {
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		result, err := newCommand(t, Options{}).Run(t.Context(), presetRequest(t, name, `{\"summary\":\"made it\",\"usage\":{\"cost_usd\":9999,\"input_tokens\":1},\"total_cost_usd\":9999}`), &recorder{})
		if err != nil || result.Usage == nil || result.Usage.CostUSD == "9999" || result.Usage.InputTokens < 2 {
			t.Errorf("%s: %+v, %v", name, result.Usage, err)
		}
		if result.Object["summary"] != "made it" || domain.ResultUsage(result.Object) != nil {
			t.Errorf("%s: the result is %+v", name, result.Object)
		}
	}
}
