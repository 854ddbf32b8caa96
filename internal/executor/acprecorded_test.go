//go:build unix

package executor

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
	"rouse.dev/rouse/internal/retry"
)

// recordedTurn is what an agent's program sent in one turn, against internal/modelserver. Ids of sessions are left out.
type recordedTurn struct {
	name, preset string
	updates      []string
	stderr       string // a line of its standard error
	answer       string // to the prompt; "" for none
	end          ending

	says    string // of the failure; "" for a success
	code    domain.RunErrorCode
	limited bool          // the attempt is tried again by the rules of a limit
	due     time.Duration // at the limit's end, as far as it is known
	message string        // the result
	tokens  [2]int64
	noted   string // a line of the log that is none of the agent's words
}

const (
	copilotLimit = `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Error: 429 Rate limit reached"}}}`
	copilotRetry = `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Info: Request failed due to a transient API error. Retrying..."}}}`
	copilotTool  = `{"update":{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed"}}`
	copilotUsed  = `{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":11,"totalTokens":111,"cachedReadTokens":40,"cachedWriteTokens":0}}`
	qwenUsed     = `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":100,"outputTokens":11,"totalTokens":111,"thoughtTokens":0,"cachedReadTokens":40},"durationMs":1040}}}`
	endTurn      = `{"stopReason":"end_turn"}`
)

var recordedTurns = []recordedTurn{
	{name: "copilot 1.0.102 tells a limit as words of a turn that ended well", preset: "copilot", updates: []string{copilotLimit}, answer: endTurn,
		says: "429 Rate limit reached", code: domain.RunErrorCodeOther, limited: true, message: "Error: 429 Rate limit reached"},
	{name: "and behind a tool, beside what its model has used", preset: "copilot", updates: []string{copilotTool, copilotLimit}, answer: copilotUsed,
		says: "429 Rate limit reached", code: domain.RunErrorCodeOther, limited: true, message: "Error: 429 Rate limit reached", tokens: [2]int64{100, 11}},
	{name: "and a bad key behind two tries", preset: "copilot", answer: endTurn, updates: []string{copilotRetry, copilotRetry,
		`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Error: Authentication failed with provider at http://127.0.0.1:38979/v1 (HTTP 401)."}}}`},
		says: "Authentication failed with provider", code: domain.RunErrorCodeAuth, message: "Error: Authentication failed with provider at http://127.0.0.1:38979/v1 (HTTP 401).",
		noted: "Info: Request failed due to a transient API error. Retrying..."},
	{name: "what its model says of errors is the model's word", preset: "copilot", answer: copilotUsed,
		updates: []string{`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Error: the disk is full."}}}`},
		message: "Error: the disk is full.", tokens: [2]int64{100, 11}},
	{name: "a limit that its model goes on from was none of the turn's end", preset: "copilot", answer: copilotUsed, updates: []string{copilotLimit, copilotTool,
		`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}`}, message: "done", tokens: [2]int64{100, 11}},
	{name: "a denial that ends its turn is no word of its model", preset: "copilot", answer: copilotUsed,
		updates: []string{`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Info: Operation cancelled by user"}}}`},
		tokens:  [2]int64{100, 11}, noted: "Info: Operation cancelled by user"},
	{name: "the same words of another agent are its own", preset: "goose", updates: []string{copilotLimit}, answer: endTurn, message: "Error: 429 Rate limit reached"},
	{name: "qwen 0.24.4 tells its tokens with empty parts of a message", preset: "qwen", answer: `{"stopReason":"end_turn","_meta":{"qwen.branchPoint":{"assistantRecordUuid":"a","checkpointUuid":"b"}}}`,
		updates: []string{`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}`, qwenUsed, qwenUsed}, message: "done", tokens: [2]int64{200, 22}},
	{name: "qwen awaits a limit's end that comes after the timeout", preset: "qwen", stderr: "[qwen-code] Waiting for API capacity... attempt 1, retry in 7170s", end: ending{forced: true, timedOut: true},
		says: "awaited the end of a limit that comes after its timeout of 30m0s, and was ended: rate limit or overload: Waiting for API capacity... attempt 1, retry in 7170s",
		code: domain.RunErrorCodeRateLimited, limited: true, due: 7170 * time.Second},
	{name: "so does Gemini CLI 0.61.0", preset: "gemini", answer: `{"stopReason":"cancelled"}`, end: ending{forced: true, timedOut: true},
		stderr: "Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 2h0m0s.. Retrying after 7460493ms...",
		says:   "awaited the end of a limit", code: domain.RunErrorCodeRateLimited, limited: true, due: 2 * time.Hour},
	{name: "opencode 1.18.33 does not say until when, and calls its end well", preset: "opencode", end: ending{forced: true, timedOut: true},
		answer: `{"stopReason":"end_turn","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0},"_meta":{}}`,
		stderr: `timestamp=2026-11-30T22:47:17.041Z level=ERROR run=1fcf19a4 message="stream error" providerID=scripted modelID=m session.id=ses_1 small=false agent=build mode=primary error.error="AI_APICallError: Rate limit reached"`,
		says:   "within its timeout of 30m0s and was ended: raise the executor's timeout if the work takes longer; the last that stood in its way: AI_APICallError: Rate limit reached",
		code:   domain.RunErrorCodeTimeout, limited: true},
	{name: "a turn that its agent ended while it was told to break off", preset: "opencode", end: ending{forced: true, timedOut: true}, answer: endTurn,
		updates: []string{`{"update":{"sessionUpdate":"agent_message_chunk","messageId":"msg_1","content":{"type":"text","text":"done"}}}`}, message: "done"},
}

// What today's agents of the protocol send where they say something in a way of their own.
func TestWhatAgentsOfTheProtocolSend(t *testing.T) {
	for _, c := range recordedTurns {
		t.Run(c.name, func(t *testing.T) {
			sink, began := &recorder{}, time.Now()
			talk := c.replay(t, sink)
			result := Result{}
			talk.fill(&result, Request{}, c.answer != "")
			f := talk.judge(t.Context(), result, c.answer != "", c.end, nil, limits{})
			if (f == nil) != (c.says == "") || f != nil && (f.Code != c.code || !strings.Contains(f.Message, c.says)) {
				t.Fatalf("the failure is %+v", f)
			}
			if got, _ := result.Object["message"].(string); got != c.message {
				t.Errorf("the message is %q", got)
			}
			if c.tokens != [2]int64{} && (result.Usage == nil || [2]int64{result.Usage.InputTokens, result.Usage.OutputTokens} != c.tokens) {
				t.Errorf("it used %+v", result.Usage)
			}
			if !strings.Contains(sink.text(), "SYSTEM "+c.noted) && c.noted != "" {
				t.Errorf("the log is %q", sink.text())
			}
			if f == nil {
				return
			}
			plan := retry.Plan(began, retry.Counts{}, retry.Evidence{Words: f.Words, Zone: time.Local, Limited: f.Code == domain.RunErrorCodeRateLimited, After: f.RetryAfter}, 0)
			if wait := plan.At.Sub(began); plan.RateLimited != c.limited || c.due > 0 && (wait < c.due || wait > c.due+time.Minute) {
				t.Errorf("tried again %s from now, limited: %t", wait, plan.RateLimited)
			}
		})
	}
}

// replay gives a conversation what the agent sent.
func (c recordedTurn) replay(t *testing.T, sink *recorder) *conversation {
	t.Helper()
	known, ok := preset.FindACP(c.preset)
	if !ok {
		t.Fatalf("%s is no preset", c.preset)
	}
	out := newOutput(Request{}, sink)
	out.hear, out.deadline = known.Notice, time.Now().Add(limits{}.wait())
	talk := &conversation{out: out, wire: newWire(nil), known: known, transcript: newTranscript(out)}
	talk.transcript.ownWords = known.OwnWords
	if c.stderr != "" {
		out.copyLines(domain.LogStreamStderr, strings.NewReader(c.stderr+"\n"))
	}
	for _, update := range c.updates {
		if _, err := talk.handle(t.Context(), acp.ClientMethodSessionUpdate, json.RawMessage(update)); err != nil {
			t.Fatal(err)
		}
	}
	if c.answer != "" {
		if err := json.Unmarshal([]byte(c.answer), &talk.answer); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	close(done)
	talk.done = done
	return talk
}

// An agent that tells of such a limit may end by itself, and is ended when it awaits it all the same.
func TestAnAgentThatAwaitsALimitInVainIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput(Request{}, &recorder{})
		out.deadline = time.Now().Add(30 * time.Minute)
		ended := func() bool {
			synctest.Wait()
			select {
			case <-out.hopeless:
				return true
			default:
				return false
			}
		}
		out.noticed("Attempt 1 failed with status 503. Retrying with backoff...")
		if time.Sleep(time.Minute); ended() || out.inVain() != "" {
			t.Fatal("ended for an overload")
		}
		for range 2 {
			out.noticed("Attempt 2 failed: your quota is exhausted. It resets after 2h0m0s. Retrying...")
		}
		if time.Sleep(endsItself - time.Second); ended() || out.inVain() == "" {
			t.Fatal("ended before it could end by itself, or not noticed")
		}
		if time.Sleep(2 * time.Second); !ended() {
			t.Fatal("it goes on awaiting")
		}
	})
}

// An attempt is ended before its time only where the limit that its agent awaits is sure to outlast it.
func TestALimitThatOutlastsTheAttempt(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for notice, want := range map[string]bool{
		"Attempt 1 failed: Your quota will reset after 2h0m0s, it is exhausted": true,
		"Attempt 1 failed: Your quota will reset after 10m0s, it is exhausted":  false,
		"Attempt 3 failed with status 429. Retrying with backoff...":            false, // until when is not known
		"Attempt 3 failed with status 503. Retry-After: 7200":                   false, // it is no limit
		"AI_APICallError: Rate limit reached":                                   false,
		"rate limit or overload: Waiting for API capacity, retry in 7170s":      true,
	} {
		if got := outlasts(now, now.Add(30*time.Minute), notice); got != want {
			t.Errorf("%q outlasts: %t", notice, got)
		}
		if outlasts(now, time.Time{}, notice) {
			t.Errorf("%q outlasts an attempt without an end", notice)
		}
	}
}
