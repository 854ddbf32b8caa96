//go:build unix

package executor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
)

// hidden masks one word.
func hidden(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }

func TestStepsAreBoundedAndMasked(t *testing.T) {
	sink := &recorder{}
	talk := newTranscript(&output{sink: sink, mask: hidden})
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
