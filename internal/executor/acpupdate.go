//go:build unix

package executor

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
)

// maxAnswer is how much of the agent's last message becomes the result when it holds no result object; its log has the lines.
const maxAnswer = 64 << 10

// maxWords is how much of the agent's last message is looked through for a result object.
const maxWords = maxResultLine + maskReach

// transcript turns a session's updates into lines of the log. What the agent says goes to STDOUT, line by line. Its
// thoughts, plans and uses of tools go to SYSTEM. Plans and tools are reported as steps, too. Its methods are called
// one at a time.
type transcript struct {
	out     *output
	steps   *steps
	message splitter // what the agent says
	thought splitter
	answer  []byte              // the agent's last message, cut at maxWords
	spoke   bool                // the last update was a part of the message
	id      string              // of the last message that has one; "" until one had
	tools   map[string]toolCall // by brief ids
	plan    string              // the last one, brief
	cost    *domain.Said        // of the session so far, in US dollars
	used    *domain.Tally       // the tokens of the answers of the model, where parts of messages tell them

	ownWords func(part string) (own bool, failure string) // nil: no part of a message is the program's
	failure  string                                       // of the turn, when its last update told so
}

// toolCall is what is kept of one use of a tool, masked and cut: an agent may use thousands, with titles of megabytes.
type toolCall struct {
	title  string
	kind   acp.ToolKind
	status acp.ToolCallStatus
}

func newTranscript(out *output) *transcript {
	t := &transcript{out: out, steps: &steps{sink: out.sink, mask: out.mask}, tools: map[string]toolCall{}}
	t.message = splitter{keep: maxResultLine, emit: func(line []byte, total int64) { out.emit(domain.LogStreamStdout, line, total) }}
	t.thought = splitter{keep: maskWindow, emit: func(line []byte, total int64) {
		out.emit(domain.LogStreamSystem, append([]byte("thinks: "), line...), total+8)
	}}
	return t
}

// update writes down one update.
func (t *transcript) update(u acp.SessionUpdate) {
	switch {
	case u.AgentMessageChunk != nil:
		t.say(blockText(u.AgentMessageChunk.Content), valueOr(u.AgentMessageChunk.MessageId, ""))
		return
	case u.UserMessageChunk != nil: // of a history that comes late: what was said before it is none of this turn's
		t.flush()
		t.answer = t.answer[:0]
	case u.AgentThoughtChunk != nil:
		t.message.flush()
		t.thought.write([]byte(blockText(u.AgentThoughtChunk.Content)))
	case u.ToolCall != nil:
		c := u.ToolCall
		t.tool(c.ToolCallId, &c.Title, &c.Kind, &c.Status, c.Locations)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		t.tool(c.ToolCallId, c.Title, c.Kind, c.Status, c.Locations)
	case u.Plan != nil:
		t.planned(u.Plan.Entries)
	default:
		return
	}
	t.spoke, t.failure = false, ""
}

// say takes a part of the message of that id; some agents give none. After something else, or with another id, a new message begins.
// Where messages have ids, words without one are a warning of the program, and none of the agent's.
func (t *transcript) say(text, id string) {
	if text == "" {
		return
	}
	own, failure := id == "" && t.id != "", ""
	if t.ownWords != nil && !own {
		own, failure = t.ownWords(text)
	}
	if t.failure = failure; own && failure == "" { // what tells of a failure stays a message, because it may be the model's
		t.flush()
		t.note(strings.TrimSpace(text))
		t.out.noticed(strings.TrimSpace(text))
		return
	}
	if !t.spoke || id != t.id {
		t.id = id
		t.flush()
		t.answer = t.answer[:0]
	}
	t.spoke = true
	t.message.write([]byte(text))
	if room := maxWords - len(t.answer); room > 0 {
		t.answer = append(t.answer, text[:min(room, len(text))]...)
	}
}

// tool writes a line when a tool is first used and when its status changes.
func (t *transcript) tool(id acp.ToolCallId, title *string, kind *acp.ToolKind, status *acp.ToolCallStatus, at []acp.ToolCallLocation) {
	before, call := t.learn(id, title, kind, status)
	if before != nil && *before == call {
		return
	}
	t.flush()
	shown := call.title
	if title != nil && *title != "" {
		shown = *title
	}
	line := "uses a tool: " + cmp.Or(shown, string(id))
	if call.kind != "" {
		line += " (" + string(call.kind) + ")"
	}
	for _, place := range at {
		line += " " + place.Path
	}
	if call.status != "" {
		line += ": " + strings.ReplaceAll(string(call.status), "_", " ")
	}
	t.note(line)
	t.steps.tool(id, call, at)
}

// learn takes what the agent says of a use of a tool, and keeps what it said before of the rest; before is nil for a new one.
func (t *transcript) learn(id acp.ToolCallId, title *string, kind *acp.ToolKind, status *acp.ToolCallStatus) (before *toolCall, call toolCall) {
	key := brief(string(id))
	call, known := t.tools[key]
	if known {
		was := call
		before = &was
	}
	if title != nil && *title != "" {
		call.title = t.steps.short(*title, maxStepText)
	}
	if kind != nil && *kind != "" {
		call.kind = acp.ToolKind(t.steps.short(string(*kind), maxStepWord))
	}
	if status != nil && *status != "" {
		call.status = acp.ToolCallStatus(t.steps.short(string(*status), maxStepWord))
	}
	if len(t.tools) < maxRunLines {
		t.tools[key] = call
	}
	return before, call
}

// asked is the use of a tool for which the agent asks leave. Some agents tell its title and kind only there, and not again with the
// updates that follow.
func (t *transcript) asked(c acp.ToolCallUpdate) toolCall {
	_, call := t.learn(c.ToolCallId, c.Title, c.Kind, nil)
	return call
}

// planned writes the plan when it differs from the last one.
func (t *transcript) planned(entries []acp.PlanEntry) {
	var lines []string
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("plan: %s (%s)", e.Content, strings.ReplaceAll(string(e.Status), "_", " ")))
	}
	plan := strings.Join(lines, "\n")
	if brief(plan) == t.plan {
		return
	}
	t.plan = brief(plan)
	t.flush()
	t.note(plan)
	t.steps.plan(entries)
}

// note writes a text of rouse's own words and the agent's, each of its lines by itself, within the run's bounds.
func (t *transcript) note(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		t.out.emit(domain.LogStreamSystem, []byte(line), int64(len(line)))
	}
}

// flush ends lines that were begun.
func (t *transcript) flush() {
	t.message.flush()
	t.thought.flush()
}

// text is the agent's last message, masked.
func (t *transcript) text() string {
	return maskedText(string(bytes.TrimSpace(t.answer)), maxAnswer, t.out.mask)
}

// forget drops what was said, such as the history that comes with a session that is loaded.
func (t *transcript) forget() {
	t.answer, t.spoke, t.plan, t.id, t.used, t.failure = nil, false, "", "", nil, ""
}

// brief is a text to be compared later: a long one is its digest, so that it is not kept.
func brief(text string) string {
	if len(text) <= maxStepText {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// blockText is the text of a block of content, or the name of its kind when it is not text.
func blockText(b acp.ContentBlock) string {
	switch {
	case b.Text != nil:
		return b.Text.Text
	case b.Image != nil:
		return "[image]"
	case b.Audio != nil:
		return "[audio]"
	case b.ResourceLink != nil:
		return "[" + b.ResourceLink.Uri + "]"
	case b.Resource != nil:
		return "[resource]"
	}
	return ""
}
