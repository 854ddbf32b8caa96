//go:build unix

package executor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
)

// hidden masks one word.
func hidden(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }

func TestStepsAreBoundedAndMasked(t *testing.T) {
	sink := &recorder{}
	talk := newTranscript(newOutput(Request{Mask: hidden}, sink))
	long := strings.Repeat("x", maxStepText-len(cutMark)-3) + "hunter2" + strings.Repeat("y", 9000)
	var places []acp.ToolCallLocation
	var plan []acp.PlanEntry
	for range 100 {
		places = append(places, acp.ToolCallLocation{Path: long})
		plan = append(plan, acp.PlanEntry{Content: long, Priority: "high", Status: "pending"})
	}
	kind, status := acp.ToolKindEdit, acp.ToolCallStatusPending
	talk.tool(acp.ToolCallId(long), &long, &kind, &status, places)
	talk.planned(plan)
	talk.planned(plan) // the same again is no step
	if len(sink.steps) != 2 {
		t.Fatalf("%d steps", len(sink.steps))
	}
	for _, step := range sink.steps {
		text, err := json.Marshal(step)
		if err != nil || len(text) > 16<<10 || strings.Contains(string(text), "hun") {
			t.Errorf("a step of %d bytes, %v: %.900s", len(text), err, text)
		}
	}
	if list := sink.steps[1]["plan"].([]any); len(list) != maxPlanned {
		t.Errorf("%d entries of the plan", len(list))
	}
	for i := range maxSteps + 10 {
		title := fmt.Sprint(i)
		talk.tool("one", &title, &kind, &status, nil)
	}
	if n := len(sink.steps); n != maxSteps+1 || sink.steps[n-1]["truncated"] != true {
		t.Errorf("%d steps, the last is %v", n, sink.steps[n-1])
	}
	if lines := len(sink.lines); lines < maxSteps+10 {
		t.Errorf("the log has %d lines: it goes on", lines)
	}
}

func TestWhatIsKeptOfAnAgentsToolsAndPlansIsShort(t *testing.T) {
	sink := &recorder{}
	talk := newTranscript(newOutput(Request{Mask: hidden}, sink))
	long := strings.Repeat("x", maxStepText-len(cutMark)-3) + "hunter2" + strings.Repeat("y", 1<<20)
	kind, status := acp.ToolKind(long), acp.ToolCallStatus(long)
	talk.tool(acp.ToolCallId(long), &long, &kind, &status, nil)
	talk.planned([]acp.PlanEntry{{Content: long}})
	for id, call := range talk.tools {
		if size := len(id) + len(call.title) + len(call.kind) + len(call.status); size > 2*maxStepText || strings.Contains(call.title, "hun") {
			t.Errorf("%d bytes are kept of a tool, its title is %q", size, call.title)
		}
	}
	if len(talk.tools) != 1 || len(talk.plan) > maxStepText {
		t.Errorf("%d tools, %d bytes of the plan", len(talk.tools), len(talk.plan))
	}
	if got := talk.asked(acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(long)}); got.title == "" {
		t.Error("a tool of a long id is not known again")
	}
	lines := len(sink.lines)
	talk.tool(acp.ToolCallId(long), nil, nil, &status, nil)
	talk.planned([]acp.PlanEntry{{Content: long}})
	if len(sink.lines) != lines {
		t.Errorf("the same again left %d lines", len(sink.lines)-lines)
	}
}

func TestASecretThatCrossesACutDoesNotShowItsFirstHalf(t *testing.T) {
	talk := newTranscript(newOutput(Request{Mask: hidden}, &recorder{}))
	talk.say(strings.Repeat("x", maxAnswer-len(cutMark)-3)+"hunter2 and more"+strings.Repeat("y", 1<<20), "")
	call := &httpCall{req: Request{Mask: hidden}}
	refused := received{status: 500, header: http.Header{"Retry-After": {strings.Repeat("9", 1<<16)}}, body: []byte(strings.Repeat("x", httpErrorBytes-3) + "hunter2"), mask: hidden}
	for name, text := range map[string]string{
		"an agent's message":    talk.text(),
		"a service's refusal":   refused.refusal().Message,
		"a failure's message":   call.req.told(strings.Repeat("x", maxFailure-len(cutMark)-3) + "hunter2" + strings.Repeat("y", 1<<20)),
		"the end of a long one": maskedText(strings.Repeat("x", 997)+"hunter2", 1000, hidden),
	} {
		if strings.Contains(text, "hun") || len(text) > 1<<17 || !strings.Contains(text, "xxx") {
			t.Errorf("%s: %d bytes that end with %q", name, len(text), text[max(0, len(text)-40):])
		}
	}
	if got := len(talk.text()); got > maxAnswer || cap(talk.answer) > 2*maxWords {
		t.Errorf("%d bytes of the message, %d are kept", got, cap(talk.answer))
	}
}
