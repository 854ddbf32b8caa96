//go:build unix && agents

package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/modelserver"
	"rouse.dev/rouse/internal/retry"
)

// updateTable writes the table of docs/executors.md as the run found it.
var updateTable = flag.Bool("update-table", false, "write the table of docs/executors.md")

// How the providers of models refuse until a limit's end.
func claudeLimit(after time.Duration) string {
	return fmt.Sprintf("429 anthropic-ratelimit-unified-status=rejected anthropic-ratelimit-unified-reset=%d Too many", time.Now().Add(after).Unix())
}

func codexLimit(after time.Duration) string {
	return fmt.Sprintf(`429 {"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":%d}`, time.Now().Add(after).Unix())
}

func geminiLimit(after time.Duration) string {
	return fmt.Sprintf(`429 {"code":429,"status":"RESOURCE_EXHAUSTED","message":"You have exhausted your capacity on this model. Your quota will reset after %s.","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"QUOTA_EXHAUSTED","domain":"cloudcode-pa.googleapis.com"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%ds"}]}`,
		after, int(after.Seconds()))
}

func headerLimit(after time.Duration) string {
	return fmt.Sprintf("429 retry-after=%d Rate limit reached", int(after.Seconds()))
}

// found is what the checks of one agent have in common.
type found struct {
	h            agentHome
	first, again Result
}

// agentChecks are the rows of the table. Each says "yes", or in a few words what it found instead.
var agentChecks = []struct {
	name  string
	check func(f *found) string
}{
	{"first run, with a fenced result and words behind it", (*found).firstRun},
	{"resume", (*found).resume},
	{"tokens of both", (*found).tokens},
	{"cost of both", (*found).cost},
	{"tool", (*found).tool},
	{"denied tool is shown, and does nothing", (*found).deniedTool},
	{"a limit of today parks until its end", func(f *found) string { return f.limited(2 * time.Hour) }},
	{"a limit until next week, too", func(f *found) string { return f.limited(6 * 24 * time.Hour) }},
	{"bad key is AUTH, and the session is kept", (*found).badKeys},
	{"session store deleted: a new session", (*found).lost},
	{"cancel ends a child with a session of its own", (*found).cancelled},
	{"kill −9 is CRASH, and the session goes on", (*found).killed},
}

// Today's programs run, go on with their sessions, tell their use, and say why they cannot, against a model that does what the prompt
// says. What they do is the table of docs/executors.md. `make test-agents` installs them. ROUSE_AGENTS names some of them alone.
func TestRealAgents(t *testing.T) {
	table := readAgentTable(t)
	for _, a := range realAgents() {
		if only := os.Getenv("ROUSE_AGENTS"); only != "" && !slices.Contains(strings.Split(only, ","), a.name) {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			url, model := scripted(t)
			f := &found{h: a.settle(t, url, model)}
			for i, c := range agentChecks {
				began := time.Now()
				got := c.check(f)
				t.Logf("%s: %s: %s (%s)", a.name, c.name, got, time.Since(began).Round(time.Second))
				if *updateTable {
					table.set(i, a, got)
				} else if want := table.cell(c.name, a); got != want {
					t.Errorf("%s: %s: %q, and the table of docs/executors.md says %q", a.name, c.name, got, want)
				}
			}
		})
	}
	if *updateTable {
		table.write(t)
	}
}

// not tells why a check did not say yes.
func (f *found) not(cell string, result Result, err error, sink *recorder) string {
	f.h.t.Logf("%s: %s: %+v, %v\n%s", f.h.name, cell, result, err, sink.text())
	return cell
}

func (f *found) firstRun() string {
	sink := &recorder{}
	result, err := f.h.run(f.h.t.Context(), given{prompt: "@@say Done.\\n```json\\n{\\n  \"summary\": \"first\",\\n  \"actions\": [{\"type\": \"complete_task\"}],\\n  \"usage\": {\"cost_usd\": 9999}\\n}\\n```\\nThat is all."}, sink)
	if f.first = result; err != nil || result.Object["summary"] != "first" || result.Object["actions"] == nil || !result.Resumable {
		return f.not("no", result, err, sink)
	}
	return "yes"
}

// nextMinute is awaited where the program keeps its sessions in files that are named by the minute, and begins such a file anew.
func (f *found) nextMinute() {
	if f.h.minute {
		<-time.After(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
	}
}

func (f *found) resume() string {
	f.nextMinute()
	sink := &recorder{}
	result, err := f.h.run(f.h.t.Context(), given{session: f.first.SessionID, prompt: `@@say {"summary":"second"}`}, sink)
	if f.again = result; err != nil || result.Object["summary"] != "second" || result.SessionID != f.first.SessionID || result.Fresh {
		return f.not("no", result, err, sink)
	}
	return "yes"
}

func (f *found) tokens() string {
	one, two := f.first.Usage, f.again.Usage
	switch {
	case one == nil || two == nil || one.InputTokens == 0 && two.InputTokens == 0:
		return "tells none"
	case one.InputTokens < 100 || one.OutputTokens < 11:
		return f.not("too few", f.first, nil, &recorder{})
	case two.SessionTokens && two.InputTokens == 2*one.InputTokens && two.OutputTokens == 2*one.OutputTokens:
		return "yes, of the thread"
	case two.InputTokens != one.InputTokens || two.OutputTokens != one.OutputTokens:
		return fmt.Sprintf("%d and %d", one.InputTokens, two.InputTokens)
	}
	return "yes"
}

func (f *found) cost() string {
	one, two := f.first.Usage, f.again.Usage
	switch {
	case one == nil || two == nil || (one.CostUSD == "" || one.CostUSD == "0") && (two.CostUSD == "" || two.CostUSD == "0"):
		return "tells none"
	case one.CostUSD == "9999":
		return "takes the model's word"
	case two.SessionCost:
		return "yes, of the session"
	case two.CostUSD != one.CostUSD:
		return fmt.Sprintf("$%s and $%s", one.CostUSD, two.CostUSD)
	}
	return "yes"
}

var failing = regexp.MustCompile(`(?i)failed|not allowed|rejected|exit code [1-9]|: error`)

func (f *found) tool() string {
	sink := &recorder{}
	step := strings.ReplaceAll(f.h.realAgent.tool, "notes.txt", filepath.Join(f.h.work(), "notes.txt"))
	result, err := f.h.run(f.h.t.Context(), given{prompt: "@@tool " + step + "\n" + `@@say {"summary":"read"}`}, sink)
	used := slices.ContainsFunc(sink.spoken(domain.LogStreamSystem), func(line string) bool {
		return (strings.HasPrefix(line, "uses a tool: ") || strings.HasPrefix(line, "runs: ")) && !failing.MatchString(line)
	})
	if err != nil || result.Object["summary"] != "read" || !used || slices.ContainsFunc(sink.spoken(domain.LogStreamSystem), failing.MatchString) {
		return f.not("no", result, err, sink)
	}
	return "yes"
}

func (f *found) deniedTool() string {
	sink := &recorder{}
	result, err := f.h.run(f.h.t.Context(), given{prompt: "@@tool " + f.h.denied + "\n" + `@@say {"summary":"denied"}`}, sink)
	shown := slices.ContainsFunc(sink.spoken(domain.LogStreamSystem), failing.MatchString)
	done := false
	for _, path := range []string{filepath.Join(f.h.work(), "denied"), "/etc/denied"} {
		if os.Remove(path) == nil {
			done = true
		}
	}
	switch {
	case done:
		return f.not("no: it was done", result, err, sink)
	case !shown:
		return f.not("not shown", result, err, sink)
	case err != nil || result.Object["summary"] != "denied":
		return f.not("yes, and its turn ends there", result, err, sink)
	}
	return "yes"
}

// awaited is how long a program may await the end of a limit by itself.
const awaited = time.Minute

func (f *found) limited(after time.Duration) string {
	sink, now := &recorder{}, time.Now()
	result, err := f.h.run(f.h.t.Context(), given{session: f.first.SessionID, prompt: "@@status " + f.h.limit(after), timeout: awaited, variables: f.h.realAgent.limited}, sink)
	var failure *Failure
	if !errors.As(err, &failure) {
		return f.not("no failure", result, err, sink)
	}
	plan := retry.Plan(now, retry.Counts{}, retry.Evidence{Words: failure.Words, Zone: time.Local, Limited: failure.Code == domain.RunErrorCodeRateLimited, After: failure.RetryAfter}, 0)
	wait, ended := plan.At.Sub(now), "parked"
	if failure.Code == domain.RunErrorCodeTimeout {
		ended = "awaits it until the timeout, then parked"
	} else if strings.Contains(failure.Message, "awaited the end of a limit") {
		ended = "awaits it, is ended, and parked"
	}
	switch {
	case !plan.RateLimited:
		return f.not("no", result, err, sink)
	case wait < after-3*time.Minute || wait > after+3*time.Minute:
		return f.not(ended+" by backoff", result, err, sink)
	case ended != "parked":
		return ended
	}
	return "yes"
}

func (f *found) badKeys() string {
	sink := &recorder{}
	result, err := f.h.run(f.h.t.Context(), given{session: f.first.SessionID, prompt: "@@status " + f.h.badKey}, sink)
	var failure *Failure
	switch {
	case !errors.As(err, &failure) || failure.Code != domain.RunErrorCodeAuth:
		return f.not("no", result, err, sink)
	case result.Fresh:
		return f.not("AUTH, in a new session", result, err, sink)
	}
	return "yes"
}

// lost resumes the session in a home that has nothing of it.
func (f *found) lost() string {
	sink := &recorder{}
	elsewhere := f.h.settle(f.h.t, f.h.url, f.h.model)
	result, err := elsewhere.run(f.h.t.Context(), given{session: f.first.SessionID, prompt: `@@say {"summary":"anew"}`}, sink)
	if err != nil || !result.Fresh || result.Object["summary"] != "anew" {
		return f.not("no", result, err, sink)
	}
	return "yes"
}

// waits runs an agent that starts a process in a session of its own, and has f called when it then waits for its model.
func (f *found) waits(ctx context.Context, sink *recorder, session string, reached func()) (seconds string, _ Result, _ error) {
	seconds = fmt.Sprintf("9%d", time.Now().UnixNano()%1e8)
	step := fmt.Sprintf(f.h.child, "setsid sleep "+seconds+" >/dev/null 2>&1 &")
	f.h.model.OnCall(func(c modelserver.Call) {
		if c.Step.Kind == modelserver.Wait {
			reached()
		}
	})
	defer f.h.model.OnCall(nil)
	result, err := f.h.run(ctx, given{session: session, prompt: "@@tool " + step + "\n@@wait", arguments: f.h.free, allow: true, timeout: 90 * time.Second}, sink)
	return seconds, result, err
}

func (f *found) cancelled() string {
	asked := errors.New("somebody asked")
	ctx, cancel := context.WithCancelCause(f.h.t.Context())
	defer cancel(nil)
	sink, started := &recorder{}, false
	seconds := ""
	seconds, result, err := f.waits(ctx, sink, "", func() { started = true; cancel(asked) })
	switch left := sleeping(f.h.t, seconds); {
	case !started || !errors.Is(err, asked):
		return f.not("not reached", result, err, sink)
	case left:
		return f.not("no", result, err, sink)
	}
	return "yes"
}

func (f *found) killed() string {
	sink := &recorder{}
	seconds, result, err := f.waits(f.h.t.Context(), sink, "", func() {
		for _, g := range sink.groups {
			_ = syscall.Kill(g.PGID, syscall.SIGKILL) // the program itself; what it started is rouse's to end
		}
	})
	var failure *Failure
	if !errors.As(err, &failure) || failure.Code != domain.RunErrorCodeCrash || sleeping(f.h.t, seconds) || !result.Resumable {
		return f.not("no", result, err, sink)
	}
	f.nextMinute()
	after := &recorder{}
	again, err := f.h.run(f.h.t.Context(), given{session: result.SessionID, prompt: `@@say {"summary":"after"}`}, after)
	switch {
	case err != nil || again.Object["summary"] != "after":
		return f.not("CRASH, and the next run fails", again, err, after)
	case again.Fresh:
		return f.not("CRASH, and a new session", again, err, after)
	}
	return "yes"
}

// sleeping says whether a process of these seconds is there.
func sleeping(t *testing.T, seconds string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Equal(line, []byte("sleep\x00"+seconds+"\x00")) {
			return true
		}
	}
	return false
}

// agentTable is the table of docs/executors.md: a row for each agent, a column for each check.
type agentTable struct {
	text  string
	cells map[string][]string // by the agent's column
}

var tableMarks = [2]string{"<!-- make test-agents checks this table -->\n", "<!-- its end -->"}

const tablePage = "../../docs/executors.md"

func readAgentTable(t *testing.T) *agentTable {
	t.Helper()
	raw, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	table := &agentTable{text: string(raw), cells: map[string][]string{}}
	_, rest, begins := strings.Cut(table.text, tableMarks[0])
	body, _, ends := strings.Cut(rest, tableMarks[1])
	if !begins || !ends {
		t.Fatalf("%s has no table between the marks", tablePage)
	}
	rows := strings.Split(strings.TrimSpace(body), "\n")
	names := cellsOf(rows[0])
	for _, row := range rows[min(2, len(rows)):] {
		cells := cellsOf(row)
		for i := 1; i < len(cells) && i < len(names); i++ {
			table.cells[names[i]] = append(table.cells[names[i]], cells[i])
		}
	}
	return table
}

func cellsOf(row string) []string {
	cells := strings.Split(strings.Trim(row, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func (a realAgent) column() string { return a.name + " " + a.version }

func (t *agentTable) cell(check string, a realAgent) string {
	for i, c := range agentChecks {
		if cells := t.cells[a.column()]; c.name == check && i < len(cells) {
			return cells[i]
		}
	}
	return ""
}

func (t *agentTable) set(check int, a realAgent, cell string) {
	cells := t.cells[a.column()]
	for len(cells) <= check {
		cells = append(cells, "")
	}
	cells[check] = cell
	t.cells[a.column()] = cells
}

func (t *agentTable) write(test *testing.T) {
	head, line := "| check |", "|---|"
	rows := make([]string, len(agentChecks))
	for i, c := range agentChecks {
		rows[i] = "| " + c.name + " |"
	}
	for _, a := range realAgents() {
		head, line = head+" "+a.column()+" |", line+"---|"
		for i := range rows {
			cell := ""
			if cells := t.cells[a.column()]; i < len(cells) {
				cell = cells[i]
			}
			rows[i] += " " + cell + " |"
		}
	}
	before, rest, _ := strings.Cut(t.text, tableMarks[0])
	_, after, _ := strings.Cut(rest, tableMarks[1])
	text := before + tableMarks[0] + head + "\n" + line + "\n" + strings.Join(rows, "\n") + "\n" + tableMarks[1] + after
	if err := os.WriteFile(tablePage, []byte(text), 0o644); err != nil {
		test.Fatal(err)
	}
}

// The table is that of the programs that are installed.
func TestTheTableNamesTheInstalledVersions(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "agents", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var pinned struct{ Dependencies map[string]string }
	if err := json.Unmarshal(raw, &pinned); err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli", "opencode": "opencode-ai",
		"claude-agent-acp": "@agentclientprotocol/claude-agent-acp", "codex-acp": "@agentclientprotocol/codex-acp", "qwen": "@qwen-code/qwen-code", "copilot": "@github/copilot"}
	for _, a := range realAgents() {
		if got := pinned.Dependencies[packages[a.program()]]; got != a.version {
			t.Errorf("%s is %s here and %s in package.json", a.name, a.version, got)
		}
	}
}
